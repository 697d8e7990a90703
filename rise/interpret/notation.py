"""Values as text: `[1, 2]` for arrays (vectors, fragments), `(1, true)` for pairs, `nan`, `inf`."""

from __future__ import annotations

from typing import Any

from rise.interpret.inputs import Plain
from rise.types import Array, Fragment, Pair, Type, Vector


def notation(type_: Type, value: Plain) -> str:
    """A plain value of a data type. An array of pairs is shown as one, though it is kept as two arrays."""
    match type_:
        case Array(_, element) | Vector(_, element):
            return _row(element, value)
        case Fragment(_, columns, _, element, _):
            return _row(Array(columns, element), value)
        case Pair(first, second):
            return f"({notation(first, value[0])}, {notation(second, value[1])})"
        case _:
            number = value.item() if hasattr(value, "item") else value
            return str(number).lower() if isinstance(number, bool) else repr(number)


def _row(element: Type, value: Plain) -> str:
    return f"[{', '.join(notation(element, _at(value, i)) for i in range(_length(value)))}]"


def _at(value: Plain, position: int) -> Any:
    return tuple(_at(v, position) for v in value) if isinstance(value, tuple) else value[position]


def _length(value: Plain) -> int:
    return _length(value[0]) if isinstance(value, tuple) else len(value)
