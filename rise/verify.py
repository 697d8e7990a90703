"""The check between passes: every application fits, every identifier has its binder's type."""

from __future__ import annotations

from collections.abc import Mapping

from rise.errors import RiseError
from rise.expr import Apply, Expr, Identifier, Lambda, children
from rise.types import Function, Type


def verify(term: Expr, bound: Mapping[str, Type] | None = None) -> None:
    """Raises an internal error where a term is not well typed; free identifiers may have any type."""
    scope = bound or {}
    match term:
        case Apply(function, argument):
            type_, given = function.type, argument.type
            if not isinstance(type_, Function) or _differ(type_.parameter, given):
                raise _internal(f"an argument of type `{given}` for `{type_}`", term)
            verify(function, scope)
            verify(argument, scope)
        case Identifier(name, type_):
            if name in scope and _differ(scope[name], type_):
                raise _internal(f"`{name}` has the type `{type_}`, its binder `{scope[name]}`", term)
        case Lambda(parameter, body):
            verify(body, {**scope, parameter.name: parameter.type})
        case _:
            for child in children(term):
                verify(child, scope)


def _differ(one: Type, other: Type) -> bool:
    """Nearly all are the same object, which is faster to see."""
    return one is not other and one != other


def _internal(message: str, term: Expr) -> RiseError:
    return RiseError("R0699", f"a term is not well typed: {message}", getattr(term, "origin", None))
