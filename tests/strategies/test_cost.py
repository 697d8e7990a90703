"""The cost model picks what is known to be good, and counts what it says it counts."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from math import log, sqrt
from pathlib import Path
from statistics import median

import pytest

from rewrites.result import Failure
from rise.expr import Identifier
from rise.types import F32
from strategies.matmul.schedule import Schedule
from strategies.registry import find
from strategies.search import cost as c
from strategies.search.hardware import A100, H200, T4, Gpu
from strategies.search.problem import Problem
from strategies.search.schedules import FEW
from strategies.search.space import Point, Ranked, best_first, points, ranked, refusal, varied
from tests.support.nightly import every_other

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
MEASURED = RESULTS / "schedules-h200.csv"


def square(size: int) -> Problem:
    return Problem(size, size, size, along_k=(True, True))


def tile(bm: int, bn: int, stages: int = 4, **more: int | bool) -> Schedule:
    warp = (64, bn if bn <= 256 else bn // 2)
    fragment = (64, warp[1], 16)
    return Schedule((bm, bn, 64), warp, fragment, stages, epilogue="direct", **more)  # type: ignore[arg-type]


# --- what is known to be good -----------------------------------------------------------------------------

# the tiles of hopper.md §2.5, and of some sizes the wave efficiency that the table there gives
TILES = [
    (128, 256), (128, 224), (128, 192), (128, 160), (128, 128), (192, 192), (128, 96), (64, 256), (64, 128),
]  # fmt: skip
TABLE = {
    (1024, (64, 128)): 0.97, (1024, (128, 256)): 0.24, (1152, (128, 96)): 0.82, (1664, (128, 192)): 0.85,
    (1792, (64, 128)): 0.99, (2048, (128, 256)): 0.97, (2304, (64, 128)): 0.98, (2560, (128, 224)): 0.87,
    (2816, (128, 160)): 0.98, (3072, (192, 192)): 0.97, (3328, (128, 224)): 0.98, (8192, (128, 224)): 0.99,
}  # fmt: skip


@pytest.mark.parametrize(("size", "shape"), TABLE)
def test_wave_efficiency_is_that_of_the_table(size: int, shape: tuple[int, int]) -> None:
    found = c.wave_efficiency(square(size), tile(*shape), H200)
    assert found == pytest.approx(TABLE[size, shape], abs=0.006)


@pytest.mark.parametrize(
    ("size", "best"),
    [
        (1024, {(64, 128)}), (1664, {(128, 192)}), (1792, {(64, 128), (128, 224)}), (2048, {(128, 256)}),
        (2688, {(128, 224)}), (2816, {(128, 160), (128, 256)}), (2944, {(128, 192), (192, 192)}),
        (3072, {(128, 192), (192, 192)}), (3328, {(128, 224)}), (3584, {(128, 256)}), (4096, {(128, 256)}),
        (8192, {(128, 256), (128, 224)}),
    ],
)  # fmt: skip
def test_the_tile_that_fills_the_waves_is_first(size: int, best: set[tuple[int, int]]) -> None:
    p = square(size)
    assert min(TILES, key=lambda shape: c.cost(p, tile(*shape), H200).cycles) in best


# which operands are contiguous along k
LAYOUTS = {
    "matmulHalf": (True, False), "matmulHalfBt": (True, True),
    "matmulHalfAt": (False, False), "matmulHalfAtBt": (False, True),
}  # fmt: skip


def read(schedule: str) -> Schedule:
    """What a table of measurements says of it."""
    return Point.read("tensor_core", dict(part.split("=") for part in schedule.split())).schedule


def of_first(cases: Iterable[Sequence[tuple[float, float]]]) -> list[float]:
    """Of pairs of a time and what was expected: the time of the first by the model, over the least time."""
    return [min(each, key=lambda row: row[1])[0] / min(us for us, _ in each) for each in cases]


@cache
def measurements(path: Path = MEASURED) -> dict[str, list[tuple[float, float]]]:
    """Of schedules with roles that were timed, by program and sizes: microseconds, and what is expected."""
    found = defaultdict(list)
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        definition, sizes = row["case"].split(" ", 1)
        m, n, k = (int(text.split("=")[1]) for text in sizes.split())
        if definition in LAYOUTS:
            p = Problem(m, n, k, result_bytes=2, along_k=LAYOUTS[definition])
        else:
            p = Problem(m, n, k, result_bytes=4, along_k=(True, True), beside=(4,))
        if row["kind"] == "rise" and "warp_specialised=true" in row["schedule"]:
            schedule = read(row["schedule"])
            problem = p.seen_by(schedule)
            expected = H200.microseconds(c.cost(problem, schedule, H200).cycles)
            found[row["case"]].append((float(row["median_us"]), expected))
    return found


def inside_of_lines(case: str) -> bool:
    """Whether rows of an operand of A·B start inside of lines of the cache."""
    definition, _, n, k = case.split()
    rows = (k, n) if definition == "matmulHalf" else (k,)
    return any(int(size.split("=")[1]) * 2 % c.LINE for size in rows)


def test_of_what_was_measured_the_best_is_among_the_first() -> None:
    """What the model ranks first is within 1.5 % of the best that was measured in the mean, 13 % everywhere.

    Of eight one is within 2 %.
    """
    cases = measurements()
    assert len(cases) == 57 and sum(map(len, cases.values())) > 1350
    losses = []
    for case, timed in cases.items():
        order = [us for us, _ in sorted(timed, key=lambda each: each[1])]
        losses.append(order[0] / min(order))
        assert losses[-1] <= 1.13, case
        assert min(order[:8]) <= 1.02 * min(order), case
    assert sum(map(log, losses)) < 0.015 * len(losses)
    assert sum(map(inside_of_lines, cases)) == 25


def test_of_a_hundred_products_the_first_is_among_the_best_on_an_h100() -> None:
    """Of the six that were ranked first before clusters were known to start late."""
    cases = measurements(RESULTS / "schedules-h100.csv")
    losses = of_first(cases.values())
    assert len(losses) == 100 and sum(map(len, cases.values())) == 600
    assert sum(map(log, losses)) < 0.032 * len(losses) and max(losses) < 1.25


def test_of_few_tiles_the_first_is_among_the_best_of_schedules_drawn_at_random() -> None:
    """Products of all layouts that are mostly one wave: clusters wait for each other, and order matters."""
    cases = measurements(RESULTS / "few-tiles-h200.csv")
    losses = of_first(cases.values())
    assert len(losses) == 44 and sum(map(len, cases.values())) == 393
    assert sum(map(log, losses)) < 0.022 * len(losses) and max(losses) < 1.14


def test_of_squares_added_to_a_matrix_the_first_is_among_the_best() -> None:
    """Of schedules that fill waves in either order of operands, and of those that were first before."""
    found = defaultdict(list)
    for row in csv.DictReader((RESULTS / "squares-h200.csv").read_text(encoding="utf-8").splitlines()):
        if row["kind"] == "rise":
            s, n = read(row["schedule"]), int(row["case"].split("=")[-1])
            p = replace(square(n), result_bytes=4, along_k=(True, False), beside=(4,))
            found[n].append((float(row["median_us"]), c.cost(p.seen_by(s), s, H200).cycles))
    losses = of_first(found.values())
    assert len(losses) == 6 and sum(map(len, found.values())) == 43
    assert sum(map(log, losses)) < 0.003 * len(losses) and max(losses) < 1.02


def test_of_long_products_the_first_is_among_the_best_of_those_timed_between_launches_of_one() -> None:
    """Power limits the clock: each schedule was timed between two samples of the first of its case."""
    found = defaultdict(list)
    text = (RESULTS / "between-launches-h200.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        name, *sizes = row["case"].split()
        m, n, k = (int(size.split("=")[1]) for size in sizes)
        p = Problem(m, n, k, result_bytes=2, along_k=LAYOUTS.get(name, (True, name == "gemmBt")))
        if name not in LAYOUTS:
            p = replace(p, result_bytes=4, beside=(4,))
        s = read(row["schedule"])
        found[row["run"], row["case"]].append((float(row["ratio"]), c.cost(p.seen_by(s), s, H200).cycles))
    losses = of_first(found.values())
    assert len(losses) == 84 and sum(map(len, found.values())) == 697
    assert sum(map(log, losses)) < 0.008 * len(losses) and max(losses) < 1.19


def variants() -> Iterator[tuple[Problem, list[tuple[float, Point]]]]:
    """Of groups of 8192 rows, in tiles of 128, and of AB + C: the schedules that were timed in turns."""
    tiles = {"8": 67, "64": 99}
    texts = [(RESULTS / name).read_text(encoding="utf-8") for name in ("variants-h100.md", "groups-h100.md")]
    for part in (part for text in texts for part in text.split("\n## ")[1:]):
        title, *lines = part.splitlines()
        match title.split():
            case "groups", g, n, k, "128":
                p = Problem(
                    128, int(n), int(k), batch=tiles[g], result_bytes=2, along_k=(True, True), operand="bf16",
                    scattered=True, input_bytes=2 * int(k) * (8192 + int(g) * int(n)),
                )  # fmt: skip
            case "accumulated", "2048" | "2304" as size:
                p = replace(square(int(size)), result_bytes=4, along_k=(True, False), beside=(4,))
            case _:
                continue
        rows = [line.strip("| ").split(" | ") for line in lines if "tensor_core" in line]
        read = [
            (float(row[0]), Point.read("tensor_core", dict(s.split("=") for s in row[-1].split()[1:])))
            for row in rows
        ]
        yield p, [each for each in read if not p.scattered or of_groups(each[1].schedule, p)]


def of_groups(s: Schedule, p: Problem) -> bool:
    """Whether the space has it: no single results; raster order of many matrices, and without clusters."""
    return s.epilogue != "direct" and (s.raster_matrices == 1 or (s.cluster == 1 and p.of_each < FEW))


def test_of_groups_and_sums_the_first_is_among_the_best() -> None:
    """Within 6 % of the best that was measured on an H100, 1 % in the mean; that of 8 long groups is it."""
    losses = []
    for p, timed in variants():
        us = [us for us, _ in sorted(timed, key=lambda one: c.cost(p, one[1].schedule, H200).cycles)]
        losses.append(us[0] / min(us))
    assert len(losses) == 14 and max(losses) < 1.06
    assert sum(map(log, losses)) < 0.01 * len(losses)
    assert losses[0] == 1


def groups_in_turn() -> Iterator[list[tuple[float, float]]]:
    """Of groups of 8192 rows: microseconds, and cycles that are expected."""
    text = (RESULTS / "groups-in-turn-h200.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        g, n, k, h, w = (int(size) for size in title.split()[1:6])
        rows = {8: 67, 64: 99}[g]
        p = Problem(
            h, w, k, batch=rows * n // w, result_bytes=2, along_k=(True, True), operand="bf16",
            scattered=True, input_bytes=2 * k * (8192 + g * n), missing=1 - 64 / rows,
        )  # fmt: skip
        timed = [line.strip("| ").split(" | ") for line in lines if "tensor_core" in line]
        given = [(float(us), read(said.removeprefix("tensor_core "))) for us, *_, said in timed]
        yield [(us, c.cost(p, s, H200).cycles) for us, s in given]


def test_of_groups_timed_in_turn_the_first_is_among_the_best() -> None:
    losses = of_first(groups_in_turn())
    assert len(losses) == 12 and max(losses) < 1.012


def groups_of_drawn_sizes() -> Iterator[list[tuple[float, float]]]:
    """Of rows, groups, n and k that were drawn; tiles that are finer at the end are left out."""
    text = (RESULTS / "groups-variants-h200.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        g, n, k, h, w, _, r = (int(size) for size in title.split()[1:])
        tiles = -(-r // h) + g
        expected = (tiles - (g + 1) // 2) * n // w
        p = Problem(
            h, w, k, batch=expected, result_bytes=2, along_k=(True, True), operand="bf16", scattered=True,
            input_bytes=2 * k * (r + g * n), missing=1 - r / h / (tiles - (g + 1) // 2),
        )  # fmt: skip
        timed = [line.strip("| ").split(" | ") for line in lines if "tensor_core" in line]
        given = [(float(us), read(said.removeprefix("tensor_core "))) for us, *_, said in timed]
        yield [(us, c.cost(p, s, H200).cycles) for us, s in given if not any(s.rest)]


def test_of_groups_of_drawn_sizes_the_first_is_among_the_best() -> None:
    """Within 14 % of the best of about twenty that were measured, 4 % in the mean."""
    losses = of_first(groups_of_drawn_sizes())
    assert len(losses) == 10 and max(losses) < 1.14
    assert sum(map(log, losses)) < 0.04 * len(losses)


def test_tiles_whose_rows_begin_inside_of_sectors_wait_for_memory() -> None:
    """Of 7872 columns of 16 bits, tiles of 184 end inside of a sector, and tiles of 176 do not."""
    p = Problem(128, 7872, 384, batch=200, result_bytes=2, along_k=(True, True))
    assert c.of_sectors(p, tile(128, 184), H200) > 0
    assert c.of_sectors(p, tile(128, 176), H200) == 0
    assert c.of_sectors(replace(p, n=184), tile(128, 184), H200) == 0
    assert c.of_sectors(replace(p, n=7876), tile(128, 184), H200) == 0, "all tiles have such rows"
    assert c.of_sectors(p, tile(128, 184, swap_operands=True), H200) == 0, "its rows are of 128"


@pytest.mark.parametrize("groups", [8, 64])
@pytest.mark.parametrize(("n", "k"), [(4096, 7168), (7168, 2048)])
def test_of_tiles_in_an_order_of_data_those_measured_to_be_quickest_are_first(
    groups: int, n: int, k: int
) -> None:
    """Warpgroups share a tile where sums are long, and memory takes longest (groups-in-turn-h200.md).

    Where it does, larger transfers into the cache pay (groups-ordered-h100.md), and for warpgroups in turn
    short tiles that are loaded by half (groups-short-h200.md).
    """
    rows = 64 + groups // 2
    p = Problem(
        128, 256, k, batch=rows * n // 256, result_bytes=2, along_k=(True, True), operand="bf16",
        scattered=True, input_bytes=2 * k * (8192 + groups * n), missing=1 - 64 / rows,
    )  # fmt: skip
    s = next(iter(best_first("tensor_core", p, H200))).point.schedule
    shared = (groups, n) == (64, 4096)
    assert s.block == ((128, 256, 64) if shared else (128, 128, 64))
    assert (s.cluster, s.ping_pong, s.promoted) == (1, 1 if shared else 2, 256 if shared else 128)
    assert s.short_tiles == (groups == 64 and not shared)
    assert s.persistent_blocks == 132 and s.epilogue == "rows"


def test_of_rows_that_are_missing_warpgroups_multiply_half() -> None:
    p, s = Problem(128, 256, 512, scattered=True), tile(128, 256, persistent_blocks=132)
    missing = replace(p, missing=0.5)
    assert c.tensor_cycles(missing, s, H200) == pytest.approx(0.75 * c.tensor_cycles(p, s, H200))
    alone = replace(s, block=(64, 256, 64))
    assert c.tensor_cycles(missing, alone, H200) == c.tensor_cycles(p, alone, H200)


def test_where_data_count_tiles_all_numbers_of_them_are_as_likely() -> None:
    """What the rounds are in the mean of as many numbers of tiles as there are blocks."""
    s, p = tile(128, 256, persistent_blocks=132), Problem(128, 256, 512, scattered=True)
    for first in (1, 500, 1031):
        counted = [c.waves(replace(p, batch=first + i), s, H200) for i in range(131)]
        middle = replace(p, batch=first + 65)
        assert c.rounds(middle, s, H200) == pytest.approx(sum(counted) / 131, abs=1 / 66)
        assert c.rounds(replace(middle, scattered=False), s, H200) == c.waves(middle, s, H200)


def test_expected_times_are_those_that_were_measured_roughly() -> None:
    logarithms = [log(expected / us) for timed in measurements().values() for us, expected in timed]
    assert sqrt(sum(x**2 for x in logarithms) / len(logarithms)) < 0.2
    assert abs(median(logarithms)) < 0.05


# --- what does not matter, and what does ------------------------------------------------------------------


def costs() -> Iterator[tuple[Problem, Schedule]]:
    for size in (1, 512, 1024, 1536, 4097, 16384):
        for shape in TILES:
            yield square(size), tile(*shape)


def test_the_clock_changes_no_ranking() -> None:
    slow = replace(H200, mhz=H200.mhz // 2)
    for p, s in costs():
        assert c.cost(p, s, slow) == c.cost(p, s, H200)
        assert slow.microseconds(1000) > H200.microseconds(1000)


def test_limits_that_a_schedule_keeps_change_nothing() -> None:
    p, s = square(4096), tile(128, 256)
    roomy = replace(H200, limits=replace(H200.limits, threads=2 * H200.limits.threads))
    assert c.cost(p, s, roomy).cycles == c.cost(p, s, H200).cycles


def test_a_product_and_its_mirror_cost_the_same_under_the_mirrored_tile() -> None:
    """A tile of m by n and one of n by m; only without what tells rows from columns: parts and groups."""
    p, mirrored = Problem(2048, 4096, 1024), Problem(4096, 2048, 1024)
    s = Schedule((128, 192, 64), (64, 64), (64, 64, 16), 4, epilogue="direct")
    t = replace(s, block=(192, 128, 64))
    for part in (c.tiles, c.waves):
        arguments = () if part is c.tiles else (H200,)
        assert part(p, s, *arguments) == part(mirrored, t, *arguments)
    assert c.tensor_cycles(p, s, H200) == c.tensor_cycles(mirrored, t, H200)
    assert c.l2_cycles(p, s, H200) == c.l2_cycles(mirrored, t, H200)


@pytest.mark.parametrize("name", ["m", "n", "k", "batch"])
def test_more_work_never_costs_less(name: str) -> None:
    """Three times as much: odd rows stay odd, and cost more than longer ones of an even number."""
    for p, s in costs():
        more = replace(p, **{name: getattr(p, name) * 3})
        assert c.cost(more, s, H200).cycles >= c.cost(p, s, H200).cycles


def test_a_tile_that_is_partly_wasted_costs_as_much_as_a_whole_one() -> None:
    s = tile(128, 256)
    waste, whole = c.cost(square(4097), s, H200), c.cost(square(4224), s, H200)
    assert waste.tiles == whole.tiles == 33 * 17
    assert waste.efficiency < whole.efficiency
    assert waste.cycles > c.cost(square(4096), s, H200).cycles * 1.1


@pytest.mark.parametrize("rate", ["multiprocessors", "macs", "l2_rate", "shared_rate", "dram_rate"])
def test_a_faster_gpu_is_never_slower(rate: str) -> None:
    faster = replace(H200, **{rate: getattr(H200, rate) * 2, "l2_rate": H200.l2_rate * 2})
    for p, s in costs():
        assert c.cost(p, s, faster).cycles <= c.cost(p, s, H200).cycles * 1.001


def test_threads_that_compute_operands_wait_for_each_step() -> None:
    """relu(A)·B, timed on an H200 by warps, was 25.0, 12.5 and 47.1 µs at these sizes: within a third."""
    for (m, n, k), size, us in (
        ((768, 128, 1792), 32, 25.0), ((128, 256, 896), 32, 12.5), ((3584, 128, 2048), 64, 47.1),
    ):  # fmt: skip
        s = Schedule((size, size, 64), (size // 2,) * 2, (16, 8, 16), 6, swizzled=True, epilogue="direct")
        computed = H200.microseconds(c.cost(Problem(m, n, k, result_bytes=2, computed=True), s, H200).cycles)
        copied = H200.microseconds(c.cost(Problem(m, n, k, result_bytes=2), s, H200).cycles)
        assert us / 1.33 < computed < us * 1.33 and copied < us / 2


def test_more_stages_hide_more_latency() -> None:
    p = square(4096)
    times = [c.latency_cycles(p, tile(128, 128, stages), H200) for stages in (2, 3, 4, 6)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)


@pytest.mark.parametrize("group", [1, 8])
def test_a_cluster_halves_what_a_shared_operand_costs_the_cache(group: int) -> None:
    """The first operand in raster order by rows, the second one in groups of rows."""
    p, s = square(8192), tile(128, 128, raster_group=group)
    pair = replace(s, cluster=2)
    assert c.sharing(p, pair) == ((2, 1) if group == 1 else (1, 2))
    assert c.l2_cycles(p, pair, H200) == c.l2_cycles(p, s, H200) * 0.75
    assert c.cost(p, pair, H200).cycles < c.cost(p, s, H200).cycles


def test_a_cluster_that_shares_no_whole_atoms_saves_nothing() -> None:
    """A third of 128 rows, or of 64 rows of k, is no multiple of eight; of 192 rows it is."""
    p = Problem(4096, 4096, 4096)
    for s in (tile(128, 128, raster_group=1, cluster=3), tile(192, 128, raster_group=3, cluster=3)):
        assert c.sharing(p, s) == (1, 1)
    assert c.sharing(p, tile(192, 128, raster_group=1, cluster=3)) == (3, 1)


def test_what_completes_groups_and_clusters_is_counted() -> None:
    p = Problem(5 * 128, 7 * 128, 512)
    known = ((1, 1, 35), (1, 2, 40), (1, 4, 40), (2, 1, 35), (8, 4, 56), (3, 2, 42), (4, 2, 42))
    for group, cluster, count in known:
        assert c.tiles(p, tile(128, 128, raster_group=group, cluster=cluster)) == count
    # rows that are known at launch only are whole groups
    for group, cluster, count in ((1, 2, 40), (2, 1, 42), (8, 4, 56), (4, 2, 56)):
        assert c.tiles(replace(p, open=True), tile(128, 128, raster_group=group, cluster=cluster)) == count


@pytest.mark.parametrize(("row", "width", "lines"), [
    (256, 128, 1), (192, 128, 1.5), (144, 128, 1.875), (160, 64, 1.25), (144, 64, 1.375), (160, 32, 1),
])  # fmt: skip
def test_parts_that_start_inside_of_lines_take_bytes_of_two(row: int, width: int, lines: float) -> None:
    """Counted for many rows, byte by byte."""
    parts = [r * row + start for r in range(64) for start in range(0, 2 * c.LINE, width)]
    counted = [len({byte // c.LINE for byte in range(first, first + width)}) for first in parts]
    assert c.touched(row, width) == lines == sum(counted) / len(counted)


def test_parts_of_lines_are_asked_for_again() -> None:
    """Columns of 64, 96 and 80 numbers of 16 bits are copied by 128, 64 and 32 bytes of a row."""
    p = Problem(2048, 2048, 2048, along_k=(True, False))
    lines = [c.requests(p, tile(128, bn), 1) / bn for bn in (64, 96, 80)]
    assert lines == pytest.approx([part * 2 / c.LINE for part in (1, 1 + c.AGAIN, 1 + 3 * c.AGAIN)])
    along = replace(p, along_k=(True, True))
    assert len({c.requests(along, tile(128, bn), 1) / bn for bn in (64, 96, 80)}) == 1


@pytest.mark.parametrize(("size", "block", "warp", "group", "turns", "stages", "us"), every_other([
    (1792, (128, 224), (64, 224), 2, 1, 5, 30.5), (2048, (128, 256), (64, 256), 16, 1, 4, 36.4),
    (2304, (64, 224), (64, 224), 2, 2, 6, 62.1), (2560, (192, 96), (192, 96), 1, 2, 6, 73.5),
    (3328, (128, 224), (64, 224), 2, 1, 5, 144.9),
]))  # fmt: skip
def test_sums_added_to_a_matrix_take_what_was_measured(
    size: int, block: tuple[int, int], warp: tuple[int, int], group: int, turns: int, stages: int, us: float
) -> None:
    """AB + C in f32 on an H200 (benchmarks/results/papers/001-fig02.csv), slower than cuBLAS: within 20 %.

    Their columns come in half lines, or all multiprocessors add C at once; something else is now first.
    """
    p = Problem(size, size, size, result_bytes=4, along_k=(True, False), beside=(4,))
    s = Schedule(
        (*block, 64), warp, (64, warp[1], 16), stages, epilogue="direct", raster_group=group, cluster=2,
        warp_specialised=True, persistent_blocks=132 if size > 2048 else 0, ping_pong=turns,
    )  # fmt: skip
    assert us / 1.2 < H200.microseconds(c.cost(p, s, H200).cycles) < us * 1.1
    first = ranked("tensor_core", p, H200)[0].point.schedule
    assert first.block[:2] != block or size == 2560


def test_rows_inside_of_lines_cost_more() -> None:
    s = tile(128, 128)
    aligned, inside = (c.l2_cycles(Problem(1024, 1024, k), s, H200) / k for k in (4096, 4104))
    assert inside > 1.3 * aligned
    # rows that the copying unit does not take are copied to longer ones
    assert c.requests(Problem(1024, 1024, 4097), s, 0) == c.requests(Problem(1024, 1024, 4096), s, 0)


def test_blocks_of_two_without_a_tile_each_take_longer() -> None:
    """640 × 2176 × 3328 in tiles of 128 × 96: 24.1 µs in clusters of 2, 19.0 of 4, 20.5 of 1 (H100)."""
    p = Problem(640, 2176, 3328, result_bytes=2, along_k=(True, False))
    s = replace(tile(128, 96, 7, raster_group=1, warp_specialised=True), epilogue="bulk")
    alone, two, four = (c.cost(p, replace(s, cluster=size), H200).cycles for size in (1, 2, 4))
    assert four < alone < two
    even = replace(p, n=2304)  # 24 tiles in a row
    assert c.unmatched(p, replace(s, cluster=2)) > 0 == c.unmatched(even, replace(s, cluster=2))


def test_groups_of_raster_order_need_not_divide_the_rows_of_clusters() -> None:
    """118 rows of tiles: in groups of two, copies from memory would take almost as long as products."""
    first = ranked("tensor_core", replace(square(15104), result_bytes=4, beside=(4,)), H200)[0]
    assert first.point.schedule.cluster == 2 and first.point.schedule.raster_group == 16


def test_a_persistent_grid_with_roles_fills_its_pipeline_once() -> None:
    p, s = square(4096), tile(128, 256)
    persistent = replace(s, persistent_blocks=132, warp_specialised=True)
    # four waves: three empty pipelines less
    saved = c.cost(p, s, H200).cycles - c.cost(p, persistent, H200).cycles
    assert saved == pytest.approx(3 * H200.fill, rel=0.01)  # the memory counts a little, too
    assert c.waves(p, replace(s, persistent_blocks=66), H200) == 2 * c.waves(p, s, H200)


def test_who_computes_in_turn_hides_what_others_wait_for() -> None:
    """Of three epilogues of four most; C comes from memory, for all multiprocessors at once."""
    p, s = (
        replace(square(4096), beside=(4,)),
        replace(tile(128, 256), persistent_blocks=132, warp_specialised=True),
    )
    saved = c.cost(p, s, H200).cycles - c.cost(p, replace(s, ping_pong=2), H200).cycles
    assert saved > 3 * 0.75 * c.epilogue_cycles(p, s, H200)
    from_memory = s.block[0] * s.block[1] * 4 * 132 / H200.dram_rate
    read = c.BETWEEN * c.AT_ONCE * from_memory
    assert c.epilogue_cycles(p, s, H200) > read > 0.6 * c.epilogue_cycles(p, s, H200)
    assert c.epilogue_cycles(p, s, H200) > c.epilogue_cycles(p, replace(s, ping_pong=2), H200)


def test_sums_are_shared_out_where_there_are_few_tiles_and_long_sums() -> None:
    long_, s = Problem(256, 256, 16384, along_k=(True, True)), tile(128, 128)
    assert c.cost(long_, replace(s, split_k=8), H200).cycles < c.cost(long_, s, H200).cycles
    assert c.cost(square(4096), replace(s, split_k=8), H200).cycles > c.cost(square(4096), s, H200).cycles


# --- the space --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", [H200, A100, T4])
def test_every_point_that_is_ranked_is_legal_and_the_cheapest_is_first(gpu: Gpu) -> None:
    p = Problem(1024, 768, 512)
    found = ranked("tensor_core", p, gpu)
    assert found
    assert all(refusal(each.point, p, gpu) is None for each in found)
    assert [r.cost.cycles for r in found] == sorted(r.cost.cycles for r in found)
    assert len(found) < len(list(points("tensor_core", p, gpu)))
    families = {each.point.schedule.uses_wgmma for each in found}
    assert families == ({True, False} if gpu is H200 else {False})


@pytest.mark.parametrize("gpu", [H200, A100, T4])
def test_what_is_ranked_becomes_a_strategy(gpu: Gpu) -> None:
    """A strategy is composed when it is applied, and nothing is refused as late as that."""
    term = Identifier("x", F32)
    for each in ranked("tensor_core", Problem(1024, 768, 512), gpu)[::5]:
        result = find("tensor_core").factory(**dict(each.point.parameters))(term)
        assert isinstance(result, Failure), "a number is not a product of matrices"


def test_operands_that_are_computed_are_not_copied_in_bulk() -> None:
    found = ranked("tensor_core", replace(square(1024), computed=True), H200)
    assert found and not any(each.point.schedule.uses_wgmma for each in found)


def test_what_is_tried_first_is_of_several_kinds() -> None:
    found = ranked("tensor_core", square(4096), H200)

    def shape(each: Ranked) -> object:
        s = each.point.schedule
        return s.block, s.warp, s.fragment

    first = varied(found, 16)
    assert len(first) == 16 and first[0] == found[0]
    assert len({shape(each) for each in first}) >= 8 > len({shape(each) for each in found[:16]})
    assert {each.point for each in varied(found, 10**6)} == {each.point for each in found}


@pytest.mark.parametrize("size", [2048, 4096])
def test_of_tiles_that_are_shared_and_of_those_in_turn_one_is_tried(size: int) -> None:
    found = ranked("tensor_core", square(size), H200)
    turns = [each.point.schedule.ping_pong for each in varied(found, 4)]
    assert set(turns) == {1, 2} and turns[0] == found[0].point.schedule.ping_pong
    assert varied(found, 1) == found[:1]


def loaded_ahead() -> Iterator[list[tuple[float, float, int]]]:
    """Of products with a matrix beside them, timed on an H100: microseconds, what is expected, and slots."""
    found = defaultdict(list)
    for row in csv.DictReader((RESULTS / "ahead-h100.csv").read_text(encoding="utf-8").splitlines()):
        definition, sizes = row["case"].split(" ", 1)
        m, n, k = (int(text.split("=")[1]) for text in sizes.split())
        p = Problem(m, n, k, result_bytes=4, along_k=(True, True), beside=(4,), work=3)
        if definition == "geluResidual":
            p = Problem(m, n, k, result_bytes=2, along_k=(True, False), beside=(2,), work=21)
        s = read(row["schedule"])
        expected = H200.microseconds(c.cost(p, s, H200).cycles)
        found[row["case"]].append((float(row["median_us"]), expected, s.ahead))
    yield from found.values()


def test_of_matrices_loaded_ahead_or_not_the_first_is_among_the_best() -> None:
    """Within 8 % of the best that was measured, 4 % in the mean; both kinds are first, and best, at times."""
    losses, first, best = [], set(), set()
    for timed in loaded_ahead():
        us, _, ahead = min(timed, key=lambda row: row[1])
        least, _, quickest = min(timed)
        losses.append(us / least)
        first.add(ahead)
        best.add(quickest)
    assert len(losses) == 11 and first == best == {0, 1}
    assert max(losses) < 1.08 and sum(map(log, losses)) < 0.04 * len(losses)


def test_a_matrix_beside_a_product_is_loaded_ahead_where_a_block_has_one_tile() -> None:
    for size in (1280, 1536):
        p = replace(square(size), result_bytes=4, beside=(4,))
        assert ranked("tensor_core", p, H200)[0].point.schedule.ahead == 1
        assert all(
            not each.point.schedule.ahead for each in ranked("tensor_core", replace(p, beside=()), H200)
        )
    # rows of 1001 numbers of 32 bits are no multiples of 16 bytes
    odd = Problem(1536, 1001, 1536, along_k=(True, True), beside=(4,))
    assert all(not each.point.schedule.ahead for each in ranked("tensor_core", odd, H200))


# --- a kernel in front -------------------------------------------------------------------------------------


def test_a_kernel_in_front_costs_what_the_first_tile_does_not_hide() -> None:
    """Nothing but its start where a tile takes longer and leaves room; else all that is left of it."""
    p = replace(square(4096), in_front=2 * 4096 * 4096)
    roomy = tile(128, 256, 3, warp_specialised=True)
    full = replace(roomy, warp=(128, 256))
    seen = [c.front_cycles(p, s, H200, tile_cycles) for s in (roomy, full) for tile_cycles in (1e6, 2e4)]
    assert [c.leaves_room(p, s, H200) for s in (roomy, full)] == [True, False]
    assert seen[0] == c.BOUNDARY < seen[1] < seen[2] == seen[3]
    assert c.front_cycles(square(4096), roomy, H200, 0.0) == 0.0
    # a kernel that has the whole GPU reads faster
    assert seen[2] > p.in_front / H200.dram_rate


def test_no_schedule_is_cheaper_behind_a_kernel_in_front() -> None:
    size = 1024
    alone, p = square(size), replace(square(size), in_front=2 * size * size)
    some = [point.schedule for point in points("tensor_core", alone, H200)][::97]
    assert len(some) > 10
    for s in some:
        assert c.least(p, s, H200) <= c.cost(alone, s, H200).cycles < c.cost(p, s, H200).cycles
