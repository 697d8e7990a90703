"""Products of sizes that tiles do not divide: exact, inside of their arrays, and refused by name where not.

The emulator checks every access, and results are NaN before the kernel writes them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from rewrites.result import Failure
from rise.check.specialise import inputs_of
from rise.errors import TranslationError
from rise.expr import Expr, Literal, Primitive, map_children, subterms
from rise.interpret import call, random_inputs
from rise.types import F16
from strategies.core import Rewrite, seq
from strategies.matmul import alignment
from strategies.matmul.alignment import computed_in_copies
from strategies.matmul.separate import differences_stored
from strategies.matmul.tensor_core import tensor_core
from strategies.places import in_inputs
from tests.support.nightly import every_other, in_turn
from tests.support.programs import program, succeeded

DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
OTHER = "zip(r2)(c2) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
LOADED = DOT.replace("f32(x)", "f32(x + 1.0)")
WMMA: dict[str, Any] = {"block": (32, 32, 32), "warp": (16, 32)}
MMA = {**WMMA, "fragment": (16, 8, 16), "epilogue": "direct"}
GROUPS: dict[str, Any] = {
    "block": (64, 64, 64),
    "warp": (64, 64),
    "fragment": (64, 64, 16),
    "epilogue": "direct",
}
SLOW = {"vector": 1, "cp_async": False}


def product(what: str, m: int, n: int, k: int, a: str = "A", b: str = "B") -> str:
    """A program around a product of A or its transposition with B or its transposition."""
    left = f"{k}.{m}.f16" if "transpose" in a else f"{m}.{k}.f16"
    right = f"{k}.{n}.f16" if "transpose" in b else f"{n}.{k}.f16"
    plain = f"{a} |> map(fun(row => {b} |> map(fun(col => {DOT}))))"
    return {
        "A·B": f"fun((A: {left}, B: {right}) => {plain})",
        "αA·B + βC": f"fun((A: {left}, B: {right}, C: {m}.{n}.f32, alpha: f32, beta: f32) => zip({a})(C) |>"
        f" map(fun((row, cs) => zip({b})(cs) |> map(fun((col, c) => {DOT} |>"
        " fun(r => alpha * r + beta * c))))))",
        "bias, ReLU": f"fun((A: {left}, B: {right}, bias: {n}.f32) => {a} |> map(fun(row => zip({b})(bias) |>"
        f" map(fun((col, y) => {DOT} |> fun(r => f16(max(r + y, 0.0))))))))",
        "batched": f"fun((As: 2.{left}, Bs: 2.{right}) => zip(As)(Bs) |> map(fun((A, B) => {plain})))",
        "prologue": f"fun((A: {left}, B: {right}) => {plain.replace(DOT, LOADED)})",
        "two products": f"fun((A: {left}, B: {right}, C: {m}.24.f16, D: {n}.24.f16) => zip({a})(C) |>"
        f" map(fun((row, r2) => zip({b})(D) |> map(fun((col, c2) => ({DOT}) + ({OTHER}))))))",
    }[what]


def derived(text: str, parameters: dict[str, Any]) -> Expr:
    return succeeded(tensor_core(**parameters)(program(text))).term


def agrees(text: str, made: Kernel | HostProgram, inputs: Any = None) -> bool:
    given = inputs or random_inputs(inputs_of(program(text)), 3, exact=True)
    return np.array_equal(execute(made, given, "emulate"), call(program(text), *given), equal_nan=True)


# --- any size ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "sizes", "operands", "parameters"),
    every_other(
        [
            ("αA·B + βC", (40, 24, 32), ("A", "B"), WMMA),
            ("two products", (33, 31, 40), ("A", "B"), MMA),
            ("batched", (24, 40, 24), ("A", "transpose(B)"), MMA),
            ("bias, ReLU", (37, 41, 43), ("transpose(A)", "transpose(B)"), {**WMMA, **SLOW}),
            ("prologue", (1, 1, 1), ("A", "B"), {**MMA, **SLOW}),
            ("A·B", (72, 8, 56), ("transpose(A)", "transpose(B)"), GROUPS),
            ("αA·B + βC", (67, 61, 200), ("A", "B"), GROUPS),
            ("bias, ReLU", (65, 43, 40), ("A", "B"), GROUPS),
        ]
    ),
)
def test_a_product_of_any_size_is_exact(
    what: str, sizes: tuple[int, int, int], operands: tuple[str, str], parameters: dict[str, Any]
) -> None:
    text = product(what, *sizes, *operands)
    assert agrees(text, generate(derived(text, parameters), "product"))


def test_sizes_at_random_are_exact() -> None:
    """Multiples of 8 around tiles and rings, as vectors and boxes need them."""
    choose = random.Random(6)
    for parameters in (WMMA, GROUPS):
        m, n, k = (8 * choose.randint(1, 12) for _ in range(3))
        a, b = choose.choice(("A", "transpose(A)")), choose.choice(("B", "transpose(B)"))
        text = product("A·B", m, n, k, a, b)
        assert agrees(text, generate(derived(text, parameters), "product")), (m, n, k)


@pytest.mark.parametrize(("a", "b"), in_turn(["A", "transpose(A)"], ["transpose(B)", "B"]))
def test_operands_with_misaligned_rows_are_copied_to_longer_ones(a: str, b: str) -> None:
    """Bulk copies take rows of multiples of 16 bytes: an operand that has others is copied by a kernel."""
    choose = random.Random(f"{a}{b}")
    for what in ("A·B", "bias, ReLU", "αA·B + βC", "prologue"):
        m, n, k = (choose.choice((1, 7, 63, 64, 65, 72, 101)) for _ in range(3))
        text = product(what, m, n, k, a, b)
        made = assemble(derived(text, GROUPS), "product")
        rows = (m if "transpose" in a else k, n if "transpose" in b else k)
        assert len(made.temporaries) == sum(row % 8 > 0 for row in rows), (what, m, n, k)
        assert agrees(text, made), (what, m, n, k)


COMPUTED = {
    "numbers": ("f16", "x + 1", "f16", "2 * x - 1"),
    "scaled": ("i8", "f16(x) * s", "i8", "f16(x) * s"),
}


@pytest.mark.parametrize("what", COMPUTED)
def test_operands_with_misaligned_rows_are_computed_where_they_are_copied(what: str) -> None:
    """Zeros behind the ends of rows stay zeros, whatever the function makes of zeros."""
    choose = random.Random(what)
    first, f, second, g = COMPUTED[what]
    m, n, k = (choose.choice((1, 7, 63, 65, 75, 101)) for _ in range(3))
    text = (
        f"fun((A: {m}.{k}.{first}, B: {n}.{k}.{second}, s: {m}.f16, t: {n}.f16) =>"
        f" zip(A)(s) |> map(fun((xs, s) => xs |> map(fun(x => {f})))) |> map(fun(row =>"
        f" zip(B)(t) |> map(fun((xs, s) => xs |> map(fun(x => {g})))) |> map(fun(col => {DOT})))))"
    )
    made = assemble(derived(text, GROUPS), "product")
    assert len(made.kernels) == 3 and "wgmma<" in made.kernels[-1].source
    assert agrees(text, made), (what, m, n, k)


def test_a_difference_of_products_is_negated_where_operands_are_copied_beside_each_other() -> None:
    """Two kernels copy [A C] and [B; -D]; the one product of these has one ring of tiles."""
    choose = random.Random(29)
    m, n, k = (choose.choice((1, 7, 63, 65, 75, 101)) for _ in range(3))
    first, second = (
        f"({a} |> map(fun(row => transpose({b}) |> map(fun(col => {DOT})))))" for a, b in ("AB", "CD")
    )
    text = (
        f"fun((A: {m}.{k}.f16, B: {k}.{n}.f16, C: {m}.{k}.f16, D: {k}.{n}.f16) => zip{first}{second} |>"
        " map(fun((p, q) => zip(p)(q) |> map(fun((x, y) => f16(max(x - y, 0)))))))"
    )
    added = succeeded(in_inputs(seq(differences_stored, computed_in_copies))(program(text))).term
    low = succeeded(tensor_core(**GROUPS, warp_specialised=True)(added)).term
    names = Counter(part.name for part in subterms(low) if isinstance(part, Primitive))
    made = assemble(low, "product")
    assert (names["reduceRoleSplit"], names["neg"], len(made.kernels)) == (1, 1, 3)
    assert agrees(text, made), (m, n, k)


def test_a_copy_that_leaves_out_the_zeros_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The denotation of what is copied is part of the derivation: rows that are too short do not derive."""
    monkeypatch.setattr(alignment, "missing", lambda size, tile: 8)
    result = tensor_core(**GROUPS)(program(product("A·B", 64, 43, 64, "A", "transpose(B)")))
    assert isinstance(result, Failure)


def test_what_is_no_number_stays_where_it_is() -> None:
    """Both operands have zeros behind the ends of sums: 0 · ∞ is not computed for any result."""
    text = product("A·B", 24, 40, 40)
    a, b = random_inputs(inputs_of(program(text)), 3, exact=True)
    b[39, 39], a[0, 0] = np.inf, np.nan
    made = generate(derived(text, MMA), "product")
    assert agrees(text, made, (a, b))
    assert np.isfinite(call(program(text), a, b)[1:, :39]).all()


def test_slices_of_sums_are_rounded_up() -> None:
    """k = 40 in two slices of 32 each."""
    text = product("A·B", 24, 24, 40)
    made = assemble(derived(text, {**WMMA, "split_k": 2}), "product")
    assert len(made.kernels) == 2
    assert agrees(text, made)


# --- how --------------------------------------------------------------------------------------------------


def test_sizes_that_tiles_divide_are_left_as_they_are() -> None:
    result = succeeded(tensor_core(**WMMA)(program(product("A·B", 64, 32, 96))))
    assert not [step for step in result.steps if "roundUp" in step.rule or "pad" in step.rule]


def test_vectors_are_copied_or_zero_and_stored_or_not() -> None:
    """Rows of 40 are of whole vectors, so no lane has a condition of its own."""
    source = generate(derived(product("A·B", 40, 40, 40), WMMA), "product").source
    assert source.count("copy_async_or_zero<8>(") == 2
    assert "copy_vector<4>(&output" in source and "output[" not in source.replace("&output[", "")


def test_boxes_are_of_the_arrays_themselves() -> None:
    source = generate(derived(product("A·B", 40, 40, 72), GROUPS), "product").source
    assert source.count("bulk_load(") == 2 and "?" not in source


def test_zeros_inside_of_an_array_are_no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 56 of rows of 72: the copying unit would bring the others, so a kernel copies these."""
    text = product("A·B", 64, 64, 72).replace("row => B", "row => B |> map(take(56))")
    text = text.replace("=> A |>", "=> A |> map(take(56)) |>")
    made = assemble(derived(text, GROUPS), "product")
    assert len(made.temporaries) == 2 and agrees(text, made)
    monkeypatch.setattr(alignment, "_is_cut", lambda matrix: False)
    schedule: Rewrite = tensor_core(**GROUPS)
    result = schedule(program(text))
    assert isinstance(result, Failure)
    assert re.search("zeros are read for some elements inside `[AB]`", result.reason)


def test_ones_behind_the_end_are_no_box() -> None:
    def with_ones(term: Expr) -> Expr:
        if isinstance(term, Literal) and term.type == F16:
            return replace(term, value=1.0)
        return map_children(term, with_ones)

    low = derived(product("A·B", 64, 64, 72), GROUPS)
    with pytest.raises(TranslationError, match="it is computed"):
        generate(with_ones(low), "product")


@pytest.mark.parametrize(
    ("what", "target"),
    [("αA·B + βC", "sm_75"), ("αA·B + βC", "sm_80"), ("αA·B + βC", "sm_90a")],
)
def test_kernels_compile(what: str, target: str) -> None:
    parameters = GROUPS if target == "sm_90a" else WMMA
    made = generate(derived(product(what, 97, 101, 72), parameters), "product")
    assert runtime.compile_cubin(made.source, target)


# --- refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "parameters", "reason", "hint"),
    [
        (52, WMMA, "rows of 52 elements, 104 bytes, and a thread copies at once 16 bytes", "use `vector=4`"),
        (52, {**WMMA, "vector": 1}, "asynchronous copies move 4, 8 or 16 bytes", "use `cp_async=false`"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_copied_so_are_refused_with_what_helps(
    k: int, parameters: dict[str, Any], reason: str, hint: str
) -> None:
    schedule: Rewrite = tensor_core(**parameters)
    result = schedule(program(product("A·B", 37, 40, k)))
    assert isinstance(result, Failure)
    assert reason in result.reason and hint in (result.hint or "")


def test_fragments_stored_as_a_whole_are_refused_at_the_edge() -> None:
    text = product("A·B", 40, 40, 40)
    schedule: Rewrite = tensor_core(**{**WMMA, "epilogue": "direct"})
    result = schedule(program(text))
    assert isinstance(result, Failure)
    assert "tiles stick out of the result" in result.reason
