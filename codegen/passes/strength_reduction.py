"""Remainders of a loop's index, (k + c) % n, as counters that start again at n: nothing is divided.

The slots of a ring of buffers are such; how often it has been gone round, ((k + c) / n) % m, is a counter of
what starts again. Loops that are unrolled keep theirs: k is a number there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.passes.analysis.fresh import Names, bound_in, names_of
from codegen.passes.analysis.walk import divisions, facts_of_workers, inside, substituted
from rise.nat import Atom, Facts, Nat, Operation, at_least, quotient, remainder, variable
from rise.nat import atom as nat_of


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
        """Counters of iterations first: those of their rounds come after them."""
        found = divisions(loop.body, {loop.index})
        rounds = {o: r for o in found if (r := _rounds(o, loop, facts)) is not None}
        starts: dict[Operation, Nat] = {}
        for operation in (*found, *(each.counted for each in rounds.values())):
            start = _start(operation, loop, facts)
            if start is not None:
                starts[operation] = start
        order = _ordered(starts)
        counters = [i.Counter(self.names.fresh("slot"), starts[o], o.right) for o in order]
        names = {o: c.name for o, c in zip(order, counters, strict=True)}
        for operation in _ordered({o: each.start for o, each in rounds.items()}):
            each = rounds[operation]
            names[operation] = self.names.fresh("turn")
            counters.append(i.Counter(names[operation], each.start, operation.right, names[each.counted]))
        named: dict[Atom, Nat] = {o: variable(name) for o, name in names.items()}
        return replace(loop, body=substituted(loop.body, named), counters=(*counters,))


def _ordered(starts: Mapping[Operation, Nat]) -> list[Operation]:
    return sorted(starts, key=lambda operation: (str(starts[operation]), str(operation)))


def _start(atom: Operation, loop: i.For, facts: Facts) -> Nat | None:
    """The remainder in the first iteration, if it is of the index and of what is known before the loop."""
    first = atom.left - variable(loop.index)
    if atom.operator != "remainder" or not _before(first, loop) or not at_least(first, 0, facts):
        return None
    return remainder(first, atom.right, facts)


@dataclass(frozen=True)
class _Rounds:
    """counted: the remainder whose rounds they are. start: how many, in the first iteration."""

    counted: Operation
    start: Nat


def _rounds(atom: Operation, loop: i.For, facts: Facts) -> _Rounds | None:
    """Of (⌊(k + s) / n⌋ + r) % m, where s and r are known before the loop."""
    quotients = [q for q in atom.left.atoms if isinstance(q, Operation) and loop.index in q.left.variables]
    if atom.operator != "remainder" or len(quotients) != 1 or quotients[0].operator != "quotient":
        return None
    (whole,) = quotients
    rest = atom.left - nat_of(whole)
    counted = Operation("remainder", whole.left, whole.right)
    if not _before(rest, loop) or whole.right.value is None or _start(counted, loop, facts) is None:
        return None
    first = whole.left - variable(loop.index)
    return _Rounds(counted, remainder(quotient(first, whole.right, facts) + rest, atom.right, facts))


def _before(value: Nat, loop: i.For) -> bool:
    return value.variables.isdisjoint({loop.index, *bound_in(loop.body)})
