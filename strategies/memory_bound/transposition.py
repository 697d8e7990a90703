"""Transpositions: tiles through shared memory, so that memory is read and written along rows.

The schedule recognises a transposition by its layout: the columns of the result are contiguous in the memory
that it reads.
"""

from __future__ import annotations

from rewrites import blocks as b
from rewrites import lowering as low
from rise.errors import StrategyError
from rise.expr import Expr
from rise.types import shape
from strategies.complete import complete
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import FunctionStrategy, Rewrite, Strategy, argument, depending, prints_as_call, seq
from strategies.memory_bound.blocks import Block, refuse
from strategies.places import arguments, in_inputs, mapped


@prints_as_call
def transposition(tile: int = 64, threads: int = 256, vector: int = 4, padding: int = 1) -> Strategy:
    """Transposes a matrix by tiles in shared memory, one for each block.

    vector:  adjacent elements that a thread moves at once, from and to global memory
    padding: extra elements in a row of a tile, so that its columns are in different banks
    Fails by name where tiles do not divide the matrix, or the threads a tile.
    """
    block = Block(threads, vector, strategy="transposition")
    if tile < 1 or tile * tile % block.step:
        reason = f"transposition: {block.step} does not divide {tile}×{tile}, the elements of a tile"
        raise StrategyError("R0609", reason)

    def chosen(term: Expr) -> Rewrite:
        known = contiguity_of(term, {})
        if not isinstance(known, Contiguity) or known.dimensions != (True, False):
            return refuse("transposition", "expected a matrix whose columns are contiguous in memory")
        return tiled(tile, tile, through_shared(tile, block, padding))

    return FunctionStrategy("transposition", complete(in_inputs(depending(chosen))))


@prints_as_call
def tiled(rows: int, columns: int, s: Rewrite) -> Strategy:
    """s in each tile of a matrix, a block each."""

    def chosen(term: Expr) -> Rewrite:
        for size, part in zip(shape(term.type)[0], (rows, columns), strict=True):
            if size.value is None or size.value % part:
                return refuse("tiles", f"{part} does not divide {size}")
        inner = seq(mapped(argument(s)), low.MAP_BLOCK.with_sizes(d=0))
        outer = seq(mapped(arguments(2, inner)), low.MAP_BLOCK.with_sizes(d=1))
        return seq(b.TILES.with_sizes(m=rows, n=columns), argument(outer))

    return depending(chosen)


@prints_as_call
def through_shared(tile: int, block: Block, padding: int) -> Strategy:
    """A tile read along its columns into shared memory, and written along its rows, by all threads."""
    by_threads = b.TILE_BY_THREADS.with_sizes(v=block.vector, t=block.threads, n=tile)
    stored = seq(b.TRANSPOSED_IN_SHARED.with_sizes(p=padding), arguments(2, by_threads))
    # the tile is written as what is stored and read; the writing is outermost
    return seq(stored, by_threads)
