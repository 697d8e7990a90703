"""From lark's trees to the nodes of `rise.syntax.surface`: a method per rule of the grammar.

Trees are taken as they come, by `data`, `children` and `meta`, so that lark need not be imported
here and none of its objects is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rise.errors import ParseError
from rise.numbers import LONGEST, Written
from rise.source import Source, Span
from rise.syntax.definitions import Header, binders, curried, function, lists, with_parameters
from rise.syntax.layout import INFINITY
from rise.syntax.mistakes import no_parameter
from rise.syntax.surface import (
    Annotated,
    Binary,
    Call,
    Compose,
    DefinitionSyntax,
    DependentFunction,
    FileSyntax,
    ImportSyntax,
    KindedName,
    Let,
    Name,
    NamePattern,
    NatLambda,
    Number,
    Operator,
    PairPattern,
    Pattern,
    Surface,
    Text,
    Tuple,
    TypeApplication,
    TypeArray,
    TypeDependent,
    TypeFunction,
    TypeName,
    TypeNumber,
    TypeOperation,
    TypePair,
    Unary,
)

Children = list[Any]
N = TypeVar("N")


@dataclass(frozen=True)
class Group:
    """Patterns between parentheses, until it is known whether they are parameters or a pair."""

    patterns: tuple[Pattern | Group, ...]
    span: Span


def build(source: Source, tree: Any, first: int = 1) -> Any:
    """Builds from the leaves up, without recursion: a long program is deep.

    first: the line of the source that the tree's text begins on
    """
    builder = Builder(source, first)
    built: dict[int, Any] = {}
    for subtree in tree.iter_subtrees():
        children = [built.get(id(child), child) for child in subtree.children]
        built[id(subtree)] = getattr(builder, subtree.data)(children, builder.span(subtree.meta))
    return built[id(tree)]


def span(source: Source, place: Any, first: int | None = None) -> Span:
    """The extent of a token, or of a tree by its `meta`; that of an empty file is its start.

    first: the line that the parsed text begins on, where it is only a part of the source
    """
    above = (source.first if first is None else first) - 1
    if getattr(place, "empty", False):
        return Span(source, 1 + above, 1, 1 + above, 1)
    return Span(source, place.line + above, place.column, place.end_line + above, place.end_column)


class Builder:
    """Each method makes the node for one rule from the rule's children, already built."""

    def __init__(self, source: Source, first: int) -> None:
        self.source = source
        self.first = first

    def span(self, place: Any) -> Span:
        """The extent in the whole source."""
        return span(self.source, place, self.first)

    # --- files ---

    def file(self, children: Children, _: Span) -> FileSyntax:
        imports = tuple(c for c in children if isinstance(c, ImportSyntax))
        definitions = tuple(c for c in children if isinstance(c, DefinitionSyntax))
        return FileSyntax(imports, definitions)

    def import_file(self, children: Children, extent: Span) -> ImportSyntax:
        return ImportSyntax(str(children[0])[1:-1], extent)

    def definition(self, children: Children, extent: Span) -> DefinitionSyntax:
        name, *header, body = children
        implicit = tuple(p for part in header if isinstance(part, tuple) for p in part)
        groups = [part for part in header if isinstance(part, Group)]
        [result] = [part for part in header if not isinstance(part, tuple | Group)] or [None]
        parameters = tuple(b for g in groups for b in binders(map(_pattern, g.patterns)))
        type_, body = with_parameters(Header(parameters, result, body))
        return curried(DefinitionSyntax(str(name), implicit, type_, body, extent, self.span(name)))

    def braces(self, children: Children, _: Span) -> tuple[KindedName, ...]:
        (names,) = children
        return tuple(names)

    # --- expressions ---

    def name(self, children: Children, extent: Span) -> Name:
        return Name(str(children[0]), extent)

    def number(self, children: Children, extent: Span) -> Number:
        return Number(_number(children[0], extent), extent)

    def negative(self, children: Children, extent: Span) -> Number:
        return Number(_number(f"-{children[1]}", extent), extent)

    def truth(self, children: Children, extent: Span) -> Number:
        return Number(children[0] == "true", extent)

    def text(self, children: Children, extent: Span) -> Text:
        return Text(str(children[0])[1:-1], extent)

    def operator(self, children: Children, extent: Span) -> Operator:
        return Operator(str(children[0]), extent)

    def binary(self, children: Children, extent: Span) -> Binary:
        left, operator, right = children
        return Binary(str(operator), left, right, extent)

    def unary(self, children: Children, extent: Span) -> Unary:
        return Unary(str(children[0]), children[1], extent)

    def call(self, children: Children, extent: Span) -> Call:
        return Call(children[0], tuple(children[1:]), extent)

    def piped(self, children: Children, extent: Span) -> Call:
        argument, function = children
        return Call(function, (argument,), extent, piped=True)

    def composition(self, children: Children, extent: Span) -> Compose:
        return Compose(children[0], children[1], extent)

    def annotated(self, children: Children, extent: Span) -> Annotated:
        return Annotated(children[0], children[1], extent)

    def pair(self, children: Children, extent: Span) -> Tuple:
        return _nested(Tuple, children, extent)

    def let(self, children: Children, extent: Span) -> Let:
        pattern, value, body = children
        return Let(_pattern(pattern), value, body, extent)

    def function(self, children: Children, extent: Span) -> Surface:
        *patterns, body = children
        if len(patterns) == 1 and isinstance(patterns[0], Group):
            return _function(patterns[0].patterns, body, extent)
        for pattern in reversed(patterns):
            body = _function([pattern], body, extent)
        return body  # type: ignore[no-any-return]  # a fun has parameters

    def arrow(self, children: Children, extent: Span) -> Surface:
        *parameters, body = children
        return _function([self.parameter(p) for p in parameters], body, extent)

    def parameter(self, written: Any) -> Pattern:
        """What was read as an expression, in front of `=>`, as a pattern."""
        match written:
            case str():
                return NamePattern(str(written), None, self.span(written))
            case Name(name, extent):
                return NamePattern(name, None, extent)
            case Annotated(Name(name), type_, extent):
                return NamePattern(name, type_, extent)
            case Tuple(first, second, extent):
                return PairPattern(self.parameter(first), self.parameter(second), extent)
        raise no_parameter(written.span)

    def dependent_function(self, children: Children, extent: Span) -> DependentFunction:
        return DependentFunction(children[0], children[1], extent)

    def nat_lambda(self, children: Children, extent: Span) -> NatLambda:
        return NatLambda(str(children[0]), children[1], extent)

    def name_pattern(self, children: Children, extent: Span) -> NamePattern:
        name, *annotation = children
        return NamePattern(str(name), annotation[0] if annotation else None, extent)

    def pattern_group(self, children: Children, extent: Span) -> Group:
        return Group(tuple(children), extent)

    # --- types ---

    def kinded_names(self, children: Children, _: Span) -> tuple[KindedName, ...]:
        return tuple(children)

    def kinded_name(self, children: Children, extent: Span) -> KindedName:
        return KindedName(str(children[0]), str(children[1]), extent)

    def type_name(self, children: Children, extent: Span) -> TypeName:
        return TypeName(str(children[0]), extent)

    def type_number(self, children: Children, extent: Span) -> TypeNumber:
        return TypeNumber(int(_short(children[0], extent)), extent)

    def type_operation(self, children: Children, extent: Span) -> TypeOperation:
        left, operator, right = children
        return TypeOperation(str(operator), left, right, extent)

    def type_negation(self, children: Children, extent: Span) -> TypeOperation:
        return TypeOperation("-", TypeNumber(0, extent), children[1], extent)

    def size_function(self, children: Children, extent: Span) -> TypeOperation:
        operator, left, right = children
        return TypeOperation(str(operator), left, right, extent)

    def type_array(self, children: Children, extent: Span) -> TypeArray:
        return TypeArray(children[0], children[1], extent)

    def type_pair(self, children: Children, extent: Span) -> TypePair:
        return _nested(TypePair, children, extent)

    def type_application(self, children: Children, extent: Span) -> TypeApplication:
        return TypeApplication(str(children[0]), tuple(children[1:]), extent)

    def type_function(self, children: Children, extent: Span) -> TypeFunction:
        return TypeFunction(children[0], children[1], extent)

    def type_implicit(self, children: Children, extent: Span) -> TypeDependent:
        return TypeDependent(children[0], True, children[1], extent)

    def type_explicit(self, children: Children, extent: Span) -> TypeDependent:
        return TypeDependent(children[0], False, children[1], extent)


def _short(text: str, extent: Span) -> str:
    """R0105; nothing is read that is longer than any number that means something."""
    if len(text) > LONGEST:
        message = f"this number is {len(text)} characters long; no number may have more than {LONGEST}"
        raise ParseError("R0105", message, extent, "large and small numbers are written `1e-30`")
    return text


def _number(text: str, extent: Span) -> int | float:
    _short(text, extent)
    if text.endswith(INFINITY):
        return float(text)
    return int(text) if text.removeprefix("-").isdigit() else Written(text)


def _pattern(item: Pattern | Group) -> Pattern:
    """A group of one is that one; a larger group takes a pair apart."""
    if not isinstance(item, Group):
        return item
    patterns = [_pattern(p) for p in item.patterns]
    return patterns[0] if len(patterns) == 1 else _nested(PairPattern, patterns, item.span)


def _function(patterns: Iterable[Pattern | Group], body: Surface, extent: Span) -> Surface:
    """A function of one list of parameters; sizes and types are given on their own."""
    for names in reversed(lists(binders(map(_pattern, patterns)))):
        body = function(names, body, extent)
    return body


def _nested(pair: Callable[[Any, Any, Span], N], parts: Sequence[Any], extent: Span) -> N:
    """Nests to the right: `(a, b, c)` is `(a, (b, c))`, the inner pair from b to the end."""
    first, *rest = parts
    if len(rest) == 1:
        return pair(first, rest[0], extent)
    start: Span = rest[0].span
    inner = Span(extent.source, start.line, start.column, extent.end_line, extent.end_column)
    return pair(first, _nested(pair, rest, inner), extent)
