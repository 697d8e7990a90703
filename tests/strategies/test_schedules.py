"""Schedules of loops: every step evaluated, the nest that results, and what the kernel computes."""

from __future__ import annotations

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from itertools import permutations
from pathlib import Path
from types import ModuleType

import pytest

from codegen.execute import execute
from codegen.pipeline import generate
from rewrites.loops import HOIST_STORED
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import RiseError, StrategyError
from rise.expr import Expr
from rise.interpret import random_inputs
from rise.normal import data_flow
from rise.testing import assert_equivalent, assert_preserves, assert_structure
from strategies.core import Strategy, argument, body, seq, strategy
from strategies.loops.nests import (
    at_innermost_fold,
    fused,
    interchange,
    kinds,
    parallel,
    reorder,
    to_loops,
    to_threads,
    unroll,
)
from strategies.loops.tiling import block, split_loop, tile, tile_nd
from strategies.loops.tvm_gemm import GLOBAL, VERSIONS, loop_perm, tvm_gemm
from strategies.loops.vectorise import vectorize
from strategies.memory_bound.reduction import reduction
from strategies.places import in_inputs
from strategies.registry import find
from tests.strategies.schedule_programs import (
    TVM,
    at_size,
    cut,
    derived,
    matmul,
    nest,
    runs_as_it_should,
)
from tests.support.programs import program, succeeded


def failure(s: Strategy, text: str) -> str:
    """Why a strategy does not apply to a program."""
    result = in_inputs(s)(data_flow(check_expression(text)))
    assert isinstance(result, Failure)
    return result.reason


ADD_ONE = {
    1: "fun(xs: 6.i32 => xs |> map(fun(x => x + 1)))",
    2: "fun(xss: 4.6.i32 => xss |> map(fun(xs => xs |> map(fun(x => x + 1)))))",
    3: "fun(a: 4.6.10.i32 => a |> map(fun(b => b |> map(fun(c => c |> map(fun(x => x + 1)))))))",
}

# --- tiles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        (ADD_ONE[1], (3,), "map(2) map(3)"),
        (ADD_ONE[1], (1,), "map(6) map(1)"),
        (ADD_ONE[2], (2, 3), "map(2) map(2) map(2) map(3)"),
        (ADD_ONE[2], (2,), "map(2) map(2) map(6)"),
        (ADD_ONE[3], (2, 3, 5), "map(2) map(2) map(2) map(2) map(3) map(5)"),
        (ADD_ONE[3], (4, 6, 10), "map(1) map(1) map(1) map(4) map(6) map(10)"),
        (matmul(4, 6, 10), (2, 3, 5), "map(2) map(2) reduceSeq(2) map(2) map(3) reduceSeq(5)"),
    ],
)
def test_tiles_in_any_number_of_dimensions(text: str, sizes: tuple[int, ...], expected: str) -> None:
    """The loops over tiles are outside of those in tiles; a tile may be one element, or all of them."""
    tiled = assert_preserves(in_inputs(seq(fused, tile(*sizes))), text)
    assert nest(tiled) == expected


def test_tiles_of_one_size() -> None:
    tiled = assert_preserves(in_inputs(tile_nd(2, 2)), ADD_ONE[2])
    assert nest(tiled) == "map(2) map(3) map(2) map(2)"


@pytest.mark.parametrize(
    ("s", "text", "reason"),
    [
        (tile(4, 4), ADD_ONE[2], "4 does not divide 6, the size of loop 2"),
        (tile(3, 3), ADD_ONE[2], "3 does not divide 4, the size of loop 1"),
        (tile(2, 2), ADD_ONE[1], "there is no loop 2: the nest has 1 loop"),
        (block(3, 5), matmul(2, 3, 7), "5 does not divide 7, the size of loop 3"),
        (reorder(1, 2), ADD_ONE[1], "there is no loop 2: the nest has 1 loop"),
        (reorder(2, 1, 3), ADD_ONE[2], "there is no loop 3: the nest has 2 loops"),
        (interchange(2), ADD_ONE[2], "there is no loop 3: the nest has 2 loops"),
        (vectorize(4), ADD_ONE[2], "4 does not divide 6, the size of the innermost map"),
        (vectorize(3), matmul(2, 3, 6), "the innermost loop is a reduction, bring it out of a map first"),
        (vectorize(3), "fun(xs: 6.i32 => xs)", "there is no loop 1: the nest has 0 loops"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(s: Strategy, text: str, reason: str) -> None:
    assert failure(seq(fused, s), text) == reason


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tile(4, 0), "tile: the size 0 of loop 2 must be at least 1"),
        (lambda: split_loop(1, -2), "split_loop: the size -2 of loop 1 must be at least 1"),
        (lambda: reorder(1, 3), "reorder(1, 3): expected the numbers from 1 to 2, each once"),
        (lambda: reorder(2, 2, 1), "reorder(2, 2, 1): expected the numbers from 1 to 3, each once"),
        (lambda: vectorize(0), "vectorize: the width 0 must be at least 1"),
        (lambda: reduction(-8), "reduction: threads is -8, and must be at least 0"),
        (lambda: tvm_gemm("blocked"), "tvm_gemm: there is no version `blocked`"),
    ],
)
def test_values_that_parameters_cannot_have(make: object, message: str) -> None:
    with pytest.raises(StrategyError) as caught:
        make()  # type: ignore[operator]
    assert (caught.value.code, caught.value.message) == ("R0609", message)


# --- the order of loops -----------------------------------------------------------------------------------

ORDERS = [p for n in (1, 2, 3) for p in permutations(range(1, n + 1))]


def sizes_in(order: tuple[int, ...], sizes: tuple[int, ...]) -> list[str]:
    moved = [sizes[loop - 1] for loop in order]
    return [str(size) for size in (*moved, *sizes[len(order) :])]


def sizes_of(term: Expr) -> list[str]:
    return [loop.rstrip(")").split("(")[1] for loop in nest(term).split()]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("text", [ADD_ONE[3], matmul(4, 6, 10)], ids=["maps", "maps and a fold"])
def test_every_order_of_three_loops_and_back(text: str, order: tuple[int, ...]) -> None:
    """Sizes tell loops apart; the inverse order brings back the order of the beginning."""
    there = assert_preserves(in_inputs(seq(fused, reorder(*order))), text)
    assert sizes_of(there) == sizes_in(order, (4, 6, 10))
    inverse = tuple(order.index(loop) + 1 for loop in sorted(order))
    back = succeeded(in_inputs(reorder(*inverse))(there))
    assert_equivalent(there, back.term, seeds=(1,))
    assert sizes_of(back.term) == ["4", "6", "10"]


def test_a_reordered_loop_is_still_what_it_was() -> None:
    term = derived(seq(fused, reorder(3, 2, 1)), matmul(2, 3, 5))
    body = term.body.body  # type: ignore[union-attr]
    assert kinds(body) == ("reduce", "map", "map")


TWO_SUMS = (
    "fun(a: 3.4.10.i32 => a |> map(fun(r => r |> reduceSeq(Local)("
    "fun(acc, s => s |> reduceSeq(Local)(fun(b, x => b + 2 * x), acc)), 7))))"
)


def test_two_folds_with_one_operator_are_interchanged() -> None:
    assert sizes_of(assert_preserves(in_inputs(reorder(1, 3, 2)), TWO_SUMS)) == ["3", "10", "4"]


def test_two_folds_with_another_operator_are_not() -> None:
    assert "expected" in failure(reorder(1, 3, 2), TWO_SUMS.replace("b + 2 * x", "2 * b + x"))


@pytest.mark.parametrize(
    "order", [(1, 2, 5, 6, 3, 4), (1, 2, 5, 3, 6, 4), (5, 1, 3, 2, 4, 6), (2, 1, 4, 3, 5, 6)]
)
def test_orders_of_a_tiled_product(order: tuple[int, ...]) -> None:
    tiled = seq(fused, tile(2, 3), block(5, 5))
    loops = assert_preserves(in_inputs(seq(tiled, reorder(*order))), matmul(4, 9, 35))
    assert sizes_of(loops) == sizes_in(order, (2, 3, 2, 3, 7, 5))


# --- what is stored in loops --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "fun(xs: 5.i32 => xs |> map(fun(x => (x * x |> toMem(Local)) + 1)))",
        "fun(x: i32 => (x * x |> toMem(Local)) + 1)",
    ],
)
def test_what_depends_on_a_loop_or_is_in_none_is_not_stored_before(text: str) -> None:
    assert failure(strategy(HOIST_STORED), text) == "nothing is stored that could be stored before"


def test_what_does_not_depend_on_a_loop_is_stored_before_it() -> None:
    """The part inside that is the same each time, not the one around it; under the name that is free."""
    text = (
        "fun((xs: 5.i32, stored: i32) => xs |> map(fun(x =>"
        " (x * (stored * stored |> toMem(Local)) |> toMem(Local)) + stored)))"
    )
    hoisted = assert_preserves(in_inputs(strategy(HOIST_STORED)), text)
    assert_structure(hoisted, let=1, toMem=2)
    assert (
        failure(seq(HOIST_STORED, argument(body(HOIST_STORED))), text)
        == "nothing is stored that could be stored before"
    )


# --- vectors, loops, threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_the_innermost_map_in_vectors(width: int) -> None:
    vectors = assert_preserves(in_inputs(vectorize(width)), ADD_ONE[2])
    assert nest(vectors) == f"map(4) map({6 // width})"
    assert_structure(vectors, asVector=1, mapVec=0, asScalar=1)


def test_what_is_not_only_arithmetic_is_done_to_each_element_of_a_vector() -> None:
    text = ADD_ONE[2].replace("x + 1", "select(x < 3)(x)(7)")
    vectors = assert_preserves(in_inputs(vectorize(3)), text)
    assert_structure(vectors, asVector=1, mapVec=1, asScalar=1)
    runs_as_it_should(text, seq(vectorize(2), to_loops))


def test_accumulators_become_vectors() -> None:
    """asVector is in front of B only: accumulators are not taken apart in the loop."""
    term = derived(seq(fused, reorder(1, 3, 2), vectorize(3)), matmul(4, 6, 5))
    assert nest(term) == "map(4) reduceSeq(5) map(2)"
    assert_structure(term, asVector=1, asScalar=1)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
@pytest.mark.parametrize("level", [to_loops, to_threads], ids=["loops", "threads"])
def test_kernels_of_reordered_products(order: tuple[int, ...], level: Strategy) -> None:
    s = seq(fused, reorder(*order), level)
    if level is to_threads and order[0] == 3:
        assert failure(s, matmul(4, 6, 5)).startswith("expected `map`, found `reduceSeq`")
    else:
        runs_as_it_should(matmul(4, 6, 5), s)


# --- the seven schedules of TVM's GEMM ---------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_each_step_of_a_schedule_preserves_the_product(version: str) -> None:
    """Two tiles of rows, three of columns, two blocks of the sum, two vectors a row."""
    assert_preserves(tvm_gemm(version, 4, 8, 3, 4), matmul(8, 24, 6))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_nest_of_a_schedule(version: str) -> None:
    assert nest(derived(tvm_gemm(version, 4, 6, 3, 3), matmul(8, 18, 6))) == TVM[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_nest_of_a_schedule_at_full_size(version: str) -> None:
    """1024 × 1024 × 1024 in tiles of 32 × 32, vectors of 32."""
    assert nest(derived(tvm_gemm(version, 32, 32, 4, 32), matmul(1024, 1024, 1024))) == at_size(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_kernels_of_a_schedule(version: str) -> None:
    runs_as_it_should(matmul(8, 24, 6), tvm_gemm(version, 4, 8, 3, 4))


@pytest.mark.parametrize("version", VERSIONS)
def test_packing_is_a_kernel_of_its_own(version: str) -> None:
    """A grid has no barrier, so one kernel for both is refused; the others are one kernel."""
    term = derived(tvm_gemm(version, 4, 8, 3, 4), matmul(8, 24, 6))
    kernels = cut(term)
    assert len(kernels) == (2 if version in PACKED else 1)
    if version not in PACKED:
        assert kernels == (term,)
        return
    assert "; ".join(map(nest, kernels)) == nest(term)
    with pytest.raises(RiseError):
        execute(generate(term, "both"), random_inputs(inputs_of(term), 0, exact=True), "emulate")


PACKED = {"array_packing", "cache_blocks", "par"}


def test_what_is_stored_for_a_block_or_a_thread_needs_no_kernel() -> None:
    term = program("fun(xs: 5.i32 => let ys = xs |> mapSeq(fun(x => x)) |> toMem(Local) in ys)")
    assert cut(term) == (term,)


def test_rows_of_tiles_in_parallel() -> None:
    """Without packing."""
    s = seq(loop_perm(4, 8, 3, 4), parallel(GLOBAL), at_innermost_fold(unroll), to_loops)
    expected = "mapGlobal(2) mapSeq(3) reduceSeq(2) mapSeq(4) reduceSeqUnroll(3) mapSeq(2)"
    assert nest(derived(s, matmul(8, 24, 6))) == expected
    runs_as_it_should(matmul(8, 24, 6), s)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((4, 6, 3, 4), "4 does not divide 6, the size of the innermost map"),
        ((5, 6, 3, 2), "5 does not divide 8, the size of loop 1"),
        ((4, 7, 3, 7), "7 does not divide 18, the size of loop 2"),
        ((4, 6, 4, 3), "4 does not divide 6, the size of loop 5"),
    ],
)
def test_tiles_of_a_schedule_that_do_not_divide(sizes: tuple[int, int, int, int], reason: str) -> None:
    assert failure(tvm_gemm("loop_perm", *sizes), matmul(8, 18, 6)) == reason


# --- reductions ---------------------------------------------------------------------------------------------

ROWS = {
    "sum": "fun(xs: 3.24.i32 => xs |> map(fun(r => r |> reduce(+, 0))))",
    "max": "fun(xs: 3.24.f32 => xs |> map(fun(r => r |> reduce(max, -1000))))",
    "dot": "fun((xs: 5.24.f32, ys: 5.24.f32) => zip(xs)(ys) |> map(fun((r, s) =>"
    " zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))",
}
TREES = {1: [], 2: [2], 8: [2, 2, 2]}


def halving(threads: int, part: int = 0) -> Strategy:
    return reduction(threads, vector=1, loads=1, fan=2, part=part)


@pytest.mark.parametrize("threads", TREES)
@pytest.mark.parametrize("name", ROWS)
def test_a_reduction_by_blocks_and_threads(name: str, threads: int) -> None:
    """A block a row, parts of every n-th element, then half of the threads, and half of these."""
    term = assert_preserves(halving(threads), ROWS[name], each_step=name != "max")
    stages = len(TREES[threads])
    assert_structure(term, mapBlock=1, mapThreads=stages + 1, toMem=stages, reduce=0)
    runs_as_it_should(ROWS[name], halving(threads))


DOT = "fun((a: 96.f32, b: 96.f32) => zip(a)(b) |> map(fun((x, y) => x * y)) |> reduce(+, 0))"


def test_one_number_in_two_kernels() -> None:
    """Four blocks of parts, and one block for their results."""
    first, second = cut(derived(halving(8, part=24), DOT))
    assert_structure(first, mapBlock=1, mapThreads=4, toMem=3, reduce=0)
    assert_structure(second, mapBlock=1, mapThreads=3, toMem=2, reduce=0)
    assert_preserves(halving(8, part=24), DOT)
    runs_as_it_should(DOT, halving(8, part=24))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ADD_ONE[2], "expected a map, whose function is a reduction"),
    ],
)
def test_what_is_no_reduction_of_rows(text: str, reason: str) -> None:
    assert failure(reduction(8), text).startswith(reason)


@pytest.mark.parametrize("part", [7, 25, 95])
def test_the_last_part_may_be_smaller(part: int) -> None:
    assert_preserves(halving(8, part=part), DOT)
    runs_as_it_should(DOT, halving(8, part=part))


# --- by name ----------------------------------------------------------------------------------------------


@cache
def entry_settings(name: str) -> tuple[str, ...]:
    return tuple(setting.name for setting in find(name).settings)


def test_schedules_have_names_and_parameters() -> None:
    assert entry_settings("tvm_gemm") == ("version", "x", "y", "k", "vector")
    assert entry_settings("reduction") == ("threads", "vector", "loads", "fan", "part")
    made = find("tvm_gemm").make({"version": "blocking", "x": "2", "y": "3", "k": "5"})
    assert nest(derived(made, matmul(4, 9, 10))).startswith("mapSeq(2) mapSeq(3) reduceSeq(2) reduceSeq(5)")


# --- the page ---------------------------------------------------------------------------------------------

ROOT = Path(__file__).parent.parent.parent


@cache
def example() -> ModuleType:
    spec = spec_from_file_location("tvm_gemm_example", ROOT / "examples" / "tvm_gemm.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_is_derived() -> None:
    made = "python examples/tvm_gemm.py --markdown > docs/schedules.md"
    assert (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8") == example().page(), made


def test_the_example_is_right() -> None:
    """At the sizes of the page: two tiles of rows, three of columns, two blocks of the sum."""
    whole, low_level = example().product("loop_perm")
    assert example().outcome(whole, low_level, "emulate") == (
        True,
        "emulate, one kernel: equal in every element",
    )
