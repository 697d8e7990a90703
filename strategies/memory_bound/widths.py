"""How wide the numbers of a program are, which decides how many of them a thread moves at once."""

from __future__ import annotations

from collections.abc import Iterator

from rise.expr import Expr, Identifier, call, subterms
from rise.types import Array, Index, Pair, Scalar, Type, Vector
from strategies.memory_bound.blocks import WIDEST

REDUCTION = 3  # arguments: operator, neutral element, array


def widest(term: Expr) -> int:
    """The bytes of the widest numbers in the arrays that a program reads and writes."""
    read = (part.type for part in subterms(term) if isinstance(part, Identifier))
    found = (bytes_ for type_ in (term.type, *read) for bytes_ in _widths(type_, in_array=False))
    return max(found, default=1)


def widest_of_rows(term: Expr) -> int:
    """The same for a map over rows: where each gives a number, only what is read is moved as vectors."""
    applied = call(term)
    numbers = isinstance(term.type, Array) and isinstance(term.type.element, Scalar)
    return widest(applied[2][0] if numbers and applied is not None and applied[0] == "map" else term)


def narrowest_matrix(type_: Type) -> int:
    """The bytes of the narrowest numbers in the rows of an array; a number beside each row does not count."""
    rows = type_.element if isinstance(type_, Array) else type_
    return min(_widths(rows, in_array=False), default=1)


def widest_vector(term: Expr) -> int:
    """How many of them a thread moves at once."""
    return max(1, WIDEST // widest(term))


def reduces_numbers(term: Expr) -> bool:
    """Whether all reductions are of numbers, which vectors can hold, and not of pairs."""
    calls = (call(part) for part in subterms(term))
    reduced = (c[2][2].type for c in calls if c is not None and c[0] == "reduce" and len(c[2]) == REDUCTION)
    return all(isinstance(type_, Array) and isinstance(type_.element, Scalar) for type_ in reduced)


def _widths(type_: Type, in_array: bool) -> Iterator[int]:
    match type_:
        case Array(_, element) | Vector(_, element):
            yield from _widths(element, in_array=True)
        case Pair(first, second):
            yield from (*_widths(first, in_array), *_widths(second, in_array))
        case Scalar() if in_array:
            yield type_.bytes
        case Index() if in_array:
            yield 4
