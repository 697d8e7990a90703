"""Tiles of small matrices, for batches so small that a block for each matrix leaves most of a GPU idle."""

from __future__ import annotations

from strategies.batches.fragments import FRAGMENTS
from strategies.batches.plans import DIRECT
from strategies.batches.sizes import Sizes
from strategies.matmul.schedule import Schedule

TILE, STEP = 32, 64  # rows and columns of a tile; terms of its sums at a time
LEAST = 4  # bytes of an asynchronous copy


def tiles(sizes: Sizes) -> Schedule:
    """Four warps for each tile; several steps ahead, unless a step takes a thread many registers.

    Threads copy as much of rows at once as all rows are multiples of.
    """
    width, asynchronous = sizes.copied_at_once, sizes.copied_at_once >= LEAST
    # of steps of half the length fewer terms may be zeros
    whole, halves = (-(-sizes.depth // step) * step for step in (STEP, STEP // 2))
    half = 4 * halves <= 3 * whole
    return Schedule(
        block=(TILE, TILE, STEP // 2 if half else STEP),
        warp=(TILE // 2, TILE // 2),
        fragment=FRAGMENTS[sizes.operand],
        stages=3 if asynchronous or half else 2,
        epilogue=DIRECT,
        vector=width // sizes.width,
        cp_async=asynchronous,
    )
