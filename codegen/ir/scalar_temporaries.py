"""Scalar temporaries: variables that must be computed before a command, for data-dependent indices and
values that are used twice.

A size of the imperative program is a sum of products of loop indices. Anything else, such as an index read
from memory or a clamped one, is first stored in a scalar variable, which then serves as an index with a known
range. A temporary is computed under the conditions under which it is used, so the kernel reads nothing that
the program does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import gcd

from codegen.ir import imperative as i
from codegen.ir.identifiers import derived
from rise.errors import RiseError, TranslationError
from rise.nat import (
    Facts,
    Nat,
    NatVariable,
    Operation,
    at_least,
    constant,
    less_than,
    nat,
    simplify,
    variable,
)
from rise.source import Origin
from rise.types import Data, Index, Scalar, Space

INT, BOOL = Scalar("i32"), Scalar("bool")
# operations that are undefined for some operands
PARTIAL = frozenset({"div", "mod", "pow"})


@dataclass(frozen=True)
class Definition:
    """A scalar variable and its value."""

    name: str
    value: i.Expression
    type: Data


@dataclass
class ScalarTemporaries:
    """The scalar temporaries of one command. `taken` are the names in use in the kernel.

    guards: the conditions under which the current expression is evaluated, outermost first
    certain: what holds whether these conditions do or not; None without conditions
    write_guards: pairs (value, bound): the command writes only where value < bound for all of them
    lanes: the indices of the loops over the elements of a vector
    ranges: the ranges of the scalars that are indices
    """

    taken: set[str] = field(default_factory=set)
    guards: tuple[i.Expression, ...] = ()
    certain: Facts | None = None
    write_guards: list[tuple[Nat, Nat]] = field(default_factory=list)
    lanes: set[str] = field(default_factory=set)
    ranges: dict[str, tuple[Nat, Nat]] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)
    cache: dict[tuple[i.Expression, tuple[i.Expression, ...]], i.Access] = field(default_factory=dict)
    constructing: bool = False

    def scalar(self, stem: str, value: i.Expression, total: bool = False) -> i.Access:
        """The variable that holds a value; shared by equal values under equal conditions.

        total: the value is known to be defined whatever the conditions are
        """
        guards = () if total or is_total(value) else self.guards
        key = (value, guards)
        if key not in self.cache:
            type_: Data = value.type
            guarded = value
            for number in reversed(range(len(guards))):
                condition = self._condition(number)
                guarded = i.Operator("select", (condition, guarded, i.Number(0, type_)), type_)
            name = self.fresh(stem)
            self.definitions.append(Definition(name, guarded, type_))
            self.cache[key] = i.Access(name, (), type_)
        return self.cache[key]

    def _condition(self, number: int) -> i.Expression:
        """A guard, by name unless it is a comparison of indices."""
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

    def index(self, value: i.Expression, size: Nat | None = None, total: bool = False) -> Nat:
        """An expression as an index below the size in its type: the program guarantees the bound."""
        match value:
            case i.Natural(known, _):
                return known
            case i.Number(int() as known, _):
                return nat(known)
        type_ = value.type
        bound = size if size is not None else type_.size if isinstance(type_, Index) else None
        if bound is None:
            raise TranslationError("R0799", f"internal: `{type_}` is not an index")
        name = self.scalar("index", value, total).buffer
        self.ranges[name] = (nat(0), bound)
        return variable(name)

    def facts(self, facts: Facts) -> Facts:
        """The facts, extended by the ranges of the indices."""
        return Facts({**facts.ranges, **self.ranges}, facts.divisible) if self.ranges else facts

    def restrict(self, value: Nat, bound: Nat) -> None:
        """Restricts the command's writes to value < bound."""
        if (value, bound) not in self.write_guards:
            self.write_guards.append((value, bound))

    def write_implies(self, value: Nat, bound: Nat) -> bool:
        """Whether the command has effects only where value < bound, so that scalars may assume it, too."""
        indices = value.variables | bound.variables
        return (value, bound) in self.write_guards and indices.isdisjoint(self.ranges)

    def write_depends_on(self, names: set[str]) -> bool:
        """Whether a condition of the write depends on one of these indices."""
        return any(
            not names.isdisjoint(value.variables | bound.variables) for value, bound in self.write_guards
        )

    def depends_on(self, names: set[str]) -> bool:
        """Whether a scalar is computed from one of these indices."""
        found: set[str] = set()

        def see(value: Nat) -> Nat:
            found.update(value.variables)
            return value

        for definition in self.definitions:
            i.rebuild(definition.value, Nat, see)
        return not found.isdisjoint(names)

    @contextmanager
    def under(self, condition: i.Expression, facts: Facts) -> Iterator[None]:
        """Within this context, expressions are evaluated only under the condition.

        facts: what holds without it
        """
        outer, certain = self.guards, self.certain
        self.guards, self.certain = (*outer, condition), facts if certain is None else certain
        try:
            yield
        finally:
            self.guards, self.certain = outer, certain

    def enclose(self, make: Callable[[], i.Command]) -> i.Command:
        """The command, inside the declarations of the temporaries that its construction required.

        Of a construction that fails nothing is left: another one may be tried. One inside another shares the
        temporaries of that one, which declares them.
        """
        if self.constructing:
            return self._inside(make)
        self.constructing = True
        try:
            return self._declared(make())
        finally:
            self.constructing = False
            for part in (self.definitions, self.cache, self.ranges, self.write_guards):
                part.clear()

    def _inside(self, make: Callable[[], i.Command]) -> i.Command:
        """A command, under the conditions of its writes, that is a part of another one."""
        before = self.definitions[:], self.cache.copy(), self.ranges.copy()
        outer, self.write_guards = self.write_guards, []
        try:
            command = make()
            return _when(self.write_guards, command)
        except RiseError:
            self.definitions, self.cache, self.ranges = before
            raise
        finally:
            self.write_guards = outer

    def _declared(self, command: i.Command) -> i.Command:
        data = [
            guard
            for guard in self.write_guards
            if not self.ranges.keys().isdisjoint(guard[0].variables | guard[1].variables)
        ]
        command = _when(data, command)
        for definition in reversed(self.definitions):
            assigned = i.Assign(i.Access(definition.name, (), definition.type), definition.value)
            command = i.New(Space.LOCAL, definition.name, definition.type, i.sequence(assigned, command))
        return _when([guard for guard in self.write_guards if guard not in data], command)


def _when(guards: list[tuple[Nat, Nat]], command: i.Command) -> i.Command:
    for value, bound in reversed(guards):
        command = i.When(value, bound, command)
    return command


def is_total(value: i.Expression) -> bool:
    """Whether a value is defined for all operands, so that it may be computed speculatively."""
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


def either_of(condition: i.Expression, one: i.Expression, other: i.Expression) -> i.Expression:
    """One of two values; the condition itself where these say whether it holds."""
    if one == i.Number(True, BOOL) and other == i.Number(False, BOOL):
        return condition
    return i.Operator("select", (condition, one, other), one.type)


def both(one: i.Expression, other: i.Expression) -> i.Expression:
    return i.Operator("and", (one, other), BOOL)


def either(
    flag: str, condition: i.Expression, one: i.Command, other: i.Command, origin: Origin = None
) -> i.Command:
    """flag := condition ; when(flag) one ; when(not flag) other"""
    number = i.Operator("select", (condition, i.Number(1, INT), i.Number(0, INT)), INT)
    return i.sequence(
        i.Assign(i.Access(flag, (), INT), number, origin),
        i.When(nat(0), variable(flag), one),
        i.When(variable(flag), nat(1), other),
    )


def assuming_less(facts: Facts, value: Nat, bound: Nat) -> Facts:
    """Tightens the upper bound of the index in `value`, given value < bound."""
    name, more = _index(value)
    if name not in facts.ranges:
        return facts
    lower, upper = facts.ranges[name]
    return facts.with_range(name, lower, bound - more) if at_least(upper, bound - more, facts) else facts


def assuming_not_less(facts: Facts, value: Nat, bound: Nat) -> Facts:
    """Tightens the lower bound of the index in `value`, given value >= bound."""
    name, more = _index(value)
    if name not in facts.ranges:
        return facts
    lower, upper = facts.ranges[name]
    return facts.with_range(name, bound - more, upper) if at_least(bound - more, lower, facts) else facts


def _index(value: Nat) -> tuple[str, Nat]:
    """(x, c), if the value is x + c."""
    for monomial, coefficient in value.terms:
        match monomial, coefficient:
            case ((NatVariable(name), 1),), 1:
                rest = value - variable(name)
                if rest.value is not None:
                    return name, rest
    return "", value


def or_zero(value: i.Expression) -> tuple[tuple[i.Expression, ...], i.Expression]:
    """The conditions under which a value is not zero, and its value then."""
    match value:
        case i.Operator("select", (condition, first, i.Number(other))) if other == 0:
            conditions, inner = or_zero(first)
            return (condition, *conditions), inner
        case _:
            return (), value


def comparison(value: Nat, bound: Nat, facts: Facts, lanes: Set[str]) -> tuple[Nat, Nat]:
    """value < bound by the part of the value that decides it (`whole_blocks`), without quotients of lanes."""
    value, bound = undivided(value, bound, facts, lanes)
    return whole_blocks(value, bound, facts), bound


def undivided(value: Nat, bound: Nat, facts: Facts, lanes: Set[str]) -> tuple[Nat, Nat]:
    """a + x / c < b as c·a + x < c·b: a condition on rows of c elements is one on the elements.

    lanes: the indices of a vector's elements. Only quotients of an x that contains one of them are removed:
           the condition then holds for all elements of a vector, or for the first ones.
    """
    while (found := _divided(value, lanes)) is not None:
        rest, quotient_ = found
        value = simplify(quotient_.right * rest + quotient_.left, facts)
        bound = quotient_.right * bound
    return value, bound


def _divided(value: Nat, lanes: Set[str]) -> tuple[Nat, Operation] | None:
    """a and x / c of a + x / c, where one of the lanes is in x."""
    for monomial, coefficient in value.terms:
        match monomial, coefficient:
            case ((Operation("quotient", inner, divisor) as found, 1),), 1 if divisor.value:
                if not lanes.isdisjoint(inner.variables):
                    return value - Nat.build({monomial: coefficient}), found
    return None


def whole_blocks(value: Nat, bound: Nat, facts: Facts) -> Nat:
    """The part of the value that decides value < bound: if the bound is a multiple of g, the value rounded
    down to a multiple of g. All lanes of a vector then have the same condition."""
    return in_blocks(value, bound, facts)[0]


def in_blocks(value: Nat, bound: Nat, facts: Facts) -> tuple[Nat, int]:
    """The value rounded down to a multiple of g, and g, which divides the bound: 1 if there is no other."""
    for size in sorted({_common(c, bound) for _, c in value.terms}, reverse=True):
        blocks = Nat.build({monomial: c for monomial, c in value.terms if size == _common(c, constant(size))})
        rest = value - blocks
        if size > 1 and at_least(rest, 0, facts) and less_than(rest, size, facts):
            return blocks, size
    return value, 1


def _common(coefficient: object, bound: Nat) -> int:
    return gcd(coefficient, bound.factor or 1) if isinstance(coefficient, int) else 1


def decided(value: Nat, bound: Nat, facts: Facts) -> bool | None:
    """Whether value < bound, if that is certain; otherwise None."""
    if less_than(value, bound, facts):
        return True
    return False if at_least(value, bound, facts) else None
