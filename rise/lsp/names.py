"""What each name of a file means: from the syntax alone, so that it is known of programs that are wrong.

Definitions are visible everywhere in a file here, though they may be used only further down: that is an
error of its own, and what is meant is clear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from rise.primitives.declare import lookup
from rise.source import Span
from rise.syntax import surface as s
from rise.syntax.words import words


class Sort(Enum):
    """What a name stands for; the values are the types of semantic tokens."""

    DEFINITION = "function"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    SIZE = "typeParameter"
    PRIMITIVE = "macro"
    TYPE = "type"


@dataclass(frozen=True)
class Binding:
    """Where a name gets its meaning; `span` is None where the language itself gives it."""

    name: str
    sort: Sort
    span: Span | None = None


@dataclass(frozen=True)
class Occurrence:
    """A name in the text; `binds` where it is the name that is bound."""

    span: Span
    binding: Binding
    binds: bool = False


Scope = Mapping[str, Binding]


def occurrences(file: s.FileSyntax, imported: Mapping[str, Span | None]) -> list[Occurrence]:
    """Every name of a file that means something, in the order of the text.

    imported: the definitions of imported files, and where they are
    """
    scope = {name: Binding(name, Sort.DEFINITION, span) for name, span in imported.items()}
    for definition in reversed(file.definitions):
        scope[definition.name] = Binding(definition.name, Sort.DEFINITION, definition.name_span)
    found = {}
    for definition in file.definitions:
        for occurrence in _definition(definition, scope):
            found[_key(occurrence.span)] = occurrence  # a parameter is one of the type and of the body
    return [found[key] for key in sorted(found)]


def _key(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column


def name_span(name: str, node: Span) -> Span:
    """The name at the start of a node: of `x: f32`, or of `n: Nat`."""
    return Span(node.source, node.line, node.column, node.line, node.column + len(name))


def _definition(definition: s.DefinitionSyntax, scope: Scope) -> Iterator[Occurrence]:
    own = Binding(definition.name, Sort.DEFINITION, definition.name_span)
    yield Occurrence(definition.name_span, own, binds=True)
    scope = {**scope, definition.name: own}
    yield from _kinded(definition.implicit)
    scope = {**scope, **_sizes(definition.implicit)}
    if definition.annotation is not None:
        yield from _type(definition.annotation, scope)
    yield from _expression(definition.body, scope)


def _kinded(names: tuple[s.KindedName, ...]) -> Iterator[Occurrence]:
    for name in names:
        where = name_span(name.name, name.span)
        yield Occurrence(where, Binding(name.name, Sort.SIZE, where), binds=True)
        line, end = name.span.end_line, name.span.end_column
        kind = Span(name.span.source, line, end - len(name.kind), line, end)
        yield Occurrence(kind, Binding(name.kind, Sort.TYPE))


def _sizes(names: tuple[s.KindedName, ...]) -> dict[str, Binding]:
    return {n.name: Binding(n.name, Sort.SIZE, name_span(n.name, n.span)) for n in names}


# --- expressions ------------------------------------------------------------------------------------


def _expression(node: s.Surface, scope: Scope) -> Iterator[Occurrence]:
    match node:
        case s.Name(name, span):
            yield from _use(name, span, scope)
        case s.Binary(_, left, right) | s.Compose(left, right) | s.Tuple(left, right):
            yield from _expression(left, scope)
            yield from _expression(right, scope)
        case s.Unary(_, operand):
            yield from _expression(operand, scope)
        case s.Call(function, arguments):
            for part in (function, *arguments):
                yield from _expression(part, scope)
        case s.Function(parameters, body):
            yield from _patterns(parameters, Sort.PARAMETER, body, scope)
        case s.Let(pattern, value, body):
            yield from _expression(value, scope)
            yield from _patterns((pattern,), Sort.VARIABLE, body, scope)
        case s.DependentFunction(names, body):
            yield from _kinded(names)
            yield from _expression(body, {**scope, **_sizes(names)})
        case s.NatLambda(name, size, span):
            yield from _nat_lambda(name, size, span, scope)
        case s.Annotated(expression, type_):
            yield from _expression(expression, scope)
            yield from _type(type_, scope)
        case s.TypeApplication():
            yield from _type(node, scope)
        case _:
            pass


def _patterns(
    patterns: tuple[s.Pattern, ...], sort: Sort, body: s.Surface, scope: Scope
) -> Iterator[Occurrence]:
    names = [name for pattern in patterns for name in names_of(pattern)]
    bound = {n.name: Binding(n.name, sort, name_span(n.name, n.span)) for n in names}
    for name in names:
        binding = bound[name.name]
        yield Occurrence(name_span(name.name, name.span), binding, binds=True)
        if name.annotation is not None:
            yield from _type(name.annotation, scope)
    yield from _expression(body, {**scope, **bound})


def names_of(pattern: s.Pattern) -> Iterator[s.NamePattern]:
    if isinstance(pattern, s.NamePattern):
        yield pattern
    else:
        yield from names_of(pattern.first)
        yield from names_of(pattern.second)


def _nat_lambda(name: str, size: s.SurfaceType, span: Span, scope: Scope) -> Iterator[Occurrence]:
    """`natFun(i => …)`; the name is on the first line, wherever somebody writes it."""
    column = span.source.line(span.line).find(name, span.column - 1 + len("natFun"))
    if column >= 0:
        place = Span(span.source, span.line, column + 1, span.line, column + 1 + len(name))
        binding = Binding(name, Sort.SIZE, place)
        yield Occurrence(place, binding, binds=True)
        yield from _type(size, {**scope, name: binding})


def _use(name: str, span: Span, scope: Scope) -> Iterator[Occurrence]:
    if name in scope:
        yield Occurrence(span, scope[name])
    elif lookup(name) is not None:
        yield Occurrence(span, Binding(name, Sort.PRIMITIVE))
    elif name in TYPES:
        yield Occurrence(span, Binding(name, Sort.TYPE))


TYPES = frozenset(name for sort in ("kind", "type", "constructor", "constant") for name in words()[sort])


# --- types --------------------------------------------------------------------------------------------


def _type(node: s.SurfaceType, scope: Scope) -> Iterator[Occurrence]:
    match node:
        case s.TypeName(name, span):
            if name in TYPES and name not in scope:
                yield Occurrence(span, Binding(name, Sort.TYPE))
            elif (binding := scope.get(name)) is not None and binding.sort is Sort.SIZE:
                yield Occurrence(span, binding)
        case s.TypeApplication(name, arguments, span):
            if name in TYPES:
                yield Occurrence(name_span(name, span), Binding(name, Sort.TYPE))
            for argument in arguments:
                yield from _type(argument, scope)
        case s.TypeArray(a, b) | s.TypePair(a, b) | s.TypeFunction(a, b) | s.TypeOperation(_, a, b):
            yield from _type(a, scope)
            yield from _type(b, scope)
        case s.TypeDependent(names, _, result):
            yield from _kinded(names)
            yield from _type(result, {**scope, **_sizes(names)})
        case _:
            pass
