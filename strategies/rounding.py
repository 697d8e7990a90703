"""Sizes that tiles do not divide: a product of longer operands, of which what was asked for is taken.

Rows and columns of the result, and sums, are made longer, up to the next multiple of a tile; what is added
to operands are zeros behind the ends of their dimensions, as copying units put them there.
"""

from __future__ import annotations

from rewrites import movement as m
from rewrites import padding as pad
from rewrites.rounding import (
    EMPTY_AS_ZEROS,
    EMPTY_OUT,
    MAP_EMPTY_ROWS,
    ROUND_UP,
    ROUND_UP_COLUMNS,
    ROUND_UP_SUMS,
)
from rise.expr import Expr
from rise.nat import Nat
from rise.types import shape
from strategies.core import Rewrite, Strategy, choice, depending, id_, normalize, seq
from strategies.hide import outermost_parts
from strategies.places import arguments
from strategies.products import at_products, is_product
from strategies.split_k import length

# what is made longer, from the result to the arrays that it is computed from
longer_inward = normalize(
    choice(pad.MAP_EMPTY, pad.EMPTY_ZIP, pad.TRANSPOSE_EMPTY, MAP_EMPTY_ROWS, EMPTY_OUT, m.DROP_UNUSED)
)


def missing(size: Nat | None, tile: int) -> int:
    """How many elements more are whole tiles; none where the size is not known."""
    return -size.value % tile if size is not None and size.value is not None else 0


def rounded_up(block: tuple[int, int, int], schedule: Rewrite) -> Strategy:
    """The schedule, of a matrix around products; where tiles do not divide it, of a larger one."""

    def make(term: Expr) -> Rewrite:
        rows, columns = (missing(s, b) for s, b in zip(shape(term.type)[0], block[:2], strict=True))
        depths = [missing(length(part), block[2]) for part in outermost_parts(term, is_product)]
        if not (rows or columns or any(depths)):
            return schedule
        longer = [ROUND_UP.with_sizes(p=rows)] if rows else []
        wider = [ROUND_UP_COLUMNS.with_sizes(p=columns)] if columns else []
        return seq(
            *longer,
            arguments(len(longer), seq(*wider)),
            arguments(
                len(longer) + len(wider),
                seq(longer_inward, at_products(sums(block[2])), normalize(EMPTY_AS_ZEROS), schedule),
            ),
        )

    return depending(make)


def sums(depth: int) -> Strategy:
    """A product's sums up to the next multiple of the tile."""

    def make(product: Expr) -> Rewrite:
        more = missing(length(product), depth)
        return ROUND_UP_SUMS.with_sizes(p=more) if more else id_

    return depending(make)
