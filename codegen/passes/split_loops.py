"""Splits loops whose index is divided, so that quotient and remainder become loop indices.

A loop of b*c iterations that uses k / c and k % c becomes a loop of b around a loop of c. A parallel loop of
more iterations than workers is distributed cyclically: worker w runs a loop over rounds r = 0, 1, …, with the
index r*workers + w, provided that all workers have the same number of rounds.

Quotients (a*k + t) / c repeat, plus a constant, after p = c / gcd(a, c) iterations. An unrolled loop of
several such periods becomes a loop over periods around one of p iterations, so that p quotients serve all:

    (a*(p*o + i) + t) / c   =   a*p/c * o + (a*i + t) / c
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, lcm

from codegen.ir import imperative as i
from codegen.ir.identifiers import derived
from codegen.ir.launch import Launch
from codegen.passes.analysis.fresh import Names, names_of
from codegen.passes.analysis.walk import divisions, facts_of_workers, inside, simplified, substituted
from codegen.passes.workers import worker
from rise.nat import Atom, Facts, Nat, NatVariable, constant, variable

MOST_QUOTIENTS = 16  # of a period: each takes registers


def split_loops(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    splitting = _LoopSplitter(launch, names_of(function))
    return replace(function, body=splitting.go(function.body, facts_of_workers(launch)))


@dataclass(frozen=True)
class _LoopSplitter:
    launch: Launch
    names: Names

    def go(self, command: i.Command, facts: Facts) -> i.Command:
        match command:
            case i.For():
                command = self._split(command, facts)
            case i.ParallelFor():
                command = self._cyclic(command, facts)
        within = inside(command, facts)
        return i.with_inner(command, tuple(self.go(part, within) for part in i.inner(command)))

    def _split(self, loop: i.For, facts: Facts) -> i.Command:
        """Two nested loops in place of one, if that leaves fewer quotients and remainders, or they repeat."""
        divided, total = divisions(loop.body, {loop.index}), loop.count.value
        for size in sorted({atom.right.value or 0 for atom in divided}, reverse=True):
            if total is None or not 1 < size < total or total % size:
                continue
            outer, inner = (self.names.fresh(derived(loop.index, part)) for part in ("outer", "inner"))
            made = _nested(loop, total // size, size, (outer, inner), facts)
            if len(divisions(made.body, {outer, inner})) < len(divided):
                return made
        return self._by_periods(loop, facts) if loop.unroll and total is not None else loop

    def _by_periods(self, loop: i.For, facts: Facts) -> i.Command:
        """An unrolled loop over the periods of its quotients, around a period; then what is left."""
        total, period = loop.count.value or 0, _period(loop)
        if not 1 < period <= min(MOST_QUOTIENTS, total // 2):
            return loop
        outer, inner = (self.names.fresh(derived(loop.index, part)) for part in ("outer", "inner"))
        whole, left = divmod(total, period)
        made = _nested(loop, whole, period, (outer, inner), facts)
        if divisions(made.body, {outer}):
            return loop
        within = facts.with_range(loop.index, 0, left)
        rest = _at(loop, constant(whole * period) + variable(loop.index), within)
        return i.sequence(made, replace(loop, count=constant(left), body=rest)) if left else made

    def _cyclic(self, loop: i.ParallelFor, facts: Facts) -> i.For | i.ParallelFor:
        """A sequential loop over the rounds of a worker, if that leaves fewer divisions."""
        workers, total = self.launch.workers(loop.level, loop.dimension), loop.count.value
        if total is None or not isinstance(workers, int) or total % workers:
            return loop
        if not divisions(loop.body, {loop.index}):
            return loop
        round_, number = self.names.fresh("round"), worker(loop.level, loop.dimension, self.launch)
        rounds = constant(total // workers)
        body = _at(loop, workers * variable(round_) + number, facts.with_range(round_, 0, rounds))
        return (
            loop
            if divisions(body, {round_})
            else i.For(round_, rounds, body, label="cyclic", origin=loop.origin)
        )


def _nested(loop: i.For, many: int, size: int, names: tuple[str, str], facts: Facts) -> i.For:
    """A loop of `many` iterations around one of `size`."""
    outer, inner = names
    within = facts.with_range(outer, 0, many).with_range(inner, 0, size)
    body = _at(loop, size * variable(outer) + variable(inner), within)
    return replace(
        loop, index=outer, count=constant(many),
        body=replace(loop, index=inner, count=constant(size), body=body),
    )  # fmt: skip


def _period(loop: i.For) -> int:
    """After how many iterations quotients are the same, plus a constant; 1 if there are none."""
    index, found = ((NatVariable(loop.index), 1),), set()
    for atom in divisions(loop.body, {loop.index}):
        step, by = dict(atom.left.terms).get(index, 0), atom.right.value or 1
        found.add(by // gcd(int(step), by))
    return lcm(*found)


def _at(loop: i.For | i.ParallelFor, index: Nat, facts: Facts) -> i.Command:
    at: dict[Atom, Nat] = {NatVariable(loop.index): index}
    return simplified(substituted(loop.body, at), facts)
