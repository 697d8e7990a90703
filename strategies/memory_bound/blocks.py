"""A block of threads and one array: distributing it over registers, reducing it, writing it.

Elements, or vectors of elements, are distributed cyclically over the threads; a reduction is a part for each
thread, and then a tree of their results in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from rewrites import algorithmic as a
from rewrites import blocks as b
from rewrites import lowering as low
from rewrites import memory
from rewrites import reductions as r
from rewrites.result import Failure
from rewrites.rule import Rule
from rise.errors import StrategyError
from rise.expr import Expr, call
from rise.nat import Nat
from rise.types import Array
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    choice,
    depending,
    normalize,
    prints_as_call,
    seq,
)
from strategies.places import mapped

SHARED = next(made for made in memory.STORED if made.name == "toMem(Shared)")
THREADS = low.MAP_THREADS.with_sizes(d=0)

# folds with the maps before them inside, in what each thread does
sequential: Strategy = normalize(choice(a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP))


@dataclass(frozen=True)
class Block:
    """The threads of a block, the elements that each moves at once, and the loads before it computes.

    fan:      how many results one thread combines at each level of a tree
    strategy: the strategy that its failures name
    Raises StrategyError R0609 where a number cannot be.
    """

    threads: int
    vector: int = 1
    loads: int = 1
    fan: int = 2
    strategy: str = "blocks"

    def __post_init__(self) -> None:
        for name in ("threads", "vector", "loads"):
            power_of_two(self.strategy, name, getattr(self, name), 1)
        power_of_two(self.strategy, "fan", self.fan, 2)

    @property
    def step(self) -> int:
        """The elements that all threads together move at once."""
        return self.threads * self.vector

    def stages(self) -> list[int]:
        """How many results are left after each level of the tree, down to one."""
        left, found = self.threads, []
        while left > 1:
            left = max(1, left // self.fan)
            found.append(left)
        return found

    def dividing(self, size: int) -> Block:
        """The largest block that divides an array of this size: fewer loads first, then shorter vectors."""
        loads = gcd(size // gcd(size, self.step), self.loads) if size % self.step == 0 else 1
        vector = gcd(size // gcd(size, self.threads), self.vector) if size % self.threads == 0 else 1
        return replace(self, threads=gcd(size, self.threads), vector=vector, loads=loads)

    # --- an array through all threads ---------------------------------------------------------------------

    @property
    def write(self) -> Strategy:
        """An array that the threads write, distributed cyclically."""
        return self._whole(b.CYCLIC_OVER_THREADS, b.CYCLIC_OVER_THREADS_VECTORS)

    @property
    def keep(self) -> Strategy:
        """An array in registers, each thread its elements."""
        return self._whole(b.KEEP_CYCLIC, b.KEEP_CYCLIC_VECTORS)

    def _whole(self, scalars: Rule, vectors: Rule) -> Strategy:
        def chosen(term: Expr) -> Rewrite:
            size = length(term)
            if size is None:
                return refuse(self.strategy, f"expected an array, found `{term.type}`")
            if size.value is None or size.value % self.step:
                return refuse(self.strategy, f"{self.step} does not divide {size}, the length of the rows")
            return self._sized(scalars, vectors)

        return depending(chosen)

    def _sized(self, scalars: Rule, vectors: Rule) -> Rule:
        if self.vector == 1:
            return scalars.with_sizes(t=self.threads)
        return vectors.with_sizes(t=self.threads, v=self.vector)

    # --- reductions ---------------------------------------------------------------------------------------

    def reduce(self, last: Rewrite = SHARED) -> Strategy:
        """A reduction as a part for each thread and a tree; where its one result is, `last` says."""

        def chosen(term: Expr) -> Rewrite:
            size, each = reduced_length(term), self.step * self.loads
            if size is None:
                return refuse(self.strategy, "expected a reduction")
            if size.value is None or size.value % each:
                return refuse(self.strategy, f"{each} does not divide {size}, the length of the rows")
            return self.tree(last)

        return depending(chosen)

    def tree(self, last: Rewrite) -> Strategy:
        """The parts as a map, then for each level a map of what is left; the last is a row of its own."""
        row = seq(b.REDUCE_AS_ROW, argument(seq(mapped(sequential), THREADS, last)))
        if self.step == 1:
            return row
        parts = seq(self._parts, argument(seq(mapped(self._part), THREADS, SHARED)))
        levels = [
            seq(
                r.REDUCE_TREE_STRIDED.with_sizes(n=results),
                argument(seq(mapped(sequential), THREADS, SHARED)),
            )
            for results in self.stages()[:-1]
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


def power_of_two(strategy: str, name: str, value: int, least: int) -> None:
    if value < least or value & (value - 1):
        wanted = "a power of two" if least == 1 else f"a power of two from {least} on"
        raise StrategyError("R0609", f"{strategy}: {name} is {value}, and must be {wanted}")


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
