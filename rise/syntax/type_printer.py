"""Prints types, sizes and patterns as written, and puts the comments around whatever is printed.

The tree is walked in the order of the text. Each node gives out the comments in front of it before
it is set and those behind it afterwards, so that none is lost wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rise.document import LINE_END, SPACE, Align, Document, Suffix, concat, fill, group, join
from rise.source import Span
from rise.syntax import layout
from rise.syntax import surface as s
from rise.syntax.comments import Comment, Comments, Place
from rise.syntax.layout import ATOM

# how tightly types and sizes bind
ARROW, ARRAY, SIZE_SUM, SIZE_PRODUCT, SIZE_POWER, TYPE_ATOM = range(6)
SIZE_LEVELS = {
    "+": SIZE_SUM, "-": SIZE_SUM, "*": SIZE_PRODUCT, "/": SIZE_PRODUCT, "%": SIZE_PRODUCT, "^": SIZE_POWER,
}  # fmt: skip
FUNCTIONS = (s.Function, s.DependentFunction)
Node = s.Surface | s.SurfaceType | s.Pattern | s.KindedName
# how tightly it binds, and how it is set
Shown = tuple[int, Document]


def start_of(span: Span) -> Place:
    return span.line, span.column


def end_of(span: Span) -> Place:
    return span.end_line, span.end_column


@dataclass
class TypePrinter:
    """`ends`: where the nodes that are being set end, the outermost first."""

    comments: Comments
    ends: list[Place] = field(default_factory=list)

    def with_comments(self, node: Node, level: int) -> Document:
        """The document of a node, parenthesised if it binds less tightly than `level`."""
        end = end_of(node.span)
        before = in_front(self.comments.before(start_of(node.span)))
        self.ends.append(end)
        own, document = self.shown(node)
        self.ends.pop()
        after = behind(self.comments.behind(end, self.ends[-1] if self.ends else None))
        if own < level:
            document = layout.parenthesised(document, hugged=isinstance(node, FUNCTIONS))
        return concat(*before, document, *after) if before or after else document

    def remark(self, word: str) -> Document:
        """A line comment on a word between two nodes, as `=>`."""
        return concat(*behind(self.comments.behind_word(word)))

    def shown(self, node: Node) -> Shown:
        """The document of a node, and how tightly it binds."""
        match node:
            case s.NamePattern() | s.PairPattern():
                return ATOM, self._pattern(node)
            case s.KindedName(name, kind):
                return ATOM, f"{name}: {kind}"
            case s.TypeName(name):
                return TYPE_ATOM, name
            case s.TypeNumber(value):
                return TYPE_ATOM, str(value)
            case s.TypeOperation("-", s.TypeNumber(0), operand):
                return SIZE_SUM, concat("-", self.type(operand, SIZE_PRODUCT))
            case s.TypeOperation(operator, left, right):
                return self._size(operator, left, right)
            case s.TypeArray(size, element):
                return ARRAY, concat(self.type(size, _factor(size)), ".", self.type(element, ARRAY))
            case s.TypePair():
                parts = components(node)
                return TYPE_ATOM, concat("(", Align(self._types(parts)), ")")
            case s.TypeApplication(name, arguments):
                return ATOM, concat(f"{name}[", Align(self._types(arguments)), "]")
            case s.TypeFunction() | s.TypeDependent():
                return ARROW, self._arrows(node)
            case _:
                raise NotImplementedError(f"{type(node).__name__} is no type")

    def _pattern(self, node: s.Pattern) -> Document:
        match node:
            case s.NamePattern(name, annotation):
                return name if annotation is None else concat(f"{name}: ", self.type(annotation))
            case s.PairPattern():
                parts = components(node)
                return concat("(", join(", ", [self.with_comments(p, ATOM) for p in parts]), ")")

    def type(self, node: s.SurfaceType, level: int = ARROW) -> Document:
        return self.with_comments(node, level)

    def _types(self, nodes: Iterable[s.SurfaceType]) -> Document:
        return group(join(concat(",", SPACE), [self.type(node) for node in nodes]))

    def _size(self, operator: str, left: s.SurfaceType, right: s.SurfaceType) -> Shown:
        """Products are set tight, sums are not: `2*n + 1`."""
        level = SIZE_LEVELS.get(operator)
        if level is None:
            return TYPE_ATOM, concat(f"{operator}(", self.type(left), ", ", self.type(right), ")")
        power = level == SIZE_POWER
        before = self.type(left, level + power)
        after = self.type(right, level + (not power))
        sign = operator if operator in "*^" else f" {operator} "
        return level, concat(before, sign, after)

    def _arrows(self, node: s.SurfaceType) -> Document:
        """`{n: Nat} -> s -> t`, as many on a line as fit."""
        parts: list[Document] = []
        while True:
            match node:
                case s.TypeFunction(parameter, result):
                    parts.append(self.type(parameter, ARRAY))
                case s.TypeDependent(parameters, implicit, result):
                    opening, closing = "{}" if implicit else "()"
                    names = join(", ", [self.with_comments(p, ATOM) for p in parameters])
                    parts.append(concat(opening, names, closing))
                case _:
                    parts.append(self.type(node))
                    return fill(" ->", parts)
            node = result


def in_front(comments: Iterable[Comment]) -> list[Document]:
    return [
        concat(Suffix(c.text) if c.is_line else c.text, LINE_END if c.ends_line else " ") for c in comments
    ]


def behind(comments: Iterable[Comment]) -> list[Document]:
    return [Suffix(c.text) if c.is_line else f" {c.text}" for c in comments]


def components(node: Any) -> list[Any]:
    """`(a, b, c)` is `(a, (b, c))`; the inner pair has parentheses if it ends before the outer one."""
    parts, pair, end = [], type(node), end_of(node.span)
    while isinstance(node, pair) and end_of(node.span) == end:
        parts.append(node.first)
        node = node.second
    return [*parts, node]


def _factor(size: s.SurfaceType) -> int:
    """A computed size of an array is parenthesised for the reader: `(n + 1).f32`."""
    return TYPE_ATOM if isinstance(size, s.TypeOperation) else SIZE_SUM
