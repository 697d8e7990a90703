"""Operands of a reduction staged in shared memory, by copies that run ahead of it, and who makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from rewrites import lowering as low
from rewrites import staging as s
from rewrites.rounding import missing
from rewrites.rule import Rule
from rewrites.tupling import is_fold
from rise.expr import Expr, Primitive, call, subterms
from rise.nat import Nat
from rise.types import Array, Data, Pair, Scalar, Type, array, as_data, shape
from strategies.contiguity import Context, Contiguity, Known, contiguity_of, element, in_context
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    everywhere,
    fail,
    function,
    id_,
    prints_as_call,
    seq,
    top_down,
)
from strategies.matmul.constraints import PATTERNS, WARP, WARPGROUP, pattern
from strategies.matmul.schedule import PROMOTED, Schedule
from strategies.places import mapped

NOT_ALONG_K = (
    "warpgroups read operands along k, unless their elements have 16 bits: store the matrix transposed"
)
NO_PATTERN = (
    "the copying unit swizzles rows of 32, 64 or 128 bytes, and the rows of a tile are not a multiple"
)
WIDEST = 16  # bytes that a thread moves at once
ASYNCHRONOUS = 4  # bytes that it moves at least, past its registers


@dataclass(frozen=True)
class TileCopy:
    """How tiles are copied: by so many threads, `vector` elements at once; rows are `padding` longer.

    bulk: by the tensor memory accelerator, swizzled
    swizzled: rows as long as a pattern are swizzled instead
    asynchronous: by `cp.async` where operands are not computed
    in_columns: by fewer threads, up to a quarter, if then each always has the same part of a row
    loads: of each thread, that are under way before it stores the first, where copies go through registers
    turned: tiles whose rows are contiguous are stored by columns, element by element, if that is asynchronous
    second: only tiles of the second operand are copied, through registers: all elements are read before the
        first is stored, in rows so long that each thread always has the same part of a row
    """

    threads: int
    vector: int
    padding: int
    asynchronous: bool = True
    swizzled: bool = False
    bulk: bool = False
    in_columns: bool = False
    loads: int = 0
    turned: bool = False
    second: bool = False

    def primitive(self, tile: Known) -> str:
        computed = isinstance(tile, Contiguity) and tile.computed
        return "copyAsync" if self.asynchronous and not computed else "copyThreads"

    def rule(self, tile: Known, type_: Type) -> Rule:
        """The copy of a tile, along its contiguous dimension."""
        by_columns = _by_columns(tile)
        if self.turned and not by_columns and is_copied_alone(shape(type_)[1]):
            threads = replace(self, vector=1).of(type_)["t"]
            return s.COPY_TURNED[self.primitive(tile)].with_sizes(t=threads)
        batches = self.loads and self.primitive(tile) == "copyThreads"
        rules = s.COPY_IN_BATCHES if batches else s.COPY[self.primitive(tile)]
        sizes = self.of(type_, by_columns)
        return rules[by_columns].with_sizes(**sizes, **(self._batch(type_, sizes) if batches else {}))

    def _batch(self, tile: Type, sizes: dict[str, int]) -> dict[str, int]:
        """How many vectors a thread loads before it stores the first."""
        each = prod(size.value or 1 for size in shape(tile)[0]) // (sizes["v"] * sizes["t"])
        most = each if self.second else min(self.loads, each)
        return {"u": next(u for u in range(most, 0, -1) if each % u == 0)}

    def longer(self, row: Nat) -> Nat | None:
        """How many elements more a row has whose vectors divide the threads evenly; None if its own do.

        Of more vectors than threads, these divide the vectors instead.
        """
        if not self.second:
            return None
        vectors = -(-(row.value or 1) // self.vector)
        return missing(row, evenly_divided(vectors, self.threads) * self.vector)

    def swizzle(self, tile: Known, type_: Type) -> Rewrite:
        """The tile in swizzled rows, where these are as long as a pattern's."""
        sizes, scalar = shape(type_)
        row = sizes[0] if _by_columns(tile) else sizes[-1]
        length = (row.value or 0) * (scalar.bytes if isinstance(scalar, Scalar) else 0)
        if not self.swizzled or length not in PATTERNS:
            return id_
        swizzled: Rewrite = s.SWIZZLE[self.primitive(tile)].with_sizes(b=length)
        return swizzled

    def of(self, tile: Type, by_columns: bool = False) -> dict[str, int]:
        """The parameters of a copy of a tile, as far as its size allows."""
        sizes, scalar = shape(tile)
        widest = WIDEST // scalar.bytes if isinstance(scalar, Scalar) else 1
        vector = min(self.vector, widest)
        vectors = prod(size.value or 1 for size in sizes) // vector
        each = [t for t in range(self.threads, 0, -1) if vectors % t == 0]
        row = max(1, (sizes[0 if by_columns else -1].value or 1) // vector)
        alike = (t for t in each if (t % row == 0 or row % t == 0) and 4 * t >= 3 * each[0])
        return {"v": vector, "t": next(alike, each[0]) if self.in_columns else each[0]}


def evenly_divided(vectors: int, threads: int) -> int:
    """The least number of vectors, at least so many, that divides the threads; without one, their number."""
    return next((n for n in range(vectors, threads) if threads % n == 0), threads)


def is_copied_alone(element: Type) -> bool:
    """Whether an asynchronous copy moves a single element."""
    return isinstance(element, Scalar) and element.bytes >= ASYNCHRONOUS


def copies_of(s: Schedule) -> TileCopy:
    """How the threads of a schedule that compute copy tiles of operands, and rows of the result."""
    threads = (WARPGROUP if s.uses_wgmma else WARP) * s.workers // s.ping_pong
    return TileCopy(threads, s.vector, s.padding, s.cp_async, s.swizzled, bulk=s.uses_wgmma)


def tiles_copied(s: Schedule) -> TileCopy | None:
    """How tiles of operands are copied, if they are."""
    return copies_of(s) if s.stages else None


def _by_columns(tile: Known) -> bool:
    """Whether the columns of a tile are contiguous."""
    return isinstance(tile, Contiguity) and tile.dimensions == (True, False)


def tiles_of(term: Expr) -> Data | None:
    """The type of what a reduction is over, if that is pairs of matrices, as in the loop over k of a product.

    For products that share operands, one of the pair, or both, may be pairs of matrices themselves. Beside
    matrices there may be other arrays and numbers. Where each step multiplies one matrix by what is there
    already, as a fold over blocks of columns does, it is that matrix.
    """
    applied = call(term)
    if applied is None or not is_fold(term):
        return None
    match applied[2][2].type:
        case Array(_, Pair() as pair) if _of_matrices(pair):
            return pair
        case Array(_, Array() as matrix) if _is_matrix(matrix) and _multiplies(applied[2][0]):
            return matrix
        case _:
            return None


def _multiplies(step: Expr) -> bool:
    return any(isinstance(part, Primitive) and part.name == "tensorMatMulAdd" for part in subterms(step))


def _of_matrices(type_: Type) -> bool:
    if isinstance(type_, Pair):
        return _of_matrices(type_.first) or _of_matrices(type_.second)
    return _is_matrix(type_)


def _is_matrix(type_: Type) -> bool:
    return len(shape(type_)[0]) == 2


@prints_as_call
def stage(copies: TileCopy, slots: int) -> Strategy:
    """The tiles of every product through shared memory, in a ring of so many slots; with none as they are.

    before: xs |> reduceSeq((acc, (a, b)) => …, 0)
    after:  xs |> reducePipelined(slots)((a, b) => (copy(a), copy(b)), (acc, (a, b)) => …, 0)

    They are copied along their contiguous dimension; operands that are computed go through registers, the
    others by asynchronous copies.
    """

    def make(fold: Expr, context: Context) -> Strategy:
        applied, types = call(fold), tiles_of(fold)
        if applied is None or types is None:
            return fail
        tiles = element(contiguity_of(applied[2][2], context))
        if copies.bulk and not all(_along_k(tile, type_) for tile, type_ in _leaves(tiles, types)):
            return check(lambda _: False, "stage", NOT_ALONG_K)
        copy = "bulkCopy" if copies.bulk else "copyAsync" if copies.asynchronous else "copyThreads"
        return seq(
            s.STAGE[copy].with_sizes(p=copies.padding),
            argument(mapped(_members(copies, copy, tiles, types))),
            s.PIPELINE.with_sizes(s=slots),
        )

    return in_context(lambda term: tiles_of(term) is not None, make, {}) if slots else id_


@prints_as_call
def copied(copies: TileCopy) -> Strategy:
    """Matrices that are copied to shared memory, by the threads of a block along their contiguous dimension.

    before: x |> copyAsync(l)
    after:  x |> join |> asVectorAligned(v) |> … mapThreads … |> split(m) |> copyAsync(l)
    """

    def make(term: Expr, context: Context) -> Strategy:
        match call(term):
            case name, _, [matrix]:
                return _by_threads(copies, name, contiguity_of(matrix, context), term.type)
            case _:
                return fail

    return in_context(_is_to_copy, make, {})


def _is_to_copy(term: Expr) -> bool:
    match call(term):
        case name, _, [matrix] if name in s.COPIES:
            return not s.is_copied(matrix)
        case _:
            return False


@prints_as_call
def specialise(slots: int, consumers: int, producers: int = 1) -> Strategy:
    """Of the warpgroups of a block, some only load, and the others only compute.

    before: xs |> reducePipelined(slots)(load, compute, 0)
    after:  xs |> reduceRoleSplit(slots, producers, consumers)(load, compute, 0)
    """
    return everywhere(low.WARP_SPECIALISE.with_sizes(s=slots, p=producers, c=consumers))


@prints_as_call
def promoted(count: int) -> Strategy:
    """What bulk copies bring to shared memory comes into the L2 cache so many bytes at once.

    before: x |> bulkCopy(l)
    after:  x |> promoted(256) |> bulkCopy(l)
    """
    return everywhere(s.COPY_PROMOTED.with_sizes(b=count)) if count != PROMOTED else id_


@prints_as_call
def loaded_ahead(copies: TileCopy, slots: int, consumers: int) -> Strategy:
    """Matrices that an epilogue reads, by the warpgroup that loads, into a ring of so many slots over tiles.

    before: x |> bulkCopy(l)
    after:  x |> bulkCopyRoleSplit(slots, 1, consumers, swizzled(128)), or in panels as wide as a pattern
    """

    def make(term: Expr, context: Context) -> Strategy:
        match call(term):
            case _, _, [matrix]:
                copied = _in_bulk(copies, contiguity_of(matrix, context), term.type)
                return seq(copied, top_down(s.COPY_AHEAD.with_sizes(s=slots, p=1, c=consumers)))
            case _:
                return fail

    return in_context(_is_bulk_copy, make, {}) if slots else id_


def _is_bulk_copy(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "bulkCopy" and len(applied[2]) == 1


@prints_as_call
def _members(copies: TileCopy, copy: str, tile: Known, type_: Type) -> Strategy:
    """Of the copy of a pair, the copies of its members; of a matrix, how it is copied."""
    if not isinstance(type_, Pair) and not _is_matrix(type_):
        return seq(s.NOT_COPIED[copy])
    if not isinstance(type_, Pair):
        return _in_bulk(copies, tile, type_) if copies.bulk else _by_threads(copies, copy, tile, type_)
    first, second = _both(tile)
    of_first = s.NOT_COPIED[copy] if copies.second else _members(copies, copy, first, type_.first)
    return seq(
        s.COPY_MEMBERS[copy],
        function(argument(of_first)),
        argument(_members(copies, copy, second, type_.second)),
    )


def _by_threads(copies: TileCopy, copy: str, tile: Known, type_: Type) -> Strategy:
    """Vectors along the contiguous dimension; operands that are computed go through registers."""
    through = s.THROUGH_REGISTERS if copy != copies.primitive(tile) else id_
    by_columns, (sizes, scalar) = _by_columns(tile), shape(type_)
    more = copies.longer(sizes[0 if by_columns else -1])
    if more is None:
        return seq(through, top_down(seq(copies.swizzle(tile, type_), copies.rule(tile, type_))))
    rows, columns = sizes
    sides = (rows + more, columns) if by_columns else (rows, columns + more)
    longer = array(*sides, as_data(scalar))
    in_longer = s.COPY_LONGER[by_columns].with_sizes(p=more, n=rows if by_columns else columns)
    return seq(through, top_down(in_longer), top_down(copies.rule(tile, longer)))


def _in_bulk(copies: TileCopy, tile: Known, type_: Type) -> Strategy:
    """Swizzled; in panels where rows are longer than a pattern's."""
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


def _leaves(tiles: Known, type_: Type) -> Iterator[tuple[Known, Type]]:
    """The matrices of nested pairs, each with what is known of it."""
    if isinstance(type_, Pair):
        for tile, member in zip(_both(tiles), (type_.first, type_.second), strict=True):
            yield from _leaves(tile, member)
    else:
        yield tiles, type_


def _along_k(tile: Known, type_: Type) -> bool:
    """Whether warpgroups can read a tile with this layout; with elements of 16 bits they can read any."""
    _, scalar = shape(type_)
    return not _by_columns(tile) or (isinstance(scalar, Scalar) and scalar.bytes == 2)


def _both(pair: Known) -> tuple[Known, Known]:
    return pair if isinstance(pair, tuple) else (None, None)
