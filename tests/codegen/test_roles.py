"""Warpgroups that only load, blocks that stay, clusters that load together: exact in the emulator."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from codegen import runtime
from codegen.ir import imperative as i
from codegen.ir.launch import Launch, register_budget
from codegen.passes.roles import split_roles
from codegen.pipeline import generate
from codegen.runtime.compiling import compiler_report
from rise.check.program import check_expression
from rise.errors import EmulationError, StrategyError, TranslationError
from rise.nat import constant
from rise.normal import data_flow
from rise.pretty import show
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other
from tests.support.warpgroups import PROGRAMS, ROLES, agrees, derived, product


@pytest.mark.parametrize(
    ("name", "text"),
    every_other(PROGRAMS.items()),
    ids=every_other([name.replace("·", "") for name in PROGRAMS]),
)
def test_programs_around_a_product_are_exact(name: str, text: str) -> None:
    made = derived(text, **ROLES)
    assert "registers_decrease" in made.source and "// reduceRoleSplit" in made.source
    assert agrees(text, made)


@pytest.mark.parametrize(
    ("stages", "tiles", "blocks"),
    every_other([(2, 1, 3), (2, 5, 0), (3, 2, 3), (3, 3, 0), (4, 9, 3), (4, 9, 0)]),
)
def test_the_ring_goes_on_from_tile_to_tile(stages: int, tiles: int, blocks: int) -> None:
    """Five tiles of the result on three blocks; of k fewer tiles than slots, as many, and more."""
    text = product(64 * tiles, 640, 64)
    made = derived(text, stages, **ROLES, persistent_blocks=blocks)
    assert made.launch.grid[0] == (blocks or 5)
    for seed in range(3):  # copies arrive late, at once, at random
        assert agrees(text, made, seed)


@pytest.mark.parametrize(
    ("cluster", "blocks", "group"),
    every_other([(2, 0, 6), (2, 0, 1), (3, 3, 1), (3, 0, 6), (2, 4, 6)]),
)
def test_blocks_of_a_cluster_load_for_each_other(cluster: int, blocks: int, group: int) -> None:
    """By rows of tiles they have those of A in common, by columns those of B."""
    text = product(192, 256, 384) if group == 1 else product(192, 768, 128)  # 2 × 6 tiles, 6 × 2
    made = derived(text, 3, **{**ROLES, "raster_group": group}, cluster=cluster, persistent_blocks=blocks)
    assert made.launch.cluster == cluster
    shared = re.findall(r"bulk_load_multicast\((\w+)", made.source)
    # 64 rows of B are no three parts of whole patterns
    assert shared == ([] if cluster == 3 else ["ring" if group == 1 else "ring_1"])
    for seed in range(3):
        assert agrees(text, made, seed)


@pytest.mark.parametrize(
    ("stages", "tiles", "parameters"),
    every_other(
        [
            (2, 1, {"persistent_blocks": 6}),
            (3, 5, {"persistent_blocks": 3}),
            (3, 2, {"persistent_blocks": 4, "cluster": 2}),
            (2, 3, {"persistent_blocks": 5}),
            (4, 4, {"persistent_blocks": 2, "ping_pong": 3}),
            (3, 1, {"persistent_blocks": 12}),
            (3, 2, {"persistent_blocks": 5, "epilogue": "bulk"}),
            (3, 2, {"persistent_blocks": 5, "ping_pong": 3}),
        ]
    ),
)
def test_warpgroups_take_turns(stages: int, tiles: int, parameters: dict[str, Any]) -> None:
    """The next tile's products start when this one's last element is there. Some blocks have a tile more."""
    text = product(64 * tiles, 768, 64)
    shape = {**ROLES, "block": (64, 64, 64), "ping_pong": 2, "raster_group": 12, **parameters}
    made = derived(text, stages, **shape)
    assert "Shared<Barrier> baton" in made.source
    for seed in range(3):
        assert agrees(text, made, seed)


def test_who_does_not_wait_for_his_turn_is_two_phases_ahead() -> None:
    text = product(128, 512, 64)
    made = derived(
        text, 3, **{**ROLES, "block": (64, 64, 64), "ping_pong": 2, "raster_group": 8}, persistent_blocks=2
    )
    wrong = re.sub(r"barrier_wait\(baton[^;]*;", ";", made.source)
    assert wrong != made.source
    with pytest.raises(EmulationError):
        for seed in range(4):
            agrees(text, replace(made, source=wrong), seed)


@pytest.mark.parametrize("a", ["A", "transpose(A)"])
@pytest.mark.parametrize("b", ["B", "transpose(B)"])
def test_operands_lie_along_k_or_across(a: str, b: str) -> None:
    text = product(256).replace("=> A |>", f"=> {a} |>").replace("=> B |>", f"=> {b} |>")
    left, right = ("256.128" if side.startswith("transpose") else "128.256" for side in (a, b))
    text = text.replace("A: 128.256", f"A: {left}").replace("B: 128.256", f"B: {right}")
    assert agrees(text, derived(text, **ROLES, cluster=2, persistent_blocks=2))


def test_two_products_in_turn_have_a_ring_each() -> None:
    one = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
    two = "zip(r)(c) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
    text = (
        "fun((A: 256.128.f16, B: 64.128.f16, P: 256.192.f16, Q: 64.192.f16) => zip(A)(P) |> "
        f"map(fun((row, r) => zip(B)(Q) |> map(fun((col, c) => ({one}) - ({two}))))))"
    )
    made = derived(text, **ROLES, persistent_blocks=1)
    assert made.source.count("// reduceRoleSplit") == 2 and made.source.count("Shared<Barrier>") == 4
    assert agrees(text, made)


def test_a_step_has_no_barrier_of_the_block() -> None:
    source = derived(product(256), **ROLES).source
    assert source.count("__syncthreads") == 1  # after the mbarriers are made
    assert "__syncthreads" not in source[source.index("registers_decrease") :]


# by what is missing or wrong, and what the emulator calls it
FAULTS = {
    "nobody says that a slot is empty": (r"if \(threadIdx.x % 128 == 0\) barrier_arrive\(empty[^;]*;", ";"),
    "loads do not wait for an empty slot": (r"barrier_wait\(empty[^;]*;", ";"),
    "products do not wait for a full slot": (r"barrier_wait\(full[^;]*;", ";"),
    "a slot is empty before its product is over": (r"wgmma_wait<1>\(\);", ";"),
    "an arrival too few is expected": (r"barrier_init\(empty \+ s, 2\)", "barrier_init(empty + s, 1)"),
    "the barriers are not shown to others": (r"__syncthreads\(\);", ""),
    "the kernel before is not waited for": (
        r"await_previous_grid\(\);",
        "if (threadIdx.x < 256) await_previous_grid();",
    ),
    "the kernel before is waited for too late": (
        r"registers_decrease<40>\(\);",
        "bulk_load(ring, A_map, full, 0, 0); await_previous_grid();",
    ),
    "fewer bytes are announced": (r"barrier_expect\((.*), 24576\)", r"barrier_expect(\1, 16384)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_emulator_finds_what_is_missing(fault: str) -> None:
    text = product(320, 384, 64)
    made = derived(text, **ROLES, persistent_blocks=2)
    pattern, instead = FAULTS[fault]
    wrong, times = re.subn(pattern, instead, made.source)
    assert times
    with pytest.raises(EmulationError):
        for seed in range(4):
            agrees(text, replace(made, source=wrong), seed)


def test_a_cluster_stays_until_all_have_arrived() -> None:
    text = product(192, 256, 64)
    made = derived(text, **{**ROLES, "raster_group": 2}, cluster=2)
    before, _, after = made.source.rpartition("cluster_sync();")
    with pytest.raises(EmulationError):
        for seed in range(4):
            agrees(text, replace(made, source=before + after), seed)


@pytest.mark.parametrize(("producers", "consumers"), [(1, 1), (1, 2), (1, 3), (2, 2)])
def test_registers_are_no_more_than_the_block_has(producers: int, consumers: int) -> None:
    launch = Launch(block=(128 * (producers + consumers), 1, 1), producers=producers)
    low, high = register_budget(launch)
    pool = launch.registers * (producers + consumers)
    assert low % 8 == high % 8 == 0 and 24 <= low <= launch.registers <= high <= 248
    assert producers * low + consumers * high <= pool


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "roles of warps": ({"warp_specialised": True, "fragment": (16, 16, 16)}, "R0609"),
    "turns of parts of a tile": ({**ROLES, "ping_pong": 2, "persistent_blocks": 2}, "R0609"),
    "turns at a single tile": ({**ROLES, "ping_pong": 2, "block": (64, 64, 64)}, "R0609"),
    "blocks without a list of tiles": ({"persistent_blocks": 3, "raster_group": 0}, "R0609"),
    "blocks that make no clusters": ({"persistent_blocks": 3, "cluster": 2, "raster_group": 1}, "R0609"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_are_refused_by_name(name: str) -> None:
    parameters, code = REFUSED[name]
    with pytest.raises(StrategyError) as caught:
        derived(product(128), **parameters)
    assert caught.value.code == code


def refused(text: str) -> str:
    with pytest.raises(TranslationError) as caught:
        generate(data_flow(check_expression(text)), "refused")
    return caught.value.code


def test_who_computes_is_as_many_as_the_pipeline_says() -> None:
    term = tensor_core(block=(128, 64, 64), warp=(64, 64), fragment=(64, 64, 16), epilogue="direct",
                       warp_specialised=True)(data_flow(check_expression(product(128))))  # fmt: skip
    text = show(term.term, annotate=True).replace("reduceRoleSplit(3, 1, 2)", "reduceRoleSplit(3, 1, 1)")
    assert refused(text) == "R0734"


def test_turns_are_at_what_is_loaded_for_those_who_compute() -> None:
    alone = "xs |> mapBlockPersistent(0, 2)(fun(x => pingPong(2)(x |> mapSeq(sqrt))))"
    assert refused(f"fun(xs: 8.4.f32 => {alone})") == "R0734"
    pipeline = i.WarpSpecialise(i.Skip(), i.Skip(), i.Skip(), 1, 1, "turn")

    def dealt(groups: int) -> i.Command:
        return i.ParallelFor(i.Level.WARPGROUP, 0, "g", constant(groups), pipeline, execution="t")

    for parts in ((dealt(2), pipeline), (dealt(2), dealt(3))):
        with pytest.raises(TranslationError, match="warpgroups alternate here, but not in all") as caught:
            split_roles(i.Function("f", (), (), i.sequence(*parts)))
        assert caught.value.code == "R0734"


def test_clusters_have_one_size() -> None:
    copied = "mapSeq(fun(x => x))"
    assert refused(f"fun(xs: 8.4.f32 => xs |> mapCluster(0)({copied}))") == "R0733"


def test_loads_of_a_pipeline_with_roles_are_bulk_copies() -> None:
    text = (
        "fun(xs: 4.8.f32 => xs |> reduceRoleSplit(2, 1, 1)(fun(x => x |> copyAsync), "
        "fun(acc, x => zip(acc)(x) |> mapSeq(fun(p => fst(p) + snd(p)))), generate(fun(i => 0.0))))"
    )
    assert refused(text) == "R0731"


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("cluster", [1, 2])
def test_the_text_compiles_without_remarks(cluster: int) -> None:
    text = PROGRAMS["αA·Bᵀ + βC"].replace("128.128", "512.512")
    shape = {"block": (128, 256, 64), "warp": (64, 256), "fragment": (64, 256, 16)}
    made = derived(text, 4, **shape, **{**ROLES, "raster_group": 2}, persistent_blocks=2, cluster=cluster)
    report = compiler_report(made.source, "sm_90a")
    assert "serialized" not in report and "ignored" not in report
    assert "0 bytes spill stores" in report
