"""Tiles of fragments stored from shared memory.

Bulk copies store them in panels, swizzled where rows allow it; threads in whole rows, each at its own place.
"""

from __future__ import annotations

from math import gcd

from rewrites import memory
from rewrites import staging as s
from rise.expr import Expr, call
from rise.types import Scalar, shape
from strategies.core import Strategy, alltd, argument, check, depending, id_, prints_as_call, seq, top_down
from strategies.matmul.constraints import WARPGROUP, pattern
from strategies.matmul.staging import WIDEST

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


@prints_as_call
def stored_in_rows(row: int) -> Strategy:
    """The tiles of fragments, by the threads of their warpgroups.

    before: f |> asMatrix
    after:  f |> asMatrix |> toMem(Shared, padded(8)) |> … mapWarpGroupThreads …

    row: how long the rows of the result are, or what is known to divide that
    """

    def make(term: Expr) -> Strategy:
        sizes, scalar = shape(term.type)
        element = scalar.bytes if isinstance(scalar, Scalar) else 1
        columns = sizes[-1].value or 1
        vector = gcd(WIDEST // element, columns, row)
        return s.STORE_IN_ROWS.with_sizes(p=WIDEST // element, v=vector, t=WARPGROUP, m=columns)

    return alltd(
        seq(
            check(is_stored_fragment, "stored_in_rows", "expected a fragment that is stored"), depending(make)
        )
    )


def is_stored_fragment(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "asMatrix" and len(applied[2]) == 1


stored_in_bulk: Strategy = alltd(seq(s.STORE_IN_BULK, depending(panels)))
# of a matrix that is computed transposed: its tiles are turned on their way to shared memory
stored_in_bulk_transposed: Strategy = alltd(seq(s.STORE_TURNED_IN_BULK, argument(depending(panels))))
