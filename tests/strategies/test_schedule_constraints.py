"""What is predicted of a schedule is what its kernel has; what cannot be is refused, with a number."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codegen import runtime
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.errors import StrategyError
from rise.expr import Expr
from rise.normal import data_flow
from strategies.matmul.constraints import PRODUCER, Limits, Resources, check, check_sizes, resources
from strategies.matmul.schedule import Schedule
from strategies.matmul.tensor_core import tensor_core
from strategies.search.hardware import A100, H200, T4
from strategies.search.problem import Problem
from strategies.search.space import ranked
from tests.support.nightly import every_other
from tests.support.programs import succeeded

GEMM = Path(__file__).parents[2] / "examples" / "gemm.rise"


SIZES = (768, 512, 512)


@cache
def program(name: str, element: str) -> Expr:
    """A product of gemm.rise, its sums rounded to an element of the result."""
    text = GEMM.read_text(encoding="utf-8").replace(
        "reduce(+, 0)))))))", f"reduce(+, 0) |> fun(r => {element}(r))))))))"
    )
    return data_flow(specialise(check_text(text)[name], dict(zip("mnk", SIZES, strict=True))))


def kernel(term: Expr, schedule: Mapping[str, Any]) -> Kernel:
    return generate(succeeded(tensor_core(**schedule)(term)).term, "product")


def accumulators(text: str) -> int:
    """Registers of a thread for the fragments that products of a warpgroup add to: 64·n over 128 threads."""
    found = 0
    for columns, count, name in re.findall(r"Local<group::fragment<(\d+), float>(?:, (\d+))?> (\w+);", text):
        if re.search(rf"wgmma<[^>]*>\({name}\b", text):
            found += int(columns) // 2 * int(count or 1)
    return found


PRODUCTS = (("matmul_bt", "f32"), ("matmul_bt", "f16"), ("matmul_at", "f32"))


@pytest.mark.parametrize(("name", "element"), every_other(PRODUCTS))
def test_what_is_predicted_is_what_the_kernel_has(name: str, element: str) -> None:
    """Legal points of each kind, drawn at random: threads, bytes of shared memory, registers."""
    term = program(name, element)
    p = Problem.of(term)
    assert p is not None and p.along_k == (("bt" in name),) * 2
    legal = [each.point for each in ranked("tensor_core", p, H200) if each.point.schedule.split_k == 1]
    kinds = [[point for point in legal if point.schedule.uses_wgmma is groups] for groups in (True, False)]
    random_ = random.Random(name)
    for point in [random_.choice(kind) for kind in kinds]:
        made, needed = kernel(term, dict(point.parameters)), asked(point.schedule, p)
        assert (made.launch.threads, made.launch.shared_bytes) == (needed.threads, needed.shared_bytes), point
        if point.schedule.uses_wgmma:
            assert point.schedule.warp_specialised
            assert accumulators(made.source) == needed.accumulators, point
            high = H200.limits.registers_warp_specialised(needed.threads)
            assert (PRODUCER, high) == given_away(made.source), point
            assert needed.registers <= high
        if runtime.can_compile():
            (found,) = runtime.resources(made.source, "sm_90a").values()
            room = H200.limits.registers_of(needed.threads)
            assert found.spill_stores == 0 and found.registers <= room, point
            assert point.schedule.warp_specialised or needed.accumulators < found.registers, point


def asked(s: Schedule, p: Problem) -> Resources:
    return resources(s, p.operand_bytes, p.along_k, p.result_bytes)


def given_away(text: str) -> tuple[int, int]:
    """Registers of a thread that loads, and of one that computes."""
    low, high = re.findall(r"registers_(?:de|in)crease<(\d+)>\(\)", text)
    return int(low), int(high)


@pytest.mark.parametrize("columns", [32, 128, 256])
def test_the_fewest_registers_are_those_of_a_product_alone(columns: int) -> None:
    """Without roles, where ptxas counts those who compute, and tiles that divide the sizes."""
    if not runtime.can_compile():
        pytest.skip("nothing counts registers")
    term = program("matmul_bt", "f32")
    schedule = Schedule((64, columns, 64), (64, columns), (64, columns, 16), stages=3, epilogue="direct")
    made = kernel(term, asdict(schedule))
    (found,) = runtime.resources(made.source, "sm_90a").values()
    needed = resources(schedule, result_bytes=4)
    assert (found.registers, found.spill_stores) == (needed.registers, 0)


def wide(**changes: object) -> Schedule:
    values = {"block": (128, 256, 64), "warp": (64, 256), "fragment": (64, 256, 16), "stages": 4}
    return Schedule(**{**values, "epilogue": "direct", **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schedule", "limits", "said", "instead"),
    [
        (
            wide(stages=5), H200.limits,
            "stages: 5 tiles of 128×256×64 need 246784 bytes of a block; there are 232448", "stages=4",
        ),
        (
            wide(block=(128, 256, 128), stages=3), H200.limits, "stages: 3 tiles", "stages=2",
        ),
        (
            wide(block=(256, 256, 64), stages=3), H200.limits,
            "warp: 64×256 needs 128 registers a thread for sums and 26 besides; there are 128 registers",
            "13056 elements",
        ),
        (
            wide(block=(128, 512, 64), warp=(128, 256), stages=2), H200.limits,
            "warp: 128×256 needs 256 registers", "29312 elements",
        ),
        (
            wide(block=(256, 256, 64), warp=(64, 64), fragment=(64, 64, 16), stages=3), H200.limits,
            "warp: 64×64 makes 2048 threads of a block of 256×256; there are 1024", "larger `warp`",
        ),
        (
            Schedule(stages=4), A100.limits, "stages: 4 tiles of 128×128×64 need 147456", None,
        ),
        (
            Schedule(stages=3), T4.limits, "stages: 3 tiles", "epilogue=direct stages=1",
        ),
    ],
)  # fmt: skip
def test_more_than_there_is_is_refused(
    schedule: Schedule, limits: Limits, said: str, instead: str | None
) -> None:
    if instead is None:  # it fits
        assert check(schedule, limits).shared_bytes == 147456
        return
    with pytest.raises(StrategyError) as refused:
        check(schedule, limits)
    assert refused.value.code == "R0621"
    assert refused.value.message.startswith(f"tensor_core: {said}")
    assert instead in (refused.value.hint or "")


def test_the_number_that_a_hint_gives_would_do() -> None:
    for bm in (64, 128, 192, 256):
        for bn in (64, 128, 192):
            schedule = wide(block=(bm, bn, 64), warp=(64, bn), fragment=(64, bn, 16), stages=40)
            with pytest.raises(StrategyError) as refused:
                check(schedule)
            most = int((refused.value.hint or "").removeprefix("stages="))
            check(wide(block=(bm, bn, 64), warp=(64, bn), fragment=(64, bn, 16), stages=most))
            with pytest.raises(StrategyError):
                check(wide(block=(bm, bn, 64), warp=(64, bn), fragment=(64, bn, 16), stages=most + 1))


def test_the_strategy_refuses_before_it_derives() -> None:
    with pytest.raises(StrategyError, match="R0621|stages: 8 tiles"):
        tensor_core((128, 256, 64), (64, 256), (64, 256, 16), stages=8, epilogue="direct")


def test_tiles_may_stick_out_of_the_result() -> None:
    check_sizes(wide(), {"m": 129, "n": 960, "k": 65})
    check_sizes(wide(split_k=2), {"m": 128, "n": 256, "k": 192})
    check_sizes(wide(raster_group=7, cluster=2), {"m": 13 * 128 + 1, "n": 255, "k": 64})


def test_groups_and_clusters_need_not_divide() -> None:
    """Of 6 × 1 tiles a group of 8 rows, of 7 × 3 two at a time: sizes are rounded up to whole clusters.

    To whole groups, too, where rows are not known, or if those of a cluster are in two groups.
    """
    check_sizes(wide(raster_group=8), {"m": 768, "n": 256, "k": 64})
    assert wide(raster_group=8).whole == (8 * 128, 256, 64)
    for cluster in (2, 4):
        assert wide(raster_group=1, cluster=cluster).whole == (128, 256 * cluster, 64)
        assert wide(raster_group=7, cluster=cluster).whole == (7 * cluster * 128, 256, 64)
    assert wide(raster_group=8).whole_of(768) == (128, 256, 64)
    assert wide(raster_group=8, cluster=4).whole_of(768) == (4 * 128, 256, 64)
    assert wide(raster_group=7, cluster=2).whole_of(768) == (14 * 128, 256, 64)
    assert wide(raster_group=8, cluster=4).tiles(6 * 128 + 1, 2 * 256 + 1) == 8 * 3


def test_panels_of_rows_across_k_are_as_wide_as_a_pattern() -> None:
    narrow = wide(block=(128, 96, 64), warp=(64, 96), fragment=(64, 96, 16))
    check_sizes(narrow, {"m": 128, "n": 96, "k": 64}, (True, False))
    with pytest.raises(StrategyError, match="block n: 16 does not divide 72"):
        odd = wide(block=(128, 72, 64), warp=(64, 72), fragment=(64, 72, 16))
        check_sizes(odd, {"m": 128, "n": 72, "k": 64}, (True, False))
    with pytest.raises(StrategyError, match="fragment n: 32 does not divide 48"):
        parts = wide(block=(128, 96, 64), warp=(64, 96), fragment=(64, 48, 16))
        check_sizes(parts, {"m": 128, "n": 96, "k": 64}, (True, False))


def test_widths_that_instructions_do_not_have_are_refused() -> None:
    with pytest.raises(StrategyError, match="there is no fragment 64×100×16"):
        tensor_core((64, 100, 64), (64, 100), (64, 100, 16), epilogue="direct")


def test_one_product_gets_along_with_the_registers_at_launch() -> None:
    """The compiler says so (C7602): of 640 threads each starts with 96, whatever it gets."""
    shape = {"block": (256, 144, 64), "warp": (64, 144), "stages": 3}
    with pytest.raises(StrategyError, match="64×144×16 needs 72 registers.*there are 96") as caught:
        check(wide(**shape, fragment=(64, 144, 16), warp_specialised=True))
    assert caught.value.hint == "a fragment of at most 136 columns"
    check(wide(**shape, fragment=(64, 72, 16), warp_specialised=True))


def test_registers_are_given_out_in_eights() -> None:
    """The counts at launch of hopper.md §2.2: 256 threads 248 (255 at most a thread), 384: 168, 512: 128."""
    assert [H200.limits.registers_of(t) for t in (128, 256, 384, 512, 640)] == [255, 255, 168, 128, 96]


def test_registers_that_a_role_gives_away_are_those_of_the_others() -> None:
    """Legal by hopper.md §2.2: 40/248, 40/232/232, 40/152/152/152; 40/248/248 waits for ever."""
    found = [H200.limits.registers_warp_specialised(128 * (1 + groups)) for groups in (1, 2, 3)]
    assert found == [248, 232, 152]
    for groups, high in enumerate(found, 1):
        pool = min(H200.limits.registers_of(128 * (1 + groups)), 248) * (1 + groups)
        assert PRODUCER + groups * high <= pool < PRODUCER + groups * (high + 8) or high == 248
    large = {"block": (256, 192, 64), "warp": (128, 192), "fragment": (64, 192, 16), "stages": 3}
    assert check(wide(**large, warp_specialised=True)).accumulators == 192
    with pytest.raises(StrategyError, match="192 registers a thread for sums and 26 besides; there are 152"):
        check(wide(**{**large, "block": (384, 192, 64), "stages": 2}, warp_specialised=True))


def test_a_bulk_epilogue_has_its_results_in_shared_memory() -> None:
    """Beside the ring where others load meanwhile, else in its place: 2 × 64 × 256 results of 2 bytes."""
    ring = check(wide()).shared_bytes
    assert check(wide(epilogue="bulk")).shared_bytes == ring
    assert check(wide(epilogue="bulk", stages=1)).shared_bytes == 2 * 64 * 256 * 2
    small = wide(epilogue="bulk", warp_specialised=True, fragment=(64, 64, 16))
    assert check(small).shared_bytes == ring + 2 * 64 * 64 * 2
    with pytest.raises(StrategyError, match="stages: 4 tiles") as refused:
        check(wide(epilogue="bulk", warp_specialised=True))
    assert refused.value.hint == "stages=3"
    check(wide(epilogue="bulk", warp_specialised=True, stages=3))
