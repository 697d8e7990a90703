"""Products of small matrices by tiles, as of large ones.

For batches so small that a block for each matrix leaves most of a GPU idle, and where rows that come as they
are in memory all start in the same bank.
"""

from __future__ import annotations

from rise.types import TF32
from strategies.batches.fragments import COLUMNS, FRAGMENTS, ROWS
from strategies.batches.plans import ALL_BANKS, DIRECT
from strategies.batches.sizes import CHUNK, LARGEST_SIDE, Sizes
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


SLICE, LEAST_SLICED = 32, 64  # terms at a time; rows, columns and terms of a product, at least
AROUND = 8  # elements that padded rows are longer


def slices(sizes: Sizes) -> Schedule | None:
    """A block for each product of tf32, whose operands threads bring to padded rows, some terms at a time.

    As the copying unit brings them, rows of a multiple of 128 bytes would all start in the same bank, and
    whole operands leave no room for a second block. Measured from 64 rows, columns and terms on, one of which
    is more.
    """
    rows, columns, depth = sizes.product
    crowded = any(row % ALL_BANKS == 0 for row in sizes.row_bytes)
    part = _of_four_warps(rows, columns)
    if sizes.operand != str(TF32) or not crowded or not sizes.are_chunks or part is None:
        return None
    least, most = min(sizes.product), max(sizes.product)
    if not least >= LEAST_SLICED < most <= LARGEST_SIDE or depth % SLICE:
        return None
    return Schedule(
        block=(rows, columns, SLICE), warp=part, fragment=FRAGMENTS[sizes.operand],
        stages=2, padding=AROUND, epilogue=DIRECT, vector=CHUNK // sizes.width,
    )  # fmt: skip


def _of_four_warps(rows: int, columns: int) -> tuple[int, int] | None:
    """The part of each of four warps, in whole fragments: half of rows and columns, or all rows."""
    if rows % (2 * ROWS) == 0 and columns % (2 * COLUMNS) == 0:
        return rows // 2, columns // 2
    return (rows, columns // 4) if rows % ROWS == 0 and columns % (4 * COLUMNS) == 0 else None
