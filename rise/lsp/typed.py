"""Which type stands where: of a definition that is right from its term, of another as far as can be inferred.

Inference stops at the first mistake. Here it goes on: what is wrong stands for any value of the type that is
expected in its place, and an unknown name for any value at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from rise.check.context import NOWHERE, Context
from rise.check.elaborate import Elaborator
from rise.check.inference import Inference
from rise.check.scope import Scope, annotation, bind_kind
from rise.errors import RiseError
from rise.expr import Definition, Expr, Identifier, Lambda, spine, subterms
from rise.source import Span, place
from rise.syntax import surface as s
from rise.types import Function, Pair, Type

# a span without its text
Extent = tuple[int, int, int, int]


def extent(span: Span) -> Extent:
    return span.line, span.column, span.end_line, span.end_column


@dataclass(frozen=True)
class Typed:
    """The types of a definition's parts.

    parts:   with their spans, larger ones before those in them
    binders: of what patterns bind
    """

    parts: tuple[tuple[Span, Type], ...] = ()
    binders: Mapping[Extent, Type] = field(default_factory=dict)

    def at(self, line: int, column: int) -> tuple[Span, Type] | None:
        """The smallest part that holds a character; of several equal ones the outermost."""
        found = None
        for span, type_ in self.parts:
            inside = (span.line, span.column) <= (line, column) < (span.end_line, span.end_column)
            if inside and (found is None or _within(span, found[0])):
                found = span, type_
        return found

    def of(self, span: Span) -> Type | None:
        """The type of the part that is exactly there."""
        return next((type_ for part, type_ in self.parts if extent(part) == extent(span)), None)


def _within(inner: Span, outer: Span) -> bool:
    first, last = extent(inner), extent(outer)
    return first != last and first[:2] >= last[:2] and first[2:] <= last[2:]


# --- definitions that are right -----------------------------------------------------------------------


def typed(definition: Definition) -> Typed:
    parts: list[tuple[Span, Type]] = []
    binders: dict[Extent, Type] = {}
    for term in subterms(definition.body):
        if (span := place(term.origin)) is not None:
            parts.append((span, term.type))
        if isinstance(term, Lambda) and (span := place(term.parameter.origin)) is not None:
            binders[extent(span)] = term.parameter.type
    return Typed(tuple(parts), binders)


# --- others -------------------------------------------------------------------------------------------


class Observer(Elaborator):
    """Inference that goes on behind mistakes, and keeps what it sees.

    hole: a name for which the scope and the type are kept, where a program is still to be written
    """

    def __init__(self, hole: str | None = None) -> None:
        super().__init__(pattern_variables={})
        self.parts: list[tuple[Span, Expr]] = []
        self.binders: dict[Extent, Type] = {}
        self.hole = hole
        self.found: tuple[Scope, Type] | None = None

    def for_trial(self) -> Inference:
        return Elaborator(self.unifier.copy(), self.pattern_variables, self.size_variables, trial=True)

    def name(self, node: s.Name, scope: Scope) -> Expr:
        if node.name != self.hole:
            return super().name(node, scope)
        self.found = scope, self.unifier.type()
        return Identifier(node.name, self.found[1], node.span)

    def check(self, node: s.Surface, expected: Type, scope: Scope, context: Context = NOWHERE) -> Expr:
        try:
            return self._seen(node, super().check(node, expected, scope, context), scope)
        except RiseError:
            return Identifier("?", expected, node.span)

    def infer(self, node: s.Surface, scope: Scope) -> Expr:
        try:
            return self._seen(node, super().infer(node, scope), scope)
        except RiseError:
            return Identifier("?", self.unifier.type(), node.span)

    def _seen(self, node: s.Surface, term: Expr, scope: Scope) -> Expr:
        self.parts.append((node.span, term))
        for value in scope.values.values():
            if isinstance(value, Identifier) and (span := place(value.origin)) is not None:
                self.binders[extent(span)] = value.type
        return term

    def typed(self) -> Typed:
        """What is known in the end. Parts are found from the inside out, and given from the outside in."""
        with suppress(RiseError):
            self.unifier.finish()
        resolve = self.unifier.resolve
        parts = []
        for span, term in reversed(self.parts):
            head = spine(term)[0]  # the function of a call has its own place
            for where, part in ((span, term), (place(head.origin), head)):
                with suppress(RiseError):  # what is applied may have turned out to be no function
                    parts += [(where, resolve(part.type))] if where is not None else []
        return Typed(tuple(parts), {where: resolve(type_) for where, type_ in self.binders.items()})


def observe(observer: Observer, syntax: s.DefinitionSyntax, definitions: Mapping[str, Definition]) -> None:
    """Runs inference over a definition, as `check_definition` does, to the end."""
    scope = Scope(definitions=definitions)
    for written in syntax.implicit:
        with suppress(RiseError):
            scope = bind_kind(written, scope)
    expected = None
    if syntax.annotation is not None:
        with suppress(RiseError):
            expected = annotation(syntax.annotation, scope)
    if expected is None:
        observer.infer(syntax.body, scope)
    else:
        observer.check(syntax.body, expected, scope)


# --- patterns -----------------------------------------------------------------------------------------


def pattern_types(syntax: s.DefinitionSyntax, found: Typed) -> Iterator[tuple[s.NamePattern, Type]]:
    """The names that the patterns of a definition bind, with their types."""
    for patterns in _patterns(syntax.body):
        whole = found.binders.get(_covering(patterns))
        if len(patterns) > 1 and whole is not None:  # a list that takes a pair apart
            yield from _listed(patterns, whole)
            continue
        for pattern in patterns:
            type_ = found.binders.get(extent(pattern.span))
            if type_ is not None:
                yield from _parts(pattern, type_)


def _covering(patterns: tuple[s.Pattern, ...]) -> Extent:
    return extent(patterns[0].span)[:2] + extent(patterns[-1].span)[2:]


def _listed(patterns: tuple[s.Pattern, ...], type_: Type) -> Iterator[tuple[s.NamePattern, Type]]:
    first, *rest = patterns
    if rest and isinstance(type_, Pair):
        yield from _parts(first, type_.first)
        yield from _listed(tuple(rest), type_.second)
    elif not rest:
        yield from _parts(first, type_)


def _parts(pattern: s.Pattern, type_: Type) -> Iterator[tuple[s.NamePattern, Type]]:
    if isinstance(pattern, s.NamePattern):
        yield pattern, type_
    elif isinstance(type_, Pair):
        yield from _parts(pattern.first, type_.first)
        yield from _parts(pattern.second, type_.second)


def _patterns(node: s.Surface) -> Iterator[tuple[s.Pattern, ...]]:
    """The lists of parameters in an expression, and what its `let`s bind."""
    match node:
        case s.Function(parameters, body):
            yield parameters
            yield from _patterns(body)
        case s.Let(pattern, value, body):
            yield (pattern,)
            yield from _patterns(value)
            yield from _patterns(body)
        case s.DependentFunction(_, body) | s.Annotated(body) | s.Unary(_, body):
            yield from _patterns(body)
        case s.Binary(_, left, right) | s.Compose(left, right) | s.Tuple(left, right):
            yield from _patterns(left)
            yield from _patterns(right)
        case s.Call(function, arguments):
            for part in (function, *arguments):
                yield from _patterns(part)
        case _:
            pass


def result_of(type_: Type, parameters: int) -> Type:
    """What a function returns when it is given so many values."""
    for _ in range(parameters):
        if isinstance(type_, Function):
            type_ = type_.result
    return type_
