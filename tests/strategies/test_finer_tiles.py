"""Tiles that fill waves, and those that the other order of operands allows."""

from __future__ import annotations

import random
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

import codegen
import rise
from rise.shipped import shipped
from strategies.registry import find
from strategies.search.hardware import H200
from strategies.search.problem import Problem
from strategies.search.schedules import NARROWEST, filling, turned_by_lanes, turned_in_bulk, warpgroups

ACCUMULATED = rise.load(shipped("benchmarks/tables/papers/programs.rise")).accumulated
SWAPPED = (
    "block=64,{n},64 warp=64,{n} fragment=64,{n},16 stages=2 raster_group={g} epilogue=direct"
    " warp_specialised=true swap_operands=true"
)
SEED = 26


def sums(m: int, n: int, k: int) -> Problem:
    """AB + C, sums and C in f32."""
    return Problem(m, n, k, beside=(4,))


@pytest.mark.parametrize(
    ("sizes", "n", "more"),
    [((111, 136, 40), 104, ""), ((209, 68, 72), 104, " ahead=1 persistent_blocks=2 ping_pong=2")],
)
def test_operands_in_the_other_order_give_the_same_sums(
    sizes: tuple[int, int, int], n: int, more: str
) -> None:
    m, columns, k = sizes
    schedule = find("tensor_core").make(
        dict(part.split("=") for part in (SWAPPED.format(n=n, g=2) + more).split())
    )
    at = {"m": m, "n": columns, "k": k}
    multiply = codegen.compile(ACCUMULATED, schedule, sizes=at, backend="emulate", target="sm_90a")
    numbers = np.random.default_rng(SEED)
    A, B = (numbers.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, columns)))
    C = numbers.integers(-9, 10, (m, columns)).astype(np.float32)
    assert np.array_equal(multiply(A, B, C), A.astype(np.float64) @ B + C)


def test_narrower_tiles_than_those_that_fill_waves_take_a_wave_more() -> None:
    rng, found = random.Random(SEED), 0
    for _ in range(200):
        p, rows = sums(rng.randrange(1, 5000), rng.randrange(1, 5000), 64), rng.choice([64, 128, 192, 256])
        down = ceil(p.m / rows)
        for columns in filling(p, rows, H200):
            waves = ceil(down * ceil(p.n / columns) / H200.multiprocessors)
            narrower = ceil(p.n / (columns - 8))
            assert waves <= 8 and columns % 8 == 0 and columns >= NARROWEST, (p, rows, SEED)
            if narrower > ceil(p.n / columns):
                found += down * narrower > waves * H200.multiprocessors
    assert found > 100


def test_sizes_that_are_not_known_have_no_waves_to_fill() -> None:
    assert filling(replace(sums(1280, 1280, 64), open=True), 128, H200) == set()
    assert filling(replace(sums(1280, 1280, 64), batch=2), 128, H200) == set()


def test_sums_with_a_matrix_have_tiles_of_any_eight_columns_by_the_other_order() -> None:
    """At 1280, 130 tiles of 128 × 104 fill a wave; B across k has panels of 16 columns or more."""
    found = {(*s.block[:2], s.swap_operands) for s in warpgroups(sums(1280, 1280, 1280), H200)}
    assert (128, 104, True) in found and (128, 128, False) in found
    assert all(columns % 16 == 0 for _, columns, swapped in found if not swapped)
    assert all(columns % 64 for _, columns, swapped in found if swapped)


@pytest.mark.parametrize(
    ("changed", "bulk", "lanes"),
    [
        ({}, False, True), ({"beside": (2,)}, False, False), ({"result_bytes": 2, "beside": ()}, True, False),
        ({"result_bytes": 2, "beside": (2,)}, False, False), ({"along_k": (True, True)}, False, False),
        ({"along_k": (False, False)}, False, False), ({"batch": 2}, False, False),
        ({"products": 2}, False, False), ({"row_work": 1}, False, False),
    ],
)  # fmt: skip
def test_lanes_turn_results_where_they_move_whole_sectors(
    changed: dict[str, object], bulk: bool, lanes: bool
) -> None:
    p = replace(sums(1280, 1280, 1280), **changed)  # type: ignore[arg-type]
    assert (turned_in_bulk(p), turned_by_lanes(p)) == (bulk, lanes)
