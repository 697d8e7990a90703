"""Splits loops whose index is divided, so that quotient and remainder become loop indices.

A loop of b*c iterations that uses k / c and k % c becomes a loop of b around a loop of c. A parallel loop of
more iterations than workers is distributed cyclically: worker w runs a loop over rounds r = 0, 1, …, with the
index r*workers + w, provided that all workers have the same number of rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.identifiers import derived
from codegen.ir.launch import Launch
from codegen.passes.analysis.fresh import Names, names_of
from codegen.passes.analysis.walk import divisions, facts_of_workers, inside, simplified, substituted
from codegen.passes.workers import worker
from rise.nat import Atom, Facts, Nat, NatVariable, constant, variable


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

    def _split(self, loop: i.For, facts: Facts) -> i.For:
        """Two nested loops in place of one, if that leaves fewer quotients and remainders."""
        divided, total = divisions(loop.body, {loop.index}), loop.count.value
        for size in sorted({atom.right.value or 0 for atom in divided}, reverse=True):
            if total is None or not 1 < size < total or total % size:
                continue
            outer, inner = (self.names.fresh(derived(loop.index, part)) for part in ("outer", "inner"))
            within = facts.with_range(outer, 0, total // size).with_range(inner, 0, size)
            body = _at(loop, size * variable(outer) + variable(inner), within)
            if len(divisions(body, {outer, inner})) < len(divided):
                second = replace(loop, index=inner, count=constant(size), body=body)
                return replace(loop, index=outer, count=constant(total // size), body=second)
        return loop

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


def _at(loop: i.For | i.ParallelFor, index: Nat, facts: Facts) -> i.Command:
    at: dict[Atom, Nat] = {NatVariable(loop.index): index}
    return simplified(substituted(loop.body, at), facts)
