"""Numbers as text: read within a bound, shown within a line."""

from __future__ import annotations

# of a number that a program writes, exponent and point included; a size of 2^40 has 13
LONGEST = 400
# of a number that a message shows
SHOWN = 40


def shown(value: int | float) -> str:
    """The digits of a number, or how many there are."""
    if isinstance(value, float) or abs(value) < 10**SHOWN:
        return str(value)
    return f"of about {round(value.bit_length() * 0.30103)} digits"
