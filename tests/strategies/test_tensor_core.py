"""The schedule for tensor cores: every step of its derivations evaluated, the form of its results."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from rewrites.result import Failure, Success
from rise.check.program import check_expression
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, Primitive, call, subterms
from rise.nat import Nat
from rise.normal import data_flow, is_view
from rise.testing import assert_equivalent, assert_preserves, replayed
from rise.verify import verify
from strategies.matmul.schedule import Schedule
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded

DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
SMALL = Schedule((32, 32, 32), (16, 16))  # four warps a block, two blocks of k, two fragments of k
UNSTAGED = replace(SMALL, stages=0, epilogue="direct")


def product(left: str, right: str) -> str:
    return f"{left} |> map(fun(row => {right} |> map(fun(col => {DOT}))))"


def program(name: str, m: int, n: int, k: int) -> str:
    a, b, at, bt = f"A: {m}.{k}.f16", f"B: {k}.{n}.f16", f"A: {k}.{m}.f16", f"B: {n}.{k}.f16"
    sums = f"({DOT}) |> fun(r => alpha * r + beta * c)"
    texts = {
        "A·B": f"fun(({a}, {b}) => {product('A', 'transpose(B)')})",
        "A·Bᵀ": f"fun(({a}, {bt}) => {product('A', 'B')})",
        "Aᵀ·B": f"fun(({at}, {b}) => {product('transpose(A)', 'transpose(B)')})",
        "Aᵀ·Bᵀ": f"fun(({at}, {bt}) => {product('transpose(A)', 'B')})",
        "αA·B + βC": f"fun(({a}, {b}, C: {m}.{n}.f32, alpha: f32, beta: f32) => zip(A)(C) |> "
        f"map(fun((row, cs) => zip(transpose(B))(cs) |> map(fun((col, c) => {sums})))))",
    }
    return texts[name]


NAMES = ("A·B", "A·Bᵀ", "Aᵀ·B", "Aᵀ·Bᵀ", "αA·B + βC")


@cache
def derived(name: str, sizes: tuple[int, int, int], p: Schedule = SMALL) -> tuple[Expr, Success]:
    term = check_expression(program(name, *sizes))
    result = succeeded(
        tensor_core(p.block, p.warp, p.fragment, stages=p.stages, epilogue=p.epilogue)(data_flow(term))
    )
    return term, result


# --- what is computed -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", every_other(NAMES))
def test_every_step_of_a_derivation_preserves_the_program(name: str) -> None:
    """Two tiles along each of m, n and k."""
    term, result = derived(name, (64, 64, 64))
    start = current = data_flow(term)
    assert len(result.steps) > 100
    for step, current in replayed(start, result.steps):
        try:
            verify(current)
            assert_equivalent(term, current, seeds=(1,))
        except Exception as problem:
            raise AssertionError(f"the step `{step.rule}` at {step.path}: {problem}") from problem
    assert current == result.term


OTHERS = (
    ((64, 96, 128), SMALL),
    ((32, 32, 32), SMALL),
    ((128, 32, 64), Schedule((64, 32, 16), (32, 16), (16, 16, 16))),
    ((64, 64, 32), Schedule((32, 64, 16), (8, 32), (8, 32, 16))),
    ((96, 64, 48), Schedule((48, 64, 16), (48, 32))),
)


@pytest.mark.parametrize(
    ("sizes", "p", "name"), [(*other, name) for other, name in in_turn(OTHERS, ["A·B", "αA·B + βC"])]
)
def test_other_sizes_and_tiles(name: str, sizes: tuple[int, int, int], p: Schedule) -> None:
    term, result = derived(name, sizes, p)
    verify(result.term)
    assert_equivalent(term, result.term, seeds=(2,))


def test_a_derivation_step_by_step_through_the_toolkit() -> None:
    text = program("A·B", 32, 32, 32)
    assert_preserves(tensor_core(SMALL.block, SMALL.warp), text, each_step=False)


# --- the form of the result -------------------------------------------------------------------------


def primitives(term: Expr) -> Counter[str]:
    return Counter(part.name for part in subterms(term) if isinstance(part, Primitive))


def dimension(part: Expr) -> int | None:
    if not isinstance(part, Primitive) or part.name != "mapBlock":
        return None
    first = part.arguments[0]
    assert isinstance(first, Nat)
    return first.value


@pytest.mark.parametrize("name", every_other(NAMES, 1))
def test_levels(name: str) -> None:
    """One loop over the grid in y, inside it one in x, then warps, then one warp's fragments."""
    _, result = derived(name, (64, 64, 64), UNSTAGED)
    blocks = [d for part in subterms(result.term) if (d := dimension(part)) is not None]
    assert blocks == [1, 0]
    found = primitives(result.term)
    assert found["mapWarp"] >= 1
    assert found["tensorMatMulAdd"] == 1
    assert found["reduceSeq"] == 1  # over blocks of k
    assert found["reduceSeqUnroll"] == 1  # over fragments of k
    assert found["generateFragment"] == 1
    assert found["reduce"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_map_that_is_left_only_rearranges(name: str) -> None:
    _, result = derived(name, (64, 64, 64), UNSTAGED)
    for part in subterms(result.term):
        applied = call(part)
        if applied is not None and applied[0] == "map" and len(applied[2]) == 2:
            function = applied[2][0]
            assert isinstance(function, Lambda)
            assert is_view(function.body)


def test_the_accumulator_stays_a_fragment() -> None:
    """Stored once, after the loop over k; the epilogue of a GEMM is done on fragments."""
    _, plain = derived("A·B", (64, 64, 64), UNSTAGED)
    assert primitives(plain.term)["asMatrix"] == 1
    _, gemm = derived("αA·B + βC", (64, 64, 64), UNSTAGED)
    found = primitives(gemm.term)
    assert (found["mapFragment"], found["zipFragment"], found["asMatrix"]) == (1, 1, 1)
    assert found["asFragment"] == 3


def test_operands_are_staged_in_a_pipeline_and_the_result_goes_through_shared_memory() -> None:
    _, result = derived("αA·B + βC", (64, 64, 64))
    found = primitives(result.term)
    assert (found["reducePipelined"], found["reduceSeq"], found["copyAsync"]) == (1, 0, 2)
    assert found["mapThreads"] == 3  # two copies, and the epilogue
    assert found["mapFragment"] == 0


# what is counted in the low-level program when an optimisation is switched off
SWITCHES: tuple[tuple[dict[str, Any], dict[str, int]], ...] = (
    ({"stages": 0}, {"copyAsync": 0, "reducePipelined": 0, "reduceSeq": 1}),
    ({"stages": 1}, {"copyAsync": 2, "reducePipelined": 1}),
    ({}, {"mapSeqUnroll": 8}),
    ({"load_once": False}, {"mapSeqUnroll": 7}),
    ({"epilogue": "direct"}, {"mapFragment": 1, "mapThreads": 2}),
    ({"raster_group": 2}, {"reorder": 2, "mapBlock": 1}),
    ({"cp_async": False}, {"copyAsync": 0, "copyThreads": 2}),
    ({"slice_k": 2}, {"idx": 2, "mapWarp": 2}),
)


@pytest.mark.parametrize(
    ("switch", "counts"), every_other(SWITCHES), ids=every_other([str(s) for s, _ in SWITCHES])
)
def test_each_optimisation_can_be_switched_by_itself(switch: dict[str, Any], counts: dict[str, int]) -> None:
    term = check_expression(program("αA·B + βC", 64, 64, 64))
    result = succeeded(tensor_core(SMALL.block, SMALL.warp, **switch)(data_flow(term)))
    found = primitives(result.term)
    assert {name: found[name] for name in counts} == counts
    assert_equivalent(term, result.term, seeds=(3,))


def test_the_sides_of_a_product_meet_in_one_step() -> None:
    _, result = derived("A·B", (64, 64, 64))
    rules = Counter(step.rule for step in result.steps)
    assert rules["tensorise"] == 1
    assert rules["blockReduce"] == 2
    assert rules["liftReduce"] == 4


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "code", "message"),
    [
        (Schedule((128, 128, 64), (48, 32)), "R0604", "block m by warp m: 48 does not divide 128"),
        (Schedule((128, 96, 64), (64, 64)), "R0604", "block n by warp n: 64 does not divide 96"),
        (Schedule((48, 48, 32), (24, 16)), "R0604", "warp m by fragment m: 16 does not divide 24"),
        (Schedule((64, 64, 32), (32, 8)), "R0604", "warp n by fragment n: 16 does not divide 8"),
        (Schedule((64, 64, 24), (32, 32)), "R0604", "block k by fragment k: 16 does not divide 24"),
        (Schedule((64, 64, 32), (0, 32)), "R0604", "block m by warp m: 0 does not divide 64"),
        (Schedule((64, 64, 32), (32, 32), (8, 8, 16)), "R0605", "there is no fragment 8×8×16"),
    ],
)
def test_bad_parameters_are_refused_by_name(p: Schedule, code: str, message: str) -> None:
    with pytest.raises(StrategyError) as caught:
        tensor_core(p.block, p.warp, p.fragment)
    assert caught.value.code == code
    assert caught.value.message.startswith(f"tensor_core: {message}")


@pytest.mark.parametrize(
    ("sizes", "rules"),
    [
        ((64, 64, 64), set()),
        ((48, 64, 64), {"roundUp"}),
        ((64, 48, 64), {"roundUp columns"}),
        ((64, 64, 48), {"roundUp sums"}),
    ],
)
def test_what_the_tiles_do_not_divide_is_rounded_up(sizes: tuple[int, int, int], rules: set[str]) -> None:
    result = succeeded(
        tensor_core(SMALL.block, SMALL.warp)(data_flow(check_expression(program("A·B", *sizes))))
    )
    assert {step.rule for step in result.steps if step.rule.startswith("roundUp")} == rules


@pytest.mark.parametrize(
    "text",
    [
        "fun(A: 64.64.f16 => A |> map(fun(row => row |> map(fun(x => x + 1)))))",
        "fun((A: 64.64.f16, v: 64.f16) => A |> map(fun(row => "
        "zip(row)(v) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))))",
    ],
)
def test_a_program_without_a_product(text: str) -> None:
    result = tensor_core(SMALL.block, SMALL.warp)(data_flow(check_expression(text)))
    assert isinstance(result, Failure)
    assert result.story().startswith("`")
    assert "product" in result.story(), result.story()


def test_operands_that_tensor_cores_do_not_take() -> None:
    text = program("A·B", 64, 64, 64).replace("f16", "f32")
    result = tensor_core(SMALL.block, SMALL.warp)(data_flow(check_expression(text)))
    assert isinstance(result, Failure)
    reason = "there is no tensor-core instruction for 16×16×16, operands of type `f32` and sums in `f32`"
    assert reason in result.story()
