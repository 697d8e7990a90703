"""Programs of several kernels, `toMem(Global)` between them, lowered by `default`: right in any form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codegen.execute import available_backend, execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rise.check.program import check_expression, check_text, load
from rise.check.specialise import inputs_of, specialise
from rise.check.symbolic import opened
from rise.errors import TranslationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.source import place
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other
from tests.support.programs import succeeded

needs_compiler = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")

DOUBLED = "xs |> map(fun(x => x * 2)) |> toMem(Global)"
DOT = "zip(row)(col) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"
# text, and how many kernels it takes
PROGRAMS = {
    "in a let": (f"fun(xs: 7.i32 => let y = {DOUBLED} in y |> map(fun(x => x + 1)))", 2),
    "in a pipe": (f"fun(xs: 7.i32 => {DOUBLED} |> slide(3)(1) |> map(fun(w => w |> reduce(+, 0))))", 2),
    "the result": (f"fun(xs: 7.i32 => {DOUBLED})", 1),
    "results in a pair": (f"fun(xs: 7.i32 => let y = {DOUBLED} in (y, y |> map(fun(x => x + 1))))", 2),
    "used twice": (
        f"fun(xs: 7.i32 => let y = {DOUBLED} in zip(y)(y |> scan(+, 0)) |> map(fun((a, b) => a - b)))",
        2,
    ),
    "two": (
        f"fun(xs: 7.i32 => let y = {DOUBLED} in let z = y |> scan(+, 0) |> toMem(Global) in"
        " zip(y)(z) |> map(fun((a, b) => a - b)))",
        3,
    ),
    "in a let inside of another": (
        f"fun(xs: 7.i32 => let y = (let z = {DOUBLED} in z |> map(fun(x => x + 1)) |> toMem(Global)) in"
        " y |> map(fun(x => x * 3)))",
        3,
    ),
    "a number": (
        "fun(xs: 7.i32 => let t = xs |> reduce(+, 0) |> toMem(Global) in xs |> map(fun(x => x - t)))",
        2,
    ),
    "what uses a let": (
        "fun(xs: 7.i32 => let t = xs |> reduce(+, 0) in let y = xs |> map(fun(x => x - t)) |> toMem(Global)"
        " in y |> map(fun(x => x * t)))",
        2,
    ),
    "pairs": (
        "fun(xs: 7.i32 => xs |> map(fun(x => (x, x * x))) |> toMem(Global) |> map(fun((a, b) => a + b)))",
        2,
    ),
    "a pair of arrays": (
        "fun(xs: 7.i32 => let p = (xs |> map(fun(x => x + 1)), xs |> scan(+, 0)) |> toMem(Global) in"
        " zip(fst(p))(snd(p)) |> map(fun((a, b) => a + b)))",
        2,
    ),
    "a matrix": (
        "fun((A: 5.7.i32, B: 7.3.i32) => A |> map(fun(row => B |> transpose |> map(fun(col =>"
        f" {DOT})))) |> toMem(Global) |> transpose |> map(fun(c => c |> reduce(+, 0))))",
        2,
    ),
    "a view": ("fun(A: 5.3.i32 => A |> transpose |> toMem(Global) |> map(fun(c => c |> reduce(+, 0))))", 2),
    "in a map that it does not depend on": (
        "fun((A: 5.7.i32, xs: 7.i32) => A |> map(fun(r => zip(r)(xs |> scan(+, 0) |> toMem(Global))"
        " |> map(fun((a, b) => a * b)))))",
        2,
    ),
    "after a map that has a level": (
        "fun(xs: 7.i32 => xs |> mapGlobal(fun(x => x + 1)) |> toMem(Global) |> map(fun(x => x * 2)))",
        2,
    ),
}


def by_default(term: Expr) -> HostProgram:
    return assemble(succeeded(default()(term)).term, "f")


def agrees(made: HostProgram, term: Expr) -> bool:
    inputs = random_inputs(inputs_of(term), 1, exact=True)
    found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    return all(np.array_equal(np.ravel(a), np.ravel(b)) for a, b in pairs)


@needs_compiler
@pytest.mark.parametrize("case", every_other(PROGRAMS))
def test_what_is_stored_for_the_whole_grid_ends_a_kernel(case: str) -> None:
    text, kernels = PROGRAMS[case]
    term = data_flow(check_expression(text))
    made = by_default(term)
    assert len(made.kernels) == kernels
    assert agrees(made, term)


STAGE = "def stage: {n: Nat} -> n.i32 -> n.i32 = fun(xs => xs |> map(fun(x => x * x)) |> toMem(Global))"
TWICE = "def twice: {n: Nat} -> n.i32 -> n.i32 = fun(xs => xs |> stage |> stage |> map(fun(x => x + 1)))"


@needs_compiler
def test_a_definition_of_ones_own_may_end_a_kernel(tmp_path: Path) -> None:
    """Also one of another file, and at sizes that are known at launch."""
    (tmp_path / "stages.rise").write_text(STAGE, encoding="utf-8")
    (tmp_path / "all.rise").write_text(f'import "stages.rise"\n{TWICE}', encoding="utf-8")
    definition = load(tmp_path / "all.rise")["twice"]
    term = data_flow(specialise(definition, {"n": 11}))
    assert len(by_default(term).kernels) == 3 and agrees(by_default(term), term)
    left = opened(definition, {}, {"n": 1})
    lowered = succeeded(default()(data_flow(left.program)))
    made = assemble(replace(left, program=lowered.term), "f")
    for n in (1, 13):
        assert agrees(made, data_flow(specialise(definition, {"n": n})))


def test_inside_of_a_map_the_map_is_named() -> None:
    text = "def f = fun(A: 5.7.i32 => A |> map(fun(r => r |> scan(+, 0) |> toMem(Global) |> scan(+, 0))))"
    with pytest.raises(TranslationError) as refused:
        by_default(data_flow(check_text(text)["f"].body))
    assert refused.value.code == "R0726" and "inside a map over the grid" in refused.value.message
    (named,) = refused.value.notes
    span = place(named.origin)
    assert span is not None and span.column == text.index("A |> map") + 1


HALVES = "f32(x) * f32(y)"
PRODUCT = f"map(fun(row => B |> map(fun(col => {DOT.replace('x * y', HALVES)}))))"


@needs_compiler
@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        (
            "fun((A: 32.32.f16, B: 32.32.f16) => A |> map(fun(r => let s = r |> reduce(+, 1) in"
            f" r |> map(fun(x => x + s)))) |> toMem(Global) |> {PRODUCT})",
            2,
        ),
        (
            f"fun((A: 32.32.f16, B: 32.32.f16) => A |> {PRODUCT} |> map(fun(r => r |> map(fun(x => f16(x)))))"
            f" |> toMem(Global) |> {PRODUCT} |> toMem(Global) |> map(fun(r => r |> reduce(max, 0))))",
            3,
        ),
    ],
)
def test_products_are_for_tensor_cores_and_what_is_between_by_default(text: str, kernels: int) -> None:
    term = data_flow(check_expression(text))
    result = succeeded(tensor_core(block=(32, 32, 32), warp=(32, 32), stages=1, cp_async=False)(term))
    made = assemble(result.term, "f")
    assert len(made.kernels) == kernels
    products = ["mma_sync" in kernel.source for kernel in made.kernels]
    assert products == ([False, True] if kernels == 2 else [True, True, False])
    assert agrees(made, term)
