"""Minima, maxima and powers, as far as they simplify; and everything simplified again, under facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from rise.nat.division import quotient, remainder
from rise.nat.facts import KEPT, NOTHING, Facts, at_least
from rise.nat.normal_form import (
    OPERATIONS,
    Atom,
    Monomial,
    Nat,
    NatLike,
    Operation,
    atom,
    constant,
    nat,
    raised,
)

# --- minima and maxima ------------------------------------------------------------------------------


def minimum(left: NatLike, right: NatLike, facts: Facts = NOTHING) -> Nat:
    return _extremum("min", nat(left), nat(right), lambda a, b: at_least(b, a, facts), facts)


def maximum(left: NatLike, right: NatLike, facts: Facts = NOTHING) -> Nat:
    return _extremum("max", nat(left), nat(right), lambda a, b: at_least(a, b, facts), facts)


def _extremum(operator: str, left: Nat, right: Nat, decides: Callable[[Nat, Nat], bool], facts: Facts) -> Nat:
    """Of all operands, nested ones too, those that no other decides; what they share stands in front."""
    kept: list[Nat] = []
    for value in (*_operands(operator, left), *_operands(operator, right)):
        if not any(decides(other, value) for other in kept):
            kept = [other for other in kept if not decides(value, other)] + [value]
    if len(kept) == 1:
        return kept[0]
    shared = _shared(kept, facts)
    first, *others = sorted((value - shared for value in kept), key=str, reverse=True)
    for value in others:
        first = atom(Operation(operator, value, first))
    return first + shared


def _operands(operator: str, value: Nat) -> Iterator[Nat]:
    match value.terms:
        case ((((Operation(name, left, right), 1),), 1),) if name == operator:
            yield from _operands(operator, left)
            yield from _operands(operator, right)
        case _:
            yield value


def _shared(values: list[Nat], facts: Facts) -> Nat:
    """The terms that all have, if what is left of each is certainly a natural number."""
    common = Nat.build(dict(set.intersection(*(set(value.terms) for value in values))))
    return (
        common
        if common.terms and all(at_least(value - common, 0, facts) for value in values)
        else constant(0)
    )


# --- powers -----------------------------------------------------------------------------------------

# sums are multiplied out up to this power
EXPANDED = 16


def power(base: NatLike, exponent: NatLike) -> Nat:
    """b^(x + y) is b^x * b^y and (a*b)^x is a^x * b^x, so that products of powers have one form."""
    b, e = nat(base), nat(exponent)
    if b.value == 1 or not e.terms:
        return constant(1)
    if not b.terms and e.value is not None and e.value > 0:
        return b
    single = len(b.terms) == 1 and b.terms[0][1] > 0
    whole = all(isinstance(times, int) for _, times in e.terms)
    negative = any(times < 0 for _, times in e.terms)
    large = any(not monomial and times > EXPANDED for monomial, times in e.terms)
    if not whole or not b.terms or (not single and (negative or large)):
        return atom(Operation("power", b, e))
    result = constant(1)
    for monomial, times in e.terms:
        result = result * raised(_power(b, monomial), int(times))
    return result


def _power(base: Nat, exponent: Monomial) -> Nat:
    """base^exponent for an exponent of one monomial."""
    symbolic = Nat.build({exponent: 1})
    if not exponent or len(base.terms) > 1:
        return base if not exponent else atom(Operation("power", base, symbolic))
    [(monomial, coefficient)] = base.terms
    result = constant(1)
    for number, sign in ((coefficient.numerator, 1), (coefficient.denominator, -1)):
        for prime, times in _factors(number):
            result = result * raised(atom(Operation("power", constant(prime), symbolic)), sign * times)
    for factor, times in monomial:
        if isinstance(factor, Operation) and factor.operator == "power":
            result = result * raised(power(factor.left, factor.right * symbolic), times)
        else:
            result = result * raised(atom(Operation("power", atom(factor), symbolic)), times)
    return result


def _factors(number: int) -> Iterator[tuple[int, int]]:
    """The prime factors with their multiplicities; what is left of a large number counts as prime."""
    for prime in (2, *range(3, 1000, 2)):
        if prime * prime > number:
            break
        times = 0
        while number % prime == 0:
            number, times = number // prime, times + 1
        if times:
            yield prime, times
    if number > 1:
        yield number, 1


# --- all of them --------------------------------------------------------------------------------------

WITH_FACTS: dict[str, Callable[[Nat, Nat, Facts], Nat]] = {
    "quotient": quotient,
    "remainder": remainder,
    "min": minimum,
    "max": maximum,
    "power": lambda base, exponent, _: power(base, exponent),
}
OPERATIONS.update(quotient=quotient, remainder=remainder, min=minimum, max=maximum, power=power)


def simplify(value: Nat, facts: Facts) -> Nat:
    """Rebuilds every operation under the facts."""
    return _simplified(value, facts) if value.has_operations else value


@lru_cache(maxsize=KEPT)
def _simplified(value: Nat, facts: Facts) -> Nat:
    return _recombine(value.rebuilt(lambda base: _simplify_atom(base, facts)), facts)


def _recombine(value: Nat, facts: Facts) -> Nat:
    """b * (a / b) + a % b is a; b * ((d + a / b) % c) + a % b is (b * d + a) % (b * c)."""
    found = [*_remainders(value)]
    for factor, base in found:
        whole = factor * base.right * quotient(base.left, base.right, facts)
        if set(whole.terms) <= set(value.terms):
            return _recombine(value - whole - factor * atom(base) + factor * base.left, facts)
    for factor, base in found:
        inner = quotient(base.left, base.right, facts)
        for outer in value.atoms:
            if not (isinstance(outer, Operation) and outer.operator == "remainder"):
                continue
            digits = factor * base.right * atom(outer)
            if set(inner.terms) <= set(outer.left.terms) and set(digits.terms) <= set(value.terms):
                left = base.right * (outer.left - inner) + base.left
                joined = remainder(left, base.right * outer.right, facts)
                return _recombine(value - digits - factor * atom(base) + factor * joined, facts)
    return value


def _remainders(value: Nat) -> Iterator[tuple[Nat, Operation]]:
    """c and a % b of the terms c * (a % b)."""
    for monomial, coefficient in value.terms:
        for base, exponent in monomial:
            if isinstance(base, Operation) and base.operator == "remainder" and exponent == 1:
                yield Nat.build({tuple((a, e) for a, e in monomial if a != base): coefficient}), base


def _simplify_atom(base: Atom, facts: Facts) -> Nat:
    if not isinstance(base, Operation):
        return atom(base)
    left, right = simplify(base.left, facts), simplify(base.right, facts)
    return WITH_FACTS[base.operator](left, right, facts)
