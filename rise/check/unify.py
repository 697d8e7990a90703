"""Unification of types, with sizes up to their normal form.

An equation between sizes that cannot be decided yet is kept and retried. Whatever unknown it is
solved for, the solution has to be a natural number: what that asks is recorded, never assumed
(`rise.check.obligations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

from rise.check import literals, mismatch
from rise.check.context import NOWHERE, Context
from rise.check.literals import Numbers
from rise.check.mismatch import Demand
from rise.check.obligations import Obligations, resolve_constraint
from rise.constraint import Constraint
from rise.frozen import filled_at_once
from rise.nat import Atom, Nat, NatUnknown, TooLarge, atom
from rise.numbers import written
from rise.solve import division, solve
from rise.source import Origin
from rise.type_classes import having
from rise.types import (
    F32,
    I32,
    Argument,
    Array,
    Composite,
    Dependent,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Kind,
    Layout,
    NatFunction,
    Pair,
    Parameter,
    Space,
    T,
    Type,
    Unknown,
    Variable,
    Vector,
    leaves,
    map_type,
    substitute_type,
)

Open = TypeVar("Open", Type, FragmentKind | Variable | Unknown)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Equation:
    """Two sizes that have to be equal, and what demands it."""

    left: Nat
    right: Nat
    demand: Demand


@dataclass
class Resolved:
    """Types with everything filled in that was known when there were so many solutions.

    closed: those in which nothing is unknown, which no further solution changes
    """

    known: int = 0
    types: dict[Type, Any] = field(default_factory=dict)
    closed: dict[Type, Any] = field(default_factory=dict)

    def get(self, type_: T, known: int) -> T | None:
        if known != self.known:  # solutions are only added
            self.known, self.types = known, {}
        return self.closed.get(type_) or self.types.get(type_)

    def add(self, type_: Type, resolved: Type) -> None:
        is_open = any(isinstance(leaf, NatUnknown | Unknown) for leaf in leaves(resolved))
        (self.types if is_open else self.closed)[type_] = resolved


@dataclass
class Unifier:
    """The state of one inference: solutions, undecided equations and recorded constraints.

    solution: for each unknown an argument of its kind, or a function where it need not be data
    """

    solution: dict[Atom | Variable | Unknown, Any] = field(default_factory=dict)
    equations: list[Equation] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    data_only: set[Unknown] = field(default_factory=set)
    literals: dict[Unknown, Numbers] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)
    obligations: Obligations = field(default_factory=Obligations)
    _resolved: Resolved = field(default_factory=Resolved)

    def copy(self) -> Unifier:
        """A state of its own, for a trial."""
        return Unifier(
            dict(self.solution),
            list(self.equations),
            list(self.constraints),
            set(self.data_only),
            {unknown: list(values) for unknown, values in self.literals.items()},
            self.numbers,
            self.obligations.copy(),
        )

    # --- fresh unknowns -----------------------------------------------------------------------------

    def size(self, asker: str = "", origin: Origin = None) -> Nat:
        """A size to be found. `asker` is what needs it: "`split(32)`"."""
        unknown = NatUnknown(next(self.numbers))
        self.obligations.unknown(unknown, asker, origin)
        return atom(unknown)

    def data(self) -> Unknown:
        unknown = Unknown(next(self.numbers))
        self.data_only.add(unknown)
        return unknown

    def type(self) -> Unknown:
        """An unknown that may turn out to be a function."""
        return Unknown(next(self.numbers))

    def literal(self, value: int | float, origin: Origin) -> Unknown:
        unknown = self.data()
        self.literals[unknown] = [(value, origin)]
        return unknown

    def argument(self, kind: Kind, asker: str = "", origin: Origin = None) -> Argument:
        if kind is Kind.NAT:
            return self.size(asker, origin)
        return self.data() if kind is Kind.DATA else self.type()

    # --- applying what is known -----------------------------------------------------------------------

    def resolve(self, type_: T) -> T:
        """The type with everything known filled in; what is in it more than once is resolved once."""
        resolved: T | None = self._resolved.get(type_, len(self.solution))
        if resolved is None:
            resolved = map_type(type_, self.resolve_size, self._resolve_leaf)
            self._resolved.add(type_, resolved)
        return resolved

    def _resolve_leaf(self, leaf: Variable | Unknown) -> Argument:
        value = self.solution.get(leaf)
        return leaf if value is None else self.resolve_argument(value)

    def resolve_size(self, value: Nat) -> Nat:
        while value.unknowns:
            known = {u: self.solution[u] for u in value.unknowns if u in self.solution}
            if not known:
                break
            value = value.substitute(known)
        return value

    def resolve_argument(self, argument: Argument) -> Argument:
        match argument:
            case Nat():
                return self.resolve_size(argument)
            case FragmentKind() | Space():
                return argument
            case Layout(_, amount):
                return argument if amount is None else replace(argument, amount=self.resolve_size(amount))
            case NatFunction(parameter, body):
                return NatFunction(parameter, self.resolve_size(body))
            case _:
                return self.resolve(argument)

    def shallow(self, type_: Open) -> Open:
        """The type with its outermost unknown filled in."""
        while isinstance(type_, Unknown) and type_ in self.solution:
            type_ = self.solution[type_]
        return type_

    # --- unification ----------------------------------------------------------------------------------

    def unify(self, expected: Type, found: Type, origin: Origin, context: Context = NOWHERE) -> None:
        """Makes the two equal, or raises an error that shows both, and what stands at the place."""
        self._unify(expected, found, Demand(expected, found, origin, context), set())

    def _unify(self, a: Type, b: Type, demand: Demand, done: set[tuple[Type, Type]]) -> None:
        """`done`: the types with parts that this call has made equal already, however often they occur."""
        a, b = self.shallow(a), self.shallow(b)
        if a == b or (a, b) in done:
            return
        self._unify_heads(a, b, demand, done)
        if isinstance(a, Composite):
            done.add((a, b))

    def _unify_heads(self, a: Type, b: Type, demand: Demand, done: set[tuple[Type, Type]]) -> None:
        match a, b:
            case Unknown(), _:
                self._bind(a, b, demand)
            case _, Unknown():
                self._bind(b, a, demand)
            case (Array(m, s), Array(n, t)) | (Vector(m, s), Vector(n, t)):
                self._unify_sizes(m, n, demand)
                self._unify(s, t, demand, done)
            case Index(m), Index(n):
                self._unify_sizes(m, n, demand)
            case (Pair(s, t), Pair(u, v)) | (Function(s, t), Function(u, v)):
                self._unify(s, u, demand, done)
                self._unify(t, v, demand, done)
            case Fragment(), Fragment():
                for m, n in ((a.rows, b.rows), (a.columns, b.columns), (a.other, b.other)):
                    self._unify_sizes(m, n, demand)
                self._unify(a.element, b.element, demand, done)
                self._unify_kinds(a.kind, b.kind, demand)
            case Dependent(), Dependent() if a.kind is b.kind:
                self._unify_dependent(a, b, demand, done)
            case _:
                raise mismatch.types_differ(self.shown(demand), a, b)

    def shown(self, demand: Demand) -> Demand:
        """The demand as it is to be shown, everything known filled in."""
        expected, found = self.resolve(demand.expected), self.resolve(demand.found)
        return replace(demand, expected=expected, found=found)

    def _unify_dependent(
        self, a: Dependent, b: Dependent, demand: Demand, done: set[tuple[Type, Type]]
    ) -> None:
        """Equal for one new rigid argument, which no unknown from outside may depend on."""
        parameter = Parameter(f"{a.name}'{next(self.numbers)}", a.kind, False)
        with self.obligations.inside(parameter.name, self.numbers, demand.origin):
            results = [
                substitute_type(t.result, {Parameter(t.name, t.kind, False).key: parameter.leaf})
                for t in (a, b)
            ]
            self._unify(results[0], results[1], demand, done)

    def _unify_kinds(
        self, a: FragmentKind | Variable | Unknown, b: FragmentKind | Variable | Unknown, demand: Demand
    ) -> None:
        a, b = self.shallow(a), self.shallow(b)
        if a == b:
            return
        if isinstance(a, Unknown):
            self.solution[a] = b
        elif isinstance(b, Unknown):
            self.solution[b] = a
        else:
            raise mismatch.types_differ(self.shown(demand), demand.expected, demand.found)

    def _bind(self, unknown: Unknown, type_: Type, demand: Demand) -> None:
        if unknown in leaves(self.resolve(type_)):
            raise mismatch.endless(self.resolve(type_), unknown, demand)
        if unknown in self.data_only and isinstance(type_, Function | Dependent):
            raise mismatch.function_for_data(self.shown(demand), self.resolve(type_))
        if unknown in self.data_only and isinstance(type_, Unknown):
            self.data_only.add(type_)
        if unknown in self.literals:
            self._bind_literal(unknown, type_, demand)
        self.solution[unknown] = type_

    def _bind_literal(self, unknown: Unknown, type_: Type, demand: Demand) -> None:
        values = self.literals[unknown]
        if isinstance(type_, Unknown):
            self.literals.setdefault(type_, []).extend(values)
            return
        for limit in literals.check(values, self.resolve(type_), demand):
            self.require(limit)
        if isinstance(type_, Variable | Vector):
            for value, place in values:
                self.obligations.member(type_, having(value), f"the number {written(value)}", place)

    # --- sizes ----------------------------------------------------------------------------------------

    def _unify_sizes(self, a: Nat, b: Nat, demand: Demand) -> None:
        equation = Equation(a, b, demand)
        try:
            if self._try(equation):
                self.retry()
            else:
                self.equations.append(equation)
        except TooLarge as error:
            raise error.at(demand.origin) from None

    def _try(self, equation: Equation) -> bool:
        left, right = self.resolve_size(equation.left), self.resolve_size(equation.right)
        if left == right or self._equal_if_exact(left, right, equation.demand.origin):
            return True
        if not (left - right).unknowns:
            raise mismatch.sizes_differ(left, right, self.shown(equation.demand))
        solved = solve(left, right)
        if solved is None:
            return False
        unknown, value = solved
        self.obligations.solved(unknown, value, None if value.is_whole else division(left, right, unknown))
        self.solution[unknown] = value
        return True

    def _equal_if_exact(self, left: Nat, right: Nat, origin: Origin) -> bool:
        """`n/2` as written is rounded down: it is the half of n where 2 | n, which is then required."""
        exact, divisions = mismatch.exact(left - right)
        if not divisions or exact.terms:
            return False
        for value, divisor in divisions:
            self.require(Constraint(value, divisor, origin, "this size"))
        return True

    def require(self, constraint: Constraint) -> None:
        self.obligations.require(constraint)

    def retry(self) -> None:
        """Tries the undecided equations again until none gets decided."""
        progress = True
        while progress:
            pending, self.equations = self.equations, []
            left_over = [equation for equation in pending if not self._try(equation)]
            progress = len(left_over) < len(pending)
            self.equations = left_over + self.equations

    # --- the end --------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Gives literals their default types and decides what is left of the equations."""
        self.retry()
        for unknown in list(self.literals):
            left_open = self.shallow(unknown)
            if isinstance(left_open, Unknown):
                values = self.literals[left_open]
                whole = all(isinstance(value, int) for value, _ in values)
                whole = whole and not self.obligations.is_float(left_open, self.resolve)
                self.unify(left_open, I32 if whole else F32, values[0][1])
        self.retry()
        for equation in self.equations:
            left, right = self.resolve_size(equation.left), self.resolve_size(equation.right)
            raise mismatch.undetermined(left, right, self.shown(equation.demand))
        self.constraints = self.checked_constraints()

    def checked_constraints(self) -> list[Constraint]:
        """What is left to ask of the sizes and types; what is certainly wrong is an error here."""
        return self.obligations.settle(self.solution, self.resolve_size, self.resolve)


__all__ = ["Demand", "Unifier", "resolve_constraint"]
