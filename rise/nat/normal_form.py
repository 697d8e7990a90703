"""The normal form of sizes: a sum of monomials over atoms, built by operators that keep it normal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any, TypeVar

from rise.frozen import Remembers, cached_property, filled_at_once, hashed_once
from rise.nat.limits import (
    check_bits,
    check_degree,
    check_expanded,
    check_extent,
    check_power,
    check_products,
    check_terms,
)

Coefficient = int | Fraction


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class NatVariable(Remembers):
    """A rigid variable: a size that a program abstracts over, or the index of a loop."""

    name: str

    @cached_property
    def key(self) -> tuple[int, str]:
        """By which the factors of a product are in order: variables first, then operations."""
        return 0, self.name

    def __str__(self) -> str:
        return self.name


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class NatUnknown(Remembers):
    """A variable that inference or matching still has to solve."""

    identity: int

    @cached_property
    def key(self) -> tuple[int, str]:
        return 2, str(self)

    def __str__(self) -> str:
        return f"?{self.identity}"


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Operation(Remembers):
    """An operation that does not simplify: `quotient`, `remainder`, `min`, `max` or `power`."""

    operator: str
    left: Nat
    right: Nat

    def __post_init__(self) -> None:
        check_extent(self.extent)

    @cached_property
    def extent(self) -> int:
        """How many variables and operations there are where everything is written out."""
        return 1 + self.left.extent + self.right.extent

    @cached_property
    def key(self) -> tuple[int, str]:
        return 1, self._text

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.operator in ("min", "max"):
            return f"{self.operator}({self.left}, {self.right})"
        sign = {"quotient": "/", "remainder": "%", "power": "^"}[self.operator]
        return f"{_factor(self.left)} {sign} {_factor(self.right)}"


Atom = NatVariable | NatUnknown | Operation
Replaced = TypeVar("Replaced", bound=Atom)
Monomial = tuple[tuple[Atom, int], ...]


def _bits(number: Coefficient) -> int:
    if type(number) is int:
        return number.bit_length()
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _ratio(number: Coefficient, divisor: Coefficient) -> Coefficient:
    if type(number) is int and type(divisor) is int:
        quotient, rest = divmod(number, divisor)
        if rest == 0:
            return quotient
    check_bits(_bits(number) + _bits(divisor))
    return _simple(Fraction(number) / divisor)


def _ends_before_numbers(value: Nat) -> bool:
    """Whether a number that is added stands last: not where the last term divides by something."""
    monomial = value.terms[-1][0]
    return not monomial or sum([exponent for _, exponent in monomial]) > 0


def _simple(number: Coefficient) -> Coefficient:
    return number if type(number) is int or number.denominator != 1 else number.numerator


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[tuple[tuple[int, str], int], ...]]:
    """Higher degree first, constants last."""
    if len(monomial) == 1:
        ((base, exponent),) = monomial
        return -exponent, ((base.key, -exponent),)
    return -sum([e for _, e in monomial]), tuple([(a.key, -e) for a, e in monomial])


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Nat(Remembers):
    """A normal form; built with `constant`, `variable` and the operators below, never by hand."""

    terms: tuple[tuple[Monomial, Coefficient], ...]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Nat) and self.terms == other.terms)

    def __reduce__(self) -> tuple[Callable[..., Nat], tuple[Any, ...]]:
        """Without what is remembered: another process has another hash for the same names."""
        return Nat, (self.terms,)

    @staticmethod
    def build(terms: Mapping[Monomial, Coefficient]) -> Nat:
        kept = [(m, c if type(c) is int else _simple(c)) for m, c in terms.items() if c]
        check_terms(len(kept))
        if len(kept) < 2:
            return Nat(tuple(kept))
        return Nat(tuple(sorted(kept, key=lambda term: _monomial_key(term[0]))))

    @property
    def value(self) -> int | None:
        """The number, if there are no variables and it is whole."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            number = self.terms[0][1]
            return number if isinstance(number, int) else None
        return None

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """All atoms, those inside operations included."""
        found: set[Atom] = set()
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                found.add(atom)
                if isinstance(atom, Operation):
                    found |= atom.left.atoms | atom.right.atoms
        return frozenset(found)

    @cached_property
    def extent(self) -> int:
        """How many variables and operations there are where everything is written out."""
        bases = (base for monomial, _ in self.terms for base, _ in monomial)
        return sum(base.extent if isinstance(base, Operation) else 1 for base in bases)

    @cached_property
    def has_operations(self) -> bool:
        return any(isinstance(base, Operation) for monomial, _ in self.terms for base, _ in monomial)

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset(a.name for a in self.atoms if isinstance(a, NatVariable))

    @cached_property
    def unknowns(self) -> frozenset[NatUnknown]:
        return frozenset(a for a in self.atoms if isinstance(a, NatUnknown))

    def __add__(self, other: NatLike) -> Nat:
        added = other if isinstance(other, Nat) else constant(other)
        if not added.terms:
            return self
        if not self.terms:
            return added
        if len(added.terms) == 1 and not added.terms[0][0] and _ends_before_numbers(self):
            return self._plus(added.terms[0][1])
        if len(self.terms) == 1 and not self.terms[0][0] and _ends_before_numbers(added):
            return added._plus(self.terms[0][1])
        sum_ = dict(self.terms)
        for monomial, coefficient in added.terms:
            sum_[monomial] = sum_.get(monomial, 0) + coefficient
        return Nat.build(sum_)

    def _plus(self, number: Coefficient) -> Nat:
        """The sum with a number, which stands last: the other terms stay in order."""
        if self.terms[-1][0]:
            check_terms(len(self.terms) + 1)
            return Nat((*self.terms, ((), number)))
        total = _simple(self.terms[-1][1] + number)
        if len(self.terms) == 1 and type(total) is int:
            return constant(total)
        return Nat((*self.terms[:-1], ((), total)) if total else self.terms[:-1])

    def __mul__(self, other: NatLike) -> Nat:
        if isinstance(other, int):
            return self.scaled(other)
        if len(other.terms) == 1 and not other.terms[0][0]:
            return self.scaled(other.terms[0][1])
        if len(self.terms) == 1 and not self.terms[0][0]:
            return other.scaled(self.terms[0][1])
        check_products(len(self.terms) * len(other.terms))
        product: dict[Monomial, Coefficient] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = _multiply(left, right)
                product[monomial] = product.get(monomial, 0) + a * b
        return Nat.build(product)

    def scaled(self, factor: Coefficient) -> Nat:
        """A multiple: its monomials stay in order."""
        if factor == 1:
            return self
        if factor == 0:
            return Nat(())
        bits = _bits(factor)
        for _, coefficient in self.terms:
            check_bits(_bits(coefficient) + bits)
        return Nat(tuple((m, _simple(c * factor)) for m, c in self.terms))

    def __sub__(self, other: NatLike) -> Nat:
        if isinstance(other, int):
            return self + -other
        if not other.terms:
            return self
        if not self.terms or (len(other.terms) == 1 and not other.terms[0][0]):
            return self + other.scaled(-1)
        difference = dict(self.terms)
        for monomial, coefficient in other.terms:
            difference[monomial] = difference.get(monomial, 0) - coefficient
        return Nat.build(difference)

    def __radd__(self, other: int) -> Nat:
        return self + other

    def __rmul__(self, other: int) -> Nat:
        return self * other

    def __rsub__(self, other: int) -> Nat:
        return nat(other) - self

    def exact_quotient(self, divisor: NatLike) -> Nat | None:
        """self / divisor as a rational multiple; None for a sum that leaves a rest, and for 0.

        Meaningful only where the divisor divides: `divides` says whether that is certain.
        """
        below = nat(divisor)
        if len(below.terms) != 1:
            return _quotient_by_sum(self, below) if below.terms else None
        monomial, coefficient = below.terms[0]
        if not monomial:
            return (
                self if coefficient == 1 else Nat(tuple([(m, _ratio(c, coefficient)) for m, c in self.terms]))
            )
        inverse = _inverse(monomial)
        return Nat.build({_multiply(m, inverse): _ratio(c, coefficient) for m, c in self.terms})

    @property
    def fraction(self) -> tuple[Nat, Nat]:
        """Dividend and divisor, both without fractions; the divisor is one monomial."""
        scale = lcm(*(Fraction(c).denominator for _, c in self.terms))
        below: dict[Atom, int] = {}
        for monomial, _ in self.terms:
            for base, exponent in monomial:
                below[base] = max(below.get(base, 0), -exponent)
        powers = ((base, exponent) for base, exponent in below.items() if exponent)
        monomial = tuple(sorted(powers, key=lambda power: power[0].key))
        divisor = Nat.build({monomial: scale})
        return self * divisor, divisor

    @property
    def is_whole(self) -> bool:
        """No fractional coefficient and no negative exponent: a whole number whatever the variables are."""
        return all(isinstance(c, int) and all(e > 0 for _, e in m) for m, c in self.terms)

    @property
    def factor(self) -> int:
        """The largest number that divides the size, whatever its variables are: 8 for 8*n + 16; 0 for 0."""
        return gcd(*(int(c) for _, c in self.terms)) if self.is_whole else 1

    @cached_property
    def _atom(self) -> Atom | None:
        """The atom that the size is, if it is nothing but one."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            ((base, exponent),) = self.terms[0][0]
            return base if exponent == 1 else None
        return None

    def substitute(self, solution: Mapping[Replaced, Nat]) -> Nat:
        """Replaces atoms, simplifying the operations that contain them."""
        if not solution or not any(map(solution.__contains__, self.atoms)):  # of which there are few
            return self
        return self.rebuilt(lambda base: _replace(base, solution))

    def rebuilt(self, replaced: Callable[[Atom], Nat]) -> Nat:
        """The same sum of products over other sizes.

        What is divided by a sum is a multiple of it where the division leaves no rest, else a quotient
        rounded down, which is the same number: the exact quotients of a size are whole together.
        """
        if self._atom is not None:
            return replaced(self._atom)
        new = {base: replaced(base) for monomial, _ in self.terms for base, _ in monomial}
        numbers = {base: value for base, size in new.items() if (value := size.value) is not None}
        if len(numbers) == len(new) and all(e > 0 for monomial, _ in self.terms for _, e in monomial):
            return self._at(numbers)
        if any(e < 0 and len(new[base].terms) != 1 for monomial, _ in self.terms for base, e in monomial):
            return _divided(self, replaced)
        total = constant(0)
        for monomial, coefficient in self.terms:
            product = _number(coefficient)
            for base, exponent in monomial:
                product = product * raised(new[base], exponent)
            total = total + product
        return total

    def _at(self, numbers: Mapping[Atom, int]) -> Nat:
        """The size with a number for each of its atoms, none of which divides."""
        total: Coefficient = 0
        for monomial, product in self.terms:
            for base, exponent in monomial:
                check_power(numbers[base], exponent)
                product *= numbers[base] ** exponent
            total += product
        return _number(_simple(total))

    def __str__(self) -> str:
        return _show(self)

    def __repr__(self) -> str:
        return f"Nat({self})"


NatLike = Nat | int


def nat(value: NatLike) -> Nat:
    """A size: a natural number as one, a size as it is."""
    return value if isinstance(value, Nat) else constant(value)


def constant(value: int) -> Nat:
    return _CONSTANTS[value] if 0 <= value < len(_CONSTANTS) else Nat((((), value),))


# one object for each small number: most sizes that are compared are the same one
_CONSTANTS = (Nat(()), *(Nat((((), value),)) for value in range(1, 1025)))


@lru_cache(maxsize=1 << 12)
def variable(name: str) -> Nat:
    return atom(NatVariable(name))


def _number(value: Coefficient) -> Nat:
    return constant(value) if type(value) is int else Nat((((), value),))


@lru_cache(maxsize=1 << 12)
def atom(base: Atom) -> Nat:
    return Nat(((((base, 1),), 1),))


def _multiply(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for base, exponent in right:
        powers[base] = powers.get(base, 0) + exponent
    kept = [(b, e) for b, e in powers.items() if e]
    return tuple(sorted(kept, key=lambda power: power[0].key) if len(kept) > 1 else kept)


def _inverse(monomial: Monomial) -> Monomial:
    return tuple((base, -exponent) for base, exponent in monomial)


def _divided(value: Nat, replaced: Callable[[Atom], Nat]) -> Nat:
    """The size rebuilt, one of its divisors being a sum (or 0): as one fraction."""
    terms = {True: constant(0), False: constant(0)}
    for monomial, coefficient in value.terms:
        term = Nat.build({monomial: coefficient})
        terms[term.is_whole] += term
    above, below = (part.rebuilt(replaced) for part in terms[False].fraction)
    exact = above.exact_quotient(below)
    quotient = OPERATIONS["quotient"](above, below) if exact is None else exact
    return terms[True].rebuilt(replaced) + quotient


def _quotient_by_sum(value: Nat, divisor: Nat) -> Nat | None:
    """The quotient of polynomials, by long division; None where there is a rest.

    Monomials are ordered as products have to be for that: by degree, then by their variables.
    """
    (above, scale), (below, factor) = value.fraction, divisor.fraction
    leading, coefficient = below.terms[0]
    result, rest = constant(0), above
    while rest.terms:
        monomial, multiple = rest.terms[0]
        quotient = _multiply(monomial, _inverse(leading))
        if any(exponent < 0 for _, exponent in quotient):
            return None
        part = Nat.build({quotient: Fraction(multiple) / coefficient})
        result, rest = result + part, rest - part * below
    return (result * factor).exact_quotient(scale)


def raised(base: Nat, exponent: int) -> Nat:
    """A power; a negative one of a single monomial only."""
    if exponent == 1:
        return base
    if exponent < 0:
        [(monomial, coefficient)] = raised(base, -exponent).terms
        return Nat.build({_inverse(monomial): Fraction(1, 1) / coefficient})
    if len(base.terms) == 1:
        [(monomial, coefficient)] = base.terms
        check_power(coefficient, exponent)
        check_degree(max((abs(e) for _, e in monomial), default=0) * exponent)
        return Nat.build({tuple((a, e * exponent) for a, e in monomial if exponent): coefficient**exponent})
    if not base.terms:
        return constant(0 if exponent else 1)
    check_expanded(exponent)
    result = constant(1)
    for _ in range(exponent):
        result = result * base
    return result


def _replace(base: Atom, solution: Mapping[Any, Nat]) -> Nat:
    if base in solution:
        return solution[base]
    if isinstance(base, Operation):
        left, right = base.left.substitute(solution), base.right.substitute(solution)
        return OPERATIONS[base.operator](left, right)
    return atom(base)


# how an operation is made, by name: `rise.nat.operations` fills this
OPERATIONS: dict[str, Callable[[Nat, Nat], Nat]] = {}


# --- printing -------------------------------------------------------------------------------------


def _factor(value: Nat) -> str:
    text = _show(value)
    single = len(value.terms) <= 1 and not any(sign in text for sign in " *-/")
    return text if single else f"({text})"


def _show_monomial(monomial: Monomial, coefficient: Coefficient) -> str:
    above = [_show_power(a, e) for a, e in monomial if e > 0]
    below = [_show_power(a, -e) for a, e in monomial if e < 0]
    size = abs(Fraction(coefficient))
    if size.numerator != 1 or not above:
        above.insert(0, str(size.numerator))
    if size.denominator != 1:
        below.insert(0, str(size.denominator))
    text = "*".join(above)
    for part in below:
        text += f"/{part}"
    return text


def _show_power(base: Atom, exponent: int) -> str:
    text = f"({base})" if isinstance(base, Operation) and base.operator not in ("min", "max") else str(base)
    return text if exponent == 1 else f"{text}^{exponent}"


def _show(value: Nat) -> str:
    if not value.terms:
        return "0"
    text = ""
    for monomial, coefficient in value.terms:
        negative = coefficient < 0
        leads = not text and negative
        part = _show_monomial(monomial, coefficient) if leads else _show_term(monomial, coefficient)
        text += (" - " if negative else " + ") if text else ("-" if negative else "")
        text += part
    return text


def _show_term(monomial: Monomial, coefficient: Coefficient) -> str:
    """One product; a single operation needs no parentheses of its own, except behind a sign."""
    if abs(coefficient) == 1 and len(monomial) == 1 and monomial[0][1] == 1:
        return str(monomial[0][0])
    return _show_monomial(monomial, coefficient)
