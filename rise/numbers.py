"""Numbers of a scalar type: how literals become some, and which there are."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite, isinf, isnan

from rise.types import F64, Scalar

# characters of a number that a program writes, exponent and point included; a size of 2^40 has 13
LONGEST = 400
# characters of a number that a message shows
SHOWN = 40
# of a float type: the binary digits of its numbers, and the exponent of the least that is not zero
FLOATS = {
    "f16": (11, -24),
    "bf16": (8, -133),
    "tf32": (11, -136),
    "f32": (24, -149),
    "f64": (53, -1074),
}
# of a float type: numbers from two to the power of this on are infinite
_OVERFLOW = {"f16": 16, "bf16": 128, "tf32": 128, "f32": 128, "f64": 1024}


class Written(float):
    """A decimal fraction as a program writes it: the nearest f64, and what it is exactly.

    Rounded to a narrower type it is rounded once, from the text. None is meant to be infinite.
    """

    text: str

    def __new__(cls, text: str) -> Written:
        written = super().__new__(cls, text)
        written.text = str(text)
        return written

    @property
    def exact(self) -> Fraction | float:
        """The fraction; an f64 where it is too large or too small for any type."""
        return Fraction(Decimal(self.text)) if isfinite(self) and self else float(self)


def rounded(value: float | Fraction, type_: Scalar) -> float:
    """The nearest number of a float type, of two the even one; beyond its range infinity."""
    exact = value.exact if isinstance(value, Written) else value
    if isinstance(exact, float) and not (isfinite(exact) and exact):
        return exact
    fraction, (digits, least) = Fraction(exact), FLOATS[type_.name]
    if not fraction:
        return 0.0
    magnitude = abs(fraction)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    nearest = round(magnitude / unit) * unit
    number = float("inf") if nearest >= 2 ** _OVERFLOW[type_.name] else float(nearest)
    return -number if fraction < 0 else number


def literal(value: float, type_: Scalar) -> float:
    """An f64 that rounds to what a literal is as a number of its float type: the written one if it does."""
    near, wanted = rounded(value, F64), rounded(value, type_)
    return near if rounded(near, type_) == wanted or isnan(near) else wanted


def bounds(type_: Scalar) -> tuple[int, int]:
    """The lowest and the highest number of an integer type."""
    values = 1 << type_.bits
    return (0, values - 1) if type_.name.startswith("u") else (-values // 2, values // 2 - 1)


def largest(type_: Scalar) -> float:
    """The largest finite number of a float type."""
    return float(2 ** _OVERFLOW[type_.name] - 2 ** (_OVERFLOW[type_.name] - FLOATS[type_.name][0]))


def fits(value: float, type_: Scalar) -> bool:
    """Whether a number that a program writes is within the range of a type; infinity is of any float type."""
    if not type_.is_float:
        low, high = bounds(type_)
        return low <= value <= high
    is_meant = isinstance(value, float) and isinf(value) and not isinstance(value, Written)
    return is_meant or not isinf(rounded(value, type_))


def written(value: float) -> str:
    """A number of a program as its text has it; of very long ones, how many digits there are."""
    if isinstance(value, int) and abs(value) >= 10**SHOWN:
        return f"of about {round(value.bit_length() * 0.30103)} digits"
    text = value.text if isinstance(value, Written) else str(value).replace("inf", "infinity")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def range_text(type_: Scalar) -> str:
    """Which numbers a type has, for a hint."""
    if type_.is_float:
        return f"its largest number is {largest(type_)!r}; `infinity` is the number beyond all of them"
    low, high = bounds(type_)
    return f"its values are {low} to {high}"


def wrapped(value: int, type_: Scalar) -> int:
    """A whole number as one of an integer type, as a conversion gives it."""
    low, _ = bounds(type_)
    return (value - low) % (1 << type_.bits) + low
