"""From traced values to definitions: names made final, sizes generalised, types checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rise.check.elaborate import Elaborator, Scope
from rise.check.program import generalise
from rise.embed import errors
from rise.embed.entities import Symbol
from rise.embed.errors import TracingError
from rise.embed.naming import finish
from rise.embed.traced import Traced, uses_of
from rise.expr import Definition
from rise.source import Span
from rise.syntax import surface as s
from rise.types import Parameter

Sizes = Traced | Iterable[Traced]


def close(value: Traced, name: str, span: Span, sizes: Sizes = ()) -> Definition:
    """The definition of a traced value that is complete."""
    if not name.isidentifier():
        raise TracingError(errors.DEFINED, f"`{name}` is no name of a definition", span)
    explicit = [_explicit(size, span) for size in ([sizes] if isinstance(sizes, Traced) else sizes)]
    named = finish(value.expression, uses_of(value))
    _check_names((*explicit, *named.symbols), span)
    syntax = named.syntax
    if explicit:
        kinded = tuple(s.KindedName(x.name, x.kind.value, span) for x in explicit)
        syntax = s.DependentFunction(kinded, syntax, span)
    leading = tuple(Parameter(x.name, x.kind, True) for x in named.symbols if x not in explicit)
    return checked(name, syntax, leading, named.definitions, span)


def checked(
    name: str,
    syntax: s.Surface,
    leading: tuple[Parameter, ...],
    definitions: Mapping[str, Definition],
    span: Span,
) -> Definition:
    """Infers and generalises; `leading` are the implicit parameters that have names already."""
    elaborator = Elaborator()
    scope = Scope(definitions=definitions)
    for parameter in leading:
        scope = scope.with_kind(parameter.name, parameter.kind)
    body = elaborator.infer(syntax, scope)
    whole = s.DefinitionSyntax(name, (), None, syntax, span, span)
    return generalise(name, body, leading, elaborator.unifier, whole)


def _explicit(size: Any, span: Span) -> Symbol:
    entities = list(size._uses.values()) if isinstance(size, Traced) else []
    if len(entities) != 1 or not isinstance(entities[0], Symbol) or not isinstance(size.expression, s.Name):
        message = "`sizes` lists the parameters that callers give"
        raise TracingError(errors.DEFINED, message, span, 'write `sizes=(m, n)`, with `m, n = Nat("m n")`')
    return entities[0]


def _check_names(symbols: tuple[Symbol, ...], span: Span) -> None:
    kinds: dict[str, Symbol] = {}
    for each in symbols:
        other = kinds.setdefault(each.name, each)
        if other != each:
            message = f"`{each.name}` is a {other.kind.value} and a {each.kind.value}"
            raise TracingError(errors.DEFINED, message, span, "give one of them another name")
