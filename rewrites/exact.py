"""Scalar terms on exact numbers: whether two of them are equal wherever numbers are drawn.

A number is a sum of rational multiples of exp(p)·exp2(q) for rational p and q. Such sums are equal where
their multiples are: no rounding hides a difference. What is no arithmetic, an element of an array or a score
under a mask, is drawn. Conversions are taken as exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random

from rewrites.elements import NotPointwise
from rise.expr import Expr, Identifier, Literal, call
from rise.types import F64, Scalar

Power = tuple[Fraction, Fraction]
ONE: Power = (Fraction(0), Fraction(0))
Exact = Mapping[Power, Fraction]
Drawn = Callable[[Expr], Exact]


def rational(value: float | Fraction) -> Exact:
    return {ONE: Fraction(value)} if value else {}


def value_of(x: Exact) -> Fraction:
    """A rational number. Raises NotPointwise for others."""
    if set(x) - {ONE}:
        raise NotPointwise("no exact value is known", Identifier("exact", F64))
    return x.get(ONE, Fraction(0))


def added(*xs: Exact) -> Exact:
    total: dict[Power, Fraction] = {}
    for x in xs:
        for power, factor in x.items():
            total[power] = total.get(power, Fraction(0)) + factor
    return {power: factor for power, factor in total.items() if factor}


def times(a: Exact, b: Exact) -> Exact:
    return added(*({(p + r, q + s): f * g} for (p, q), f in a.items() for (r, s), g in b.items()))


def evaluated(term: Expr, values: Mapping[str, Exact], drawn: Drawn, powers: bool = True) -> Exact:
    """The value of a scalar term. Raises NotPointwise where it has no such value.

    values: of variables
    powers: whether exponentials that use none of these are computed, and not drawn
    """

    def of(part: Expr) -> Exact:
        return evaluated(part, values, drawn, powers)

    match term, call(term):
        case _, ("exp" | "exp2", _, [a]) if not powers and a.free.isdisjoint(values):
            return drawn(term)
        case Literal(value), _:
            return rational(value)
        case Identifier(name), _ if name in values:
            return values[name]
        case _, ("add", _, [a, b]):
            return added(of(a), of(b))
        case _, ("sub", _, [a, b]):
            return added(of(a), times(rational(-1), of(b)))
        case _, ("neg", _, [a]):
            return times(rational(-1), of(a))
        case _, ("mul", _, [a, b]):
            return times(of(a), of(b))
        case _, ("div", _, [a, b]):
            return _quotient(of(a), of(b), term)
        case _, ("max", _, [a, b]):
            return rational(max(value_of(of(a)), value_of(of(b))))
        case _, ("exp", _, [a]):
            return {(value_of(of(a)), Fraction(0)): Fraction(1)}
        case _, ("exp2", _, [a]):
            return {(Fraction(0), value_of(of(a))): Fraction(1)}
        case _, ("cast", _, [a]) if isinstance(a.type, Scalar) and a.type.is_float:
            return of(a)
        case _:
            if not term.free.isdisjoint(values):
                raise NotPointwise("no exact value is known", term)
            return drawn(term)


def _quotient(a: Exact, b: Exact, term: Expr) -> Exact:
    match list(b.items()):
        case [((p, q), factor)]:
            return times(a, {(-p, -q): 1 / factor})
        case _:
            raise NotPointwise("no exact value is known", term)


def draws(random: Random) -> Callable[[str], Drawn]:
    """By the name of an index: what elements are drawn at one place of it; the others are the same at all."""
    fixed: dict[Expr, Exact] = {}

    def at_place(index: str) -> Drawn:
        here: dict[Expr, Exact] = {}

        def drawn(term: Expr) -> Exact:
            known = here if index in term.free else fixed
            if term not in known:
                known[term] = rational(Fraction(random.randint(-12, 12) or 5, random.randint(1, 4)))
            return known[term]

        return drawn

    return at_place
