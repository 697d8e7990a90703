"""Numbers that are rounded anyway, in fewer instructions: quotients, exponentials, hyperbolic tangents."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewrites import exponentials as x
from rewrites.elements import NotPointwise
from rewrites.folds import of_rows, operator_name
from rewrites.lets import named_value
from rewrites.result import Failure, Result, Success
from rise.expr import Expr, Lambda, Primitive, call, children, subterms
from rise.types import Array, Pair, Scalar, Type
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    at_child,
    choice,
    depending,
    everywhere,
    id_,
    normalize,
    seq,
    try_,
)

NARROW = 2  # bytes of an element that hides how the last digits of f32 were rounded


# exponentials as powers of two, what they are of as a fused multiply-add
powers_of_two: Strategy = seq(
    everywhere(x.EXP_AS_EXP2), everywhere(x.EXP2_OF_DIFFERENCE), everywhere(x.EXP2_OF_PRODUCT)
)


def _in_few_instructions(term: Expr) -> Strategy:
    if not _is_narrow(term.type):
        return id_
    return seq(
        normalize(choice(x.TANH_ADDED, x.ADDED_TO_TANH, x.QUOTIENT)),
        normalize(x.EXP_AS_EXP2),
        normalize(x.ONE_LITERAL),
    )


def _is_narrow(type_: Type) -> bool:
    match type_:
        case Array(_, element):
            return _is_narrow(element)
        case Pair(first, second):
            return _is_narrow(first) and _is_narrow(second)
        case _:
            return isinstance(type_, Scalar) and type_.bytes <= NARROW


# functions whose results are rounded to 16 bits or fewer in the end, in few instructions without branches
in_few_instructions: Strategy = depending(_in_few_instructions)


def _tanh_outside(term: Expr) -> bool:
    """Whether a hyperbolic tangent is a part of something else than exponentials and maxima."""
    match call(term):
        case (("exp" | "exp2"), _, [_]):
            return False
        case "reduce", _, [operator, _, _] if operator_name(operator) == "max":
            return False
        case "tanh", _, [_]:
            return True
    return any(map(_tanh_outside, children(term)))


def _tanh_of_scores(term: Expr) -> Strategy:
    try:
        found = of_rows(term)
    except NotPointwise:
        return id_
    others = [fold.body for fold in found.folds if operator_name(fold.operator) != "max"]
    if not _is_narrow(term.type) or any(map(_tanh_outside, [*others, found.element])):
        return id_
    return everywhere(x.TANH)


# Hyperbolic tangents without a branch, where only differences count: in exponentials, and their maximum
tanh_of_scores: Strategy = depending(_tanh_of_scores)


@dataclass(frozen=True)
class _Place:
    """What is known where a term stands.

    rounded: names of numbers that are not exact
    varying: names that stand for something else in each step of the innermost loop
    """

    rounded: frozenset[str] = frozenset()
    varying: frozenset[str] = frozenset()

    def inside(self, function: Lambda) -> _Place:
        """In a function that is called for each element."""
        name = function.parameter.name
        return _Place(self.rounded - {name}, frozenset({name}))

    def under(self, function: Lambda, value: Expr) -> _Place:
        """Where a value has a name."""
        name = function.parameter.name
        rounded = self.rounded | {name} if self.is_rounded(value) else self.rounded - {name}
        varying = self.varying - {name} if value.free.isdisjoint(self.varying) else self.varying | {name}
        return replace(self, rounded=rounded, varying=varying)

    def is_rounded(self, value: Expr) -> bool:
        """Whether a value is computed from one that is not exact."""
        written = (part.declaration.written for part in subterms(value) if isinstance(part, Primitive))
        return not value.free.isdisjoint(self.rounded) or not x.ROUNDED.isdisjoint(written)

    def divides_many(self, divisor: Expr) -> bool:
        """Whether a divisor is the same for all elements, and not exact."""
        return bool(self.varying) and divisor.free.isdisjoint(self.varying) and self.is_rounded(divisor)


def _by_reciprocals(term: Expr, place: _Place) -> Result:
    match call(term):
        case "div", _, [_, divisor] if place.divides_many(divisor):
            return try_(x.RECIPROCAL)(term)
    if isinstance(term, Lambda):
        return _in_body(place.inside(term))(term)
    named = named_value(term)
    result = Success(term)
    for index, child in enumerate(children(term)):
        is_body = named is not None and child is named[1]
        s = _in_body(place.under(named[1], named[0])) if named and is_body else _at(place)
        following = at_child(index, s, result.term)
        if isinstance(following, Failure):
            return following
        result = Success(following.term, result.steps + following.steps)
    return result


def _at(place: _Place) -> Rewrite:
    return lambda term: _by_reciprocals(term, place)


def _in_body(place: _Place) -> Rewrite:
    return lambda function: at_child(0, _at(place), function)


# Numbers that are divided by the same one are multiplied by its reciprocal, where it is rounded anyway. A
# quotient takes a branch, and many instructions more where the dividend is close to zero, as in a softmax.
by_reciprocals: Strategy = FunctionStrategy("by_reciprocals", lambda term: _by_reciprocals(term, _Place()))
