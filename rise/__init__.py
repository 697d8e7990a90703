"""RISE: a typed functional array language, its interpreter and its diagnostics.

    import rise

    program = rise.load("gemm.rise")        # a mapping of names to definitions
    program.matmul(A, B)                    # on NumPy arrays, by the interpreter

`rise.define` makes a definition of a Python function. All primitives, types and kinds are here too,
`rise.map`, `rise.f32`; to import them by name, `rise.ops` is the better place. Nothing is imported
before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rise.embed import Program, TracingError, define, expression, load, parse
    from rise.errors import RiseError
    from rise.expr import Definition

__version__ = "0.1.0"

# where the public names are that are not in rise.ops
_HOMES = {"Definition": "rise.expr", "RiseError": "rise.errors"} | dict.fromkeys(
    ("Program", "TracingError", "define", "expression", "load", "parse"), "rise.embed"
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
