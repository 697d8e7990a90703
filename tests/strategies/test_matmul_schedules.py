"""Schedules of products as compositions of phases: the same programs as by parameters, from any phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rewrites.result import Failure
from rewrites.strategy import Strategy
from rise.check.program import check_expression
from rise.errors import StrategyError
from rise.expr import Expr
from rise.frozen import changed
from rise.normal import data_flow
from strategies.core import seq
from strategies.matmul.schedule import HOPPER, MMA_SYNC, VOLTA, WMMA, Schedule
from strategies.matmul.schedules import by_warps, hopper, products, to_kernels
from strategies.matmul.tensor_core import tensor_core
from strategies.matmul.tiling import at_folds, in_tile, parts, raster, tile_output, tile_reduction
from strategies.places import in_inputs
from tests.support.nightly import every_other
from tests.support.programs import succeeded

DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
PROGRAMS = {
    "A·Bᵀ": "fun((A: {m}.{k}.f16, B: {n}.{k}.f16) => A |> map(fun(row => B |> map(fun(col => {dot})))))",
    "relu(A)·Bᵀ": "fun((A: {m}.{k}.f16, B: {n}.{k}.f16) => A |> map(map(fun(x => max(x, 0)))) |>"
    " map(fun(row => B |> map(fun(col => {dot})))))",
    "A·B + bias": "fun((A: {m}.{k}.f16, B: {k}.{n}.f16, bias: {n}.f32) => A |> map(fun(row =>"
    " zip(transpose(B))(bias) |> map(fun((col, b) => ({dot}) + b)))))",
}


def program(name: str, m: int, n: int, k: int) -> Expr:
    return data_flow(check_expression(PROGRAMS[name].format(m=m, n=n, k=k, dot=DOT)))


WARPS: dict[str, Any] = {"block": (32, 32, 32), "warp": (16, 16)}
GROUPS: dict[str, Any] = {"block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2}
# a composition, and its schedule
SAME: Mapping[str, tuple[Callable[[Schedule], Strategy], Schedule]] = {
    "wmma": (by_warps, changed(WMMA, **WARPS)),
    "mma_sync": (by_warps, changed(MMA_SYNC, **WARPS)),
    "volta": (by_warps, changed(VOLTA, block=(64, 32, 16))),
    "hopper": (hopper, changed(HOPPER, **GROUPS, persistent_blocks=2, cluster=2)),
}


SIZES = ((256, 128, 128), (120, 88, 64))
# each program by each schedule, at sizes that tiles divide and at others in turn
COMPOSED = [
    (schedule, name, SIZES[(i + j) % 2]) for i, schedule in enumerate(SAME) for j, name in enumerate(PROGRAMS)
]


@pytest.mark.parametrize(("schedule", "name", "sizes"), every_other(COMPOSED))
def test_a_composition_derives_what_the_parameters_do(
    schedule: str, name: str, sizes: tuple[int, int, int]
) -> None:
    make, s = SAME[schedule]
    composed = to_kernels(make(s), s.block if s.uses_wgmma else None)(program(name, *sizes))
    by_parameters = tensor_core(**s.changes)(program(name, *sizes))
    assert succeeded(composed).term == succeeded(by_parameters).term


BY_WARPGROUPS: dict[str, Any] = {
    "fragment": (64, 64, 16),
    "warp": (64, 64),
    "block": (128, 64, 64),
    "epilogue": "direct",
}
WITHOUT_EFFECT: tuple[tuple[dict[str, Any], str, Any], ...] = (
    (BY_WARPGROUPS, "padding", 0),
    (BY_WARPGROUPS, "cp_async", False),
    (BY_WARPGROUPS, "swizzled", True),
    (BY_WARPGROUPS, "vector", 4),
    ({**BY_WARPGROUPS, "epilogue": "bulk"}, "vector", 1),
    (BY_WARPGROUPS, "prefetch_fragments", True),
    ({**WARPS, "prefetch_fragments": True}, "load_once", False),
    ({**WARPS, "stages": 0}, "padding", 16),
    ({**WARPS, "stages": 0}, "cp_async", False),
    ({**WARPS, "stages": 0}, "swizzled", True),
    ({**WARPS, "stages": 0, "epilogue": "direct"}, "vector", 2),
)


@pytest.mark.parametrize(("others", "name", "value"), WITHOUT_EFFECT)
def test_a_parameter_that_changes_nothing_is_refused_by_name(
    others: dict[str, Any], name: str, value: Any
) -> None:
    tensor_core(**others)
    with pytest.raises(StrategyError, match=f"tensor_core: {name} changes nothing") as refused:
        tensor_core(**others, **{name: value})
    assert refused.value.code == "R0609"


@pytest.mark.parametrize(("name", "refused"), [("A·Bᵀ", True), ("relu(A)·Bᵀ", False)])
def test_loads_of_operands_that_are_not_computed_are_no_choice(name: str, refused: bool) -> None:
    result = tensor_core(**BY_WARPGROUPS, load_once=False)(program(name, 128, 64, 64))
    assert isinstance(result, Failure) == refused
    if isinstance(result, Failure):
        assert result.error("tensor_core").code == "R0609" and "load_once" in result.story()


def test_a_vector_of_rows_changes_an_epilogue_of_threads() -> None:
    """Also with warpgroups: there threads copy nothing else."""
    tensor_core(**{**BY_WARPGROUPS, "epilogue": "shared", "vector": 4})


def test_phases_find_their_places() -> None:
    """The sums of tiles are in blocks before or after the order of tiles is changed."""
    term = program("A·B + bias", 64, 64, 64)
    tiles = tile_output(32, 32, in_list=True)
    before = in_inputs(seq(products, tiles, raster(2), tile_reduction(32)))
    after = in_inputs(seq(products, tiles, tile_reduction(32), raster(2)))
    assert succeeded(before(term)).term == succeeded(after(term)).term


def test_a_phase_without_its_place_says_which_comes_before() -> None:
    result = in_inputs(seq(products, at_folds(parts(16, 16))))(program("A·Bᵀ", 64, 64, 64))
    assert isinstance(result, Failure) and "`tile_reduction` comes before" in result.story()


def test_parts_that_do_not_divide_a_tile_are_refused() -> None:
    phases = seq(products, tile_output(32, 32), in_tile(parts(16, 24)))
    result = in_inputs(phases)(program("A·Bᵀ", 64, 64, 64))
    assert isinstance(result, Failure) and "24 does not divide" in result.story()


def test_what_no_phase_lowers_is_refused() -> None:
    """A schedule without its instructions leaves a map that nothing computes."""
    result = to_kernels(seq(products, tile_output(32, 32)))(program("A·Bᵀ", 64, 64, 64))
    assert isinstance(result, Failure) and "this `reduce` has no level" in result.story()
