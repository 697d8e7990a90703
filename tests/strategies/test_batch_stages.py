"""Small linear algebra besides products: rows by threads of a block, in stages, from shared memory."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest

from codegen.pipeline import generate
from rewrites.result import Failure
from rise.expr import Expr
from strategies.auto import auto
from strategies.batches.batch import batch
from strategies.batches.plans import in_rows
from strategies.batches.rows import MOST_DEALT, THREADS
from tests.support.batches import exact, program, sizes_of
from tests.support.nightly import every_other
from tests.support.programs import succeeded

AWKWARD = (1, 2, 3, 5, 7, 13, 17, 31, 33, 65)
CROWDED = (16, 32, 64, 96, 128)
DOT = "(zip({})({}) |> map((p, q) => f32(p) * f32(q)) |> reduce(+, 0))"
# arrays of each element of a batch, and what is computed of them; o is the type of results
KINDS = {
    "matrix times vector": ("A.m.n x.n", f"A |> map(r => o{DOT.format('r', 'x')})"),
    "transposed matrix times vector": ("A.n.m x.n", f"transpose(A) |> map(c => o{DOT.format('c', 'x')})"),
    "scaled, and added": (
        "A.m.n x.n y.m", f"zip(A)(y) |> map((r, v) => o(2 * {DOT.format('r', 'x')} + 3 * f32(v)))"
    ),
    "inner product": ("x.n y.n", f"o{DOT.format('x', 'y')}"),
    "outer product": ("x.m y.n", "x |> map(p => y |> map(q => o(f32(p) * f32(q))))"),
    "bilinear form": (
        "A.m.n x.m y.n", f"o(zip(A)(x) |> map((r, p) => f32(p) * {DOT.format('r', 'y')}) |> reduce(+, 0))"
    ),
    "square of a residual": (
        "A.m.n x.n y.m",
        f"o(zip(A)(y) |> map((r, v) => f32(v) - {DOT.format('r', 'x')}) |> map(e => e * e) |> reduce(+, 0))",
    ),
    "trace of a product": (
        "A.m.n B.n.m", f"o(zip(A)(transpose(B)) |> map((r, c) => {DOT.format('r', 'c')}) |> reduce(+, 0))"
    ),
    "two matrices times vector": (
        "A.m.n B.n.m x.m",
        f"let y = B |> map(r => {DOT.format('r', 'x')}) in A |> map(r => o{DOT.format('r', 'y')})",
    ),
    "rows scaled by their greatest": (
        "A.m.n", "A |> map(r => let s = r |> map(f32) |> reduce(max, -8) in r |> map(a => o(f32(a) * s)))"
    ),
    "row less its sum": ("x.n", "let s = x |> map(f32) |> reduce(+, 0) in x |> map(a => o(f32(a) - s))"),
    "sums of columns": ("A.m.n", "transpose(A) |> map(c => o(c |> map(f32) |> reduce(+, 0)))"),
    "sum of rows' greatest": ("A.m.n", "o(A |> map(r => r |> map(f32) |> reduce(max, -8)) |> reduce(+, 0))"),
    "scaled from both sides": (
        "A.m.n x.m y.n",
        "zip(A)(x) |> map((r, p) => zip(r)(y) |> map((a, q) => o(f32(p) * f32(a) * f32(q))))",
    ),
}  # fmt: skip


def of_batch(kind: str, b: int, m: int, n: int, type_: str = "f16", result: str = "f32") -> Expr:
    """What is computed of each of b elements."""
    arrays, body = KINDS[kind]
    given = [each.split(".") for each in arrays.split()]
    types = ", ".join(f"{name}s: b.{'.'.join(sizes)}.{type_}" for name, *sizes in given)
    *names, last = [name for name, *_ in given]
    zipped, element = f"{last}s", last
    for name in reversed(names):
        zipped, element = f"zip({name}s)({zipped})", f"({name}, {element})"
    body = re.sub(r"\bo(?=\()", result, body)
    text = f"def f(b: Nat, m: Nat, n: Nat)({types}) = {zipped} |> map({element} => {body})"
    return program(text, b=b, m=m, n=n)


def drawn(kind: str, count: int, sides: tuple[int, ...]) -> list[tuple[int, int, int, str, str, str]]:
    """Sizes of a batch, types of operands and results, and who brings operands."""
    source = Random(f"{kind}, {sides}")

    def one() -> tuple[int, int, int, str, str, str]:
        type_ = source.choice(["f16", "bf16", "f32"])
        result = source.choice(["f32", type_]) if type_ == "f16" else "f32"
        shape = source.choice([1, 2, 11]), source.choice(sides), source.choice(sides)
        return (*shape, type_, result, source.choice(["", "bulk"]))

    return [one() for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_kernel_is_exact(kind: str) -> None:
    """At sizes that nothing divides, and at those whose rows all start in the same bank."""
    for b, m, n, type_, result, operands in drawn(kind, 3, AWKWARD) + drawn(kind, 2, CROWDED):
        term = of_batch(kind, b, m, n, type_, result)
        low = succeeded(batch(operands=operands)(term)).term
        assert exact(term, low), (b, m, n, type_, result, operands)


@pytest.mark.parametrize("kind", every_other(kind for kind in KINDS if kind != "sums of columns"))
def test_auto_takes_one_kernel(kind: str) -> None:
    """Also what a user may write in two steps: forms, residuals, traces, two products."""
    outer = {"outer product", "scaled from both sides"}
    for m, n, type_ in ((13, 31, "f16"), (97, 92, "f16"), (64, 128, "bf16"), (33, 65, "f32")):
        if kind in outer and type_ != "f16":
            continue  # elements of 32 bits are computed from memory
        plan = auto().choice(of_batch(kind, 20011, m, n, type_, type_ if kind in outer else "f32"))
        assert [str(each.point).split()[0] for each in plan.kernels] == ["batch"], (m, n, type_)


def test_few_long_rows_are_computed_by_warps() -> None:
    """Of few rows, a warp for each leaves no warp of the GPU without one; of many, none waits for loads."""
    for rows, wanted in ((4001, "rows"), (40009, "batch")):
        plan = auto().choice(of_batch("inner product", rows, 1, 101))
        assert [str(each.point).split()[0] for each in plan.kernels] == [wanted]


@pytest.mark.parametrize("batch_", [1, 3, 9001])
def test_pairs_of_numbers_are_one_kernel(batch_: int) -> None:
    """Of a matrix, and of each of its rows. Threads store them, since the copying unit takes numbers only."""
    sums = "(r |> map(f32) |> reduce(+, 0), r |> map(f32) |> reduce(max, -8))"
    of_rows = f"def f(As: {batch_}.5.17.f16) = As |> map(A => A |> map(r => {sums}))"
    of_both = (
        f"def f(As: {batch_}.5.17.f16, xs: {batch_}.17.f16) = zip(As)(xs) |> map((A, x) =>"
        " (A |> join |> map(f32) |> reduce(+, 0), x |> map(f32) |> reduce(+, 0)))"
    )
    for term in map(program, (of_rows, of_both)):
        plan = auto().choice(term)
        assert [str(each.point).split()[0] for each in plan.kernels] == ["batch"]
        if batch_ < 9001:
            assert exact(term, succeeded(auto()(term)).term)
        in_bulk = batch(operands="bulk")(term)
        assert isinstance(in_bulk, Failure)
        assert "pairs" in in_bulk.reason


# --- stages -----------------------------------------------------------------------------------------------


def text_of(term: Expr, **settings: object) -> str:
    return generate(succeeded(batch(**settings)(term)).term, "f").source  # type: ignore[arg-type]  # settings by name


def test_arrays_are_brought_once_and_waited_for_once() -> None:
    """Although two stages read them, and each is padded by itself."""
    text = text_of(of_batch("bilinear form", 40, 33, 64))
    assert text.count("wait_copies<0>()") == 1
    assert len(re.findall(r"&As_\[", text)) == len(re.findall(r"copy_async\w*<8>\(&tile_1\[", text)) > 0
    assert "* 72" in text, "rows of 64 halves start 8 apart"
    in_bulk = text_of(of_batch("bilinear form", 40, 33, 65), operands="bulk")
    assert [in_bulk.count(f"({name}_, ") for name in ("As", "xs", "ys")] == [1, 1, 1]


def test_threads_without_a_row_compute_none() -> None:
    """The last sum of each of a few matrices: the warps that have none skip the loop over its terms."""
    text = text_of(of_batch("bilinear form", 40, 33, 65), operands="bulk")
    assert re.search(r"if \(thread_x < \d+\) \{\n    float x = 0.0f;\n    #pragma unroll\n    for ", text)


def test_long_rows_are_reduced_in_parts_and_dealt() -> None:
    """Of odd numbers of elements, and every so many-th element: both are read from different banks."""
    term = of_batch("row less its sum", 1009, 1, 128, "f32")
    plan = in_rows(sizes_of(term))
    assert (plan.split, plan.dealt) == (8, 32)
    text = text_of(term, operands="bulk")
    assert "k < 17" in text, "an eighth of 128, made odd"
    assert "i_3 * 32" in text, "every 32nd element"


def test_plans_deal_few_elements_to_each_thread() -> None:
    fired = 0
    for kind, m, n in product(
        ("row less its sum", "rows scaled by their greatest"), (3, 31), range(1, 129, 5)
    ):
        sizes = sizes_of(of_batch(kind, 1009, m, n, "f32"))
        plan = in_rows(sizes)
        assert plan.split in THREADS
        assert plan.dealt in THREADS
        assert plan.dealt <= max(n, 1)
        assert plan.threads <= 1024
        if plan.dealt > 1:
            fired += 1
            assert -(-n // plan.dealt) <= MOST_DEALT or plan.dealt == 32
    assert fired > 20


def test_sums_of_numbers_are_not_split() -> None:
    assert in_rows(sizes_of(of_batch("matrix times vector", 1009, 5, 128))).split == 1


# --- what is refused --------------------------------------------------------------------------------------


def test_parts_of_products_are_refused_where_there_is_none() -> None:
    found = batch(rows=16)(of_batch("matrix times vector", 40, 5, 7))
    assert isinstance(found, Failure)
    assert "`rows` changes nothing" in str(found.error("batch"))
