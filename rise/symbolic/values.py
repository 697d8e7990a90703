"""What programs compute when their elements stay open.

An array is its size and a function of an index, a pair is a tuple, a function is a function. A number of the
program is a term: an operation, or something opaque, applied to values; a choice; or the result of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rise.types import Array, Data, Fragment, Function, Pair, Type, Vector

# an index or a size: a number, or a term of z3; a condition on such
Whole = Any
Condition = Any
Value = Any  # Element, Whole, Sequence, a pair of values, or a function of a value
# where an element of a value is: 0 and 1 as `Member` in pairs, indices in arrays
Path = tuple[Any, ...]


class Unmodelled(Exception):
    """The program has something that symbolic evaluation does not know."""


@dataclass(frozen=True)
class Member:
    """The first or the second of a pair, in a path."""

    place: int


@dataclass(frozen=True, eq=False)
class Applied:
    """A symbol, which may end in `:type`, applied to values. Indices of an opaque array are arguments."""

    symbol: str
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Case:
    """One of two elements. The condition is one on indices, or an element that is a truth value."""

    condition: Condition
    then: Element
    otherwise: Element


@dataclass(frozen=True, eq=False)
class Fold:
    """An element of what is left of `start` after `step(accumulator, i)` for each i below the size, in order.

    type: of the accumulator
    path: which of its elements
    """

    size: Whole
    step: Callable[[Value, Whole], Value]
    start: Value
    type: Data
    path: Path


Element = Applied | Case | Fold
ELEMENTS = (Applied, Case, Fold)


@dataclass(frozen=True, eq=False)
class Sequence:
    """An array, a vector, or a row of a fragment. What was computed for an index is kept."""

    size: Whole
    compute: Callable[[Whole], Value]
    known: dict[Any, tuple[Whole, Value]] = field(default_factory=dict)

    def at(self, index: Whole) -> Value:
        # terms of z3 have no equality to look them up by; an index is kept, so that its number stays its own
        key = index if isinstance(index, int) else ("term", index.get_id())
        if key not in self.known:
            self.known[key] = (index, self.compute(index))
        return self.known[key][1]


@dataclass(frozen=True, eq=False)
class Abstraction:
    """A function as an argument of something opaque, with its type."""

    type: Function
    function: Callable[[Value], Value]


@dataclass(frozen=True)
class Contract:
    """What `reduce` and `scan` ask for: the operator is associative, and `neutral` is neutral.

    commutative: that of `reduce` is that, too
    """

    operator: Callable[[Value], Callable[[Value], Value]]
    neutral: Value
    type: Data
    commutative: bool = True


UNDEFINED = Applied("undefined")
TRUE, FALSE = Applied("true"), Applied("false")


def at(value: Value, path: Path) -> Value:
    """The part of a value at a path."""
    for place in path:
        value = value[place.place] if isinstance(place, Member) else value.at(place)
    return value


def dimensions(type_: Type) -> tuple[Any, Type] | None:
    """The size and the element type of what is indexed; the rows of a fragment are vectors."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return size, element
        case Fragment(rows, columns, _, element):
            return rows, Vector(columns, element)
        case _:
            return None


def replaced(value: Value, replace: Callable[[Whole], Whole]) -> Value:
    """The value with other indices in it."""
    match value:
        case Applied(symbol, arguments):
            return Applied(symbol, tuple(replaced(a, replace) for a in arguments)) if arguments else value
        case Case(condition, then, otherwise):
            return Case(replaced(condition, replace), replaced(then, replace), replaced(otherwise, replace))
        case Fold(size, step, start, type_, path):
            return Fold(
                replace(size),
                lambda accumulator, i: replaced(step(accumulator, i), replace),
                replaced(start, replace),
                type_,
                tuple(p if isinstance(p, Member) else replace(p) for p in path),
            )
        case Sequence(size):
            return Sequence(replace(size), lambda i: replaced(value.at(i), replace))
        case tuple():
            return tuple(replaced(part, replace) for part in value)
        case Abstraction(type_, function):
            return Abstraction(type_, lambda x: replaced(function(x), replace))
        case bool():
            return value
        case _:
            return replace(value)


def spread(size_of: Callable[[Any], Whole], type_: Type, leaf: Callable[[Path, Type], Value]) -> Value:
    """The value of a type whose part at each path, below arrays and pairs, is what the function gives."""

    def go(type_: Type, path: Path) -> Value:
        indexed = dimensions(type_)
        if indexed is not None:
            size, element = indexed
            return Sequence(size_of(size), lambda i: go(element, (*path, i)))
        if isinstance(type_, Pair):
            return go(type_.first, (*path, Member(0))), go(type_.second, (*path, Member(1)))
        return leaf(path, type_)

    return go(type_, ())


def shown(value: Value) -> str:
    """As a reader would write it: indices in brackets, other arguments in parentheses."""
    match value:
        case Applied(symbol, arguments):
            return _applied(symbol.split(":")[0], arguments)
        case Case(condition, then, otherwise):
            return f"select({shown(condition)})({shown(then)})({shown(otherwise)})"
        case Fold():
            return "a fold"
        case Sequence(int() as size):
            return f"[{', '.join(shown(value.at(i)) for i in range(size))}]"
        case tuple():
            return f"({', '.join(map(shown, value))})"
        case Sequence() | Abstraction():
            return "…"
        case _:
            return str(value)


INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _applied(name: str, arguments: tuple[Value, ...]) -> str:
    if name in INFIX and len(arguments) == 2:
        return f"({shown(arguments[0])} {INFIX[name]} {shown(arguments[1])})"
    text = name
    for argument in arguments:
        inside = shown(argument)
        whole = not isinstance(argument, (*ELEMENTS, Sequence, Abstraction, tuple))
        text += f"[{inside}]" if whole else f"({inside})"
    return text
