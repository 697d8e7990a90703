"""Definitions with parameters, and the functions and types that they stand for.

`def f(n: Nat)(x: s, y: t): u = e` is `def f: (n: Nat) -> s -> t -> u = (n: Nat) => x => y => e`. Where a
parameter or the result shows no type, there is no type of the whole: `def f(x, y: t): u = e` is
`def f = x => (y: t) => (e: u)`. A list of parameters is always curried here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rise.source import Span
from rise.syntax.surface import (
    Annotated,
    DefinitionSyntax,
    DependentFunction,
    Function,
    KindedName,
    NamePattern,
    Pattern,
    Surface,
    SurfaceType,
    TypeDependent,
    TypeFunction,
    TypeName,
    without_places,
)
from rise.types import Kind

KINDS = frozenset(kind.value for kind in Kind)
# the sizes, types … of one list, or one value
Binder = tuple[KindedName, ...] | Pattern
Names = Sequence[KindedName | Pattern]


@dataclass(frozen=True)
class Header:
    """What a definition shows on both sides of its `=`."""

    binders: tuple[Binder, ...]
    result: SurfaceType | None
    body: Surface


def binders(patterns: Iterable[Pattern]) -> tuple[Binder, ...]:
    """The parameters of one list: those whose annotation is a kind are sizes, types …"""
    found: list[Binder] = []
    for pattern in patterns:
        match pattern:
            case NamePattern(name, TypeName(kind), span) if kind in KINDS:
                named = KindedName(name, kind, span)
                if found and isinstance(found[-1], tuple):
                    found[-1] = (*found[-1], named)
                else:
                    found.append((named,))
            case _:
                found.append(pattern)
    return tuple(found)


def lists(binders: Iterable[Binder]) -> list[Names]:
    """As they are written: neighbouring values share their parentheses."""
    found: list[Names] = []
    for binder in binders:
        if isinstance(binder, tuple):
            found.append(binder)
        elif found and not isinstance(found[-1][0], KindedName):
            found[-1] = (*found[-1], binder)
        else:
            found.append((binder,))
    return found


def function(names: Names, body: Surface, span: Span) -> Surface:
    """The function of one list."""
    sizes = tuple(name for name in names if isinstance(name, KindedName))
    if sizes:
        return DependentFunction(sizes, body, span)
    return Function(tuple(name for name in names if not isinstance(name, KindedName)), body, span)


def with_parameters(header: Header) -> tuple[SurfaceType | None, Surface]:
    """The type, where all parameters and the result show theirs, and the function."""
    result, body = header.result, header.body
    if result is not None and not all(map(_is_typed, header.binders)):
        body, result = Annotated(body, result, body.span), None
    for binder in reversed(header.binders):
        names: Names = binder if isinstance(binder, tuple) else (binder,)
        start = names[0].span
        if result is not None and isinstance(binder, tuple):
            result = TypeDependent(binder, False, result, _covering(start, result.span))
        elif result is not None and isinstance(binder, NamePattern) and binder.annotation is not None:
            result = TypeFunction(binder.annotation, result, _covering(start, result.span))
            names = (replace(binder, annotation=None),)
        body = function(names, body, _covering(start, body.span))
    return result, body


def header_of(definition: DefinitionSyntax) -> Header:
    """The parameters that a definition can show: `with_parameters` makes the definition of them again."""
    found: list[Binder] = []
    type_, body = definition.annotation, definition.body
    while True:
        match body, type_:
            case DependentFunction(names, inner), None:
                found.append(names)
                body = inner
            case DependentFunction(names, inner), TypeDependent(kinded, False, result) if _same(
                names, kinded
            ):
                found.append(names)
                body, type_ = inner, result
            case Function((pattern,), inner), None:
                found.append(pattern)
                body = inner
            case Function((NamePattern(_, None) as name,), inner), TypeFunction(parameter, result) if (
                not _is_kind(parameter)
            ):
                found.append(replace(name, annotation=parameter))
                body, type_ = inner, result
            case Annotated(inner, result), None if not all(map(_is_typed, found)):
                return Header(tuple(found), result, inner)
            case _:
                return Header(tuple(found), type_, body)


def curried(definition: DefinitionSyntax) -> DefinitionSyntax:
    """The same definition; lists that its type, or that there is none, makes curried are so written."""
    implicit, type_ = definition.implicit, definition.annotation
    while isinstance(type_, TypeDependent) and type_.implicit:
        implicit, type_ = (*implicit, *type_.parameters), type_.result
    body = _curried(definition.body, type_)
    return replace(definition, implicit=implicit, annotation=type_, body=body)


def _curried(body: Surface, type_: SurfaceType | None) -> Surface:
    match body, type_:
        case DependentFunction(_, inner), None:
            return replace(body, body=_curried(inner, None))
        case DependentFunction(names, inner), TypeDependent(kinded, False, result) if _same(names, kinded):
            return replace(body, body=_curried(inner, result))
        case Function(patterns, inner), None:
            return _nested(patterns, _curried(inner, None), body.span)
        case Function((_,), inner), TypeFunction(_, result):
            return replace(body, body=_curried(inner, result))
        case Function(patterns, inner), TypeFunction(_, TypeFunction()):
            for _ in patterns:
                if not isinstance(type_, TypeFunction):
                    return _nested(patterns, inner, body.span)
                type_ = type_.result
            return _nested(patterns, _curried(inner, type_), body.span)
        case _:
            return body


def _nested(patterns: Sequence[Pattern], body: Surface, span: Span) -> Surface:
    for pattern in reversed(patterns):
        body = function((pattern,), body, span)
    return body


def _is_typed(binder: Binder) -> bool:
    return isinstance(binder, tuple) or (isinstance(binder, NamePattern) and binder.annotation is not None)


def _is_kind(type_: SurfaceType) -> bool:
    return isinstance(type_, TypeName) and type_.name in KINDS


def _same(names: tuple[KindedName, ...], others: tuple[KindedName, ...]) -> bool:
    return bool(without_places(names) == without_places(others))


def _covering(first: Span, last: Span) -> Span:
    return Span(first.source, first.line, first.column, last.end_line, last.end_column)
