"""Remainders of a loop's index, (k + c) % n, as counters that start again at n: nothing is divided.

The slots of a ring of buffers are such. Loops that are unrolled keep theirs: k is a number there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen import imperative as i
from codegen.launch import Launch
from codegen.passes.fresh import Names, bound_in, names_of
from codegen.passes.walk import divisions, facts_of_workers, inside, substituted
from rise.nat import Atom, Facts, Nat, Operation, at_least, remainder, variable


def count_remainders(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    counting = _Counting(names_of(function))
    return replace(function, body=counting.go(function.body, facts_of_workers(launch)))


@dataclass(frozen=True)
class _Counting:
    names: Names

    def go(self, command: i.Command, facts: Facts) -> i.Command:
        if isinstance(command, i.For) and not command.unroll:
            command = self._counted(command, facts)
        within = inside(command, facts)
        return i.with_inner(command, tuple(self.go(part, within) for part in i.inner(command)))

    def _counted(self, loop: i.For, facts: Facts) -> i.For:
        starts: dict[Operation, Nat] = {}
        for operation in divisions(loop.body, {loop.index}):
            start = _start(operation, loop, facts)
            if start is not None:
                starts[operation] = start
        order = sorted(starts, key=lambda operation: (str(starts[operation]), str(operation)))
        counters = [i.Counter(self.names.fresh("slot"), starts[o], o.right) for o in order]
        named: dict[Atom, Nat] = {o: variable(c.name) for o, c in zip(order, counters, strict=True)}
        return replace(loop, body=substituted(loop.body, named), counters=(*counters,))


def _start(atom: Operation, loop: i.For, facts: Facts) -> Nat | None:
    """The remainder in the first iteration, if it is of the index and of what is known before the loop."""
    first = atom.left - variable(loop.index)
    before = first.variables.isdisjoint({loop.index, *bound_in(loop.body)})
    if atom.operator != "remainder" or not before or not at_least(first, 0, facts):
        return None
    return remainder(first, atom.right, facts)
