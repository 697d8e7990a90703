"""Reductions of columns: neighbouring threads read neighbouring columns, and share the rows of a block.

A thread reduces every n-th element of its column and keeps the result in shared memory; one of the threads of
a column combines these results. Few long columns take two kernels: blocks reduce parts of the columns and
store the results in global memory, and a second kernel combines them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from rewrites import blocks as b
from rewrites import lowering as low
from rewrites import movement as m
from rewrites import reductions as r
from rewrites.joint import AS_ONE
from rewrites.lets import named_value
from rewrites.maps import SHARE_REPEATED
from rewrites.memory import IN_GLOBAL, IN_SHARED, STORED_BY_COLUMNS
from rewrites.storing import EACH_IN_SHARED, EACH_STORED, GLOBAL_FIRST, is_global, is_stored_in
from rewrites.unused import DROP_UNUSED
from rise.expr import Expr, call, subterms
from rise.nat import Nat, ceiling_quotient
from rise.types import Space
from strategies.complete import complete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    outermost,
    prints_as_call,
    repeat,
    seq,
    try_,
)
from strategies.evaluation import has_array
from strategies.loops.nests import nearest
from strategies.memory_bound.blocks import (
    MOST_THREADS,
    WARP,
    chosen_or,
    in_groups,
    length,
    reduced_length,
    refuse,
    sequential,
    with_neutral,
)
from strategies.memory_bound.rows import at_reductions
from strategies.memory_bound.widths import narrowest_matrix, reduces_numbers
from strategies.operands import in_function, nth_operand
from strategies.places import in_inputs, mapped
from strategies.settings import searched

THREADS = 256  # of a block
MOST_ACROSS = 48  # of them beside each other, where these divide all columns
MOST_ROWS = 64  # threads of a column at most
MOVED, AHEAD = 8, 32  # bytes that a thread loads at once, and before it computes
MOST_LOADS = 16
SHORT = 32  # elements of a column that one thread reduces
RESIDENT = 132 * 1024  # threads that run at the same time, with up to 64 registers each
LONG = 1 << 16  # bytes that a block would read, from which on a second kernel pays
BESIDE, BELOW = (low.MAP_THREADS.with_sizes(d=d) for d in range(2))


def _names_a_number(term: Expr) -> bool:
    named = named_value(term)
    return named is not None and not has_array(named[0].type)


named_once = seq(SHARE_REPEATED, check(_names_a_number, "named_once", "arrays stay as they are"))
# a mean or a maximum and what uses it are one reduction, and so are all that are left: columns are read once
in_one_reduction: Strategy = seq(
    try_(AS_ONE), repeat(mapped(named_once)), repeat(mapped(r.REDUCTIONS_AS_PAIR))
)


@dataclass(frozen=True)
class Shape:
    """Threads of a block beside and below each other; the columns of each, and rows that it loads at once."""

    across: int
    rows: int
    vector: int
    loads: int

    @property
    def columns(self) -> int:
        """Of a block."""
        return self.across * self.vector

    @property
    def threads(self) -> int:
        """Of the warps of a block."""
        return -(-self.across * self.rows // WARP) * WARP

    @property
    def turn(self) -> int:
        """The rows of the matrix that a block loads at once."""
        return self.rows * self.loads


@dataclass(frozen=True)
class Matrix:
    """columns and rows: how many there are; width: bytes of an element; numbers: whether these are reduced"""

    columns: Nat
    rows: Nat
    width: int
    numbers: bool

    def shape(self, across: int, rows: int, vector: int, loads: int, threads: int = THREADS) -> Shape:
        """A block; what is 0 is chosen: warps read columns that are beside each other."""
        vector = vector or self._vector
        groups = ceiling_quotient(self.columns, vector).value or WARP
        dividing = (w for w in range(min(groups, MOST_ACROSS), WARP // 2, -1) if groups % w == 0)
        across = across or next(dividing, min(groups, WARP))
        ahead = loads or min(MOST_LOADS, max(1, AHEAD // (vector * self.width)))
        length = self.rows.value or MOST_ROWS * ahead
        rows = rows or min(MOST_ROWS, max(1, threads // across), length)
        return Shape(across, rows, vector, loads or min(ahead, -(-length // rows)))

    def part(self, block: Shape) -> int:
        """The elements of parts of columns, where the columns are too few blocks; 0: there are enough."""
        if self.columns.value is None or self.rows.value is None:
            return 0
        blocks = -(-self.columns.value // block.columns)
        parts = RESIDENT // (blocks * block.threads)
        if parts <= 1 or self.rows.value * block.columns * self.width <= LONG:
            return 0
        return block.turn * -(-self.rows.value // (parts * block.turn))

    @property
    def _vector(self) -> int:
        """The columns of a thread: as many as leave some for each of a warp's threads."""
        most = gcd(self.columns.factor, max(1, MOVED // self.width)) if self.numbers else 1
        known = self.columns.value
        return next(
            v for v in range(most, 0, -1) if most % v == 0 and (v == 1 or known is None or known >= v * WARP)
        )


@searched(across=(0, 8, 16, 32, 64), rows=(0, 4, 8, 16, 32), vector=(0, 1, 2, 4), loads=(0, 1, 2, 4, 8))
@prints_as_call
def columns(across: int = 0, rows: int = 0, vector: int = 0, loads: int = 0, part: int = 0) -> Strategy:
    """Reduces each column of a matrix: a block of threads for some columns, several threads for each.

    For any operators with their neutral elements, any map of the elements before, and any function of the
    results after. Several reductions of a column are one, so that the column is read once.
    across: threads of a block beside each other
    rows:   threads below each other, which share columns
    vector: adjacent columns of a thread, whose elements it loads at once
    loads:  how many rows a thread loads before it computes
    part:   elements of a column that one block reduces; their results are a second kernel
    All are chosen where they are 0.
    """
    given = (across, rows, vector, loads)
    chosen_or("columns", across=across, rows=rows, vector=vector, loads=loads, part=part)

    def chosen(term: Expr) -> Rewrite:
        matrix = _matrix(term)
        if matrix is None:
            return refuse("columns", "expected a map over columns, whose function reduces each")
        block = matrix.shape(*given)
        several = part or matrix.part(block)
        if not several or (matrix.rows.value is not None and matrix.rows.value <= several):
            return _by_blocks(block)
        return choice(_in_parts(block, several, given), _by_blocks(block))

    return FunctionStrategy("columns", complete(in_inputs(nearest(seq(in_one_reduction, depending(chosen))))))


def _matrix(term: Expr) -> Matrix | None:
    """Whose columns a map reduces."""
    applied, count = call(term), length(term)
    lengths = {n for each in subterms(term) if (n := reduced_length(each)) is not None}
    if applied is None or applied[0] != "map" or count is None or len(lengths) != 1:
        return None
    return Matrix(count, lengths.pop(), narrowest_matrix(applied[2][1].type), reduces_numbers(term))


def has_long_columns(term: Expr) -> bool:
    """Whether a map reduces columns that are worth several threads each."""
    matrix = _matrix(term)
    return matrix is not None and (matrix.rows.value is None or matrix.rows.value > SHORT)


def _by_blocks(block: Shape) -> Strategy:
    """Columns by blocks, as many as each has threads beside each other."""
    return in_groups(block.columns, seq(mapped(_in_block(block)), low.MAP_BLOCK.with_sizes(d=0)))


def _in_block(block: Shape) -> Strategy:
    """What the threads of a column give, in shared memory, and what one of them computes of it."""
    of_thread = b.REDUCE_LOADED.with_sizes(u=block.loads) if block.loads > 1 else sequential
    across = seq(mapped(of_thread), BESIDE)
    if block.vector > 1:
        of_several = b.REDUCE_COLUMNS.with_sizes(u=block.loads, v=block.vector)
        across = in_groups(block.vector, seq(mapped(of_several), BESIDE))
    parts = _stored(block.turn, r.REDUCE_TREE_STRIDED.with_sizes(n=block.rows), IN_SHARED, EACH_IN_SHARED)
    by_threads = outermost(_in_shared, _by_columns(seq(mapped(across), BELOW)))
    results = seq(mapped(seq(mapped(sequential), BESIDE)), BELOW)
    return seq(parts, by_threads, in_groups(block.across, results))


def _in_parts(block: Shape, part: int, given: tuple[int, int, int, int]) -> Strategy:
    """Parts of all columns by blocks, as a matrix that is kept in global memory, and then its columns."""
    rows = seq(mapped(_by_blocks(block)), low.MAP_BLOCK.with_sizes(d=1))
    parts = _stored(part, r.REDUCE_TREE.with_sizes(n=part), IN_GLOBAL, EACH_STORED)

    def of_results(term: Expr) -> Rewrite:
        matrix = _matrix(term)
        if matrix is None:
            return refuse("columns", "expected reductions of what the parts give")
        return _by_blocks(matrix.shape(*given, MOST_THREADS))

    rest = in_function(nearest(depending(of_results)))
    return seq(parts, outermost(is_global, _by_columns(rows)), GLOBAL_FIRST, nth_operand(1, rest))


def _stored(tile: int, tree: Rewrite, store: Rewrite, each: Rewrite) -> Strategy:
    """The reductions of columns in parts; what these give is stored for all columns.

    before: xs |> map(c => f(c |> reduce))
    after:  xs |> map(c => parts of c |> map(reduce)) |> toMem |> map(p => f(p |> reduce))
    """

    def chosen(term: Expr) -> Rewrite:
        size = reduced_length(term)
        if size is None:
            return refuse("columns", "expected a reduction")
        return seq(with_neutral(size, tile), tree, argument(store))

    return seq(mapped(at_reductions(depending(chosen))), repeat(seq(each, try_(DROP_UNUSED))))


def _by_columns(s: Rewrite) -> Strategy:
    """s for the parts of each column, stored row by row; each row is a map over columns.

    before: xs |> map(c => v(c) |> map(f)) |> toMem
    after:  s(xs |> map(v) |> transpose |> map(ps => ps |> map(f))) |> toMem |> transpose
    """
    interchanged = seq(m.TRANSPOSE_MAP, mapped(try_(DROP_UNUSED)))
    return seq(STORED_BY_COLUMNS, argument(argument(seq(interchanged, s))))


def _in_shared(term: Expr) -> bool:
    return is_stored_in(Space.SHARED, term)
