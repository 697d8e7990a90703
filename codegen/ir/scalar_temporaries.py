"""Scalars that have to be stored before a command can run: indices that are data, values used twice.

A size of the imperative program is a sum of products of loop indices. What it cannot say (an index read
from memory, a clamped one) is stored in a scalar variable first, whose name then is an index as any
other: a variable with a known range. What is stored is computed under the conditions under which it is
used, so nothing is read that the program does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import gcd

from codegen.ir import imperative as i
from codegen.ir.identifiers import derived
from rise.errors import TranslationError
from rise.nat import Facts, Nat, NatVariable, at_least, constant, less_than, nat, variable
from rise.types import Data, Index, Scalar, Space

INT, BOOL = Scalar("i32"), Scalar("bool")
# operations that are undefined for some operands
PARTIAL = frozenset({"div", "mod", "pow"})


@dataclass(frozen=True)
class Stored:
    """A scalar variable and what it is set to."""

    name: str
    value: i.Expression
    type: Data


@dataclass
class ScalarTemporaries:
    """The scalars that one command needs. `taken` are the names of the kernel.

    guards: the conditions under which what is read now is used, outermost first
    written: value < bound, for all of which the command writes
    ranges: the bounds of the indices among the scalars
    """

    taken: set[str] = field(default_factory=set)
    guards: tuple[i.Expression, ...] = ()
    written: list[tuple[Nat, Nat]] = field(default_factory=list)
    ranges: dict[str, tuple[Nat, Nat]] = field(default_factory=dict)
    pending: list[Stored] = field(default_factory=list)
    known: dict[tuple[i.Expression, tuple[i.Expression, ...]], i.Access] = field(default_factory=dict)

    def scalar(self, stem: str, value: i.Expression) -> i.Access:
        """The variable that holds a value; the same one for the same value under the same conditions."""
        guards = () if is_total(value) else self.guards
        key = (value, guards)
        if key not in self.known:
            type_: Data = value.type
            guarded = value
            for number in reversed(range(len(guards))):
                condition = self._condition(number)
                guarded = i.Operator("select", (condition, guarded, i.Number(0, type_)), type_)
            name = self.fresh(stem)
            self.pending.append(Stored(name, guarded, type_))
            self.known[key] = i.Access(name, (), type_)
        return self.known[key]

    def _condition(self, number: int) -> i.Expression:
        """A guard, by name if it is more than a comparison of indices."""
        guard, outer = self.guards[number], self.guards
        if next(i.accesses(guard), None) is None or isinstance(guard, i.Access):
            return guard
        self.guards = outer[:number]
        condition = self.scalar("condition", guard)
        self.guards = outer
        return condition

    def fresh(self, stem: str) -> str:
        number, name = 1, derived(stem, 1)
        while name in self.taken:
            number += 1
            name = derived(stem, number)
        self.taken.add(name)
        return name

    def index(self, value: i.Expression, size: Nat | None = None) -> Nat:
        """An expression as an index, below its type's size: that it is, is the program's promise."""
        match value:
            case i.Natural(known, _):
                return known
            case i.Number(int() as known, _):
                return nat(known)
        type_ = value.type
        bound = size if size is not None else type_.size if isinstance(type_, Index) else None
        if bound is None:
            raise TranslationError("R0799", f"internal: `{type_}` is no index")
        name = self.scalar("index", value).buffer
        self.ranges[name] = (nat(0), bound)
        return variable(name)

    def facts(self, facts: Facts) -> Facts:
        """With what is known of the indices."""
        return Facts({**facts.ranges, **self.ranges}, facts.divisible) if self.ranges else facts

    def only(self, value: Nat, bound: Nat) -> None:
        """The command writes only where value < bound."""
        if (value, bound) not in self.written:
            self.written.append((value, bound))

    def implied(self, value: Nat, bound: Nat) -> bool:
        """Whether the command does nothing but where value < bound, so that scalars are there as well."""
        return (value, bound) in self.written and value.variables.isdisjoint(self.ranges)

    def partly_written(self, names: set[str]) -> bool:
        """Whether it depends on one of these indices if something is written."""
        return any(not value.variables.isdisjoint(names) for value, _ in self.written)

    def mentions(self, names: set[str]) -> bool:
        """Whether a scalar is computed from one of these indices."""
        found: set[str] = set()

        def see(value: Nat) -> Nat:
            found.update(value.variables)
            return value

        for stored in self.pending:
            i.rebuild(stored.value, Nat, see)
        return not found.isdisjoint(names)

    @contextmanager
    def under(self, condition: i.Expression) -> Iterator[None]:
        """While what is read is used under a condition only."""
        outer, self.guards = self.guards, (*self.guards, condition)
        yield
        self.guards = outer

    def before(self, make: Callable[[], i.Command]) -> i.Command:
        """A command, inside of the variables that making it asked for."""
        command = make()
        data = [guard for guard in self.written if not guard[0].variables.isdisjoint(self.ranges)]
        command = _when(data, command)
        for stored in reversed(self.pending):
            assigned = i.Assign(i.Access(stored.name, (), stored.type), stored.value)
            command = i.New(Space.LOCAL, stored.name, stored.type, i.sequence(assigned, command))
        command = _when([guard for guard in self.written if guard not in data], command)
        for part in (self.pending, self.known, self.ranges, self.written):
            part.clear()
        return command


def _when(guards: list[tuple[Nat, Nat]], command: i.Command) -> i.Command:
    for value, bound in reversed(guards):
        command = i.When(value, bound, command)
    return command


def is_total(value: i.Expression) -> bool:
    """Whether a value is always defined, so that it does no harm to compute it where it is not used."""
    match value:
        case i.Natural() | i.Number():
            return True
        case i.Operator(name, operands):
            return name not in PARTIAL and all(map(is_total, operands))
        case _:
            return False


# --- conditions -----------------------------------------------------------------------------------------


def less(value: Nat, bound: Nat) -> i.Expression:
    return i.Operator("lt", (i.Natural(value, INT), i.Natural(bound, INT)), BOOL)


def negated(condition: i.Expression) -> i.Expression:
    return i.Operator("not", (condition,), BOOL)


def assuming_less(facts: Facts, value: Nat, bound: Nat) -> Facts:
    """With the upper bound that value < bound gives to the index in value, where it is tighter."""
    name, more = _index(value)
    if name not in facts.ranges:
        return facts
    lower, upper = facts.ranges[name]
    return facts.with_range(name, lower, bound - more) if at_least(upper, bound - more, facts) else facts


def assuming_not_less(facts: Facts, value: Nat, bound: Nat) -> Facts:
    """With the lower bound that value >= bound gives to the index in value, where it is tighter."""
    name, more = _index(value)
    if name not in facts.ranges:
        return facts
    lower, upper = facts.ranges[name]
    return facts.with_range(name, bound - more, upper) if at_least(bound - more, lower, facts) else facts


def _index(value: Nat) -> tuple[str, Nat]:
    """(x, c) of x + c."""
    for monomial, coefficient in value.terms:
        match monomial, coefficient:
            case ((NatVariable(name), 1),), 1:
                rest = value - variable(name)
                if rest.value is not None:
                    return name, rest
    return "", value


def or_zero(value: i.Expression) -> tuple[tuple[i.Expression, ...], i.Expression]:
    """The conditions under which a value is not zero, and what it is then."""
    match value:
        case i.Operator("select", (condition, first, i.Number(other))) if other == 0:
            conditions, inner = or_zero(first)
            return (condition, *conditions), inner
        case _:
            return (), value


def whole_blocks(value: Nat, bound: Nat, facts: Facts) -> Nat:
    """What of the value decides value < bound: of a multiple of g, below which there are whole blocks of g,
    only the number of the block. So the lanes of a vector have one condition."""
    for size in sorted({_common(c, bound) for _, c in value.terms}, reverse=True):
        blocks = Nat.build({monomial: c for monomial, c in value.terms if size == _common(c, constant(size))})
        rest = value - blocks
        if size > 1 and at_least(rest, 0, facts) and less_than(rest, size, facts):
            return blocks
    return value


def _common(coefficient: object, bound: Nat) -> int:
    return gcd(coefficient, bound.value or 1) if isinstance(coefficient, int) else 1


def decided(value: Nat, bound: Nat, facts: Facts) -> bool | None:
    """Whether value < bound, where that is certain."""
    if less_than(value, bound, facts):
        return True
    return False if at_least(value, bound, facts) else None
