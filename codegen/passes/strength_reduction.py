"""Strength reduction: a counter that wraps around at n replaces the remainder (k + c) % n of a loop index k.

The slots of a ring buffer are such remainders. The phase of a ring, ((k + c) / n) % m, becomes a counter that
advances when the first one wraps around. Unrolled loops are left alone, because k is a constant in them.
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


def strength_reduction(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    counting = _StrengthReducer(names_of(function))
    return replace(function, body=counting.go(function.body, facts_of_workers(launch)))


@dataclass(frozen=True)
class _StrengthReducer:
    names: Names

    def go(self, command: i.Command, facts: Facts) -> i.Command:
        if isinstance(command, i.For) and not command.unroll:
            command = self._counted(command, facts)
        within = inside(command, facts)
        return i.with_inner(command, tuple(self.go(part, within) for part in i.inner(command)))

    def _counted(self, loop: i.For, facts: Facts) -> i.For:
        """Counters of iterations come first, because counters of wrap-arounds refer to them."""
        found = divisions(loop.body, {loop.index})
        wraps = {o: r for o in found if (r := _wrap_arounds(o, loop, facts)) is not None}
        starts: dict[Operation, Nat] = {}
        for operation in (*found, *(each.counted for each in wraps.values())):
            start = _start(operation, loop, facts)
            if start is not None:
                starts[operation] = start
        order = _ordered(starts)
        counters = [i.Counter(self.names.fresh("slot"), starts[o], o.right) for o in order]
        names = {o: c.name for o, c in zip(order, counters, strict=True)}
        for operation in _ordered({o: each.start for o, each in wraps.items()}):
            each = wraps[operation]
            names[operation] = self.names.fresh("turn")
            counters.append(i.Counter(names[operation], each.start, operation.right, names[each.counted]))
        named: dict[Atom, Nat] = {o: variable(name) for o, name in names.items()}
        return replace(loop, body=substituted(loop.body, named), counters=(*counters,))


def _ordered(starts: Mapping[Operation, Nat]) -> list[Operation]:
    return sorted(starts, key=lambda operation: (str(starts[operation]), str(operation)))


def _start(atom: Operation, loop: i.For, facts: Facts) -> Nat | None:
    """The value in the first iteration, if the remainder is of the index plus a loop-invariant value."""
    first = atom.left - variable(loop.index)
    if atom.operator != "remainder" or not _before(first, loop) or not at_least(first, 0, facts):
        return None
    return remainder(first, atom.right, facts)


@dataclass(frozen=True)
class _WrapArounds:
    """counted: the remainder whose wrap-arounds are counted. start: the count in the first iteration."""

    counted: Operation
    start: Nat


def _wrap_arounds(atom: Operation, loop: i.For, facts: Facts) -> _WrapArounds | None:
    """Recognises (⌊(k + s) / n⌋ + r) % m, where s and r are loop-invariant."""
    quotients = [q for q in atom.left.atoms if isinstance(q, Operation) and loop.index in q.left.variables]
    if atom.operator != "remainder" or len(quotients) != 1 or quotients[0].operator != "quotient":
        return None
    (whole,) = quotients
    rest = atom.left - nat_of(whole)
    counted = Operation("remainder", whole.left, whole.right)
    if not _before(rest, loop) or whole.right.value is None or _start(counted, loop, facts) is None:
        return None
    first = whole.left - variable(loop.index)
    return _WrapArounds(counted, remainder(quotient(first, whole.right, facts) + rest, atom.right, facts))


def _before(value: Nat, loop: i.For) -> bool:
    return value.variables.isdisjoint({loop.index, *bound_in(loop.body)})
