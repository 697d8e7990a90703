"""Equations between sizes: solved for one unknown that occurs once, linearly."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from rise.nat import Atom, Nat, NatUnknown, Operation, atom, constant


def solve(left: Nat, right: Nat) -> tuple[NatUnknown, Nat] | None:
    """Solves left = right for one unknown that occurs once, linearly; None where that is not possible.

    A whole solution is preferred; otherwise the caller records that the rational multiple is whole.
    """
    difference = left - right
    found: tuple[NatUnknown, Nat] | None = None
    for unknown in sorted(difference.unknowns, key=lambda u: -u.identity):
        isolated = _isolate(difference, unknown)
        solution = isolated[0].exact_quotient(isolated[1]) if isolated else None
        if solution is not None and solution.is_whole:
            return unknown, solution
        if solution is not None and found is None:
            found = unknown, solution
    return found


def _isolate(difference: Nat, unknown: NatUnknown) -> tuple[Nat, Nat] | None:
    """(a, b) with b * unknown = a where difference = 0, if it occurs in one monomial with known factors."""
    holding = [(m, c) for m, c in difference.terms if any(_mentions(a, unknown) for a, _ in m)]
    if len(holding) != 1:
        return None
    monomial, coefficient = holding[0]
    others = tuple((a, e) for a, e in monomial if a != unknown)
    if dict(monomial).get(unknown) != 1 or any(_mentions(a, unknown) for a, _ in others):
        return None
    factor = Nat.build({others: coefficient})
    rest = (difference - Nat.build({monomial: coefficient})) * -1
    return None if factor.unknowns else (rest, factor)


def division(left: Nat, right: Nat, unknown: NatUnknown) -> tuple[Nat, Nat]:
    """Dividend and divisor, both whole, of the solution that `solve` found for the unknown."""
    dividend, divisor = _isolate(left - right, unknown) or (constant(0), constant(1))
    if divisor.terms[0][1] < 0:
        dividend, divisor = dividend * -1, divisor * -1
    scale = lcm(*(Fraction(c).denominator for value in (dividend, divisor) for _, c in value.terms))
    below: dict[Atom, int] = {}
    for monomial, _ in (*dividend.terms, *divisor.terms):
        for base, exponent in monomial:
            below[base] = max(below.get(base, 0), -exponent)
    factor = Nat.build({tuple((a, e) for a, e in below.items() if e): scale})
    return dividend * factor, divisor * factor


def _mentions(base: Atom, unknown: NatUnknown) -> bool:
    return base == unknown or (isinstance(base, Operation) and unknown in atom(base).atoms)
