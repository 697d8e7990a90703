"""RISE: a typed functional array language, its interpreter and its diagnostics.

    import rise

    program = rise.load("gemm.rise")        # a mapping of names to definitions
    program.matmul(A, B)                    # on NumPy arrays, by the interpreter

`rise.define` makes a definition of a Python function. All primitives, types and kinds are here too,
`rise.map`, `rise.f32`; to import them by name, `rise.ops` is the better place. Nothing is imported
before it is used.
"""

from __future__ import annotations

import os
import sys

# `python -m rise` would look for every module in the working directory first, and run a `numpy.py` that lies
# there. That folder is left out, unless the compiler itself is there; nothing else is imported before this.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    _here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path and os.path.abspath(sys.path[0]) == os.path.abspath("") != _here:
        del sys.path[0]

from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from rise.embed import Definition, Program, TracingError, define, expression, load, parse
    from rise.errors import RiseError

__version__ = "0.1.0"

# where the public names are that are not in rise.ops
_HOMES = {"RiseError": "rise.errors"} | dict.fromkeys(
    ("Definition", "Program", "TracingError", "define", "expression", "load", "parse"), "rise.embed"
)

__all__ = ["Definition", "Program", "RiseError", "TracingError", "define", "expression", "load", "parse"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "ops":
        return import_module("rise.ops")
    if not name.startswith("_"):
        home = import_module(_HOMES.get(name, "rise.ops"))
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module 'rise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "ops"})
