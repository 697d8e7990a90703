"""Exponentials and quotients as GPUs compute them: a power of two is one instruction, a quotient many."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import prod

from rewrites.conditions import SideCondition
from rewrites.match import Match
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rise.expr import Expr, Literal, Primitive, apply, call, subterms
from rise.types import Scalar

EXP_AS_EXP2 = rule(
    "exp → exp2",
    "exp(x : f32)",
    "exp2(x * 1.4426950408889634)",
    exact=False,
    rounds=True,
    meaning="An exponential as a power of two: the factor is the binary logarithm of e.",
)
EXP2_OF_DIFFERENCE = rule(
    "exp2 of a difference",
    "exp2((x - y) * z)",
    "exp2(x * z - y * z)",
    exact=False,
    meaning="A factor is multiplied with both terms of a difference, one of which may be the same for many.",
)
EXP2_OF_PRODUCT = rule(
    "exp2 of a product",
    "exp2(x * y * z - w)",
    "exp2(x * (y * z) - w)",
    exact=False,
    meaning="Two factors are multiplied first, which may be the same for many.",
)


def _is_one(match: Match) -> str | None:
    found = match.terms["x"]
    return "it is a reciprocal" if isinstance(found, Literal) and found.value == 1 else None


RECIPROCAL = rule(
    "x / y → x * (1 / y)",
    "(x : f32) / y",
    "x * (1 / y)",
    exact=False,
    rounds=True,
    conditions=(SideCondition("x is not 1", "A reciprocal stays one.", _is_one),),
    meaning="One division serves all numbers that are divided by the same one.",
)


# functions that are not computed exactly
ROUNDED = frozenset("exp exp2 log tanh sin cos pow sqrt rsqrt".split())


def _is_exact(match: Match) -> str | None:
    parts = (part for part in subterms(match.terms["y"]) if isinstance(part, Primitive))
    return None if any(part.declaration.written in ROUNDED for part in parts) else "the divisor may be exact"


QUOTIENT = rule(
    "x / y → x * reciprocal(y)",
    "(x : f32) / y",
    "x * reciprocal(y)",
    exact=False,
    rounds=True,
    conditions=(
        SideCondition(
            "y is rounded", "A quotient of numbers that are exact may have to be exact.", _is_exact
        ),
    ),
    meaning="A quotient in two instructions, without a branch, where its divisor is rounded anyway.",
)
ADDED = "2 * reciprocal(1 + exp(-2 * x))"
TANH_ADDED = rule(
    "1 + tanh(x)",
    "1 + tanh(x : f32)",
    ADDED,
    exact=False,
    rounds=True,
    meaning="A hyperbolic tangent without a branch; near -1, nothing is lost to cancellation.",
)
ADDED_TO_TANH = rule(
    "tanh(x) + 1",
    "tanh(x : f32) + 1",
    ADDED,
    exact=False,
    rounds=True,
    meaning="The same with the sum the other way round.",
)
TANH = rule(
    "tanh → exp2",
    "tanh(x : f32)",
    "1 - 2 * reciprocal(1 + exp2(2.8853900817779268 * x))",
    exact=False,
    rounds=True,
    meaning="A hyperbolic tangent without a branch, as exact as numbers close to 1 are.",
)


def _factors(term: Expr) -> Iterator[Expr]:
    match call(term):
        case "mul", _, [x, y]:
            yield from _factors(x)
            yield from _factors(y)
        case _:
            yield term


MODERATE = 2.0**32  # literals whose products neither overflow nor vanish, nor do they with what is left


@computed(
    "literal factors as one",
    "exp2(x * c * (d * y)) → exp2(x * y * (c * d)) where c and d are literals, of which the product is one",
    (
        "fun(x: f32 => exp2(-2.0 * (0.75 * x) * 1.5))",
        "fun((x: f32, y: f32) => exp2(0.25 * x * (3.0 * y)))",
    ),
    "The literals of a product whose power is taken are multiplied beforehand.",
    exact=False,
)
def ONE_LITERAL(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "exp2", head, [product]:
            found = _with_one_literal(product)
            return found if isinstance(found, str) else apply(head, found, origin=term.origin)
        case _:
            return "expected a power of two"


def _with_one_literal(term: Expr) -> Expr | str:
    """A product with the literals among its factors as the last one, unless that is 1."""
    factors = list(_factors(term))
    literals = [float(f.value) for f in factors if isinstance(f, Literal)]
    rest: list[Expr] = [f for f in factors if not isinstance(f, Literal)]
    if term.type != Scalar("f32") or len(literals) < 2 or not rest:
        return "expected several literal factors of f32"
    if not all(1 / MODERATE < abs(value) < MODERATE for value in literals):
        return "the product of the literals may overflow, or vanish"
    _, head, _ = call(term)  # type: ignore[misc]  # of several factors
    value = prod(literals)
    if value != 1:
        rest.append(Literal(value, term.type))
    return reduce(lambda left, right: apply(head, left, right), rest)
