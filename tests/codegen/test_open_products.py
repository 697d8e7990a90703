"""Products whose sizes are open until launch: one compiled program, exact at every size."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.host.program import HostProgram
from codegen.ir.tensor_maps import OpenTensorMap
from codegen.lower.box import map_over
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.symbolic import opened
from rise.constraint import certainly_positive
from rise.errors import LaunchError
from rise.frozen import changed
from rise.nat import ceiling_quotient, evaluate, variable
from rise.normal import data_flow
from rise.types import Scalar
from strategies.core import Strategy
from strategies.matmul.schedule import HOPPER
from strategies.matmul.schedules import hopper, to_kernels
from strategies.matmul.tensor_core import tensor_core
from tests.support.open_sizes import assert_exact
from tests.support.programs import succeeded

GEMM = check_text((Path(__file__).parents[2] / "examples" / "gemm.rise").read_text("utf-8"))
BY_WARPGROUPS = tensor_core(
    block=(64, 64, 64), warp=(64, 64), fragment=(64, 64, 16), stages=2, raster_group=2, epilogue="direct",
    warp_specialised=True, persistent_blocks=3,
)  # fmt: skip
IN_CLUSTERS = tensor_core(
    block=(64, 64, 64), warp=(64, 64), fragment=(64, 64, 16), stages=3, raster_group=2, epilogue="bulk",
    warp_specialised=True, persistent_blocks=4, cluster=2,
)  # fmt: skip
TILE = 64


def made_of(name: str, strategy: Strategy, units: Mapping[str, int]) -> HostProgram:
    """A product of GEMM with all sizes open, multiples of the units."""
    program = opened(GEMM[name], {}, units)
    return assemble(replace(program, program=succeeded(strategy(data_flow(program.program))).term), "f")


def sizes_drawn(units: Mapping[str, int], count: int, seed: int) -> list[dict[str, int]]:
    """One, tiles and their neighbours, primes: multiples of the units."""
    print(f"seed {seed}")
    draw = random.Random(seed)
    drawn = (1, 2, TILE - 1, TILE, TILE + 1, 67, 97, 131)
    return [{name: max(1, draw.choice(drawn) // u) * u for name, u in units.items()} for _ in range(count)]


@pytest.mark.parametrize("strategy", [BY_WARPGROUPS, IN_CLUSTERS], ids=["persistent", "clusters"])
def test_tiles_that_the_copying_unit_brings_stick_out_at_launch(strategy: Strategy) -> None:
    units = {"m": 1, "n": 8, "k": 8}
    made = made_of("matmul_bt_f16", strategy, units)
    (kernel,) = made.kernels
    assert all(
        isinstance(each.map, OpenTensorMap) for each in kernel.function.maps if each.buffer != "output"
    )
    assert sorted(map(str, made.constraints)) == ["8 | k", "8 | n"], (
        "rows are multiples of 16 bytes, and no more"
    )
    for number, sizes in enumerate(sizes_drawn(units, 4, seed=1)):
        assert_exact(made, GEMM["matmul_bt_f16"], sizes, seed=number)


def test_rows_of_any_length_go_through_longer_copies() -> None:
    units = {"m": 1, "n": 1, "k": 1}
    made = made_of("matmul_bt_f16", BY_WARPGROUPS, units)
    assert len(made.kernels) == 3 and len(made.temporaries) == 2
    assert not made.constraints
    for number, sizes in enumerate([{"m": 1, "n": 1, "k": 1}, *sizes_drawn(units, 3, seed=2)]):
        assert_exact(made, GEMM["matmul_bt_f16"], sizes, seed=number)


def test_rows_that_may_not_be_whole_chunks_are_refused() -> None:
    tile = {"block": (64, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2}
    unaligned = to_kernels(hopper(changed(HOPPER, **tile, epilogue="direct")))
    program = opened(GEMM["matmul_bt_f16"], {"m": 64, "n": 64}, {"k": 1})
    refused = unaligned(data_flow(program.program))
    assert isinstance(refused, Failure)
    assert "an operand has rows of k elements, 2*k bytes, and the copying unit takes 16 bytes" in str(refused)


def test_a_size_rounded_up_is_certainly_not_smaller() -> None:
    seed, draw, fired = 3, random.Random(3), 0
    print(f"seed {seed}")
    for _ in range(200):
        tile, unit, less = draw.randrange(1, 300), draw.choice((1, 2, 8)), draw.randrange(-3, 4)
        size = unit * variable("n") + draw.randrange(0, 9)
        more = tile * ceiling_quotient(size, tile) - size - less
        certain = certainly_positive(more)
        assert certain or less > 0
        fired += certain and less <= 0 and tile > 1
        if certain:
            assert all(evaluate(more, {"n": n}) >= 0 for n in range(2 * tile))
    assert fired > 50


def test_a_map_over_open_sizes_needs_rows_of_whole_chunks() -> None:
    m, n, f16 = variable("m"), variable("n"), Scalar("f16")
    assert map_over((m, 8 * n), f16, (64, 64), 128).at({"m": 3, "n": 2}).strides == (32,)
    with pytest.raises(LaunchError, match=r"rows of 4\*n elements of 2 bytes are not known"):
        map_over((m, 4 * n), f16, (64, 64), 128)
