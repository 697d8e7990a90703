"""Arrays whose elements are independent: blocks of threads compute them, each thread a few adjacent elements.

Whatever an element is computed of, it is computed where it is written: arithmetic on several arrays, casts,
windows of a stencil, other views.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import views
from rewrites.typed import array_type
from rise.expr import Expr
from rise.types import Array, Scalar
from strategies.complete import complete
from strategies.core import FunctionStrategy, Rewrite, Strategy, argument, depending, prints_as_call, seq
from strategies.evaluation import is_expression
from strategies.memory_bound.blocks import Block, power_of_two, refuse
from strategies.places import in_inputs, mapped

DIMENSIONS = 3  # of a grid


@prints_as_call
def elementwise(threads: int = 256, vector: int = 4, each: int = 1) -> Strategy:
    """Computes independent elements: each thread of a block computes `each` vectors of `vector` elements.

    The rows of a matrix are a dimension of the grid. Fails by name where threads, vector and each together
    do not divide the rows, and where computing an element takes a loop.
    """
    block = Block(threads, vector, strategy="elementwise")
    power_of_two("elementwise", "each", each, 1)

    def at_depth(term: Expr) -> Rewrite:
        depth, element = 0, term.type
        while isinstance(element, Array):
            depth, element = depth + 1, element.element
        if not 1 <= depth <= DIMENSIONS or not isinstance(element, Scalar):
            return refuse("elementwise", f"expected an array of numbers, found `{term.type}`")
        if not is_expression(term):
            return refuse("elementwise", "computing an element takes a loop")
        return _rows(depth - 1, block, block.step * each)

    return FunctionStrategy("elementwise", complete(in_inputs(depending(at_depth))))


def _rows(dimension: int, block: Block, step: int) -> Strategy:
    """The rows of an array over a dimension of the grid, and what is in them."""
    if dimension > 0:
        inner = _rows(dimension - 1, block, step)
        return seq(a.MAP_NOTHING, mapped(inner), low.MAP_BLOCK.with_sizes(d=dimension))
    return depending(lambda row: _row(row, block, step))


def _row(row: Expr, block: Block, step: int) -> Strategy:
    size = array_type(row).size
    if size.value is None or size.value % step:
        return refuse("elementwise", f"{step} does not divide {size}, the length of the rows")
    blocks = seq(a.MAP_NOTHING, mapped(block.write), low.MAP_BLOCK.with_sizes(d=0))
    return seq(views.SPLIT_JOIN_PAIR.with_sizes(n=step), argument(blocks))
