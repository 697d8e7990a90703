"""Identifiers of printed kernels, chosen so that names from the program cannot clash with others.

Names have three origins, each with a form of its own:

* A kernel is called `NAME_kernel` or `NAME_kernel_2`, and a C function whose text the program gives
  `NAME_foreign`. Neither the headers that kernels include nor the C library nor CUDA define such names.
* Inputs, sizes and variables of the program keep a name of one letter, such as `A`, also with a number, such
  as `x_1`. Other names get a trailing underscore: `rows_`, `assert_`. Neither the language nor the headers
  of C, C++, POSIX and CUDA nor this compiler use names of these forms; C's macro `I` is harmless here.
* For its own variables, such as `thread_x` and `ring`, the compiler uses words that no header defines.

A name derived from another keeps its form: `A_start`, `rows_start_`.
"""

from __future__ import annotations

import re

KEPT = re.compile(r"(?!I\b)[A-Za-z](_[0-9]+)?")
# names that the printed text takes from its headers, and that the compiler would use for its variables
RESERVED = frozenset("output group lane member".split())


def of_user(name: str) -> str:
    """The identifier for a name of the program: in ASCII, and not reserved by C."""
    ascii_ = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):x}" for c in name)
    word = re.sub("_+", "_", ascii_).strip("_")
    if not word or word[0].isdigit():
        word = f"x{word}"
    return word if KEPT.fullmatch(word) else f"{word}_"


def of_kernel(name: str) -> str:
    """The identifier of the kernel of a program with that name."""
    word = of_user(name).removesuffix("_")
    return word if word.endswith("_kernel") else f"{word}_kernel"


def of_function(name: str) -> str:
    """The identifier of a C function whose text the program gives."""
    return f"{of_user(name).removesuffix('_')}_foreign"


def derived(name: str, part: str | int) -> str:
    """`A_start` from `A`, `rows_start_` from `rows_`."""
    return f"{name}{part}_" if name.endswith("_") else f"{name}_{part}"


def shown(name: str) -> str:
    """The name as messages show it, which is the program's own."""
    return name.removesuffix("_")
