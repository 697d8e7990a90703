"""tf32 in NumPy: float32 whose low 13 bits are zero, which leaves 10 bits of the fraction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rise.interpret.lazily import np

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

DROPPED = 13
NAN = 0x7FFFE000  # the one NaN that rounding gives, without the bits that there are not


def rounded(array: Array) -> Array:
    """float32 rounded to the nearest tf32, halfway cases away from zero, as `cvt.rna.tf32.f32` does.

    Magnitudes are ordered as their bits are: adding half of the last place carries into it, from the
    largest binade into infinity, and where there is nothing to drop changes nothing.
    """
    bits = np.asarray(array, np.float32).view(np.uint32)
    with np.errstate(over="ignore"):
        nearest = (bits + np.uint32(1 << (DROPPED - 1))) & np.uint32(2**32 - (1 << DROPPED))
    result: Array = np.where(np.isnan(array), np.uint32(NAN), nearest).view(np.float32)
    return result


def unrounded(array: Array) -> Array:
    """Which of the numbers are not numbers of tf32."""
    wrong: Array = np.asarray(array, np.float32).view(np.uint32) & np.uint32((1 << DROPPED) - 1) != 0
    return wrong


def first_unrounded(array: Array) -> tuple[tuple[int, ...], float] | None:
    """The first of them, with its index; None where all are tf32."""
    wrong = unrounded(array)
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return place, float(np.asarray(array)[place])


def refusal(name: str, array: Array) -> str | None:
    """What is wrong with an input of type tf32, if anything."""
    found = first_unrounded(array)
    if found is None:
        return None
    place, value = found
    shown = f"{name}[{', '.join(map(str, place))}]" if place else name
    return f"`{shown}` = {value!r} is no tf32 number: it has more than 10 bits of fraction"


HINT = "let the program round: it takes f32, and says `tf32(x)`"
