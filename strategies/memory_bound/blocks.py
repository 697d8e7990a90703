"""A block of threads and one array: distributing it over registers, reducing it, writing it.

Elements, or vectors of elements, are distributed cyclically over the threads of a block, or the lanes of a
warp; a reduction is a part for each of them, and then a tree of their results in shared memory. The threads
need not divide the array: it is made longer, by elements that are not written, and by neutral ones where it
is reduced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

from rewrites import algorithmic as a
from rewrites import blocks as b
from rewrites import lowering as low
from rewrites import reductions as r
from rewrites import views
from rewrites.memory import IN_SHARED
from rewrites.padding import ROUND_UP_MAP, ROUND_UP_REDUCE
from rewrites.result import Failure, Result
from rewrites.rounding import EMPTY_AS_ZEROS, ROUND_UP, missing
from rewrites.rule import Rule
from rise.errors import StrategyError
from rise.expr import Expr, call
from rise.nat import Nat, constant
from rise.types import Array
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.places import mapped

# folds with the maps before them inside, in what each thread does
sequential: Strategy = normalize(choice(a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP))

WARP = 32
WIDEST = 16  # bytes that a thread moves at once
EACH = 32  # bytes of a row that a thread has, where there are enough threads
MOST_THREADS = 1024  # of a block
KEPT = 128  # bytes of a row that a thread keeps in registers at most
LOOPING = 512  # threads of a block whose rows are longer, and are read in turns
MATRIX = 2  # dimensions
MOST_LOADS = 8  # under way before a thread computes, and vectors that a loop is unrolled to
FEW_BYTES = 64  # under way before a thread computes that has 32 registers
FAN = 8
OPEN_THREADS, OPEN_LOADS = 256, 2  # for rows whose length is known at launch only
WARPS = 4  # of a block, each with a row
BY_WARPS = 2048  # bytes of a row that a warp computes at most
BY_THREADS = 64  # and a thread


@dataclass(frozen=True)
class Workers:
    """The threads of a block, or the lanes of a warp: the rules by which they execute maps, write and keep.

    write, keep: of an array by elements, and by vectors
    """

    level: Rule
    write: tuple[Rule, Rule]
    keep: tuple[Rule, Rule]


THREADS = Workers(
    low.MAP_THREADS.with_sizes(d=0),
    (b.CYCLIC_OVER_THREADS, b.CYCLIC_OVER_THREADS_VECTORS),
    (b.KEEP_CYCLIC, b.KEEP_CYCLIC_VECTORS),
)
LANES = Workers(
    low.MAP_LANE,
    (b.CYCLIC_OVER_LANES, b.CYCLIC_OVER_LANES_VECTORS),
    (b.KEEP_CYCLIC_LANES, b.KEEP_CYCLIC_LANES_VECTORS),
)


@dataclass(frozen=True)
class Block:
    """The threads of a block, the elements that each moves at once, and the loads before it computes.

    fan:      how many results one thread combines at each level of a tree
    strategy: the strategy that its failures name
    workers:  who they are; the lanes of a warp are 32 threads
    Raises StrategyError R0609 where a number cannot be.
    """

    threads: int
    vector: int = 1
    loads: int = 1
    fan: int = FAN
    strategy: str = "blocks"
    workers: Workers = THREADS

    def __post_init__(self) -> None:
        power_of_two(self.strategy, "vector", self.vector)
        for name, least in (("threads", 1), ("loads", 1), ("fan", 2)):
            at_least(self.strategy, name, getattr(self, name), least)

    @property
    def step(self) -> int:
        """The elements that all threads together move at once."""
        return self.threads * self.vector

    def each(self, size: int) -> int:
        """The vectors of an array of so many elements that a thread has."""
        return -(-size // self.step)

    def stages(self) -> list[int]:
        """How many parts a reduction has, and how many results are left after each level of the tree."""
        found = [self.threads]
        while found[-1] > 1:
            found.append(-(-found[-1] // self.fan))
        return found

    def for_size(self, size: int) -> Block:
        """The same with the loads that so many elements need, in equal turns of MOST_LOADS at most."""
        each = self.each(size)
        return replace(self, loads=-(-each // -(-each // MOST_LOADS)))

    def of_lanes(self, size: int) -> Block:
        """The same with the lanes of a warp, for a row of so many elements."""
        return replace(self, threads=WARP, workers=LANES).for_size(size)

    # --- an array through all threads ---------------------------------------------------------------------

    @property
    def write(self) -> Strategy:
        """An array that the threads write, distributed cyclically; a long one by turns in a loop."""

        def chosen(size: Nat) -> Strategy:
            turn = self._sized(self.workers.write)
            known = size.value
            if known is not None and self.each(known) <= 2 * MOST_LOADS:
                return rounded_up(size, self.step, turn)
            turns = seq(a.MAP_NOTHING, mapped(turn), low.MAP_SEQ)
            several = self.step * (OPEN_LOADS if known is None else self.for_size(known).loads)
            split = seq(views.SPLIT_JOIN_PAIR.with_sizes(n=several), argument(turns))
            return rounded_up(size, several, split)

        return self._of_length(chosen)

    @property
    def keep(self) -> Strategy:
        """An array in registers, each thread its elements."""
        return self._of_length(self._kept(self._sized(self.workers.keep)))

    @property
    def keep_computed(self) -> Strategy:
        """The same for what is computed of arrays in registers: behind their ends are zeros."""
        return self._of_length(self._kept(seq(try_(EMPTY_AS_ZEROS), self._sized(self.workers.keep))))

    def _kept(self, s: Rewrite) -> Callable[[Nat], Strategy]:
        """s for an array up to whole turns; registers have only what has a known length."""
        return lambda size: self._unknown(size) if size.value is None else rounded_up(size, self.step, s)

    def _of_length(self, make: Callable[[Nat], Strategy]) -> Strategy:
        def chosen(term: Expr) -> Rewrite:
            size = length(term)
            if size is None:
                return refuse(self.strategy, f"expected an array, found `{term.type}`")
            return make(size)

        return depending(chosen)

    def _unknown(self, size: Nat) -> Strategy:
        return refuse(self.strategy, f"the length of the rows, {size}, is not known")

    def _sized(self, rules: tuple[Rule, Rule]) -> Rule:
        scalars, vectors = rules
        if self.vector == 1:
            return scalars.with_sizes(t=self.threads)
        return vectors.with_sizes(t=self.threads, v=self.vector)

    # --- reductions ---------------------------------------------------------------------------------------

    def reduce(self, last: Rewrite = IN_SHARED) -> Strategy:
        """A reduction as a part for each thread and a tree; where its one result is, `last` says."""

        def chosen(term: Expr) -> Rewrite:
            size = reduced_length(term)
            if size is None:
                return refuse(self.strategy, "expected a reduction")
            return seq(with_neutral(size, self.step * self.loads), self.tree(last))

        return depending(chosen)

    def tree(self, last: Rewrite) -> Strategy:
        """The parts as a map, then for each level a map of what is left; the last is a row of its own."""
        level = self.workers.level
        row = seq(b.REDUCE_AS_ROW, argument(seq(mapped(sequential), level, last)))
        if self.step == 1:
            return row
        parts = seq(self._parts, argument(seq(mapped(self._part), level, IN_SHARED)))
        levels = [
            seq(
                with_neutral(constant(given), results),
                r.REDUCE_TREE_STRIDED.with_sizes(n=results),
                argument(seq(mapped(sequential), level, IN_SHARED)),
            )
            for given, results in pairwise(self.stages()[:-1])
        ]
        return seq(parts, *levels, row)

    @property
    def _parts(self) -> Rewrite:
        if self.vector == 1:
            return r.REDUCE_TREE_STRIDED.with_sizes(n=self.threads)
        return b.REDUCE_CYCLIC_VECTORS.with_sizes(t=self.threads, v=self.vector)

    @property
    def _part(self) -> Rewrite:
        """What each thread reduces: loads, so many at once, and what they give."""
        if self.vector > 1:
            return b.REDUCE_LOADED_VECTORS.with_sizes(u=self.loads)
        return sequential if self.loads == 1 else b.REDUCE_LOADED.with_sizes(u=self.loads)


# --- what is chosen ---------------------------------------------------------------------------------------


def block_of(length: Nat, width: int, strategy: str, **given: int) -> Block:
    """A block for rows of so many elements of so many bytes.

    given: fields that are not chosen, where they are not 0
    A thread has EACH bytes of a row, so that with the threads of a multiprocessor enough loads are under way;
    elements are moved as vectors where these divide rows, so that each row starts with one.
    """
    vector = given.get("vector") or gcd(length.factor, max(1, WIDEST // width))
    size = length.value
    if size is None:
        threads, loads = given.get("threads") or OPEN_THREADS, given.get("loads") or OPEN_LOADS
        return Block(threads, vector, loads, given.get("fan") or FAN, strategy)
    vectors = max(1, -(-size // vector))
    wanted = -(-vectors // max(1, EACH // (vector * width)))
    most = MOST_THREADS if size * width <= MOST_THREADS * KEPT else LOOPING
    threads = given.get("threads") or min(most, vectors, -(-wanted // WARP) * WARP)
    block = Block(threads, vector, 1, given.get("fan") or FAN, strategy).for_size(size)
    return replace(block, loads=given.get("loads") or block.loads)


def by_warps(rows: Expr, s: Rewrite) -> Strategy:
    """s in the function of a map over rows, several of them for each block, one for each of its warps."""
    count = length(rows)
    warps = gcd(count.value or 1, WARPS) if count is not None else 1
    blocks = seq(mapped(seq(mapped(s), low.MAP_WARP)), low.MAP_BLOCK.with_sizes(d=0))
    return seq(a.SPLIT_JOIN.with_sizes(n=warps), argument(blocks))


def in_few_blocks(rows: Expr, s: Rewrite, most: int) -> Strategy:
    """s in the function of a map over rows, in so many blocks at most: each warp takes several in turn."""
    count = length(rows)
    if count is None or count.value is None:
        return refuse("rows", "few_blocks: the number of rows is not known")
    each = -(-count.value // (WARPS * most))
    turns = seq(mapped(seq(mapped(s), low.MAP_SEQ)), low.MAP_WARP)
    warps = seq(a.SPLIT_JOIN.with_sizes(n=each), argument(turns))
    blocks = seq(mapped(warps), low.MAP_BLOCK.with_sizes(d=0))
    return in_groups(WARPS * each, blocks)


def _flattened(term: Expr) -> Result:
    """Matrices of rows as rows: xs |> map(map(f)) → xs |> join |> map(f) |> split(n)."""
    applied = call(term)
    row = term.type.element if isinstance(term.type, Array) else None
    if applied is None or applied[0] != "map" or not isinstance(row, Array):
        return Failure("flattened", term, "expected a map of maps")
    return seq(views.JOIN_SPLIT_PAIR.with_sizes(n=row.size), argument(views.JOIN_MAP))(term)


flattened = FunctionStrategy("flattened", _flattened)


# --- sizes that threads do not divide ---------------------------------------------------------------------


def rounded_up(size: Nat, tile: int, s: Rewrite) -> Strategy:
    """s of an array up to the next multiple of a tile; what is too much may be anything, and is dropped."""
    more = missing(size, tile)
    return seq(s) if more is None else seq(ROUND_UP.with_sizes(p=more), argument(s))


def in_groups(size: int, s: Rewrite) -> Strategy:
    """s for a map over groups of so many elements; what the last one lacks may be anything, and is dropped.

    before: xs |> map(f)
    after:  s(xs |> split(size) |> map(group => group |> map(f))) |> join
    """

    def chosen(term: Expr) -> Rewrite:
        groups = seq(a.SPLIT_JOIN.with_sizes(n=size), argument(s))
        more = missing(length(term), size)
        return groups if more is None else seq(ROUND_UP_MAP.with_sizes(p=more), argument(groups))

    return depending(chosen)


def with_neutral(size: Nat, tile: int) -> Strategy:
    """A reduction of so many elements, with neutral ones up to the next multiple of a tile."""
    more = missing(size, tile)
    return id_ if more is None else seq(ROUND_UP_REDUCE.with_sizes(p=more))


# --- parameters -------------------------------------------------------------------------------------------


def power_of_two(strategy: str, name: str, value: int) -> None:
    if value < 1 or value & (value - 1):
        raise StrategyError("R0609", f"{strategy}: {name} is {value}, and must be a power of two")


def at_least(strategy: str, name: str, value: int, least: int) -> None:
    if value < least:
        raise StrategyError("R0609", f"{strategy}: {name} is {value}, and must be at least {least}")


def chosen_or(strategy: str, **values: int) -> None:
    """Parameters that are chosen where they are 0; R0609 where one is negative, or a vector has no width."""
    for name, value in values.items():
        at_least(strategy, name, value, 0)
        if name == "vector" and value:
            power_of_two(strategy, name, value)


def length(term: Expr) -> Nat | None:
    return term.type.size if isinstance(term.type, Array) else None


def reduced_length(term: Expr) -> Nat | None:
    """How many elements a reduction is of; None where a term is something else."""
    applied = call(term)
    if applied is None or applied[0] != "reduce" or len(applied[2]) != 3:
        return None
    return length(applied[2][2])


@prints_as_call
def refuse(name: str, reason: str) -> Strategy:
    return FunctionStrategy(name, lambda term: Failure(name, term, reason))
