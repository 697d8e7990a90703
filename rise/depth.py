"""How deep terms may be: a sum of 49 products, an unrolled stencil, is 100 levels of terms.

Each level takes up to twenty frames of Python, which by itself stops at a thousand. Frames of Python lie on
the heap, so more of them are safe; what is too deep even then is R0014.
"""

from __future__ import annotations

import sys

from rise.errors import RiseError

FRAMES = 10_000  # terms of some 500 levels; those of C that lie between take a quarter of its stack


def allow_deep_terms() -> None:
    """Raises Python's limit, which holds for the whole process; it is never lowered."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)


def too_deep() -> RiseError:
    return RiseError(
        "R0014",
        "the program is nested too deeply for this compiler",
        hint="name parts of it by definitions; where none has hundreds of levels, the compiler is wrong: "
        "report it with what `--debug` prints",
    )
