"""Whether two results agree: exactly for whole numbers, within a rounding bound for floats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rise.expr import Apply, Expr, Lambda, Primitive, call, subterms
from rise.nat import Nat
from rise.primitives.declare import plain_pattern
from rise.types import Array, Fragment, Scalar, Vector, arguments

# 2^-p for a significand of p bits: the distance from 1 to the next number
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "tf32": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52}
REDUCTIONS = ("reduce", "scan")


@dataclass(frozen=True)
class Tolerance:
    """How far floats may be apart: a rounding of each element, and one for each term of a sum.

    relative: of the element
    sums:     of the largest element
    """

    relative: float = 0.0
    sums: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """The verdict, with its evidence.

    error, bound:    the largest difference, and the bound at that place
    index:           of the first element that differs by more than its bound; None where all agree
    found, expected: that element
    reason:          in place of these, why there is nothing to compare, or what is compared
    draw:            of several sets of inputs, the one it shows on
    """

    agrees: bool
    error: float
    bound: float
    index: tuple[int, ...] | None = None
    found: Any = None
    expected: Any = None
    reason: str = ""
    draw: int | None = None

    def __str__(self) -> str:
        if self.reason and self.index is None:
            return self.reason
        if self.agrees:
            if self.error == 0:
                return "equal in every element"
            return f"largest difference {self.error:.3g}, allowed {self.bound:.3g}"
        if self.index is None:
            return f"shapes or types differ: {self.found}, expected {self.expected}"
        place = "".join(f"[{i}]" for i in self.index) or "the result"
        return f"differs first at {place}: {self.found}, expected {self.expected} (allowed {self.bound:.3g})"


def tolerance(program: Expr) -> Tolerance:
    """The bound for two ways of computing a program that differ in the order of sums.

    One element may be rounded differently a few times; a sum of k terms k times. A derivation may
    round in another order, never in a narrower type, so the coarsest type computed with decides. What is
    rounded before it is computed with may end up in a sum of which little is left.
    """
    rounding, adding, terms = 0.0, 0.0, 1
    for part in subterms(program):
        if not isinstance(part, Primitive):
            continue
        epsilon = _epsilon(part)
        if plain_pattern(part.declaration) in REDUCTIONS:
            adding, terms = max(adding, epsilon), max(terms, _longest(part))
        elif not part.declaration.view:
            rounding = max(rounding, epsilon)
    inside = max((_epsilon(part) for part in _roundings_inside(program)), default=0.0)
    return Tolerance(4 * max(rounding, adding), max(terms * adding, 4 * inside))


def _roundings_inside(program: Expr) -> Iterator[Primitive]:
    """The conversions to other types that a program computes with: all but those of its results."""
    match program:
        case Lambda(_, body):
            yield from _roundings_inside(body)
        case Apply(Lambda(_, body), argument):
            yield from _conversions(argument)
            yield from _roundings_inside(body)
        case _:
            match call(program):
                case "cast", _, [operand]:
                    yield from _conversions(operand)
                case "pair" | "zip", _, operands:
                    for operand in operands:
                        yield from _roundings_inside(operand)
                case "let", _, [value, function]:
                    yield from _conversions(value)
                    yield from _roundings_inside(function)
                case ("generate", _, [function]):
                    yield from _roundings_inside(function)
                case (_, head, [function, *arrays]) if plain_pattern(head.declaration) == "map":
                    yield from _roundings_inside(function)
                    for xs in arrays:
                        yield from _conversions(xs)
                case (_, head, [inner]) if head.declaration.view:
                    yield from _roundings_inside(inner)
                case _:
                    yield from _conversions(program)


def _conversions(term: Expr) -> Iterator[Primitive]:
    """The conversions in a term from wider types."""
    for part in subterms(term):
        if isinstance(part, Primitive) and part.name == "cast":
            source, target = part.arguments
            if str(source) in EPSILON and EPSILON[str(source)] < EPSILON.get(str(target), 0.0):
                yield part


def _epsilon(primitive: Primitive) -> float:
    """Of the type that a primitive computes; 0 where it is none of the floats."""
    result = arguments(primitive.type)[1]
    while isinstance(result, Array | Vector | Fragment):
        result = result.element
    return EPSILON.get(result.name, 0.0) if isinstance(result, Scalar) else 0.0


def _longest(primitive: Primitive) -> int:
    return max((a.value or 1 for a in primitive.arguments if isinstance(a, Nat)), default=1)


def compare(result: Any, reference: Any, allowed: Tolerance = Tolerance()) -> Comparison:
    """Two results of one program: arrays, numbers, or pairs of these. NaN agrees with NaN."""
    if isinstance(reference, tuple):
        if not isinstance(result, tuple) or len(result) != len(reference):
            return Comparison(False, np.inf, 0, None, type(result).__name__, "a pair")
        parts = [compare(a, b, allowed) for a, b in zip(result, reference, strict=True)]
        wrong = [p for p in parts if not p.agrees]
        return wrong[0] if wrong else max(parts, key=lambda p: p.error)
    return _compare_arrays(np.asarray(result), np.asarray(reference), allowed)


def alike(left: Any, right: Any) -> Any:
    """Where two arrays have the same number, or both have none."""
    return (left == right) | ((left != left) & (right != right))


def _compare_arrays(result: Any, reference: Any, allowed: Tolerance) -> Comparison:
    if result.shape != reference.shape or result.dtype != reference.dtype:
        found, expected = (f"{a.dtype}{list(a.shape)}" for a in (result, reference))
        return Comparison(False, np.inf, 0, None, found, expected)
    if result.dtype.kind in "iub":
        difference = (result != reference).astype(np.float64)
        return _verdict(difference, np.zeros(result.shape), result, reference)
    with np.errstate(all="ignore"):
        a, b = result.astype(np.float64), reference.astype(np.float64)
        difference = np.where(alike(a, b), 0.0, np.abs(a - b))
        difference = np.where(np.isnan(difference), np.inf, difference)
        finite = np.abs(np.where(np.isfinite(b), b, 0.0))
        bound = allowed.relative * finite + allowed.sums * finite.max(initial=0.0)
    return _verdict(difference, bound, result, reference)


def _verdict(difference: Any, bound: Any, result: Any, reference: Any) -> Comparison:
    if difference.size == 0:
        return Comparison(True, 0.0, 0.0)
    wrong = difference > bound
    largest = np.unravel_index(int(np.argmax(difference)), difference.shape)
    error = float(difference[largest])
    if not wrong.any():
        return Comparison(True, error, float(bound[largest]))
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    index = tuple(int(i) for i in first)
    return Comparison(False, error, float(bound[first]), index, result[first], reference[first])
