"""Operations on single numbers, for loops over scalars: those that NumPy's scalars do not have as C does.

They give the bits that `rise.interpret.operations` gives on arrays, in a tenth of the time. What is an
error there is left to it: `LeftToEvaluator`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from struct import Struct
from typing import Any

from rise.interpret.inputs import dtype_of, stored_as
from rise.interpret.lazily import np
from rise.types import Scalar

Number = Any  # a scalar of NumPy

DOUBLE, BITS = Struct("d"), Struct("q")


class LeftToEvaluator(Exception):
    """A number that the operation is not defined on: the evaluator knows the place, and says so."""


def quotient(a: Number, b: Number) -> Number:
    """Truncated, of integers."""
    if b == 0:
        raise LeftToEvaluator
    floor = a // b
    return floor + type(floor)(1) if floor < 0 and floor * b != a else floor


def remainder(a: Number, b: Number) -> Number:
    """With the sign of the first, of integers."""
    if b == 0:
        raise LeftToEvaluator
    return np.fmod(a, b)


def fused(scalar: Scalar) -> Callable[[Number, Number, Number], Number]:
    """a * b + c in a type of which f64 holds all products; the sum rounded to odd, and then once more."""
    stored = conversion(Scalar("f64"), scalar)

    def fma(a: Number, b: Number, c: Number) -> Number:
        product, added = float(a) * float(b), float(c)
        total = product + added
        part = total - product
        rest = (product - (total - part)) + (added - part)
        if rest and isfinite(total) and isfinite(rest):
            (bits,) = BITS.unpack(DOUBLE.pack(total))
            if bits & 1 == 0:
                towards = 1 if (rest > 0) == (total > 0) else -1
                (total,) = DOUBLE.unpack(BITS.pack(bits + towards))
        return stored(np.float64(total))

    return fma


def conversion(source: Scalar, target: Scalar) -> Callable[[Number], Number]:
    """As `cast` converts."""
    dtype = dtype_of(target)
    if target.name == "bool":
        return lambda x: x != 0
    if source.is_float and not target.is_float:
        return _to_integer(target)
    if target.name == "bf16" and source.bits >= 32 and source.name != "f32":
        return lambda x: stored_as(x, target)[()]
    return lambda x: x.astype(dtype)


def _to_integer(target: Scalar) -> Callable[[Number], Number]:
    """Truncated; NaN is 0, and what is out of range the nearest there is."""
    type_ = dtype_of(target).type
    bounds = np.iinfo(type_)
    low, high = int(bounds.min), int(bounds.max)

    def converted(x: Number) -> Number:
        value = float(x)
        if isfinite(value):
            return type_(max(low, min(high, int(value))))
        return type_(high if value > 0 else low if value < 0 else 0)

    return converted


def index_within(size: int) -> Callable[[Number], Number]:
    """An integer as an index of an array of that size."""

    def index(x: Number) -> Number:
        if not 0 <= x < size:
            raise LeftToEvaluator
        return np.int64(x)

    return index
