"""How wide the numbers of a program are, which decides how many of them a thread moves at once."""

from __future__ import annotations

from collections.abc import Iterator

from rise.expr import Expr, Identifier, subterms
from rise.types import Array, Index, Pair, Scalar, Type, Vector
from strategies.memory_bound.blocks import WIDEST


def widest(term: Expr) -> int:
    """The bytes of the widest numbers in the arrays that a program reads and writes."""
    read = (part.type for part in subterms(term) if isinstance(part, Identifier))
    found = (bytes_ for type_ in (term.type, *read) for bytes_ in _widths(type_, in_array=False))
    return max(found, default=1)


def widest_vector(term: Expr) -> int:
    """How many of them a thread moves at once."""
    return max(1, WIDEST // widest(term))


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
