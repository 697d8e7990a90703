"""The cost of a tile of a matrix that the copying unit brings, beside what was measured."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import groupby
from math import exp, log
from pathlib import Path
from random import Random

import pytest

from strategies.auto import auto
from strategies.batches.batch import PLANS
from strategies.batches.costs import (
    BYTES,
    MOST_WARPS,
    UNSPILLED,
    Tile,
    best_tile,
    blocks,
    candidates,
    cost,
    cycles,
)
from strategies.batches.plans import in_bulk, numbers_at_once, usual_tile
from strategies.batches.sizes import Sizes
from strategies.batches.tiles import slices
from strategies.registry import find
from strategies.search.space import Point
from tests.support.batches import chosen, exact, operands_of, products, program, sizes_of
from tests.support.nightly import every_other
from tests.support.programs import succeeded

MEASURED = Path(__file__).parents[2] / "benchmarks/results/batch-tiles-h200.csv"
BATCH_BYTES, CLOCK, MULTIPROCESSORS = 300_000_000, 1.75e9, 132  # of an H200


@cache
def known(
    m: int, n: int, k: int, layouts: str = "AA", type_: str = "f16", body: str = "plain", b: int = 1 << 17
) -> Sizes:
    return sizes_of(products(b, m, n, k, type_, layouts, body))


def measured() -> Iterator[tuple[Sizes, list[tuple[Tile, float]]]]:
    """For each product, its tiles, and how many cycles of a multiprocessor each matrix took."""
    with MEASURED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("m", "n", "k", "layouts", "operand", "result")
    for (m, n, k, layouts, operand, result), each in groupby(rows, lambda row: tuple(map(row.get, names))):
        bodies = {("tf32", "f32"): "rounded to tf32", ("f16", "f32"): "plain", ("bf16", "f32"): "plain"}
        body = bodies.get((operand, result)) or ("rounded" if operand == result else "")
        if body:
            type_ = "f32" if operand == "tf32" else str(operand)
            sizes = known(int(m or 0), int(n or 0), int(k or 0), str(layouts), type_, body)
            yield sizes, [of_row(row, sizes) for row in each]


def of_row(row: Mapping[str, str], sizes: Sizes) -> tuple[Tile, float]:
    tile = Tile(int(row["rows"]), int(row["columns"]), int(row["count"]))
    batch = BATCH_BYTES // sizes.bytes
    return tile, float(row["us"]) * 1e-6 * CLOCK * MULTIPROCESSORS / batch


def fits(tile: Tile) -> bool:
    return tile.sums <= UNSPILLED


def test_costs_are_close_to_what_was_measured() -> None:
    """Nine of ten kernels within a quarter, and the tile with the least cost close to the fastest."""
    near, lost = list[bool](), list[float]()
    for sizes, each in measured():
        near += [abs(log(cycles(sizes, tile) / time)) < log(1.25) for tile, time in each]
        fit = [(t, time) for t, time in each if fits(t) and t.warps(sizes) <= MOST_WARPS]
        if len(fit) > 1:
            chosen = min(fit, key=lambda pair: cost(sizes, pair[0]))[1]
            lost.append(chosen / min(time for _, time in fit))
    assert len(near) > 380 and sum(near) / len(near) > 0.9
    assert len(lost) > 30 and exp(sum(map(log, lost)) / len(lost)) < 1.02 and max(lost) < 1.15


def test_costs_follow_the_tile() -> None:
    """Sizes are drawn: seed 5. Memory is the least; fewer registers leave room for no fewer blocks."""
    random = Random(5)
    for _ in range(20):
        m, n, k = (random.randint(17, 128) for _ in range(3))
        sizes = known(
            m, n, k, random.choice(("AA", "TT", "AT", "TA")), "f16", random.choice(("plain", "rounded"))
        )
        for tile in candidates(sizes, 1):
            assert fits(tile) and 1 <= tile.warps(sizes) <= MOST_WARPS
            assert tile.rows % 16 == 0 and tile.columns % 8 == 0
            assert cycles(sizes, tile) >= sizes.bytes / BYTES
            fewer = replace(tile, rows=tile.rows // 32 * 16 or 16)
            if fewer.warps(sizes) == tile.warps(sizes):
                assert blocks(sizes, fewer) >= blocks(sizes, tile)
        best = best_tile(sizes, numbers_at_once(sizes))
        assert best is not None
        assert all(cost(sizes, best) <= cost(sizes, tile) for tile in candidates(sizes, best.count))


def test_tiles_of_fewer_rows_leave_room_for_more_blocks() -> None:
    """Three warps with 32 rows take fewer registers than two with 48, of which neither has many in vain."""
    for n in range(81, 88):
        sizes = known(n, n, n, body="rounded", b=8191)
        usual, chosen = usual_tile(sizes), in_bulk(sizes)
        assert (usual.rows, usual.columns) == (48, 88)
        assert (chosen.rows, chosen.columns) == (32, 88)
        threads = [tile.warps(sizes) * blocks(sizes, tile) for tile in (Tile(32, 88), usual)]
        assert threads[0] > threads[1]
    for n in (55, 65, 75, 80, 89, 97, 107):
        sizes = known(n, n, n, body="rounded", b=8191)
        plan, usual = in_bulk(sizes), usual_tile(sizes)
        assert (plan.rows, plan.columns) == (usual.rows, usual.columns), n


@pytest.mark.parametrize(
    ("shape", "layouts", "type_", "body", "operands"),
    every_other(
        [
            # less than 6 KB, for several warps
            ((32, 63, 2), "AT", "f16", "rounded", "bulk"),
            ((119, 11, 8), "AA", "f16", "rounded", "bulk"),
            ((128, 18, 3), "AA", "f16", "rounded", "bulk"),
            ((95, 14, 6), "AT", "bf16", "rounded", "bulk"),
            # rows of the first operand all start in the same bank, and each is read by one warp
            ((64, 48, 27), "TT", "f16", "rounded", "bulk"),
            ((83, 64, 4), "AA", "f32", "rounded to tf32", "bulk"),
            # the same of small matrices
            ((64, 9, 64), "AA", "f16", "rounded", "bulk_padded"),
            ((100, 8, 64), "AA", "f16", "plain", "bulk_padded"),
            ((4, 51, 128), "TT", "bf16", "rounded", "bulk_padded"),
            ((20, 33, 64), "AT", "f16", "rounded", "bulk_padded"),
            # little is read, and many results are written
            ((73, 100, 2), "AT", "f16", "rounded", None),
            ((122, 61, 5), "TA", "bf16", "plain", None),
            # less than one warp computes, and less than 6 KB
            ((2, 8, 64), "TT", "f16", "rounded", None),
            ((20, 27, 15), "TA", "f16", "rounded", None),
        ]
    ),
)
def test_the_copying_unit_brings_what_it_brings_faster(
    shape: tuple[int, int, int], layouts: str, type_: str, body: str, operands: str | None
) -> None:
    """Each was measured with all of these operands."""
    found = chosen(products(1 << 14, *shape, type_, layouts, body))
    assert operands_of(found) == operands
    if operands in PLANS:
        count = PLANS[operands](known(*shape, layouts, type_, body, 1 << 14)).count
        assert found.reason.startswith(f"{count} of a batch of 16384 products")


def test_a_block_brings_several_matrices_where_that_is_faster_by_far() -> None:
    sizes = known(95, 63, 19, "AT", "f16", "rounded")
    assert usual_tile(sizes).count == 1 and in_bulk(sizes).count == 2
    assert list(numbers_at_once(replace(sizes, batch=4095))) == [1], "many blocks have to be left"
    assert list(numbers_at_once(known(108, 86, 25, "TA", "bf16", "rounded"))) == [1], "it is large"


def test_of_larger_matrices_tiles_are_the_usual_ones() -> None:
    """All others would take too many registers, or warps."""
    sizes = known(203, 211, 20)
    usual, plan = usual_tile(sizes), in_bulk(sizes)
    assert best_tile(sizes, (1,)) is None
    assert (plan.rows, plan.columns) == (usual.rows, usual.columns)


def test_costs_are_those_of_one_product() -> None:
    """Two products have twice as many sums, so their tiles are the usual ones."""
    dot = "zip({})({}) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
    text = (
        "def f(As: 8191.85.85.f16, Bs: 8191.85.85.f16) = zip(As)(Bs) |> map((A, B) =>"
        " zip(A)(B) |> map((a, b) => zip(transpose(B))(transpose(A)) |> map((c, d) =>"
        f" f16(({dot.format('a', 'c')}) - ({dot.format('b', 'd')})))))"
    )
    sizes = sizes_of(program(text))
    usual, plan = usual_tile(sizes), in_bulk(sizes)
    assert (plan.rows, plan.columns) == (usual.rows, usual.columns) == (48, 88)
    one = known(85, 85, 85, body="rounded", b=8191)
    assert (one.read, one.written) == (sizes.read, sizes.written) and in_bulk(one).rows == 32


# tf32, with rows that all start in the same bank: how many times as fast slices are (slices-tf32-h200.md)
SLICED = {
    ((128, 128, 128), "AA"): 1.77, ((128, 128, 128), "AT"): 2.05, ((128, 128, 128), "TA"): 1.49,
    ((128, 128, 128), "TT"): 1.82, ((128, 112, 128), "AA"): 1.55, ((112, 128, 128), "AT"): 2.0,
    ((112, 128, 128), "TA"): 1.52, ((128, 128, 96), "AA"): 1.43, ((96, 96, 96), "AA"): 1.42,
    ((128, 96, 128), "AA"): 1.32, ((128, 64, 128), "AA"): 1.44, ((128, 64, 128), "AT"): 1.81,
    ((64, 64, 128), "AA"): 1.26, ((128, 128, 64), "AA"): 1.38,
}  # fmt: skip
WHOLE = (
    ((124, 124, 124), "AA"),  # rows start in different banks: tiles of slices took 1.4 times as long
    ((128, 120, 128), "AA"),  # tiles of four warps would be of three columns: as fast
    ((64, 64, 64), "AA"), ((128, 32, 128), "AA"), ((128, 128, 72), "TA"),  # not measured
)  # fmt: skip


@pytest.mark.parametrize(("shape", "layouts"), every_other(SLICED))
def test_slices_of_crowded_rows_are_taken_where_they_are_faster(
    shape: tuple[int, int, int], layouts: str
) -> None:
    """Each was measured with both."""
    assert SLICED[shape, layouts] > 1
    found = chosen(products(1 << 12, *shape, "f32", layouts, "rounded to tf32"))
    assert found.point.schedule.block == (*shape[:2], 32)
    assert "same bank" in found.reason


@pytest.mark.parametrize(("shape", "layouts"), WHOLE)
def test_other_rows_come_as_a_whole(shape: tuple[int, int, int], layouts: str) -> None:
    found = chosen(products(1 << 12, *shape, "f32", layouts, "rounded to tf32"))
    assert found.point.strategy == "batch"


def test_slices_are_for_tf32_where_there_is_a_copying_unit() -> None:
    """Rows of 16 bits are swizzled, and elsewhere threads bring rows and pad them anyway."""
    for type_, body, target in (("f16", "plain", "sm_90a"), ("f32", "rounded to tf32", "sm_80")):
        found = chosen(products(1 << 12, 128, 128, 128, type_, "AA", body), target)
        assert found.point.strategy == "batch"


def test_slices_are_exact() -> None:
    for layouts, (m, n, k) in (("AA", (64, 64, 96)), ("TA", (64, 96, 64)), ("AT", (80, 64, 64))):
        term = products(3, m, n, k, "f32", layouts, "rounded to tf32")
        sliced = slices(sizes_of(term))
        assert sliced is not None
        lowered = find("tensor_core").make(Point.by("tensor_core", sliced).settings)(term)
        assert exact(term, succeeded(lowered).term), (layouts, m, n, k)


def test_few_small_products_are_one_kernel() -> None:
    """Tiles of each would be faster, but not behind kernels that round operands, or transpose them."""
    draw = Random(16)
    several = []
    for _ in range(6):
        m, n, k = (draw.choice([draw.randint(16, 128), 80, 96, 112, 124]) for _ in range(3))
        layouts, b = draw.choice(["AA", "AT", "TA", "TT"]), draw.choice([2, 7, 50, 200, 520])
        term = products(b, m, n, k, "f32", layouts, "rounded to tf32")
        kernels = auto("sm_90a").choice(term).kernels
        several += [(b, m, n, k, layouts)] if len(kernels) > 1 else []
    assert not several
    (kernel,) = auto("sm_90a").choice(products(7, 80, 80, 112, "f32", "TT", "rounded to tf32")).kernels
    assert kernel.point.strategy == "batch"
