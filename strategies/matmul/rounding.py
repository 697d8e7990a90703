"""Sizes that tiles do not divide: a product of padded operands, of which only the requested part is stored.

Rows and columns of the result, and sums, are made longer, up to the next multiple of a tile; what is added
to operands are zeros behind the ends of their dimensions, as copying units put them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from rewrites import movement as m
from rewrites import padding as pad
from rewrites.result import Failure
from rewrites.rounding import (
    EMPTY_AS_ZEROS,
    EMPTY_OUT,
    MAP_EMPTY_ROWS,
    PRODUCT_ROWS,
    ROUND_UP,
    ROUND_UP_COLUMNS,
    ROUND_UP_PAIRS,
    ROUND_UP_SUMS,
    missing,
)
from rewrites.rule import Rule
from rise.expr import Expr
from rise.nat import Nat, divides
from rise.types import Array, Scalar, shape
from strategies.abstraction import outermost_parts, with_parts_abstracted
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import (
    Rewrite,
    Strategy,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
    top_down,
)
from strategies.matmul.products import Product, at_products, is_product
from strategies.matmul.staging import ASYNCHRONOUS, WIDEST, TileCopy
from strategies.places import arguments

# what is made longer, from the result to the arrays that it is computed from
longer_inward = normalize(
    choice(
        pad.MAP_EMPTY,
        pad.EMPTY_ZIP,
        pad.EMPTY_NUMBERS,
        pad.TRANSPOSE_EMPTY,
        pad.TAKE_EMPTY,
        pad.EMPTY_NOTHING,
        MAP_EMPTY_ROWS,
        EMPTY_OUT,
        m.DROP_UNUSED,
    )
)


# of products of any operator
ANY_REDUCTION = (ROUND_UP_SUMS, ROUND_UP_PAIRS)
# what is past the last row or column: zeros; whatever is there; or this of operands, and zeros elsewhere
ZEROS: Strategy = normalize(EMPTY_AS_ZEROS)
ANYTHING: Strategy = id_
ZEROS_BESIDE: Strategy = with_parts_abstracted(is_product, lambda _: ZEROS)


@prints_as_call
def rounded_up(
    block: tuple[int, int, int],
    copies: TileCopy | None,
    schedule: Rewrite,
    behind: Rewrite = ZEROS,
    rules: tuple[Rule, ...] = (ROUND_UP_SUMS,),
) -> Strategy:
    """The schedule, of a matrix around products; where tiles do not divide it, of a larger one.

    before: A·B, of m × n
    after:  the first m rows and n columns of s((A with zeros behind its ends)·(B with zeros behind its ends))

    copies:   how tiles of operands are copied, if they are
    schedule: of a matrix of whole tiles
    behind:   what is past the last row and column, whose results are dropped
    rules:    by which of them a reduction may have more elements
    """

    def make(term: Expr) -> Rewrite:
        sizes, _ = shape(term.type)
        rows, columns = (missing(s, b) for s, b in zip(sizes, block[:2], strict=True))
        products = outermost_parts(term, is_product)
        depths = [missing(Product.of(part).length, block[2]) for part in products]
        if rows is None and columns is None and not any(depths):
            return schedule
        unaligned = refused(products, copies) if copies is not None else None
        if unaligned is not None:
            reason, hint = unaligned
            return lambda refused: Failure("rounded_up", refused, reason, hint=hint)
        deeper = at_products(sums(block[2], rules)) if any(depths) else id_
        whole = seq(longer_inward, deeper, behind, schedule)
        longer = [ROUND_UP.with_sizes(p=rows)] if rows is not None else []
        wider = [ROUND_UP_COLUMNS.with_sizes(p=columns)] if columns is not None else []
        return seq(
            *longer,
            arguments(len(longer), seq(*wider)),
            arguments(len(longer) + len(wider), whole),
        )

    return depending(make)


@prints_as_call
def sums(depth: int, rules: tuple[Rule, ...] = (ROUND_UP_SUMS,)) -> Strategy:
    """A product's sums up to the next multiple of the tile, by the first of the rules that applies."""

    def make(product: Expr) -> Rewrite:
        more = missing(Product.of(product).length, depth)
        if more is None:
            return id_
        return top_down(choice(*(rule.with_sizes(p=more) for rule in rules)))

    return depending(make)


# zeros behind the sums of a product as zeros behind the rows of its matrices, or their columns
zeros_behind_rows: Strategy = seq(PRODUCT_ROWS, normalize(pad.PAD_COLUMNS))


@prints_as_call
def longer_operands(depth: int) -> Strategy:
    """The same, with zeros behind the rows of both matrices, or their columns, whichever are contiguous."""
    longer = seq(sums(depth), zeros_behind_rows)
    return depending(lambda product: id_ if missing(Product.of(product).length, depth) is None else longer)


# --- what copies require of rows ------------------------------------------------------------------------


def refused(products: list[Expr], copies: TileCopy) -> tuple[str, str] | None:
    """Why the rows of some operand cannot be copied as they are to be, and what helps."""
    rows = [
        row
        for part in products
        for matrix in Product.of(part).operands
        if (row := row_of(matrix)) is not None
    ]
    for row in rows:
        least = WIDEST if copies.bulk else copies.of(Array(row.size, row.element))["v"] * row.width
        asynchronous = not copies.bulk and copies.primitive(row.contiguity) == "copyAsync"
        alone = asynchronous and least < ASYNCHRONOUS
        between = row.misaligned(least)
        if between is None and not alone:
            continue
        who = "the copying unit takes" if copies.bulk else "a thread copies at once"
        what = f"{who} {least} bytes" if not alone else f"asynchronous copies of {least} bytes there are not"
        reason = f"an operand has {row.said(between or row.size)}, and {what}"
        return reason, slower_path(rows, copies)
    return None


def slower_path(rows: list[Row], copies: TileCopy) -> str:
    """Parameters with which threads copy vectors that divide all rows."""
    width = next(v for v in (8, 4, 2, 1) if all(_is_vector(v * r.width, r) for r in rows))
    instructions = "fragment=16,8,16 " if copies.bulk else ""
    narrow = " cp_async=false" if any(width * r.width < ASYNCHRONOUS for r in rows) else ""
    return f"use `{instructions}vector={width}{narrow}`, which is slower, or rows made longer by zeros"


def _is_vector(bytes_: int, row: Row) -> bool:
    return bytes_ <= WIDEST and row.misaligned(bytes_) is None


@dataclass(frozen=True)
class Row:
    """The rows of an operand along its contiguous dimension: how many elements they have."""

    size: Nat
    element: Scalar
    contiguity: Contiguity

    @property
    def width(self) -> int:
        return self.element.bytes

    @property
    def starts(self) -> tuple[Nat, ...]:
        """Rows start at sums of multiples of these numbers of elements."""
        return self.contiguity.starts

    def misaligned(self, bytes_: int) -> Nat | None:
        """A number of elements that rows start at multiples of, if it is not a multiple of so many bytes."""
        return next((start for start in self.starts if not divides(bytes_, start * self.width)), None)

    def said(self, distance: Nat) -> str:
        """How far apart rows are, or where they start."""
        how = "rows of" if distance in self.starts[:1] else "rows that start at multiples of"
        return f"{how} {distance} elements, {distance * self.width} bytes"

    @property
    def factor(self) -> int:
        """The largest number of elements that rows are known to start at multiples of."""
        return gcd(*(start.factor for start in self.starts))


def row_of(matrix: Expr) -> Row | None:
    """The rows of an operand, or its columns where these are contiguous; None where that is not known."""
    sizes, element = shape(matrix.type)
    known = contiguity_of(matrix, {})
    if not isinstance(known, Contiguity) or not isinstance(element, Scalar) or sum(known.dimensions) != 1:
        return None
    return Row(sizes[known.dimensions.index(True)], element, known)
