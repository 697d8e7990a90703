"""Batches that threads multiply, a part of a result each: derived, run in the emulator, and their costs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import groupby
from math import exp, log
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.expr import Expr
from rise.testing import assert_preserves
from strategies.batches.batch import batch
from strategies.batches.part_costs import MOST_SUMS, MOST_WARPS, Split, best_split, blocks, cycles
from strategies.batches.parts import UNROLLED, Parts, terms_at_once
from strategies.batches.plans import (
    BULK,
    RUNS,
    THREADS,
    by_threads,
    in_rows,
    padding,
    small_split,
    suit_padded_parts,
)
from strategies.memory_bound.blocks import WARP
from strategies.search.batches import alternatives
from tests.support.batches import chosen, exact, lowered, operands_of, products, program, sizes_of
from tests.support.nightly import every_other
from tests.support.programs import succeeded

MEASURED = Path(__file__).parents[2] / "benchmarks/results/parts-f32-h200.csv"
BATCH_BYTES, CLOCK, MULTIPROCESSORS = 300_000_000, 1.755e9, 132  # of an H200
DOT = "zip(row)(col) |> map((x, y) => x * y) |> reduce(+, 0)"
AWKWARD = (1, 2, 3, 5, 7, 13, 17, 31, 33, 65)


def by_parts(term: Expr, **settings: Any) -> Expr:
    return succeeded(batch(by=THREADS, **settings)(term)).term


def sums_of(kernel: Kernel) -> set[int]:
    """How many numbers the arrays have that a thread keeps."""
    return {int(size) for size in re.findall(r"Local<\w+, (\d+)>", kernel.source)}


# --- what they compute ------------------------------------------------------------------------------------


def test_drawn_products_are_exact() -> None:
    """Of any sizes, layouts and parts, whoever brings them: parts and blocks rarely divide anything."""
    seed, ragged = 20261129, 0
    random = Random(seed)
    for number in range(10):
        m, n, k = (random.choice(AWKWARD) for _ in range(3))
        rows, columns = random.randint(1, 8), random.randint(1, 8)
        term = products(random.choice([1, 2, 7]), m, n, k, "f32", random.choice(["AA", "AT", "TA", "TT"]))
        given = {"rows": rows, "columns": columns, "operands": random.choice([RUNS, BULK])}
        given |= {"count": random.randint(1, 3), "epilogue": random.choice(["shared", "direct"])}
        ragged += m % rows > 0 or n % columns > 0
        assert exact(term, by_parts(term, **given)), f"seed {seed}, number {number}: {m, n, k} {given}"
    assert ragged > 4


ELSEWHERE = {
    "α·A·B + β·C": (
        "def f(As: 5.9.17.f32, Bs: 5.17.14.f32, Cs: 5.9.14.f32, a: f32, b: f32) = zip(As)(zip(Bs)(Cs)) |>"
        " map((A, (B, C)) => zip(A)(C) |> map((row, cs) => zip(transpose(B))(cs) |> map((col, c) =>"
        f" a * ({DOT}) + b * c)))"
    ),
    "one operand for all": (
        "def f(As: 3.17.20.f32, B: 20.13.f32) = As |> map(A => A |> map(row => transpose(B) |> map(col =>"
        f" {DOT})))"
    ),
    "chosen matrices": (
        "def f(As: 4.17.11.f32, Bs: 4.11.16.f32, is: 7.Idx[4]) = zip(As |> gather(is))(Bs |> gather(is)) |>"
        f" map((A, B) => A |> map(row => transpose(B) |> map(col => {DOT})))"
    ),
    "transposed results": (
        "def f(As: 3.18.12.f32, Bs: 3.12.15.f32) = zip(As)(Bs) |> map((A, B) => A |> map(row =>"
        f" transpose(B) |> map(col => {DOT})) |> transpose)"
    ),
    "another operator": (
        "def f(As: 3.17.12.f32, Bs: 3.12.15.f32) = zip(As)(Bs) |> map((A, B) => A |> map(row => transpose(B)"
        " |> map(col => zip(row)(col) |> map((x, y) => x + y) |> reduce(min, 1000000))))"
    ),
    "whole numbers": (
        "def f(As: 3.17.12.i32, Bs: 3.12.15.i32) = zip(As)(Bs) |> map((A, B) => A |> map(row => transpose(B)"
        f" |> map(col => {DOT})))"
    ),
    "a prologue, and results in f16": (
        "def f(As: 3.17.12.f32, Bs: 3.12.15.f32) = zip(As)(Bs) |> map((A, B) => A |> map(map(x => max(x, 0)))"
        f" |> map(row => transpose(B) |> map(col => f16({DOT}))))"
    ),
    "Gram matrices": (
        f"def f(As: 3.18.13.f32) = As |> map(A => A |> map(row => A |> map(col => {DOT})))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_stands_around_products_stays_in_the_kernel(name: str) -> None:
    term = program(ELSEWHERE[name])
    low = succeeded(batch()(term)).term
    parts = by_threads(sizes_of(term)).parts
    assert parts is not None and max(sums_of(generate(low, "f"))) == parts.sums
    assert exact(term, low)


def test_rows_are_for_what_is_reduced_beside_products() -> None:
    """`batch` itself falls back to a row for each thread; parts that are asked for are refused."""
    term = program(
        "def f(As: 3.18.12.f32, Bs: 3.12.15.f32) = zip(As)(Bs) |> map((A, B) => A |> map(row => transpose(B)"
        f" |> map(col => ({DOT}) + (zip(row)(row) |> map((x, y) => x * y) |> reduce(+, 0)))))"
    )
    assert exact(term, succeeded(batch()(term)).term)
    assert isinstance(batch(by=THREADS, rows=4, columns=4)(term), Failure)


def test_every_step_preserves_the_products() -> None:
    assert_preserves(batch(by=THREADS, rows=2, columns=3), products(2, 3, 4, 5, "f32"))


# --- the kernels ------------------------------------------------------------------------------------------


def test_the_terms_that_are_left_need_no_conditions() -> None:
    """113 terms are 14 steps of 8 and one, not 15 steps with zeros."""
    source = generate(lowered(products(9, 113, 113, 113, "f32"), by=THREADS, rows=8, columns=6), "f").source
    assert "k < 14" in source and "? " not in source[source.index("acc_") :]


def test_a_loop_unrolls_few_multiplications() -> None:
    """All of few terms; of many, whole vectors, so that a load brings several at once."""
    for depth in range(1, 129):
        for sums in (1, 6, 16, 30, 48, 64):
            step = terms_at_once(depth, sums)
            assert step == depth if depth * sums <= UNROLLED else step * sums <= UNROLLED
            assert step in (depth, 1, 2, 3) or step % 4 == 0


def test_columns_that_a_vector_loads_are_adjacent_and_stored_at_once() -> None:
    aligned, odd = (sizes_of(products(9, n, n, n, "f32")) for n in (64, 63))
    assert Parts.of(aligned, (8, 8)).group == (1, 4) and Parts.of(odd, (8, 8)).group == (1, 1)
    source = generate(
        by_parts(products(9, 64, 64, 64, "f32"), rows=8, columns=8, epilogue="direct"), "f"
    ).source
    assert "store_vector<4>(&output" in source or "copy_vector<4>(&output" in source


@pytest.mark.parametrize("layouts", ["AA", "TT"])
def test_registers_are_left_for_the_second_of_two_blocks(layouts: str) -> None:
    """A compiler that gives all to one block is told otherwise where shared memory has room for few."""
    large, small = (
        generate(lowered(products(9, n, n, n, "f32", layouts), by=THREADS, rows=8, columns=6), "f")
        for n in (113, 33)
    )
    assert (large.launch.resident, small.launch.resident) == (2, 1)
    assert f"__launch_bounds__({large.launch.threads}, 2)" in large.source


@pytest.mark.parametrize(("n", "count"), every_other([(17, 8), (31, 3), (33, 2), (97, 1)]))
def test_the_copying_unit_brings_and_takes_runs(n: int, count: int) -> None:
    source = generate(
        lowered(products(50, n, n, n, "f32"), by=THREADS, count=count, epilogue="shared"), "f"
    ).source
    body = source[source.index("{") :]
    assert body.count("bulk_load_run") == 2 and not re.search(r"(As_|Bs_|output)\[", body)


# --- what is chosen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "layouts", "strategy", "operands"),
    every_other([
        ((17, 17, 17), "AA", "batch", BULK),
        ((113, 113, 113), "TT", "batch", BULK),
        ((64, 64, 64), "AT", "batch", None),  # padded by threads: columns of 64 terms start in the same bank
        ((40, 30, 4), "AA", "batch", None),  # few terms: a row for each thread
        ((8, 8, 8), "AA", "batch", None),
        ((127, 127, 127), "AA", "cuda_core", None),  # two do not fit
    ]),
)  # fmt: skip
def test_auto_chooses_what_is_faster(
    shape: tuple[int, int, int], layouts: str, strategy: str, operands: str | None
) -> None:
    choice = chosen(products(1 << 14, *shape, "f32", layouts))
    assert (choice.point.strategy, operands_of(choice)) == (strategy, operands)


def test_numbers_go_to_threads_in_parts_if_there_is_enough_to_multiply() -> None:
    cases = {(20, 20, 20): True, (12, 12, 12): False, (60, 60, 7): False, (3, 96, 8): True}
    for (m, n, k), parts in cases.items():
        assert (by_threads(sizes_of(products(999, m, n, k, "f32"))).parts is not None) == parts
    assert by_threads(sizes_of(products(999, 40, 40, 40, "f16"))).parts is None


@pytest.mark.parametrize(
    ("shape", "layouts", "parts"),
    every_other([
        ((5, 125, 5), "AA", True),  # of each fragment, 11 of 16 rows would be zeros
        ((2, 2, 100), "AT", True),
        ((3, 3, 3), "AA", False),  # a row for each thread
        ((21, 11, 16), "AT", False),  # all rows would start in a few banks
        ((40, 40, 40), "AA", False),  # enough for fragments
        ((73, 104, 7), "AT", False),
    ]),
)  # fmt: skip
def test_small_matrices_of_16_bits_are_for_threads_where_memory_limits_them(
    shape: tuple[int, int, int], layouts: str, parts: bool
) -> None:
    term = products(1 << 17, *shape, "f16", layouts, "rounded")
    given = dict(chosen(term).point.parameters)
    assert (given.get("by") == THREADS and given.get("operands") == BULK) == parts
    assert (small_split(sizes_of(term)) is not None) == parts
    assert small_split(sizes_of(products(99, *shape, "f16", layouts, "rounded"))) is None  # few
    assert small_split(sizes_of(products(99, *shape, "f32", layouts, "rounded to tf32"))) is None


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_parts_of_16_bits_are_exact(type_: str) -> None:
    for sizes in ((4, 4, 127), (5, 7, 9)):
        term = products(50, *sizes, type_, "AT", "rounded")
        split = small_split(sizes_of(products(1 << 17, *sizes, type_, "AT", "rounded")))
        assert split is not None and split.stored
        rows, columns = split.parts.rows, split.parts.columns
        low = lowered(term, by=THREADS, epilogue="shared", rows=rows, columns=columns, count=split.count)
        assert exact(term, low)


def test_parts_come_before_stores_of_few_bytes_if_rows_do_not_build() -> None:
    """A compiler spills registers of some kernels; stores of a row each took ten times as long."""
    sizes = sizes_of(products(1 << 14, 119, 40, 7, "f32", "AT"))
    points = [dict(point.parameters) for point in alternatives(sizes, in_rows(sizes))]
    assert points[0] == {} and points[-1] == {"epilogue": "direct"}
    assert points[-2]["by"] == THREADS and {"rows", "columns"} <= points[-2].keys()


def test_what_changes_nothing_is_refused() -> None:
    for term, given, said in (
        (products(9, 8, 8, 8, "f32"), {"operands": BULK}, "`operands` changes nothing"),
        (products(9, 40, 40, 40, "f32"), {"operands": "padded"}, "`operands` changes nothing"),
        (products(9, 40, 40, 40, "f32"), {"operands": BULK, "threads": 64}, "`threads` changes nothing"),
    ):
        result = batch(**given)(term)
        assert isinstance(result, Failure) and said in str(result.error("batch"))


# --- costs ------------------------------------------------------------------------------------------------


def measured() -> Iterator[list[tuple[float, float]]]:
    """For each product, of each kernel, the cost, and how many cycles a matrix took."""
    with MEASURED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for (m, n, k, layouts), each in groupby(rows, lambda row: (row["m"], row["n"], row["k"], row["layouts"])):
        sizes = sizes_of(products(1 << 17, int(m), int(n), int(k), "f32", layouts))
        cycle = CLOCK * MULTIPROCESSORS * sizes.bytes / BATCH_BYTES * 1e-6
        made = [
            (
                Split(
                    Parts.of(sizes, (int(r["rows"]), int(r["columns"]))),
                    int(r["count"]),
                    r["epilogue"] == "shared",
                ),
                r,
            )
            for r in each
        ]
        yield [(cycles(sizes, split), float(r["us"]) * cycle) for split, r in made]


def test_costs_are_close_to_what_was_measured() -> None:
    """Of four kernels three within a quarter, and the one with the least cost close to the fastest."""
    errors, lost = list[float](), list[float]()
    for each in measured():
        errors += [abs(log(cost / time)) for cost, time in each]
        lost.append(min(each)[1] / min(time for _, time in each))
    assert len(errors) > 700 and sum(error < log(1.25) for error in errors) / len(errors) > 0.8
    assert len(lost) > 90 and exp(sum(map(log, lost)) / len(lost)) < 1.06


def test_splits_keep_threads_busy_and_fit() -> None:
    """Sizes are drawn: seed 9."""
    random, full = Random(9), 0
    for _ in range(40):
        m, n, k = (random.randint(1, 118) for _ in range(3))
        sizes = sizes_of(products(1 << 14, m, n, k, "f32", random.choice(["AA", "AT", "TA", "TT"])))
        split = best_split(sizes)
        assert split is not None
        assert split.parts.sums <= MOST_SUMS and split.threads(sizes) <= MOST_WARPS * WARP
        assert split.turns(sizes) == 1 and blocks(sizes, split) >= 1
        full += split.count * split.parts.of_matrix(sizes) > split.threads(sizes) - WARP
    assert full == 40


def test_rows_are_padded_where_the_copying_unit_would_read_the_same_bank() -> None:
    for n, layouts, padded in ((64, "AT", True), (96, "TT", True), (60, "AT", False), (33, "AA", False)):
        sizes = sizes_of(products(1 << 14, n, n, n, "f32", layouts))
        assert (padding(sizes) > 0) == (n % 16 == 0) and suit_padded_parts(sizes) == padded
