"""Numbers in a program: which types they may have, and which values a type has."""

from __future__ import annotations

from collections.abc import Iterator
from sys import float_info

from rise.check.difference import shown
from rise.check.mismatch import Demand
from rise.constraint import Constraint
from rise.errors import TypeMismatch
from rise.numerals import shown as numeral
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
                    raise TypeMismatch("R0306", f"the number {numeral(value)} is no index", place)
                yield Constraint(bound - (value + 1), None, place, f"the index {numeral(value)}")
        case Vector(_, Scalar() as element):
            yield from check(values, element, demand)
        case Variable() | Vector():
            pass
        case _:
            value, place = values[0]
            raise TypeMismatch(
                "R0305",
                f"the number {numeral(value)} is no `{shown(type_)}`",
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
    limit = 1 << type_.bits
    low, high = (0, limit - 1) if type_.name.startswith("u") else (-limit // 2, limit // 2 - 1)
    for value, place in values:
        if type_.is_float:
            if not isinstance(value, float) and value.bit_length() > float_info.max_exp:
                raise TypeMismatch("R0307", f"the number {numeral(value)} does not fit in `{type_}`", place)
            continue
        if isinstance(value, float):
            raise TypeMismatch(
                "R0306",
                f"the number {numeral(value)} is no whole number of type `{type_}`",
                place,
                "convert what it is combined with: `f32(…)`",
            )
        if not low <= value <= high:
            raise TypeMismatch(
                "R0307",
                f"the number {numeral(value)} does not fit in `{type_}`",
                place,
                f"its values are {low} to {high}",
            )
