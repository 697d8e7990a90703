"""Batches of products with a side longer than 128: which of them a block takes as a whole."""

from __future__ import annotations

from random import Random

import pytest

from rewrites.result import Failure
from strategies.auto import auto
from strategies.batches.batch import batch
from strategies.batches.plans import plan_of
from strategies.batches.sizes import LARGEST_SIDE, LONGEST_SIDE, RESERVED, ROOM, WIDEST_ROW
from strategies.batches.tiles import slices
from strategies.search.batches import batched
from strategies.search.choice import Search
from strategies.search.hardware import for_target
from tests.support.batches import exact, operands_of, products, program, sizes_of
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded

AUTO = auto()
HOPPER = Search(for_target("sm_90a"), "sm_90a")
KINDS = [
    ("f16", "plain"),
    ("bf16", "rounded"),
    ("f32", "rounded to tf32"),
    ("f32", "plain"),
    ("f16", "scaled"),
]
# m, n, k, layouts, type, body: measured on an H200 (benchmarks/results/long-sides-h200.md)
WHOLE = [
    (16, 413, 6, "AA", "f16", "rounded"),
    (469, 7, 20, "TT", "f16", "plain"),
    (10, 324, 140, "TT", "f16", "rounded"),
    (130, 130, 130, "AA", "f16", "rounded"),
    (136, 136, 136, "AA", "f16", "rounded"),
    (31, 194, 184, "AT", "f32", "rounded to tf32"),
    (7, 10, 208, "AT", "f32", "plain"),
    (515, 11, 5, "AA", "f32", "plain"),
    (48, 151, 5, "AA", "f32", "plain"),
]
IN_TILES = [
    (160, 160, 160, "AA", "f16", "rounded"),  # whole fragments, all sides long
    (64, 160, 272, "AA", "f16", "plain"),  # whole fragments, and no second block fits
    (320, 196, 5, "TT", "f16", "plain"),  # no room for the results
    (187, 88, 12, "AA", "f32", "plain"),  # many results that leave one by one
    (292, 108, 4, "TA", "f32", "plain"),  # long rows for each thread
    (276, 12, 116, "TA", "f32", "plain"),  # no second block of f32 fits
]


def name_of(m: int, n: int, k: int, layouts: str, type_: str, body: str) -> str:
    (kernel,) = AUTO.choice(products(1000, m, n, k, type_, layouts, body)).kernels
    return kernel.point.strategy


@pytest.mark.parametrize("case", WHOLE)
def test_a_block_takes_products_with_one_long_side(case: tuple[int, int, int, str, str, str]) -> None:
    assert name_of(*case) == "batch"


@pytest.mark.parametrize("case", IN_TILES)
def test_tiles_are_left_where_they_are_faster(case: tuple[int, int, int, str, str, str]) -> None:
    assert name_of(*case) in ("tensor_core", "cuda_core")


@pytest.mark.parametrize(("kind", "layouts"), every_other(in_turn(KINDS, ("AA", "TT", "AT", "TA"))))
def test_drawn_products_with_one_long_side_are_exact(kind: tuple[str, str], layouts: str) -> None:
    random = Random(f"{kind} {layouts}")
    sides = [random.randint(1, 24) for _ in range(3)]
    sides[random.randrange(3)] = random.randint(LARGEST_SIDE + 1, 400)
    term = products(random.choice((1, 2, 3)), *sides, kind[0], layouts, kind[1])
    found = batched(HOPPER, term, single=True)
    assert found is not None and found[0].point.strategy in ("batch", "tensor_core"), sides
    assert exact(term, found[1].term), (sides, str(found[0].point))


def test_of_what_is_not_a_whole_chunk_no_side_is_too_long_up_to_the_room() -> None:
    """Seed 4: a plan takes at most the room of a multiprocessor, whatever the sides are; 40 are small."""
    random, small = Random(4), 0
    for _ in range(120):
        sides = [random.randint(1, 60) for _ in range(3)]
        sides[random.randrange(3)] = random.randint(LARGEST_SIDE, LONGEST_SIDE + 100)
        sizes = sizes_of(products(5000, *sides, random.choice(("f16", "f32")), "AT"))
        fits = sum(sizes.read) + RESERVED <= ROOM and max(sides) <= LONGEST_SIDE
        narrow = sizes.operand == "f16" or sizes.columns <= WIDEST_ROW or sizes.suit_parts
        assert sizes.are_small == (fits and narrow)
        plan = plan_of(sizes) if sizes.are_small else None
        if plan is not None:
            small += 1
            assert plan.count * (sum(sizes.read) + sizes.written * plan.stored) <= 2 * ROOM
            assert plan.threads <= 1024
    assert small > 40


def test_a_product_with_too_many_parts_for_a_block_is_refused_by_name() -> None:
    """Threads then compute a row each, and shared memory has no room for the operands."""
    result = batch()(products(2, 723, 192, 229, "f32", "TT"))
    assert isinstance(result, Failure) and "bytes of shared memory" in result.story()


def test_slices_of_tf32_are_of_sides_up_to_the_largest() -> None:
    """Each of four warps has a quarter of the result in its registers."""
    assert slices(sizes_of(products(500, 128, 96, 64, "f32", "AA", "rounded to tf32"))) is not None
    assert slices(sizes_of(products(500, 256, 96, 64, "f32", "AA", "rounded to tf32"))) is None


def test_few_long_products_come_by_the_copying_unit() -> None:
    """Two warps compute 33 × 7 results: their threads would bring 700 numbers each."""
    term = products(1, 33, 7, 573, "f32", "TT")
    found = batched(HOPPER, term, single=True)
    assert found is not None and operands_of(found[0]) == "bulk"
    assert exact(term, found[1].term)


def test_what_tiles_do_not_take_a_block_does() -> None:
    """Transposed results of one matrix of f32 for all: no tile of `cuda_core` has these."""
    dot = "zip(row)(col) |> map((x, y) => x * y) |> reduce(+, 0)"
    term = program(
        "def f(A: 227.128.f32, Bs: 3.227.2.f32, a: f32) = Bs |> map(B => transpose(A |> map(map(x => x * a)))"
        f" |> map(row => transpose(B) |> map(col => {dot})) |> transpose)"
    )
    assert "default" not in [kernel.point.strategy for kernel in AUTO.choice(term).kernels]
    assert exact(term, succeeded(AUTO(term)).term)
