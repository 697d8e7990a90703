"""How large a size may become: what is beyond is refused by name, before it costs time or memory.

Sizes are numbers up to 2^40 in the end. What a program writes on the way there may be larger, though not
without bound: `2^2^2^2^2^2` has more digits than there is memory.
"""

from __future__ import annotations

from fractions import Fraction

from rise.errors import RiseError
from rise.source import Origin

BITS = 4096  # of a number; 1233 digits
DEGREE = 1 << 20  # of a power of one variable
EXPONENT = 32  # of a sum that is multiplied out
TERMS = 160  # of a sum that is multiplied out
PRODUCTS = 1 << 13  # of terms, in one multiplication
EXTENT = 120  # variables and operations, everything written out


class TooLarge(RiseError):
    """R0411: a size that is beyond a bound. Whoever knows the place adds it."""

    def __init__(self, what: str) -> None:
        super().__init__("R0411", f"a size is too large to be computed: {what}")

    def at(self, origin: Origin) -> TooLarge:
        """With a place, unless there is one: the innermost knows best."""
        self.origin = self.origin or origin
        return self


def check_power(base: int | Fraction, exponent: int) -> None:
    digits = max(base.numerator.bit_length(), base.denominator.bit_length())
    check_bits(0 if base in (0, 1, -1) else digits * abs(exponent))


def check_bits(bits: int) -> None:
    if bits > BITS:
        raise TooLarge(f"it would have more than {int(BITS * 0.30103)} digits")


def check_degree(degree: int) -> None:
    if abs(degree) > DEGREE:
        raise TooLarge("it is a power with an exponent beyond 2^20")


def check_expanded(exponent: int) -> None:
    if exponent > EXPONENT:
        raise TooLarge(f"a sum would be multiplied out {exponent} times")


def check_terms(terms: int) -> None:
    if terms > TERMS:
        raise TooLarge(f"multiplied out, it is a sum of more than {TERMS} products")


def check_products(products: int) -> None:
    if products > PRODUCTS:
        raise TooLarge(f"a product of sums takes more than {PRODUCTS} multiplications")


def check_extent(extent: int) -> None:
    if extent > EXTENT:
        raise TooLarge(f"written out, it has more than {EXTENT} parts")
