"""NumPy, imported at its first use: `rise --help` and `rise check` must not wait 80 ms for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """Stands for the module until an attribute is wanted, then keeps that attribute."""

        def __getattr__(self, name: str) -> Any:
            attribute = getattr(import_module("numpy"), name)
            setattr(self, name, attribute)
            return attribute

    np = _Numpy()

__all__ = ["np"]
