"""Tiles of fragments stored by bulk copies from shared memory, in panels, swizzled where rows allow it."""

from __future__ import annotations

from rewrites import memory
from rewrites import staging as s
from rise.expr import Expr
from rise.types import Scalar, shape
from strategies.core import Strategy, alltd, argument, depending, id_, prints_as_call, seq, top_down
from strategies.matmul.constraints import pattern

SWIZZLED = {made.name: made for made in memory.LAYOUT_CHANGED}["toMem, swizzled"]


@prints_as_call
def panels(term: Expr) -> Strategy:
    """Of `x |> toMem(Shared) |> bulkStore`: panels as wide as the longest pattern that divides its rows.

    Rows that none divides are an odd number of chunks of 16 bytes, so they are in different banks already.
    """
    sizes, scalar = shape(term.type)
    element = scalar.bytes if isinstance(scalar, Scalar) else 1
    length = (sizes[-1].value or 0) * element
    width = pattern(length)
    if not width:
        return id_
    swizzled = top_down(SWIZZLED.with_sizes(b=width))
    return swizzled if length == width else seq(s.STORE_PANELS.with_sizes(w=width // element), swizzled)


stored_in_bulk: Strategy = alltd(seq(s.STORE_IN_BULK, depending(panels)))
# of a matrix that is computed transposed: its tiles are turned on their way to shared memory
stored_in_bulk_transposed: Strategy = alltd(seq(s.STORE_TURNED_IN_BULK, argument(depending(panels))))
