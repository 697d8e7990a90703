"""Arithmetic of one number at a time, from its definition: the scalar half of `rise.testing.naive`.

Integers and truth values are Python's, floats are NumPy scalars of their type, whose sums and products
round to it. What is rounded once in the end is computed in fractions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rise.errors import EvaluationError
from rise.interpret.inputs import dtype_of
from rise.testing.operands import range_of
from rise.types import Scalar

Number = Any  # int, bool, or a scalar of NumPy


def number(value: int | float | bool, type_: Scalar) -> Number:
    """A Python number as one of the type: integers wrap, floats round."""
    if type_.name == "bool":
        return bool(value)
    if type_.is_float:
        return dtype_of(type_).type(value)
    low, high = (int(bound) for bound in range_of(type_))
    return (int(value) - low) % (high - low + 1) + low


def is_nan(x: Number) -> bool:
    return bool(x != x)


def is_finite(x: Number) -> bool:
    return abs(float(x)) < float("inf")


def _rounded(exact: Fraction, type_: Scalar) -> Number:
    """The nearest number of a float type, the even one of two."""
    import numpy as np

    try:
        near = dtype_of(type_).type(float(exact))
    except OverflowError:
        return dtype_of(type_).type(np.inf if exact > 0 else -np.inf)
    if not is_finite(near):
        return near
    infinity = dtype_of(type_).type(np.inf)
    around = [near, *(np.nextafter(near, end) for end in (infinity, -infinity))]

    def distance(x: Number) -> tuple[Fraction, int]:
        unsigned = np.dtype(f"u{dtype_of(type_).itemsize}")
        return abs(Fraction(float(x)) - exact), int(np.asarray(x).view(unsigned)) & 1

    return min((x for x in around if is_finite(x)), key=distance)


def _tf32(x: Number) -> Number:
    """The nearest number of 11 digits (fewer below 2^-126), the larger one of two."""
    import numpy as np

    if not is_finite(x) or is_nan(x):
        return x
    _, exponent = math.frexp(float(x))
    last = 2.0 ** max(exponent - 11, -136)  # in f64, where all of this is exact
    nearest = math.copysign(math.floor(abs(float(x)) / last + 0.5) * last, float(x))
    return np.float32(nearest if abs(nearest) < 2.0**128 else math.copysign(math.inf, nearest))


def fused(type_: Scalar, x: Number, y: Number, z: Number) -> Number:
    """x * y + z, rounded once."""
    if not type_.is_float:
        return number(x * y + z, type_)
    if not (is_finite(x) and is_finite(y) and is_finite(z)):
        return number(float(x) * float(y) + float(z), type_)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    # the sign of a zero is that of the floating-point sum
    return _rounded(exact, type_) if exact else number(float(x) * float(y) + float(z), type_)


def _of(operation: Callable[[Any, Any], Any]) -> Callable[[Scalar, Number, Number], Number]:
    return lambda type_, x, y: number(operation(x, y), type_)


def _quotient(type_: Scalar, x: Number, y: Number) -> Number:
    """Towards zero, of integers."""
    import numpy as np

    if type_.is_float:
        return np.divide(x, y)
    if y == 0:
        raise EvaluationError("R0504", "division by zero")
    magnitude = abs(x) // abs(y)
    return number(magnitude if (x < 0) == (y < 0) else -magnitude, type_)


def _remainder(type_: Scalar, x: Number, y: Number) -> Number:
    import numpy as np

    return np.fmod(x, y) if type_.is_float else number(x - y * _quotient(Scalar("i64"), x, y), type_)


def _power(type_: Scalar, x: Number, y: Number) -> Number:
    import numpy as np

    if type_.is_float:
        return np.power(x, y)
    if y >= 0:
        return number(x**y, type_)
    if x == 0:
        raise EvaluationError("R0504", "0 to a negative power")
    return number(x**-y, type_) if abs(x) == 1 else 0


def _choice(name: str) -> Callable[[Scalar, Number, Number], Number]:
    """min or max; of a number and NaN, the number."""

    def of(type_: Scalar, x: Number, y: Number) -> Number:
        if is_nan(x) or is_nan(y):
            return y if is_nan(x) else x
        return (y if y < x else x) if name == "min" else (y if y > x else x)

    return of


def _function(name: str) -> Callable[[Scalar, Number], Number]:
    """A function of NumPy, computed in a wider type."""

    def of(type_: Scalar, x: Number) -> Number:
        import numpy as np

        wide = np.float32 if type_.name in ("f16", "bf16") else np.float64
        ratios = {"rsqrt": lambda a: 1 / np.sqrt(a), "reciprocal": lambda a: 1 / a}
        function = ratios.get(name) or getattr(np, name)
        flushes = name in ("exp2", "reciprocal") and type_.name == "f32"
        tiny = np.finfo(np.float32).tiny if flushes else 0

        def normal(a: Any) -> Any:
            return np.copysign(wide(0), a) if abs(a) < tiny else a

        found = normal(function(normal(wide(x))))
        return found.astype(dtype_of(type_)) if type_.is_float else converted(Scalar("f64"), type_, found)

    return of


def _whole(name: str) -> Callable[[Scalar, Number], Number]:
    def of(type_: Scalar, x: Number) -> Number:
        import numpy as np

        return getattr(np, name)(x) if type_.is_float else x

    return of


def converted(source: Scalar, target: Scalar, x: Number) -> Number:
    """To integers by truncation, beyond their range the nearest of them, of NaN 0."""
    if target.name == "bool":
        return bool(x != 0)
    if target.name == "tf32":
        return _tf32(converted(source, Scalar("f32"), x))
    if target.is_float:
        # an integer rounds once
        return _rounded(Fraction(int(x)), target) if isinstance(x, int) else x.astype(dtype_of(target))
    if not source.is_float:
        return number(x, target)
    low, high = (int(bound) for bound in range_of(target))
    if is_nan(x):
        return 0
    return min(max(int(float(x)) if is_finite(x) else (high if x > 0 else low), low), high)


def _comparison(name: str) -> Callable[[Scalar, Number, Number], bool]:
    compare = getattr(operator, name)
    return lambda _, x, y: bool(compare(x, y))


SCALARS: Mapping[str, Callable[..., Number]] = {
    "add": _of(operator.add),
    "sub": _of(operator.sub),
    "mul": _of(operator.mul),
    "div": _quotient,
    "mod": _remainder,
    "pow": _power,
    "fma": fused,
    "neg": lambda type_, x: number(-x, type_),
    "abs": lambda type_, x: number(abs(x), type_),
    "min": _choice("min"),
    "max": _choice("max"),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "round": _whole("rint"),
    **{
        name: _function(name)
        for name in ("exp", "exp2", "log", "sqrt", "rsqrt", "reciprocal", "tanh", "sin", "cos")
    },
    **{name: _comparison(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
}
