"""Arrays whose elements are independent: blocks of threads compute them, each thread a few adjacent elements.

Whatever an element is computed of, it is computed where it is written: arithmetic on several arrays, casts,
windows of a stencil, other views.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import views
from rise.expr import Expr
from rise.nat import Nat
from rise.types import Scalar, shape
from strategies.complete import complete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    depending,
    prints_as_call,
    seq,
)
from strategies.evaluation import is_expression
from strategies.memory_bound.blocks import Block, at_least, chosen_or, refuse, rounded_up
from strategies.memory_bound.widths import widest_vector
from strategies.places import in_inputs, mapped
from strategies.result_views import gives_parts
from strategies.settings import searched

THREADS = 256
DIMENSIONS = 3  # of a grid
LARGEST = 65535  # of its dimensions, but for the first


@searched(threads=(0, 64, 128, 512, 1024), vector=(0, 1, 2, 4, 8), each=(1, 2, 4))
@prints_as_call
def elementwise(threads: int = 0, vector: int = 0, each: int = 1) -> Strategy:
    """Computes independent elements: each thread of a block computes `each` vectors of `vector` elements.

    threads: of a block; 0: 256
    vector:  adjacent elements that a thread computes at once; 0: as many as 16 bytes hold, or
             one where elements are not numbers
    each:    how many vectors a thread computes
    The rows of a matrix are a dimension of the grid where blocks divide them; else the matrix is one row.
    Fails by name where computing an element takes a loop.
    """
    chosen_or("elementwise", threads=threads, vector=vector)
    at_least("elementwise", "each", each, 1)

    def chosen(term: Expr) -> Rewrite:
        if gives_parts(term):
            return argument(depending(chosen))
        sizes, element = shape(term.type)
        if not sizes:
            return refuse("elementwise", f"expected an array, found `{term.type}`")
        if not is_expression(term):
            return refuse("elementwise", "computing an element takes a loop")
        at_once = widest_vector(term) if isinstance(element, Scalar) else 1
        block = Block(threads or THREADS, vector or at_once, strategy="elementwise")
        step = block.step * each
        return _rows(len(sizes) - 1, block, step) if _divided(sizes, step) else _flat(sizes, block, step)

    return FunctionStrategy("elementwise", complete(in_inputs(depending(chosen))))


def _divided(sizes: tuple[Nat, ...], step: int) -> bool:
    """Whether the rows of an array are a grid of blocks."""
    *outer, last = (size.value for size in sizes)
    grid = len(outer) < DIMENSIONS and all(size is not None and size <= LARGEST for size in outer)
    return grid and last is not None and last % step == 0


def _rows(dimension: int, block: Block, step: int) -> Strategy:
    """The rows of an array over a dimension of the grid, and what is in them."""
    if dimension > 0:
        inner = _rows(dimension - 1, block, step)
        return seq(a.MAP_NOTHING, mapped(inner), low.MAP_BLOCK.with_sizes(d=dimension))
    blocks = seq(a.MAP_NOTHING, mapped(block.write), low.MAP_BLOCK.with_sizes(d=0))
    return seq(views.SPLIT_JOIN_PAIR.with_sizes(n=step), argument(blocks))


def _flat(sizes: tuple[Nat, ...], block: Block, step: int) -> Strategy:
    """All elements as one row, up to the next multiple of what a block computes."""
    if len(sizes) > 1:
        flat = _flat((sizes[0] * sizes[1], *sizes[2:]), block, step)
        return seq(views.JOIN_SPLIT_PAIR.with_sizes(n=sizes[1]), argument(flat))
    return rounded_up(sizes[0], step, _rows(0, block, step))
