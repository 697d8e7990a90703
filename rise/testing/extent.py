"""How large data of a type is: generated programs stay fast, and have no empty arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rise.testing.solve import LARGEST
from rise.types import Array, Fragment, Function, Index, Pair, Scalar, Type, Vector

MOST = 256  # scalars in a value


@lru_cache(maxsize=4096)
def is_small(type_: Type) -> bool:
    """Whether no array in the type is empty or very large, and vectors and fragments hold numbers."""
    return 0 < _elements(type_) <= MOST


def _elements(type_: Any) -> int:
    """How many scalars there are in data of a type; 0 where a size is out of bounds."""
    match type_:
        case Array(size, element) | Vector(size, element):
            value = size.value or 0
            if isinstance(type_, Vector) and not isinstance(element, Scalar):
                return 0
            return value * _elements(element) if 0 < value <= LARGEST else 0
        case Pair(first, second):
            parts = _elements(first), _elements(second)
            return sum(parts) if all(parts) else 0
        case Index(size):
            return int((size.value or 0) > 0)
        case Fragment(rows, columns, other, element, _):
            if not all(isinstance(t, Scalar) for t in _components(element)):
                return 0
            return (rows.value or 0) * (columns.value or 0) * _elements(element) * ((other.value or 0) > 0)
        case Function(parameter, result):
            parts = _elements(parameter), _elements(result)
            return max(parts) if all(parts) else 0
        case _:
            return 1


def _components(type_: Type) -> tuple[Type, ...]:
    return (*_components(type_.first), *_components(type_.second)) if isinstance(type_, Pair) else (type_,)
