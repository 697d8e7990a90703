"""Identifiers of printed kernels, so that what a program calls its own never means something else.

Names come from three sides, which differ in form:

* A kernel is called `NAME_kernel`, or `NAME_kernel_2`, a C function whose text a program gives
  `NAME_foreign`. No header that kernels include has such a name, and neither have the C library and CUDA.
* Of what a program names, inputs, sizes, variables, a name of one letter stays, `A`, and so does one with a
  number behind it, `x_1`. Any other gets an underscore at its end: `rows_`, `assert_`. Neither the language,
  nor C's, C++'s, POSIX's and CUDA's headers, nor this compiler has names of these forms: the one exception,
  C's macro `I`, is no exception here.
* What the compiler names itself, `thread_x`, `ring`, it names with words that the headers leave free.

What is derived from a name keeps its form: `A_start`, `rows_start_`.
"""

from __future__ import annotations

import re

KEPT = re.compile(r"(?!I\b)[A-Za-z](_[0-9]+)?")
# what kernels' text uses of its headers, among the words that the compiler takes for its variables
RESERVED = frozenset("output group lane member".split())


def of_user(name: str) -> str:
    """The identifier for a name that a program gives: in ASCII, and without what C reserves for itself."""
    ascii_ = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):x}" for c in name)
    word = re.sub("_+", "_", ascii_).strip("_")
    if not word or word[0].isdigit():
        word = f"x{word}"
    return word if KEPT.fullmatch(word) else f"{word}_"


def of_kernel(name: str) -> str:
    """The identifier of the kernel of a program that has a name."""
    word = of_user(name).removesuffix("_")
    return word if word.endswith("_kernel") else f"{word}_kernel"


def of_function(name: str) -> str:
    """The identifier of a C function whose text a program gives."""
    return f"{of_user(name).removesuffix('_')}_foreign"


def derived(name: str, part: str | int) -> str:
    """`A_start` of `A`, `rows_start_` of `rows_`."""
    return f"{name}{part}_" if name.endswith("_") else f"{name}_{part}"


def shown(name: str) -> str:
    """The name as messages give it: the program's own."""
    return name.removesuffix("_")
