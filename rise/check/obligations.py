"""What an inference has to make sure of, besides that types agree.

Every size that it finds is a natural number, every type that `+` is applied at is one of numbers, and no
size leaves the function that binds it. What is certain is forgotten, what is wrong is an error with its
place, and the rest are the constraints of the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rise.check.difference import shown
from rise.constraint import Constraint, at_least_zero, certainly_positive, divisibility, natural, strongest
from rise.errors import TypeMismatch
from rise.frozen import filled_at_once
from rise.nat import Nat, NatUnknown, NatVariable
from rise.numbers import range_text, written
from rise.source import Note, Origin
from rise.type_classes import Holding, TypeClass
from rise.types import Array, Index, Pair, Scalar, Type, Unknown, Variable, Vector, leaves

Resolve = Callable[[Nat], Nat]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Asked:
    """What needs something, and where."""

    asker: str
    origin: Origin
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Local:
    """A size or type bound inside of a definition, and the unknowns that may depend on it, by number."""

    first: int
    last: int
    origin: Origin


@dataclass
class Obligations:
    sizes: dict[NatUnknown, Asked] = field(default_factory=dict)
    required: list[Constraint] = field(default_factory=list)
    classes: list[tuple[Type, TypeClass | Holding, Asked]] = field(default_factory=list)
    local: dict[str, list[Local]] = field(default_factory=dict)

    def copy(self) -> Obligations:
        return Obligations(dict(self.sizes), list(self.required), list(self.classes), dict(self.local))

    # --- recording ----------------------------------------------------------------------------------

    def unknown(self, unknown: NatUnknown, asker: str, origin: Origin) -> None:
        self.sizes[unknown] = Asked(asker, origin)

    def require(self, constraint: Constraint) -> None:
        self.required.append(constraint)

    def written(self, size: Nat, asker: str, origin: Origin) -> None:
        """A size as the program writes it, which is natural only if something holds: `n - 3`."""
        self.required += [replace(c, origin=origin, asker=asker) for c in natural(size)]

    def member(
        self,
        type_: Type,
        wanted: TypeClass | Holding,
        asker: str,
        origin: Origin,
        notes: tuple[Note, ...] = (),
    ) -> None:
        """That a type is in a class: one of numbers, of floats."""
        self.classes.append((type_, wanted, Asked(asker, origin, notes)))

    def is_float(self, unknown: Unknown, resolve: Callable[[Type], Type]) -> bool:
        """Whether something asks that a type which is not known yet is a float."""
        floats = (type_ for type_, wanted, _ in self.classes if wanted is TypeClass.FLOAT)
        return any(resolve(type_) == unknown for type_ in floats)

    @contextmanager
    def inside(self, name: str, numbers: Iterator[int], origin: Origin) -> Iterator[None]:
        """Unknowns that are made in this context, and no others, may depend on the name."""
        first = next(numbers)
        yield
        self.local.setdefault(name, []).append(Local(first, next(numbers), origin))

    # --- settling -----------------------------------------------------------------------------------

    def solved(self, unknown: NatUnknown, value: Nat, division: tuple[Nat, Nat] | None) -> None:
        """Of a solution that is a quotient, the division has to leave no rest.

        A number that is no natural number is refused at once: what follows from it would confuse.
        """
        asked = self.sizes.get(unknown, Asked("", None))
        if division is not None:
            constraint = Constraint(*division, asked.origin, asked.asker)
            refuse_if_wrong(constraint)
            self.require(constraint)
        refuse_if_wrong(Constraint(value, None, asked.origin, asked.asker))

    def settle(
        self, solution: Mapping[Any, object], size: Resolve, type_: Callable[[Type], Type]
    ) -> list[Constraint]:
        """The constraints that are neither certain nor certainly wrong."""
        self._check_scopes(solution, size, type_)
        asked = [*self._of_required(size), *self._of_unknowns(solution, size), *self._of_classes(type_)]
        for constraint in asked:
            refuse_if_wrong(constraint)
            self._refuse_local(constraint)
        return strongest(asked)

    def _of_unknowns(self, solution: Mapping[Any, object], size: Resolve) -> Iterator[Constraint]:
        for unknown, asked in self.sizes.items():
            value = solution.get(unknown)
            if not isinstance(value, Nat):
                continue
            for constraint in at_least_zero(size(value)):
                yield replace(constraint, origin=asked.origin, asker=asked.asker)

    def _of_required(self, size: Resolve) -> Iterator[Constraint]:
        for constraint in self.required:
            yield from simplest(constraint, size)

    def _of_classes(self, resolve: Callable[[Type], Type]) -> Iterator[Constraint]:
        for type_, wanted, asked in self.classes:
            yield from membership(resolve(type_), wanted, asked)

    # --- scopes -------------------------------------------------------------------------------------

    def _check_scopes(
        self, solution: Mapping[Any, object], size: Resolve, type_: Callable[[Type], Type]
    ) -> None:
        if not self.local:
            return
        for unknown, value in solution.items():
            if isinstance(unknown, NatUnknown | Unknown):
                for name in sorted(_names(size(value) if isinstance(value, Nat) else value, type_)):
                    self._check_scope(unknown, name)

    def _check_scope(self, unknown: NatUnknown | Unknown, name: str) -> None:
        places = self.local.get(name)
        if places and not any(p.first <= unknown.identity <= p.last for p in places):
            bound = _bound(name)
            raise TypeMismatch(
                "R0311",
                f"a type outside of this function depends on its `{bound}`",
                places[0].origin,
                f"what the function is used for has to have one type for every `{bound}`",
            )

    def _refuse_local(self, constraint: Constraint) -> None:
        """A constraint on what only a part of the program knows cannot be left to the caller."""
        for name in _names(constraint.value, lambda t: t):
            if name in self.local:
                needed = str(constraint).replace(name, _bound(name))
                raise TypeMismatch(
                    _code(constraint),
                    f"{constraint.asker or 'this'} needs {needed} for every `{_bound(name)}`",
                    constraint.origin,
                    notes=constraint.notes,
                )


def _bound(name: str) -> str:
    """The name that the program gave to what `Unifier` renamed."""
    return name.partition("'")[0]


def _names(value: object, resolve: Callable[[Type], Type]) -> Iterable[str]:
    if isinstance(value, Nat):
        return value.variables
    if not hasattr(value, "__match_args__") or not isinstance(value, Type):
        return ()
    return {leaf.name for leaf in leaves(resolve(value)) if isinstance(leaf, NatVariable | Variable)}


# --- classes of types -------------------------------------------------------------------------------


def membership(type_: Type, wanted: TypeClass | Holding, asked: Asked) -> Iterator[Constraint]:
    """That a type is in a class, where a variable decides it; R0308 where it is not."""
    left = wanted.asked(type_)
    if isinstance(left, Variable):
        yield Constraint(left, None, asked.origin, asked.asker, asked.notes, wanted)
    elif isinstance(wanted, Holding) and isinstance(left, Scalar) and wanted.numbers.asked(left) is None:
        message = f"{asked.asker} needs the number {written(wanted.number)}, which does not fit in `{left}`"
        raise TypeMismatch("R0307", message, asked.origin, range_text(left), notes=asked.notes)
    elif left is not None and not isinstance(left, Unknown):
        message = f"{asked.asker} is for {wanted.members}, not for `{shown(type_)}`"
        hint = _class_hint(type_, wanted)
        raise TypeMismatch("R0308", message, asked.origin, hint, notes=asked.notes)


def _class_hint(type_: Type, wanted: TypeClass | Holding) -> str | None:
    match type_:
        case Array():
            return "`map` applies it to every element; `zip` pairs the elements of two arrays"
        case Pair():
            return "`(x, y) => …`, `fst` and `snd` take a pair apart"
        case Scalar("bool"):
            return "`&&`, `||`, `!`, `==` and `!=` are for truth values; `i32(b)` is 1 where b is true"
        case Scalar("tf32"):
            return "tf32 is a type of operands of tensor cores: compute with `f32(x)`, round with `tf32(x)`"
        case Vector() if not wanted.has_vectors:
            return "`mapVec` compares every element with a number; `asScalar` gives the elements"
        case Scalar() | Index() if wanted is TypeClass.FLOAT:
            return "convert it: `f32(…)`"
        case _:
            return None


# --- constraints ------------------------------------------------------------------------------------


def simplest(constraint: Constraint, resolve: Resolve) -> Iterator[Constraint]:
    """The constraint over resolved sizes; nothing where it holds for all sizes."""
    if not isinstance(constraint.value, Nat):
        yield constraint
        return
    value = resolve(constraint.value)
    if constraint.divisor is None:
        made = at_least_zero(value)
    else:
        made = divisibility(value, resolve(constraint.divisor))
    yield from (replace(constraint, value=m.value, divisor=m.divisor) for m in made)


def refuse_if_wrong(constraint: Constraint) -> None:
    """Raises where all sizes are known and the constraint does not hold."""
    value, divisor = constraint.value, constraint.divisor
    if not isinstance(value, Nat) or value.variables or value.unknowns:
        return
    if divisor is None:
        if certainly_positive(value):
            return
        by = f", in {constraint.asker}" if constraint.asker else ""
        message = f"a size would be negative: {value}{by}"
        if constraint.asker.startswith("the index"):
            message = f"{constraint.asker} is beyond the end: elements are counted from 0"
    elif divisor.variables or divisor.unknowns:
        return
    else:
        by = f", as {constraint.asker} needs" if constraint.asker else ""
        message = f"{divisor} does not divide {value}{by}"
    raise TypeMismatch(_code(constraint), message, constraint.origin, notes=constraint.notes)


def _code(constraint: Constraint) -> str:
    if not isinstance(constraint.value, Nat):
        return "R0308"
    return "R0404" if constraint.divisor is None else "R0401"


def resolve_constraint(constraint: Constraint, resolve: Resolve) -> Constraint | None:
    """The constraint over resolved sizes; None where it holds; an error where it cannot."""
    for asked in simplest(constraint, resolve):
        refuse_if_wrong(asked)
        return asked
    return None
