"""Numbers in a program: which types they may have, and which values a type has."""

from __future__ import annotations

from collections.abc import Iterator

from rise.check.difference import shown
from rise.check.mismatch import Demand
from rise.constraint import Constraint
from rise.errors import TypeMismatch
from rise.numbers import fits, range_text, written
from rise.source import Origin
from rise.types import BOOL, TF32, Array, Index, Scalar, Type, Variable, Vector

# the numbers that share one type, each with its place
Numbers = list[tuple[int | float, Origin]]


def check(values: Numbers, type_: Type, demand: Demand) -> Iterator[Constraint]:
    """Raises where a number cannot be of the type; yields what an index asks of its bound."""
    match type_:
        case Scalar() if type_ not in (BOOL, TF32):
            _check_scalars(values, type_)
        case Index(bound):
            for value, place in values:
                if not isinstance(value, int):
                    raise TypeMismatch("R0306", f"the number {written(value)} is no index", place)
                yield Constraint(bound - (value + 1), None, place, f"the index {written(value)}")
        case Vector(_, Scalar() as element):
            yield from check(values, element, demand)
        case Variable() | Vector():
            pass
        case _:
            value, place = values[0]
            raise TypeMismatch(
                "R0305",
                f"the number {written(value)} is no `{shown(type_)}`",
                place,
                _hint(type_),
                notes=demand.notes,
            )


def _hint(type_: Type) -> str | None:
    if type_ == BOOL:
        return "write `true` or `false`"
    if type_ == TF32:
        return "`tf32(…)` rounds a number of f32; compute with `f32(…)`"
    return "`map` applies a function to every element of an array" if isinstance(type_, Array) else None


def _check_scalars(values: Numbers, type_: Scalar) -> None:
    for value, place in values:
        if isinstance(value, float) and not type_.is_float:
            raise TypeMismatch(
                "R0306",
                f"the number {written(value)} is no whole number of type `{type_}`",
                place,
                "convert what it is combined with: `f32(…)`",
            )
        if not fits(value, type_):
            message = f"the number {written(value)} does not fit in `{type_}`"
            raise TypeMismatch("R0307", message, place, range_text(type_))
