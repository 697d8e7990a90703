"""Transpositions: tiles through shared memory, so that memory is read and written along rows.

The schedule recognises a transposition by its layout: the columns of the result are contiguous in the memory
that it reads.
"""

from __future__ import annotations

from math import gcd

from rewrites import blocks as b
from rewrites import lowering as low
from rewrites.rounding import ROUND_UP, ROUND_UP_COLUMNS, missing
from rise.errors import StrategyError
from rise.expr import Expr
from rise.types import shape
from strategies.complete import complete
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    depending,
    prints_as_call,
    seq,
)
from strategies.memory_bound.blocks import MATRIX, at_least, chosen_or, refuse
from strategies.memory_bound.elementwise import LARGEST
from strategies.memory_bound.widths import widest, widest_vector
from strategies.places import arguments, in_inputs, mapped
from strategies.settings import searched

TILE, THREADS = 64, 256
BANK = 4  # bytes


@searched(
    tile=(TILE, 16, 32, 128), threads=(THREADS, 64, 128, 512, 1024), vector=(0, 1, 2, 4), padding=(0, 1, 2, 4)
)
@prints_as_call
def transposition(tile: int = TILE, threads: int = THREADS, vector: int = 0, padding: int = 0) -> Strategy:
    """Transposes a matrix, or each of an array, by tiles in shared memory, one for each block.

    tile:    rows and columns of a tile
    threads: of a block
    vector:  adjacent elements that a thread moves at once, from and to global memory; 0: as many as 16 bytes
             hold, where they divide the rows that are read, or those that are written
    padding: extra elements in a row of a tile; 0: as many as put its columns into different banks
    Tiles at the border have fewer elements. Fails by name where the threads do not divide a tile.
    """
    chosen_or("transposition", vector=vector, padding=padding)
    for name, value in (("tile", tile), ("threads", threads)):
        at_least("transposition", name, value, 1)
    if tile * tile % (threads * (vector or 1)):
        reason = (
            f"transposition: {threads * (vector or 1)} does not divide {tile}×{tile}, the elements of a tile"
        )
        raise StrategyError("R0609", reason)

    def chosen(term: Expr, first: int = 0) -> Rewrite:
        known = contiguity_of(term, {})
        if not isinstance(known, Contiguity) or known.dimensions != (True, False):
            return refuse("transposition", "expected a matrix whose columns are contiguous in memory")
        read, written = (size.factor for size in shape(term.type)[0])
        most = gcd(widest_vector(term), tile * tile // threads)
        by = [vector or gcd(most, size) for size in (read, written)]
        # neighbours read elements below each other, or vectors of them
        apart = padding or (max(1, BANK // widest(term)) if by[1] == 1 else 1)
        return tiled(tile, tile, through_shared(tile, threads, by[0], by[1], apart), first)

    def each(term: Expr) -> Rewrite:
        sizes, _ = shape(term.type)
        if len(sizes) <= MATRIX:
            return chosen(term)
        count = sizes[0]
        # tiles of a matrix are beside each other in the grid, if its last dimension has room for all matrices
        first = 0 if (count.value or LARGEST + 1) <= LARGEST else 1
        of_each = mapped(depending(lambda matrix: chosen(matrix, first)))
        return seq(of_each, low.MAP_BLOCK.with_sizes(d=2 if first == 0 else 0))

    return FunctionStrategy("transposition", complete(in_inputs(depending(each))))


@prints_as_call
def tiled(rows: int, columns: int, s: Rewrite, first: int = 0) -> Strategy:
    """s in each tile of a matrix, a block each; tiles at the border are filled up, and cut when written.

    first: the dimension of the grid that tiles of some rows are beside each other in; their rows are the next
    """

    def chosen(term: Expr) -> Rewrite:
        sizes, _ = shape(term.type)
        more = [missing(size, part) for size, part in zip(sizes, (rows, columns), strict=True)]
        inner = seq(mapped(argument(s)), low.MAP_BLOCK.with_sizes(d=first))
        outer = seq(mapped(arguments(2, inner)), low.MAP_BLOCK.with_sizes(d=first + 1))
        whole = seq(b.TILES.with_sizes(m=rows, n=columns), argument(outer))
        longer = [ROUND_UP.with_sizes(p=more[0])] if more[0] is not None else []
        wider = [ROUND_UP_COLUMNS.with_sizes(p=more[1])] if more[1] is not None else []
        return seq(
            *longer,
            arguments(len(longer), seq(*wider)),
            arguments(len(longer) + len(wider), whole),
        )

    return depending(chosen)


@prints_as_call
def through_shared(tile: int, threads: int, read: int, written: int, padding: int) -> Strategy:
    """A tile read along its columns into shared memory, and written along its rows, by all threads."""
    by_reading, by_writing = (
        b.TILE_BY_THREADS.with_sizes(v=vector, t=threads, n=tile) for vector in (read, written)
    )
    stored = seq(b.TRANSPOSED_IN_SHARED.with_sizes(p=padding), arguments(2, by_reading))
    # the tile is written as what is stored and read; the writing is outermost
    return seq(stored, by_writing)
