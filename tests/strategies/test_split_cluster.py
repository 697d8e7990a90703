"""Sums of a tile that the blocks of a cluster share: exact, in one kernel and one order; where they fit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from codegen.runtime import can_compile
from codegen.runtime.compiling import compiler_report
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import EmulationError, StrategyError, TranslationError
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.matmul.constraints import Limits, check, resources
from strategies.matmul.schedule import Schedule
from strategies.matmul.tensor_core import tensor_core
from strategies.search.cost import cost
from strategies.search.hardware import H200
from strategies.search.problem import Problem
from strategies.search.space import ranked
from tests.support.programs import succeeded
from tests.support.warpgroups import DOT, PROGRAMS, agrees, derived, product

TILE: dict[str, Any] = {
    "block": (64, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "raster_group": 1,
    "epilogue": "shared", "split_cluster": 2,
}  # fmt: skip
ROLES = {**TILE, "warp_specialised": True}
WIDE = {**ROLES, "block": (128, 128, 64), "warp": (64, 128), "fragment": (64, 128, 16), "raster_group": 2}
ACROSS = (
    f"fun((A: 200.72.f16, B: 200.40.f16) => transpose(A) |> map(fun(row => transpose(B) |>"
    f" map(fun(col => {DOT})))))"
)
TWO = (
    "fun((A: 64.192.f16, B: 64.192.f16, C: 64.192.f16) => A |> map(fun(row => zip(B)(C) |>"
    f" map(fun((col, other) => ({DOT}) * ({DOT.replace('(col)', '(other)')}))))))"
)

# --- what is computed -----------------------------------------------------------------------------------

# m, n, k; blocks that share sums: tiles that stick out, slices that are not whole, or behind the end of k
SIZES = {
    "slices that stick out": (63, 41, 200, 2),
    "tiles that stick out": (65, 8, 328, 4),
    "slices behind the end": (1, 8, 72, 8),
}


@pytest.mark.parametrize("size", SIZES)
def test_sums_are_exact(size: str) -> None:
    m, n, k, blocks = SIZES[size]
    text = product(k, m, n)
    made = derived(text, **{**ROLES, "split_cluster": blocks})
    assert made.launch.cluster == blocks
    assert agrees(text, made, seed=blocks)


def test_operands_whose_rows_are_copied_before_have_whole_slices() -> None:
    text = product(133, 64, 8)
    made = assemble(succeeded(tensor_core(**TILE)(data_flow(check_expression(text)))).term, "product")
    assert len(made.kernels) == 3
    inputs = random_inputs(inputs_of(check_expression(text)), seed=7, exact=True)
    assert np.array_equal(execute(made, inputs, "emulate"), call(check_expression(text), *inputs))


SOME = {"αA·Bᵀ + βC": PROGRAMS["αA·Bᵀ + βC"], "both operands across k": ACROSS, "two products": TWO}


@pytest.mark.parametrize("name", SOME)
def test_programs_around_a_product_are_exact(name: str) -> None:
    assert agrees(SOME[name], derived(SOME[name], **ROLES))


def test_several_warpgroups_share_a_tile() -> None:
    text = product(128, 136, 72)
    assert agrees(text, derived(text, **WIDE))


def test_every_run_adds_in_the_same_order() -> None:
    """Of numbers that sums round, whichever block is first."""
    text = product(256, 64, 64)
    inputs = random_inputs(inputs_of(check_expression(text)), seed=1, exact=False)
    found = [execute(derived(text, **ROLES), inputs, "emulate", seed=seed) for seed in (1, 2)]
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) > 1000


# --- what blocks wait for -------------------------------------------------------------------------------


def test_all_warpgroups_meet_before_the_reads_and_at_the_end() -> None:
    """Those that load meet as often as those that compute; at the start no block needs another one."""
    source = derived(product(256, 64, 64), **ROLES).source
    roles = source[source.index("// 1 load") :]
    loads, computes = roles.split("// 1 compute")
    assert loads.count("cluster_sync") == 1 and computes.count("cluster_sync") == 2
    assert source.count("cluster_sync") == 3


def test_the_emulator_notices_what_is_left_out() -> None:
    text = product(256, 64, 64)
    made = derived(text, **ROLES)
    places = [m.span() for m in re.finditer(r"cluster_sync\(\);", made.source)]
    assert {codes(text, made, places[:2]), codes(text, made, places[2:])} == {"R0904", "R0924"}


def codes(text: str, made: Kernel, left_out: list[tuple[int, int]]) -> str:
    source = made.source
    for start, end in reversed(left_out):
        source = source[:start] + ";" + source[end:]
    with pytest.raises(EmulationError) as caught:
        agrees(text, replace(made, source=source))
    return caught.value.code


@pytest.mark.skipif(not can_compile(), reason="there is no CUDA compiler")
def test_the_text_compiles_without_spills() -> None:
    text = product(4096, 2048, 128).replace("f32(y)) |> reduce(+, 0)", "f32(y)) |> reduce(+, 0) |> f16")
    report = compiler_report(derived(text, **{**WIDE, "stages": 4, "split_cluster": 4}).source, "sm_90a")
    assert "0 bytes stack frame, 0 bytes spill stores" in report and "serialized" not in report


# --- where it fits --------------------------------------------------------------------------------------

REFUSED: dict[str, dict[str, Any]] = {
    "epilogue=shared": {"epilogue": "bulk"},
    "raster_group=1": {"raster_group": 0},
    "persistent_blocks=0 ping_pong=1": {"persistent_blocks": 2},
    "cluster=1": {"cluster": 2},
    "split_k=1 slice_k=1": {"split_k": 2},
    "fragment=64,128,16": {"fragment": (16, 8, 16), "warp_specialised": False, "stages": 2},
}


@pytest.mark.parametrize("hint", REFUSED)
def test_what_does_not_go_with_it_is_refused(hint: str) -> None:
    with pytest.raises(StrategyError, match="split_cluster is 2: the sums that a cluster shares") as caught:
        tensor_core(**{**ROLES, **REFUSED[hint]})
    assert caught.value.code == "R0609" and f"`{hint}`" in str(caught.value.hint)


@pytest.mark.parametrize(("blocks", "code"), [(0, "R0604"), (3, "R0604"), (16, "R0621")])
def test_the_rows_of_a_tile_are_shared_out_in_a_cluster(blocks: int, code: str) -> None:
    with pytest.raises(StrategyError, match="split_cluster") as caught:
        tensor_core(**{**ROLES, "split_cluster": blocks})
    assert caught.value.code == code


def test_matrices_of_an_array_are_in_no_cluster() -> None:
    failed = tensor_core(**ROLES)(data_flow(check_expression(PROGRAMS["batched"])))
    assert isinstance(failed, Failure) and "`split_cluster=1`" in failed.story()


def test_sums_are_in_shared_memory_beside_the_ring() -> None:
    schedule = Schedule(**{**WIDE, "stages": 4})
    needed = resources(schedule)
    made = derived(product(512, 256, 128), **{**WIDE, "stages": 4})
    assert needed.shared_bytes == made.launch.shared_bytes
    check(schedule, Limits(shared_bytes=needed.shared_bytes))
    with pytest.raises(StrategyError, match="stages"):
        check(schedule, Limits(shared_bytes=needed.shared_bytes - 1))
    with pytest.raises(StrategyError, match="split_cluster: 2 blocks"):
        check(schedule, Limits(cluster=1))


def test_persistent_clusters_share_no_sums_while_others_load() -> None:
    """The loop over tiles is one of those that compute, so those that load cannot meet them in it."""
    text = product(128, 128, 64)
    made = succeeded(tensor_core(**ROLES)(data_flow(check_expression(text))))
    several = show(made.term, annotate=True).replace("mapCluster(0)", "mapClusterPersistent(0, 1)")
    with pytest.raises(TranslationError, match="blocks meet in a loop") as caught:
        generate(data_flow(check_expression(several)), "several")
    assert caught.value.code == "R0743"


# --- what it is expected to cost --------------------------------------------------------------------------


def test_few_tiles_of_long_sums_are_shared() -> None:
    """Fewer than half as many as multiprocessors: of more, clusters start too late (schedules-h100.csv)."""
    for m, n, k in ((512, 256, 4096), (128, 256, 3712), (256, 256, 4096)):
        best = ranked("tensor_core", Problem(m, n, k, result_bytes=2), H200)[0].point.schedule
        assert best.split_cluster > 1 and best.epilogue == "shared", (m, n, k)


def test_many_tiles_are_not() -> None:
    p = Problem(4096, 4096, 4096, result_bytes=2)
    assert all(one.point.schedule.split_cluster == 1 for one in ranked("tensor_core", p, H200))
    alone = Schedule(**{**WIDE, "split_cluster": 1})
    assert cost(p, alone, H200).cycles < cost(p, replace(alone, split_cluster=2), H200).cycles
