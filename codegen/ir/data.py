"""Types that can be stored: data, as opposed to functions, and the elements of arrays."""

from __future__ import annotations

from rise.errors import TranslationError
from rise.expr import Expr
from rise.types import Array, Data, Dependent, Fragment, Function, Vector


def data(expr: Expr) -> Data:
    """The type of an expression that is stored or read."""
    if isinstance(expr.type, Function | Dependent):
        raise TranslationError("R0799", f"internal: `{expr.type}` is not data", expr.origin)
    return expr.type


def element_type(type_: Data) -> Data:
    """The element type of an array, a vector or a fragment."""
    if isinstance(type_, Array | Vector | Fragment):
        return type_.element
    raise TranslationError("R0799", f"internal: `{type_}` has no elements")
