"""How deep terms may be: a sum of 49 products, an unrolled stencil, is 100 levels of terms.

Each level takes up to twenty frames of Python, which by itself stops at a thousand. Frames of Python lie on
the heap, so more of them are safe; what is too deep even then is R0014.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from rise.errors import RiseError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

FRAMES = 10_000  # terms of some 500 levels; those of C that lie between take a quarter of its stack
WORDS = 1 << 17  # of the stack of frames, which is taken at once: 1 MB, of which only what is used is touched


OBJECTS = 100_000  # more than before that make Python look for cycles among the youngest; by default 700


def allow_deep_terms() -> None:
    """Raises Python's limit, which holds for the whole process; it is never lowered."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)


def deep(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function for deep terms: with Python's limit raised, and room for frames taken beforehand.

    Python takes memory for frames in pieces of 16 KB and gives each back as soon as it is empty. Where a
    recursion goes back and forth over such a border, that is two calls of the operating system for every
    call of a function, a fifth of the time of a derivation. A frame that itself needs much room makes Python
    take one large piece, in which all the frames above it lie.
    """

    def with_room(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        allow_deep_terms()
        with collected_rarely():
            return function(*arguments, **named)

    with_room.__code__ = with_room.__code__.replace(co_stacksize=WORDS)
    return wraps(function)(with_room)


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Inside, Python looks for cycles of garbage after more objects: terms are many, and have none.

    Looking through them takes a sixth of the time of a derivation. What is set otherwise meanwhile stays.
    """
    before = gc.get_threshold()
    rarely = (max(before[0], OBJECTS), *before[1:])
    if not gc.isenabled() or before[0] in (0, rarely[0]):  # whoever has turned it off wants it so
        yield
        return
    gc.set_threshold(*rarely)
    try:
        yield
    finally:
        if gc.get_threshold() == rarely:
            gc.set_threshold(*before)


def too_deep() -> RiseError:
    return RiseError(
        "R0014",
        "the program is nested too deeply for this compiler",
        hint="name parts of it by definitions; where none has hundreds of levels, the compiler is wrong: "
        "report it with what `--debug` prints",
    )
