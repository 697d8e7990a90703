"""Matrices of a batch that share the second operand, several as one, and rows of tall matrices as batches.

A matrix of few rows uses a part of a fragment, and reads all of the second operand. Several of them together
fill fragments, and read it once.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from rewrites.algorithmic import SPLIT_JOIN
from rewrites.memory import IN_SHARED
from rewrites.nests import NEST_AS_LIST
from rewrites.pointwise import POINTWISE_EACH
from rise.expr import Expr, Identifier, call
from strategies.batches.costs import best_tile, cost
from strategies.batches.fragments import FRAGMENTS, ROWS
from strategies.batches.plans import JOINED, Plan, are_crowded, in_bulk, numbers_at_once
from strategies.batches.runs import BULK_COPY, in_shared
from strategies.batches.sizes import LARGEST_SIDE, Sizes
from strategies.batches.threads import one_map
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    depending,
    prints_as_call,
    seq,
    try_,
)
from strategies.matmul.kernels import has_product
from strategies.matmul.products import rank
from strategies.matmul.tiling import MATRIX
from strategies.memory_bound.blocks import refuse
from strategies.places import mapped

JOINED_FASTER = 1.05  # the cost of matrices by themselves, over that of several as one (measured)
MANY_ROWS, LONG_ROW = 1 << 13, 64  # rows of a tall matrix; elements of rows that tiles bring as boxes


def as_one(sizes: Sizes, rows: int = 0, columns: int = 0, count: int = 0) -> Plan:
    """So many matrices for each block as one, which has the rows of all: a tile for each warp; 0: chosen."""
    count = count or min(_joined_counts(sizes), key=lambda each: cost_as_one(sizes, each))
    return replace(in_bulk(sizes.joined(count), rows, columns), count=count, operands=JOINED)


def cost_as_one(sizes: Sizes, count: int) -> float:
    """The cost of each of so many matrices, multiplied as one."""
    one = sizes.joined(count)
    tile = best_tile(one, (1,)) if one.are_small else None
    return inf if tile is None else cost(one, tile) / count


def suit_joined(sizes: Sizes) -> bool:
    """Whether matrices that share the second operand are faster as one: measured."""
    if not sizes.common or sizes.operand not in FRAGMENTS or not sizes.joined(ROWS).by_fragments:
        return False
    if are_crowded(sizes) or (not sizes.by_fragments and sizes.depth < ROWS):
        return False
    alone = best_tile(sizes, numbers_at_once(sizes))
    least = min(cost_as_one(sizes, count) for count in _joined_counts(sizes))
    return least < inf and (alone is None or cost(sizes, alone) >= JOINED_FASTER * least)


def _joined_counts(sizes: Sizes) -> list[int]:
    """How many matrices have about whole fragments of rows together."""
    most = max(1, LARGEST_SIDE // sizes.rows)
    return sorted({max(1, rows // sizes.rows) for rows in range(ROWS, LARGEST_SIDE + 1, ROWS)} | {most})


# --- strategies -------------------------------------------------------------------------------------------


@prints_as_call
def as_one_matrix(s: Rewrite) -> Strategy:
    """s for matrices that share the second operand as one, whose rows are those of all, in shared memory.

    The copying unit brings them.
    before: xs |> map(x => g(x) |> map(f))
    after:  let ys = xs |> bulkCopy in s(ys |> map(g) |> join |> map(f)) |> split(m)
    """

    def chosen(term: Expr) -> Rewrite:
        applied = call(term)
        arrays = [xs for xs in applied[2][1:] if isinstance(xs, Identifier)] if applied is not None else []
        if not arrays:
            return refuse("as_one_matrix", "the matrices are no array in memory")
        return seq(mapped(one_map), NEST_AS_LIST, in_shared(arrays, seq(IN_SHARED, BULK_COPY), argument(s)))

    return depending(chosen)


def is_one_product(term: Expr) -> bool:
    """Whether a term is one matrix, although its rows may be computed of matrices: of windows, say."""
    return rank(term) == MATRIX and has_product(term)


# a matrix as an array of matrices of one row each
rows_as_batch: Strategy = seq(
    check(is_one_product, "rows_as_batch", "expected a product"),
    one_map,
    SPLIT_JOIN.with_sizes(n=1),
    argument(try_(POINTWISE_EACH)),
)


def is_tall(sizes: Sizes) -> bool:
    """Whether blocks that have all of the second operand are faster than tiles of a matrix (measured).

    Tiles are boxes, which the copying unit swizzles. So they are faster where rows are long and whole chunks,
    and where rows of a run would all start in the same bank.
    sizes: of its rows, each as a matrix
    """
    whole = sizes.are_chunks and min(sizes.columns, sizes.depth) >= LONG_ROW
    tall = sizes.common > 0 and sizes.are_small and sizes.batch >= MANY_ROWS
    return tall and sizes.joined(ROWS).by_fragments and not (whole or are_crowded(sizes))
