"""Which primitive of a family a program means: `makeArray(3)`, `foreignFunction("__expf", 1)`."""

from __future__ import annotations

from rise.declaration import Declaration, HostValue
from rise.errors import ScopeError
from rise.source import Span
from rise.syntax.surface import Number, Surface, Text


def resolve_member(
    declaration: Declaration, given: tuple[Surface, ...], span: Span
) -> tuple[Declaration, tuple[Surface, ...]]:
    """Of a family, the primitive that the leading numbers and texts say; and what else is given.

    R0206 where one of them is missing, R0204 where there is no such primitive.
    """
    if not declaration.is_family:
        return declaration, given
    values: list[HostValue] = []
    rest = list(given)
    for parameter in declaration.host:
        value = rest[0].value if rest and isinstance(rest[0], Number | Text) else None
        if isinstance(value, int | str) and type(value) is parameter.type:
            values.append(value)
            rest.pop(0)
        elif parameter.default is not None:
            values.append(parameter.default)
        else:
            raise _placed(declaration.incomplete(), rest[0].span if rest else span)
    try:
        return declaration.member(*values), tuple(rest)
    except ScopeError as error:
        raise _placed(error, span) from None


def _placed(error: ScopeError, span: Span) -> ScopeError:
    return ScopeError(error.code, error.message, span, lambda: error.hint)
