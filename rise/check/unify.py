"""Unification of types, with sizes up to their normal form.

An equation between sizes that cannot be decided yet is kept and retried. Solving one may need that a
number divides another, or that a difference is not negative: that is recorded, never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from rise.errors import RiseError, TypeMismatch
from rise.expr import Constraint
from rise.nat import Atom, Nat, NatUnknown, at_least, atom
from rise.solve import division, solve
from rise.source import Origin
from rise.types import (
    BOOL,
    F32,
    I32,
    Argument,
    Array,
    Dependent,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Kind,
    NatFunction,
    Pair,
    Scalar,
    Space,
    Type,
    Unknown,
    Variable,
    Vector,
    leaves,
    map_type,
)
from rise.types import substitute_argument as _substitute_argument


@dataclass(frozen=True)
class Equation:
    """Two sizes that have to be equal, and the two types in which they were met."""

    left: Nat
    right: Nat
    expected: Type | None
    found: Type | None
    origin: Origin


@dataclass
class Unifier:
    """The state of one inference: solutions, undecided equations and recorded constraints."""

    solution: dict[Atom | Variable | Unknown, Argument] = field(default_factory=dict)
    equations: list[Equation] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    data_only: set[Unknown] = field(default_factory=set)
    literals: dict[Unknown, list[tuple[int | float, Origin]]] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    # --- fresh unknowns -----------------------------------------------------------------------------

    def size(self) -> Nat:
        return atom(NatUnknown(next(self.numbers)))

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

    def argument(self, kind: Kind) -> Argument:
        if kind is Kind.NAT:
            return self.size()
        return self.data() if kind is Kind.DATA else self.type()

    # --- applying what is known -----------------------------------------------------------------------

    def resolve(self, type_: Type) -> Type:
        """The type with everything known filled in."""
        return map_type(type_, self.resolve_size, self._resolve_leaf)

    def _resolve_leaf(self, leaf: Variable | Unknown) -> Argument:
        value = self.solution.get(leaf)
        return leaf if value is None else self.resolve_argument(value)

    def resolve_size(self, value: Nat) -> Nat:
        while value.unknowns:
            known = {u: self.solution[u] for u in value.unknowns if u in self.solution}
            if not known:
                break
            value = value.substitute(known)  # type: ignore[arg-type]  # unknown sizes are solved by sizes
        return value

    def resolve_argument(self, argument: Argument) -> Argument:
        if isinstance(argument, Nat):
            return self.resolve_size(argument)
        if isinstance(argument, FragmentKind | Space):
            return argument
        if not isinstance(argument, NatFunction):
            return self.resolve(argument)  # type: ignore[return-value]  # data stays data
        return _substitute_argument(argument, self.solution)

    def shallow(self, type_: Type) -> Type:
        """The type with its outermost unknown filled in."""
        while isinstance(type_, Unknown) and type_ in self.solution:
            type_ = self.solution[type_]  # type: ignore[assignment]
        return type_

    # --- unification ----------------------------------------------------------------------------------

    def unify(self, expected: Type, found: Type, origin: Origin) -> None:
        """Makes the two equal, or raises an error that shows both."""
        self._unify(expected, found, expected, found, origin)

    def _unify(self, a: Type, b: Type, expected: Type, found: Type, origin: Origin) -> None:
        a, b = self.shallow(a), self.shallow(b)
        match a, b:
            case _ if a == b:
                return
            case Unknown(), _:
                self._bind(a, b, expected, found, origin)
            case _, Unknown():
                self._bind(b, a, expected, found, origin)
            case (Array(m, s), Array(n, t)) | (Vector(m, s), Vector(n, t)):
                self._unify_sizes(m, n, expected, found, origin)
                self._unify(s, t, expected, found, origin)
            case Index(m), Index(n):
                self._unify_sizes(m, n, expected, found, origin)
            case Pair(s, t), Pair(u, v):
                self._unify(s, u, expected, found, origin)
                self._unify(t, v, expected, found, origin)
            case Function(s, t), Function(u, v):
                self._unify(s, u, expected, found, origin)
                self._unify(t, v, expected, found, origin)
            case Fragment(), Fragment():
                for m, n in ((a.rows, b.rows), (a.columns, b.columns), (a.other, b.other)):
                    self._unify_sizes(m, n, expected, found, origin)
                self._unify(a.element, b.element, expected, found, origin)
                self._unify_kinds(a.kind, b.kind, expected, found, origin)
            case Dependent(name, kind, result, _), Dependent(other, kind_, result_, _) if (
                kind is kind_ and name == other
            ):
                self._unify(result, result_, expected, found, origin)
            case _:
                raise self._mismatch(expected, found, origin)

    def _mismatch(self, expected: Type, found: Type, origin: Origin) -> TypeMismatch:
        want, have = self.resolve(expected), self.resolve(found)
        hint = None
        if isinstance(have, Function) and not isinstance(want, Function | Unknown):
            hint = "an argument is missing"
        elif isinstance(want, Scalar) and isinstance(have, Scalar):
            hint = f"convert with `{want}(…)`"
        return TypeMismatch("R0301", f"expected `{want}`, found `{have}`", origin, hint)

    def _unify_kinds(
        self,
        a: FragmentKind | Variable | Unknown,
        b: FragmentKind | Variable | Unknown,
        expected: Type,
        found: Type,
        origin: Origin,
    ) -> None:
        a, b = self.solution.get(a, a), self.solution.get(b, b)  # type: ignore[arg-type, assignment]
        if a == b:
            return
        if isinstance(a, Unknown):
            self.solution[a] = b
        elif isinstance(b, Unknown):
            self.solution[b] = a
        else:
            raise self._mismatch(expected, found, origin)

    def _bind(self, unknown: Unknown, type_: Type, expected: Type, found: Type, origin: Origin) -> None:
        if unknown in leaves(self.resolve(type_)):
            raise TypeMismatch("R0302", f"the type `{self.resolve(type_)}` would contain itself", origin)
        if unknown in self.data_only and isinstance(type_, Function | Dependent):
            raise TypeMismatch(
                "R0303",
                f"expected data, found the function type `{self.resolve(type_)}`",
                origin,
                "an argument may be missing",
            )
        if unknown in self.data_only and isinstance(type_, Unknown):
            self.data_only.add(type_)
        if unknown in self.literals:
            self._bind_literal(unknown, type_, expected, found, origin)
        self.solution[unknown] = type_  # type: ignore[assignment]  # functions too, for unknown types

    def _bind_literal(
        self, unknown: Unknown, type_: Type, expected: Type, found: Type, origin: Origin
    ) -> None:
        values = self.literals[unknown]
        match type_:
            case Unknown():
                self.literals.setdefault(type_, []).extend(values)
            case Variable() | Vector():
                pass
            case Scalar() if type_ != BOOL:
                self._check_literals(values, type_)
            case Index(bound):
                self._check_indices(values, bound)
            case _:
                value, place = values[0]
                raise TypeMismatch("R0305", f"the number {value} is no `{self.resolve(type_)}`", place)

    def _check_literals(self, values: list[tuple[int | float, Origin]], type_: Scalar) -> None:
        for value, place in values:
            if isinstance(value, float) and not type_.is_float:
                raise TypeMismatch("R0306", f"the number {value} is no whole number of type `{type_}`", place)
            limit = 1 << type_.bits
            low, high = (0, limit - 1) if type_.name.startswith("u") else (-limit // 2, limit // 2 - 1)
            if not type_.is_float and not low <= value <= high:
                raise TypeMismatch("R0307", f"the number {value} does not fit in `{type_}`", place)

    def _check_indices(self, values: list[tuple[int | float, Origin]], bound: Nat) -> None:
        for value, place in values:
            if not isinstance(value, int):
                raise TypeMismatch("R0306", f"the number {value} is no index", place)
            self.require(Constraint(bound - (value + 1), origin=place))

    # --- sizes ----------------------------------------------------------------------------------------

    def _unify_sizes(self, a: Nat, b: Nat, expected: Type, found: Type, origin: Origin) -> None:
        equation = Equation(a, b, expected, found, origin)
        if self._try(equation):
            self.retry()
        else:
            self.equations.append(equation)

    def _try(self, equation: Equation) -> bool:
        left, right = self.resolve_size(equation.left), self.resolve_size(equation.right)
        if left == right:
            return True
        if not (left - right).unknowns:
            raise self._different_sizes(left, right, equation)
        solved = solve(left, right)
        if solved is None:
            return False
        unknown, value = solved
        self.solution[unknown] = value
        if not value.is_whole:
            self._require_whole(division(left, right, unknown), equation)
        elif not at_least(value, 0):
            self.require(Constraint(value, origin=equation.origin))
        return True

    def _require_whole(self, quotient: tuple[Nat, Nat], equation: Equation) -> None:
        """Records that the divisor divides, or refuses where it is a number that does not."""
        above, below = quotient
        if above.value is not None and below.value is not None:
            raise TypeMismatch(
                "R0401",
                f"{below} does not divide {above}",
                equation.origin,
                self._show_equation(equation),
            )
        self.require(Constraint(above, below, equation.origin))

    def require(self, constraint: Constraint) -> None:
        self.constraints.append(constraint)

    def retry(self) -> None:
        """Tries the undecided equations again until none gets decided."""
        progress = True
        while progress:
            pending, self.equations = self.equations, []
            left_over = [equation for equation in pending if not self._try(equation)]
            progress = len(left_over) < len(pending)
            self.equations = left_over + self.equations

    def _show_equation(self, equation: Equation) -> str:
        left, right = self.resolve_size(equation.left), self.resolve_size(equation.right)
        return f"the sizes `{left}` and `{right}` have to be equal"

    def _different_sizes(self, left: Nat, right: Nat, equation: Equation) -> RiseError:
        message = f"the sizes `{left}` and `{right}` differ"
        if equation.expected is not None and equation.found is not None:
            expected, found = self.resolve(equation.expected), self.resolve(equation.found)
            message += f": expected `{expected}`, found `{found}`"
        return TypeMismatch("R0402", message, equation.origin)

    def finish(self) -> None:
        """Gives literals their default types and decides what is left of the equations."""
        self.retry()
        for unknown in list(self.literals):
            left_open = self.shallow(unknown)
            if isinstance(left_open, Unknown):
                values = self.literals[left_open]
                whole = all(isinstance(value, int) for value, _ in values)
                self.unify(left_open, I32 if whole else F32, values[0][1])
        self.retry()
        for equation in self.equations:
            raise TypeMismatch(
                "R0403",
                "sizes that cannot be inferred",
                equation.origin,
                self._show_equation(equation),
            )
        self.constraints = self.checked_constraints()

    def checked_constraints(self) -> list[Constraint]:
        """What is left to ask of the sizes; what is certainly wrong is an error here."""
        kept: dict[str, Constraint] = {}
        for constraint in self.constraints:
            asked = resolve_constraint(constraint, self.resolve_size)
            if asked is not None:
                kept.setdefault(str(asked), asked)
        return list(kept.values())


def resolve_constraint(constraint: Constraint, resolve: object) -> Constraint | None:
    """The constraint over resolved sizes; None where it holds; an error where it cannot."""
    from rise.nat import divides

    value = resolve(constraint.value)  # type: ignore[operator]
    if constraint.divisor is None:
        if at_least(value, 0):
            return None
        if value.value is not None:
            raise TypeMismatch("R0404", f"a size would be negative: {value}", constraint.origin)
        return Constraint(value, origin=constraint.origin)
    divisor = resolve(constraint.divisor)  # type: ignore[operator]
    if divides(divisor, value):
        return None
    if value.value is not None and divisor.value is not None:
        raise TypeMismatch("R0401", f"{divisor} does not divide {value}", constraint.origin)
    return Constraint(value, divisor, constraint.origin)
