"""Operands of a reduction staged in shared memory, by copies that run ahead of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from rewrites import staging as s
from rewrites.rule import Rule
from rise.expr import Expr, call
from rise.types import Array, Pair, Scalar, Type, shape
from strategies.contiguity import Context, Contiguity, Known, contiguity_of, element, in_context
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    fail,
    function,
    id_,
    prints_as_call,
    seq,
    top_down,
)
from strategies.matmul.constraints import PATTERNS, pattern
from strategies.matmul.products import is_fold
from strategies.places import mapped

NOT_ALONG_K = (
    "warpgroups read operands along k, unless their elements have 16 bits: store the matrix transposed"
)
NO_PATTERN = (
    "the copying unit swizzles rows of 32, 64 or 128 bytes, and the rows of a tile are not a multiple"
)
WIDEST = 16  # bytes that a thread moves at once


@dataclass(frozen=True)
class TileCopy:
    """How tiles are copied: by so many threads, `vector` elements at once; rows are `padding` longer.

    bulk: by the tensor memory accelerator, swizzled
    swizzled: rows as long as a pattern are swizzled instead
    asynchronous: by `cp.async` where operands are not computed
    """

    threads: int
    vector: int
    padding: int
    asynchronous: bool = True
    swizzled: bool = False
    bulk: bool = False

    def primitive(self, tile: Known) -> str:
        computed = isinstance(tile, Contiguity) and tile.computed
        return "copyAsync" if self.asynchronous and not computed else "copyThreads"

    def rule(self, tile: Known, type_: Type) -> Rule:
        """The copy of a tile, along its contiguous dimension."""
        rows, columns = s.COPY[self.primitive(tile)]
        return (columns if _by_columns(tile) else rows).with_sizes(**self.of(type_))

    def swizzle(self, tile: Known, type_: Type) -> Rewrite:
        """The tile in swizzled rows, where these are as long as a pattern's."""
        sizes, scalar = shape(type_)
        row = sizes[0] if _by_columns(tile) else sizes[-1]
        length = (row.value or 0) * (scalar.bytes if isinstance(scalar, Scalar) else 0)
        if not self.swizzled or length not in PATTERNS:
            return id_
        swizzled: Rewrite = s.SWIZZLE[self.primitive(tile)].with_sizes(b=length)
        return swizzled

    def of(self, tile: Type) -> dict[str, int]:
        """The parameters of a copy of a tile, as far as its size allows."""
        sizes, scalar = shape(tile)
        widest = WIDEST // scalar.bytes if isinstance(scalar, Scalar) else 1
        vector = min(self.vector, widest)
        vectors = prod(size.value or 1 for size in sizes) // vector
        return {"v": vector, "t": next(t for t in range(self.threads, 0, -1) if vectors % t == 0)}


def _by_columns(tile: Known) -> bool:
    """Whether the columns of a tile are contiguous."""
    return isinstance(tile, Contiguity) and tile.dimensions == (True, False)


def tiles_of(term: Expr) -> Pair | None:
    """The type of the pairs of matrices that a reduction is over, as the loop over k of a product is."""
    applied = call(term)
    if applied is None or not is_fold(term):
        return None
    match applied[2][2].type:
        case Array(_, Pair(first, second) as pair) if len(shape(first)[0]) == 2 == len(shape(second)[0]):
            return pair
        case _:
            return None


@prints_as_call
def stage(copies: TileCopy, stages: int, known: Context) -> Strategy:
    """The tiles of every product through shared memory, `stages` of them at a time.

    They are copied along their contiguous dimension; operands that are computed go through registers, the
    others by asynchronous copies.
    """

    def make(fold: Expr, context: Context) -> Strategy:
        applied, types = call(fold), tiles_of(fold)
        if applied is None or types is None:
            return fail
        if copies.bulk:
            return _bulk(copies, stages, types, element(contiguity_of(applied[2][2], context)))
        first, second = _both(element(contiguity_of(applied[2][2], context)))
        how = (copies.primitive(first), copies.primitive(second))
        return seq(
            s.STAGE[how].with_sizes(p=copies.padding, q=copies.padding),
            argument(top_down(seq(copies.swizzle(first, types.first), copies.rule(first, types.first)))),
            argument(top_down(seq(copies.swizzle(second, types.second), copies.rule(second, types.second)))),
            s.PIPELINE.with_sizes(s=stages),
        )

    return in_context(lambda term: tiles_of(term) is not None, make, known)


def _bulk(copies: TileCopy, stages: int, types: Pair, tiles: Known) -> Strategy:
    """Both tiles by bulk copies, swizzled; in panels where their rows are longer than a pattern's."""

    def swizzled(tile: Known, type_: Type) -> Strategy:
        sizes, scalar = shape(type_)
        length = (sizes[0] if _by_columns(tile) else sizes[-1]).value or 0
        size = scalar.bytes if isinstance(scalar, Scalar) else 1
        width = pattern(length * size)
        if not width:
            return check(lambda _: False, "stage", f"{NO_PATTERN}: {length * size} bytes")
        columns, rows = s.PANELS
        within = top_down(s.SWIZZLE["bulkCopy"].with_sizes(b=width))
        if _by_columns(tile):
            return seq(rows.with_sizes(w=width // size), within)
        return within if length * size == width else seq(columns.with_sizes(w=width // size), within)

    first, second = _both(tiles)
    if not all(_along_k(tile, type_) for tile, type_ in ((first, types.first), (second, types.second))):
        return check(lambda _: False, "stage", NOT_ALONG_K)
    return seq(
        s.STAGE["bulkCopy", "bulkCopy"].with_sizes(p=copies.padding, q=copies.padding),
        argument(
            mapped(
                seq(
                    function(argument(swizzled(first, types.first))),
                    argument(swizzled(second, types.second)),
                )
            )
        ),
        s.PIPELINE.with_sizes(s=stages),
    )


def _along_k(tile: Known, type_: Type) -> bool:
    """Whether warpgroups can read a tile with this layout; with elements of 16 bits they can read any."""
    _, scalar = shape(type_)
    return not _by_columns(tile) or (isinstance(scalar, Scalar) and scalar.bytes == 2)


def _both(pair: Known) -> tuple[Known, Known]:
    return pair if isinstance(pair, tuple) else (None, None)
