"""Quotients rounded down and remainders, each simplified as far as the facts allow.

Dividends may be negative, divisors are positive: floor(value / divisor) and value mod divisor, which
is never negative.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from rise.nat.facts import KEPT, NOTHING, Facts, at_least, below, term_is_whole
from rise.nat.normal_form import Nat, NatLike, Operation, atom, constant, nat


def quotient(value: NatLike, divisor: NatLike, facts: Facts = NOTHING) -> Nat:
    """floor(value / divisor)."""
    dividend, size = nat(value), nat(divisor)
    if dividend.value is not None and size.value:
        return constant(dividend.value // size.value)
    return _quotient(dividend, size, facts.with_divisor(size))


@lru_cache(maxsize=KEPT)
def _quotient(dividend: Nat, size: Nat, facts: Facts) -> Nat:
    if (exact := _exact_by_sum(dividend, size)) is not None:
        return exact
    whole, rest = _separate(dividend, size, facts)
    if _in_range(rest, size, facts):
        return whole
    if _just_below(rest, size, facts):
        return whole - 1
    if (factor := _common_factor(rest, size)) > 1:
        reduced = rest.exact_quotient(factor)
        if reduced is not None and size.value:
            return _with_whole(whole, reduced, constant(size.value // factor), facts)
    if (grouped := _group(rest, size, facts)) is not None:
        multiple, _, group = grouped
        return _with_whole(whole, multiple, size.exact_quotient(group) or size, facts)
    if (nested := _nested(rest)) is not None:
        within, added = nested
        return _with_whole(whole, within.left + within.right * added, within.right * size, facts)
    if (digits := _leading_digits(rest, size)) is not None:
        inner, more = digits
        return whole + remainder(quotient(inner.left, size, facts), more, facts)
    if whole.terms and not at_least(rest, 0, facts):
        return atom(Operation("quotient", dividend, size))
    return whole + atom(Operation("quotient", rest, size))


def _with_whole(whole: Nat, rest: Nat, divisor: Nat, facts: Facts) -> Nat:
    """whole + rest / divisor; in one quotient where the rest may be negative, which C rounds up."""
    if not whole.terms or at_least(rest, 0, facts):
        return whole + quotient(rest, divisor, facts)
    return quotient(whole * divisor + rest, divisor, facts)


def remainder(value: NatLike, divisor: NatLike, facts: Facts = NOTHING) -> Nat:
    """value mod divisor, simplified under what is known of the sizes in them."""
    dividend, size = nat(value), nat(divisor)
    if dividend.value is not None and size.value:
        return constant(dividend.value % size.value)
    return _remainder(dividend, size, facts.with_divisor(size))


@lru_cache(maxsize=KEPT)
def _remainder(dividend: Nat, size: Nat, facts: Facts) -> Nat:
    if _exact_by_sum(dividend, size) is not None:
        return constant(0)
    _, rest = _separate(dividend, size, facts)
    if _in_range(rest, size, facts):
        return rest
    if _just_below(rest, size, facts):
        return rest + size
    if (factor := _common_factor(rest, size)) > 1:
        reduced = rest.exact_quotient(factor)
        if reduced is not None and size.value:
            return factor * remainder(reduced, size.value // factor, facts)
    if (grouped := _group(rest, size, facts)) is not None:
        multiple, inner_rest, group = grouped
        return group * remainder(multiple, size.exact_quotient(group) or size, facts) + inner_rest
    if not at_least(rest, 0, facts):
        rest = dividend
    if (congruent := _congruent(rest, size)) != rest:
        return remainder(congruent, size, facts)
    return atom(Operation("remainder", rest, size))


def ceiling_quotient(value: NatLike, divisor: NatLike, facts: Facts = NOTHING) -> Nat:
    """value / divisor, rounded up."""
    return quotient(nat(value) + divisor - 1, divisor, facts)


# --- taking a dividend apart ------------------------------------------------------------------------


def _exact_by_sum(value: Nat, divisor: Nat) -> Nat | None:
    """The quotient by a sum where it is whole and leaves no rest: (3*a + 3*b) / (a + b) is 3."""
    exact = value.exact_quotient(divisor) if len(divisor.terms) > 1 else None
    return exact if exact is not None and exact.is_whole else None


def _separate(value: Nat, divisor: Nat, facts: Facts) -> tuple[Nat, Nat]:
    """value = divisor * first + second, with as many terms as possible in the first."""
    whole, rest = constant(0), constant(0)
    for monomial, coefficient in value.terms:
        term = Nat.build({monomial: coefficient})
        part = term.exact_quotient(divisor)
        if part is not None and all(term_is_whole(m, c, facts) for m, c in part.terms):
            whole = whole + part
        elif divisor.value and not monomial and isinstance(coefficient, int):
            whole = whole + coefficient // divisor.value
            rest = rest + coefficient % divisor.value
        else:
            rest = rest + term
    return whole, rest


def _in_range(rest: Nat, size: Nat, facts: Facts) -> bool:
    return at_least(rest, 0, facts) and below(rest, size, facts)


def _just_below(rest: Nat, size: Nat, facts: Facts) -> bool:
    """Whether -size <= rest < 0 is certain."""
    return any(c < 0 for _, c in rest.terms) and _in_range(rest + size, size, facts)


def _common_factor(value: Nat, divisor: Nat) -> int:
    factor = divisor.value or 1
    for _, coefficient in value.terms:
        factor = gcd(factor, coefficient) if isinstance(coefficient, int) else 1
    return factor


def _group(value: Nat, size: Nat, facts: Facts) -> tuple[Nat, Nat, int] | None:
    """value = group * first + second with 0 <= second < group, where group properly divides the size."""
    if not size.value:
        return None
    sizes = {abs(c) for _, c in value.terms if isinstance(c, int)}
    for group in sorted(sizes, reverse=True):
        if group > 1 and size.value % group == 0 and group < size.value:
            multiple, rest = _separate(value, constant(group), facts)
            if multiple.terms and _in_range(rest, constant(group), facts):
                return multiple, rest, group
    return None


def _nested(value: Nat) -> tuple[Operation, Nat] | None:
    """value = x / a + c, for (x/a + c) / b = (x + a*c) / (a*b), with a whole c that has no operations."""
    more = constant(0)
    found: Operation | None = None
    for monomial, coefficient in value.terms:
        match monomial, coefficient:
            case ((Operation("quotient") as inner, 1),), 1 if found is None:
                found = inner
            case _, int() if not any(isinstance(base, Operation) for base, _ in monomial):
                more = more + Nat.build({monomial: coefficient})
            case _:
                return None
    return (found, more) if found is not None and more.is_whole else None


def _leading_digits(value: Nat, divisor: Nat) -> tuple[Operation, int] | None:
    """(x % (a*b), a) of x % (a*b) and b, for x % (a*b) / b = x / b % a."""
    match value.terms:
        case ((((Operation("remainder", _, modulus) as inner, 1),), 1),):
            if divisor.value and modulus.value and modulus.value % divisor.value == 0:
                return inner, modulus.value // divisor.value
    return None


def _congruent(value: Nat, modulus: Nat) -> Nat:
    """The same modulo a number, and not below it: c * (x % n) is c * x where the modulus divides c * n."""
    total = constant(0)
    for monomial, coefficient in value.terms:
        match monomial, coefficient:
            case ((Operation("remainder", inner, size), 1),), int() if (
                modulus.value and size.value and coefficient * size.value % modulus.value == 0
            ):
                total = total + coefficient % modulus.value * inner
            case _:
                total = total + Nat.build({monomial: coefficient})
    return total
