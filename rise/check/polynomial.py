"""Programs of sums and products as polynomials in their inputs: their degree, and how large values become.

Two polynomials of degree d that differ agree at a point that is drawn uniformly, each input from the same n
numbers, with probability at most d/n (Schwartz, JACM 1980; Zippel, EUROSAM 1979). Kernels compute polynomials
exactly on whole numbers so small that nothing is rounded, so a few draws of these tell any two apart.

An array is represented by one value that stands for all of its elements, a function by a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from rise.check.specialise import inputs_of
from rise.errors import UsageError
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive
from rise.interpret.inputs import Layout, layout
from rise.nat import Nat
from rise.normal import data_flow
from rise.source import Origin
from rise.types import Array, Fragment, Function, Index, Pair, Scalar, Type, Vector, arguments

# up to which whole numbers a type has all
EXACT = {"f16": 2**11, "bf16": 2**8, "tf32": 2**11, "f32": 2**24, "f64": 2**53}
LARGEST = 2**20  # of the numbers that are drawn
NOT_SUMS, ROUNDED = "R0020", "R0021"
CERTAINTY = 60  # draws are as many as make a difference go unnoticed with probability 2^-60 at most
LEAST = 0.5  # of these bits that a draw has to give
STEPS = 4  # of a loop, after which equal increments go on for ever


@dataclass(frozen=True)
class Bounds:
    """Of a polynomial: at most this degree, and absolute values of at most this much."""

    degree: int
    largest: int

    def or_else(self, other: Bounds) -> Bounds:
        """Of one of two."""
        return Bounds(max(self.degree, other.degree), max(self.largest, other.largest))


Value = Any  # Bounds, a pair of values, or a function of values


class _TooLarge(Exception):
    """A value that its type may round."""

    def __init__(self, what: str, origin: Origin) -> None:
        super().__init__(what)
        self.origin = origin


@dataclass(frozen=True)
class Draws:
    """Whole numbers from -largest to largest, so many draws, of a program of a degree."""

    degree: int
    largest: int
    count: int

    @property
    def missed(self) -> int:
        """A difference goes unnoticed with probability at most 2^-missed."""
        return int(self.count * _bits(self.degree, self.largest))

    def inputs(self, program: Expr, number: int, seed: int) -> list[Any]:
        """The inputs of a draw."""
        rng = np.random.default_rng((seed, number))
        return [self._drawn(layout(type_), rng) for _, type_ in inputs_of(program)]

    def _drawn(self, of: Layout, rng: np.random.Generator) -> Any:
        if isinstance(of, tuple):
            return self._drawn(of[0], rng), self._drawn(of[1], rng)
        low, high = -self.largest, self.largest
        if isinstance(of.element, Index):
            low, high = 0, (of.element.size.value or 1) - 1
        elif of.dtype.kind == "u":
            low = 0
        drawn = rng.integers(low, high, of.shape, endpoint=True).astype(of.dtype)
        return drawn if of.shape else drawn[()]

    def __str__(self) -> str:
        return (
            f"whole numbers up to ±{self.largest}, which nothing rounds; the degree is {self.degree}, so a"
            f" difference is missed with probability at most 2^-{self.missed}"
        )


def draws(program: Expr) -> Draws:
    """The draws that tell a program from what differs from it, by polynomials of its degree.

    UsageError R0020 for a program that is not made of sums and products, with the place; R0021 where its sums
    are too long for its types.
    """
    degree, low, high = _degree(program, 1), 1, LARGEST
    while low < high:  # the largest numbers that are not rounded on the way
        middle = (low + high + 1) // 2
        try:
            _degree(program, middle)
            low = middle
        except UsageError as refused:
            if refused.code != ROUNDED:
                raise
            high = middle - 1
    each = _bits(degree, low)
    if each < LEAST:
        message = f"numbers from {-low} to {low} are too few for polynomials of degree {degree}"
        raise UsageError(ROUNDED, message, hint="smaller sizes leave room for larger numbers")
    return Draws(degree, low, ceil(CERTAINTY / each))


def _bits(degree: int, largest: int) -> float:
    """b, where a draw misses a difference with probability 2^-b; `largest` + 1 numbers are drawn or more."""
    return log2((largest + 1) / max(degree, 1))


def _degree(program: Expr, largest: int) -> int:
    try:
        return max((leaf.degree for leaf in _leaves(bounds(program, largest))), default=0)
    except _TooLarge as refused:
        hint = "smaller sizes leave room for larger numbers"
        raise UsageError(ROUNDED, str(refused), refused.origin, hint=hint) from None


def bounds(program: Expr, largest: int) -> Value:
    """Of the result, where each input is a whole number of at most so much."""
    term, environment = data_flow(program), dict[str, Value]()
    while isinstance(term, Lambda):
        environment[term.parameter.name] = _drawn(term.parameter.type, largest)
        term = term.body
    return _value(term, environment)


def _drawn(type_: Type, largest: int) -> Value:
    match type_:
        case Pair(first, second):
            return _drawn(first, largest), _drawn(second, largest)
        case Array(_, element) | Vector(_, element):
            return _drawn(element, largest)
        case Index(size):
            return Bounds(0, size.value or 0)
        case _:
            return _exact(Bounds(1, largest), type_, Identifier("input", type_))


def _value(term: Expr, environment: Mapping[str, Value]) -> Value:
    match term:
        case Identifier(name):
            return environment[name]
        case Literal(value, type_):
            if not float(value).is_integer():
                raise _refused(f"{value} is not a whole number", term)
            return _exact(Bounds(0, abs(int(value))), type_, term)
        case Lambda(parameter, body):
            return lambda given: _value(body, {**environment, parameter.name: given})
        case Primitive():
            return _curried(term, len(arguments(term.declaration.scheme.type)[0]), ())
        case Apply(function, argument):
            return _value(function, environment)(_value(argument, environment))
        case _:
            raise _refused(f"a {type(term).__name__} is not made of sums and products", term)


def _curried(primitive: Primitive, missing: int, given: tuple[Value, ...]) -> Value:
    if missing == 0:
        return _applied(primitive, given)
    return lambda one: _curried(primitive, missing - 1, (*given, one))


def _applied(primitive: Primitive, given: Sequence[Value]) -> Value:
    name = primitive.declaration.lowers or primitive.name
    parameters, result = arguments(primitive.type)
    if name in ARITHMETIC:
        return _exact(ARITHMETIC[name](*given), result, primitive)
    if name in DECISIONS and all(leaf.degree == 0 for leaf in _leaves(tuple(given))):
        return Bounds(0, 1)
    if name == "select" and given[0].degree == 0:
        return _either(given[1], given[2])
    if name in PATTERNS:
        return _exact(PATTERNS[name](_sizes(primitive), *given), result, primitive)
    if primitive.declaration.view and not any(isinstance(p, Function) for p in parameters):
        return _rearranged(parameters, given)
    raise _refused(f"`{primitive.declaration.written}` is not made of sums and products", primitive)


def _sizes(primitive: Primitive) -> Mapping[str, int]:
    parameters = zip(primitive.declaration.scheme.parameters, primitive.arguments, strict=True)
    return {p.name: size.value or 0 for p, size in parameters if isinstance(size, Nat)}


def _rearranged(parameters: Sequence[Type], given: Sequence[Value]) -> Value:
    """Elements of what is given, in another order; of indices none."""
    values = [value for type_, value in zip(parameters, given, strict=True) if not _is_index(type_)]
    return _joined(values or list(given))


def _is_index(type_: Type) -> bool:
    while isinstance(type_, Array):
        type_ = type_.element
    return isinstance(type_, Index)


def _joined(values: Sequence[Value]) -> Value:
    first, *others = values
    for other in others:
        first = _either(first, other)
    return first


def _either(one: Value, other: Value) -> Value:
    if isinstance(one, tuple):
        return tuple(map(_either, one, other))
    return one.or_else(other)


def _leaves(value: Value) -> list[Bounds]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _exact(value: Value, type_: Type, term: Expr) -> Value:
    """The value, if its types have all whole numbers of that size."""
    while isinstance(type_, Vector | Fragment | Array):
        type_ = type_.element
    if isinstance(type_, Pair):
        return _exact(value[0], type_.first, term), _exact(value[1], type_.second, term)
    if isinstance(type_, Scalar) and value.largest > largest_of(type_):
        raise _TooLarge(f"`{type_}` does not have all whole numbers up to {value.largest}", term.origin)
    return value


def largest_of(type_: Scalar) -> int:
    """Up to which whole number a type has all."""
    return EXACT.get(type_.name) or 2 ** (type_.bits - (type_.name[0] != "u")) - 1


def _refused(message: str, term: Expr) -> UsageError:
    hint = "`--check` compares within rounding bounds"
    return UsageError(NOT_SUMS, message, term.origin, hint=hint)


# --- what primitives do to bounds -------------------------------------------------------------------------


def _sum(a: Bounds, b: Bounds) -> Bounds:
    return Bounds(max(a.degree, b.degree), a.largest + b.largest)


def _product(a: Bounds, b: Bounds) -> Bounds:
    return Bounds(a.degree + b.degree, a.largest * b.largest)


# comparisons of what is no polynomial in the inputs, but the same for all of them: indices
DECISIONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})
ARITHMETIC: Mapping[str, Callable[..., Bounds]] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "fma": lambda a, b, c: _sum(_product(a, b), c),
    "neg": lambda a: a,
    "cast": lambda a: a,
    "indexToInt": lambda a: a,
    "indexAsNat": lambda a: a,
}


def _repeated(step: Callable[[Value], Value], start: Value, count: int) -> Value:
    """So many steps; after STEPS with equal increments, all others have the same.

    A bound after a step is a polynomial with positive coefficients of the one before: one that adds the same
    to several numbers does so to all.
    """
    seen = [start]
    for number in range(count):
        seen.append(step(seen[-1]))
        recent = [[leaf.largest for leaf in _leaves(value)] for value in seen[-STEPS - 1 :]]
        steps = [[b - a for a, b in zip(x, y, strict=True)] for x, y in zip(recent, recent[1:], strict=False)]
        same = [leaf.degree for leaf in _leaves(seen[-1])] == [leaf.degree for leaf in _leaves(seen[-2])]
        if len(steps) == STEPS and all(each == steps[0] for each in steps) and same:
            return _advanced(seen[-1], iter([more * (count - number - 1) for more in steps[0]]))
    return seen[-1]


def _advanced(value: Value, more: Any) -> Value:
    if isinstance(value, tuple):
        return tuple(_advanced(part, more) for part in value)
    return Bounds(value.degree, value.largest + next(more))


def _fold(sizes: Mapping[str, int], step: Value, start: Value, xs: Value) -> Value:
    return _repeated(lambda acc: _either(start, step(acc)(xs)), start, sizes["n"])


PATTERNS: Mapping[str, Callable[..., Value]] = {
    "map": lambda _, f, xs: f(xs),
    "mapFst": lambda _, f, xs: (f(xs[0]), xs[1]),
    "mapSnd": lambda _, f, xs: (xs[0], f(xs[1])),
    "let": lambda _, x, f: f(x),
    "pair": lambda _, a, b: (a, b),
    "zip": lambda _, a, b: (a, b),
    "fst": lambda _, p: p[0],
    "snd": lambda _, p: p[1],
    "unzip": lambda _, ps: ps,
    "generate": lambda sizes, f: f(Bounds(0, sizes["n"])),
    "reduce": _fold,
    "scan": _fold,
    "idx": lambda _, i, xs: xs,
}
