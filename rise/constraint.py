"""What a definition asks of its sizes and types: recorded in its scheme, checked wherever it is used.

Sizes are natural numbers, zero included, and nothing else is taken for granted: that a quotient is
whole, that a difference is not negative, that a divisor is not zero is either certain or a constraint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

from rise.frozen import filled_at_once
from rise.nat import Atom, Coefficient, Monomial, Nat, Operation, atom, constant, divides
from rise.source import Note, Origin
from rise.type_classes import Holding, TypeClass
from rise.types import Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Constraint:
    """`divisor | value`; `value >= 0` where divisor is None; or, of a type, that it is in a class.

    origin: where the program needs it
    asker:  what asks for it there: "`split(32)`", "`blocks`", "this type"
    notes:  where that definition asks for it, and so on inwards
    wanted: the class that a type has to be in
    """

    value: Nat | Data
    divisor: Nat | None = None
    origin: Origin = field(default=None, compare=False, repr=False)
    asker: str = field(default="", compare=False, repr=False)
    notes: tuple[Note, ...] = field(default=(), compare=False, repr=False)
    wanted: TypeClass | Holding = TypeClass.NUMBER

    @property
    def variables(self) -> frozenset[str]:
        """The sizes that it is about."""
        sizes = (size for size in (self.value, self.divisor) if isinstance(size, Nat))
        return frozenset[str]().union(*(size.variables for size in sizes))

    def __str__(self) -> str:
        if not isinstance(self.value, Nat):
            return f"{self.value} is {self.wanted.value}"
        if self.divisor is None:
            return _inequality(self.value)
        return f"{self.divisor} | {self.value}"


def _inequality(value: Nat) -> str:
    """`value >= 0` with what is subtracted on the right: `n >= m + 2`."""
    left = Nat.build({m: c for m, c in value.terms if c > 0})
    right = Nat.build({m: -c for m, c in value.terms if c < 0})
    return f"{left} >= {right}"


# --- what is certain --------------------------------------------------------------------------------


def certainly_positive(value: Nat) -> bool:
    """Whether a size is at least zero, whatever natural numbers its variables are."""
    if not value.is_whole:
        return _is_natural(value, whole=False)
    return _is_natural(value.scaled(Fraction(1, value.factor or 1)), whole=True)


def _is_natural(value: Nat, whole: bool) -> bool:
    """Whether a bound of a size says so; of a whole number, that it is more than -1 is enough."""
    least = sum(c * _least(m) for m, c in value.terms)
    enough = least > -1 if whole else least >= 0
    if enough and all(c >= 0 and all(_natural_atom(a) for a, _ in m) for m, c in value.terms if m):
        return True
    return any(_is_natural(lower, whole) for lower in _lower(value))


def _lower(value: Nat) -> Iterator[Nat]:
    """Sizes that are not larger: what is added or subtracted is replaced by a bound of it."""
    for monomial, coefficient in value.terms:
        for base, exponent in monomial if coefficient > 0 else ():
            if isinstance(base, Operation) and base.operator == "quotient" and exponent == 1:
                yield from _with_bound(value, monomial, coefficient, base, _rounded(base))
    for monomial, coefficient in value.terms:
        for base, exponent in monomial if coefficient < 0 else ():
            if isinstance(base, Operation) and exponent == 1:
                yield from _with_bound(value, monomial, coefficient, base, _upper(base))
                return


def _with_bound(
    value: Nat, monomial: Monomial, coefficient: Coefficient, base: Operation, bounds: Iterator[Nat]
) -> Iterator[Nat]:
    """The size with bounds of an operation in its place, of which the monomial is a multiple."""
    rest = Nat.build({tuple((a, e) for a, e in monomial if a != base): coefficient})
    others = value - rest * atom(base)
    yield from (others + rest * bound for bound in bounds)


def _rounded(base: Operation) -> Iterator[Nat]:
    """d * (x / d) >= x - d + 1, so sizes that are rounded up are not smaller."""
    if base.right.value:
        yield (base.left - base.right + 1).scaled(Fraction(1, base.right.value))


def _upper(base: Operation) -> Iterator[Nat]:
    """Bounds of an operation; that a divisor is not zero is asked for elsewhere."""
    if base.operator == "remainder":
        yield base.right - 1
    if base.operator == "min":
        yield base.right
    if base.operator == "quotient" and base.right.value:
        yield base.left.scaled(Fraction(1, base.right.value))
    if base.operator in ("min", "quotient", "remainder") and certainly_positive(base.left):
        yield base.left


def _least(monomial: Monomial) -> int:
    """The least value of a product of natural atoms: 1 of powers of a positive number, else 0."""
    powers = (isinstance(a, Operation) and a.operator == "power" and a.left.value for a, _ in monomial)
    return int(all(powers) and all(exponent > 0 for _, exponent in monomial))


def _natural_atom(base: Atom) -> bool:
    match base:
        case Operation("max", left, right):
            return certainly_positive(left) or certainly_positive(right)
        case Operation("min", left, right):
            return certainly_positive(left) and certainly_positive(right)
        case Operation("remainder"):
            return True
        case Operation(_, left, _):
            return certainly_positive(left)
        case _:
            return True


def natural(value: Nat) -> Iterator[Constraint]:
    """What has to hold for a size to be a natural number, but for what is certain."""
    for operation in sorted((a for a in value.atoms if isinstance(a, Operation)), key=str):
        if operation.operator in ("quotient", "remainder"):
            yield from at_least_zero(operation.right - 1)
        elif operation.operator == "power":
            yield from at_least_zero(operation.right)
    if not value.is_whole:
        yield from divisibility(*value.fraction)
    yield from at_least_zero(value)


def at_least_zero(value: Nat) -> Iterator[Constraint]:
    """`value >= 0` in its simplest form, unless it is certain."""
    if not certainly_positive(value):
        yield Constraint(_scaled(value.fraction[0]))


def _scaled(value: Nat) -> Nat:
    """Divided by what its coefficients have in common: `2*n >= 3` says `n >= 2`."""
    common = gcd(*(int(c) for m, c in value.terms if m))
    # a constant is rounded down: the rest is a whole number
    return Nat.build({m: int(c) // common for m, c in value.terms}) if common > 1 else value


def divisibility(value: Nat, divisor: Nat) -> Iterator[Constraint]:
    """`divisor | value` in its simplest form, unless it is certain."""
    if divides(divisor, value):
        return
    number = divisor.value
    if number and value.value is None and value.is_whole:
        # multiples of the divisor do not matter, nor do factors of both
        kept: dict[Monomial, int] = {m: int(c) % number for m, c in value.terms if int(c) % number}
        if len(kept) > 1 and 2 * kept.get((), 0) > number:
            kept[()] -= number
        common = gcd(number, *kept.values())
        divisor = constant(number // common)
        value = Nat.build({m: c // common for m, c in kept.items()})
        value = _without_units(value, number // common)
    yield Constraint(value, divisor)


def _without_units(value: Nat, divisor: int) -> Nat:
    """`4 | 3*n` says `4 | n`."""
    if len(value.terms) == 1 and value.terms[0][0]:
        ((monomial, coefficient),) = value.terms
        if gcd(int(coefficient), divisor) == 1:
            return Nat.build({monomial: 1})
    return value


# --- several constraints ----------------------------------------------------------------------------


def strongest(constraints: Iterable[Constraint]) -> list[Constraint]:
    """Without those that others imply: of `n >= 3` and `n >= 5`, of `8 | n` and `32 | n` the latter."""
    kept: list[Constraint] = []
    for new in constraints:
        if any(implies(old, new) for old in kept):
            continue
        kept = [old for old in kept if not implies(new, old)] + [new]
    return kept


def implies(strong: Constraint, weak: Constraint) -> bool:
    if strong == weak:
        return True
    if not isinstance(strong.value, Nat) or not isinstance(weak.value, Nat):
        return strong.value == weak.value and strong.wanted.implies(weak.wanted)
    if strong.divisor is None or weak.divisor is None:
        both = strong.divisor is None and weak.divisor is None
        return both and certainly_positive(weak.value - strong.value)
    return strong.value == weak.value and divides(weak.divisor, strong.divisor)
