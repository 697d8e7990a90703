"""What elements are in one interpretation, to see that two of them differ.

Arithmetic is that of fractions; a symbol that nothing is known of is a number drawn for it and its arguments.
The operator of a `reduce` is addition, or multiplication where 1 is neutral: it has what `reduce` asks for.
That of a `scan`, which need not be commutative, appends words to each other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from zlib import crc32

from rise.symbolic.values import (
    FALSE,
    TRUE,
    UNDEFINED,
    Abstraction,
    Applied,
    Case,
    Sequence,
    Unmodelled,
    Value,
)


class Undefined(Exception):
    """An element that the program may not depend on, or a quotient by zero."""


ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "min": min, "max": max, "abs": abs, "fma": lambda a, b, c: a * b + c,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
    "and": lambda a, b: bool(a and b), "or": lambda a, b: bool(a or b),
}  # fmt: skip


class Word(tuple[Any, ...]):
    """Several numbers in order; the empty one is neutral."""

    __slots__ = ()


def concatenated(first: Any, second: Any) -> Any:
    letters = [letter for part in (first, second) for letter in (part if isinstance(part, Word) else (part,))]
    return letters[0] if len(letters) == 1 else Word(letters)


@dataclass
class Interpretation:
    """operators: what the operators of reductions mean
    neutral:   what is neutral for them, by name
    drawn:     the primitives whose results were drawn: laws of theirs may not hold
    """

    operators: Mapping[str, Callable[..., Any]]
    neutral: Mapping[str, Any]
    seed: int = 0
    drawn: set[str] = field(default_factory=set)
    _known: dict[int, tuple[Value, Any]] = field(default_factory=dict)

    def number(self, element: Value) -> Any:
        """Raises Undefined where it has no value."""
        if not isinstance(element, Applied | Case | Sequence):
            return self._part(element)
        if id(element) not in self._known:
            self._known[id(element)] = (element, self._computed(element))
        return self._known[id(element)][1]

    def _computed(self, element: Value) -> Any:
        match element:
            case Case(condition, then, otherwise):
                return self.number(then if self.number(condition) else otherwise)
            case Applied(symbol, arguments):
                return self._applied(symbol, tuple(map(self.number, arguments)), element)
            case _:
                return self._part(element)

    def _applied(self, symbol: str, arguments: tuple[Any, ...], element: Applied) -> Any:
        if element is UNDEFINED:
            raise Undefined
        if element is TRUE or element is FALSE:
            return element is TRUE
        name = symbol.split(":", maxsplit=1)[0]
        if symbol in self.operators:
            return self.operators[symbol](*arguments)
        if ":" in symbol and name in ARITHMETIC:
            return ARITHMETIC[name](*arguments)
        if ":" in symbol and name == "div":
            if not arguments[1]:
                raise Undefined
            return Fraction(arguments[0]) / arguments[1]
        if ":" in symbol and name == "cast":
            return arguments[0]
        if not arguments:
            return self.neutral.get(symbol, _literal(symbol, self._drawn(symbol)))
        if ":" in symbol:
            self.drawn.add(name)
        return self._drawn(f"{symbol}{arguments}")

    def _drawn(self, text: str) -> int:
        return crc32(f"{self.seed} {text}".encode()) % 1999 - 999

    def _part(self, value: Value) -> Any:
        match value:
            case Sequence(int() as size):
                return tuple(self.number(value.at(i)) for i in range(size))
            case tuple():
                return tuple(map(self.number, value))
            case int():
                return value
            case Abstraction():
                raise Unmodelled("an opaque function of functions")
            case _:
                raise Unmodelled("a value that depends on unknown sizes")


def _literal(symbol: str, otherwise: int) -> Fraction | int:
    try:
        return Fraction(symbol)
    except ValueError:
        return otherwise
