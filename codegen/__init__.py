"""Low-level programs to CUDA: translated, printed, emulated, run on a GPU.

`codegen.compile` makes a program a Python function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codegen.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]


def __getattr__(name: str) -> Any:
    """Imports lazily."""
    if name in __all__:
        from codegen import compiled

        return getattr(compiled, name)
    raise AttributeError(f"module 'codegen' has no attribute {name!r}")
