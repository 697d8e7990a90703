"""Programs as text, with the place of every term in it: what a page needs to show types and changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from rise.document import Mark, Occurrence, Place, render
from rise.expr import Expr, Identifier, located
from rise.pretty import Given, Unelaboration, names_used
from rise.source import Source, path_of
from rise.syntax import surface as s
from rise.syntax.comments import Comments
from rise.syntax.printer import Printer
from rise.syntax.type_printer import Node, Shown

Path = tuple[int, ...]
WIDTH = 100


@dataclass(frozen=True)
class Part:
    """A term where it is printed: its path in the program, and the characters that it covers."""

    term: Expr
    path: Path
    start: Place
    end: Place


@dataclass(frozen=True)
class Traced:
    """The text of a program, and its terms, the inner ones first."""

    text: str
    parts: tuple[Part, ...]

    def range_of(self, path: Path) -> tuple[Place, Place] | None:
        """From the first to the last character of what is printed of a term; None where nothing is."""
        inside = [part for part in self.parts if part.path[: len(path)] == path]
        if not inside:
            return None
        return min(part.start for part in inside), max(part.end for part in inside)


def traced(program: Expr, width: int = WIDTH) -> Traced:
    """What `show` prints, with the terms of the program in it."""
    program = located(program)
    written = _Recording(names_used(program))
    surface = written.expression(program, curried=True)
    printer = _Marking(Comments(Source("", "")))
    printer.terms = written.terms
    marks: list[Occurrence] = []
    text = render(printer.expression(surface), width, marks)
    return Traced(text, tuple(_part(mark) for mark in marks))


def _part(mark: Occurrence) -> Part:
    term: Expr = mark.of  # type: ignore[assignment]  # `_Marking` marks terms
    return Part(term, path_of(term.origin) or (), mark.start, mark.end)


@dataclass(frozen=True)
class _Recording(Unelaboration):
    """Remembers of which term each node of the surface is. The nodes are kept, so that identities are."""

    terms: dict[int, tuple[object, Expr]] = field(default_factory=dict)

    def expression(self, expr: Expr, curried: bool = False) -> s.Surface:
        return self._of(expr, super().expression(expr, curried))

    def _head(self, head: Expr) -> s.Surface:
        return self._of(head, super()._head(head))

    def _argument(self, given: Expr | Given, curried: bool = False) -> s.Surface:
        node = super()._argument(given, curried)
        return node if isinstance(given, Given) else self._of(given, node)

    def _parameter(self, parameter: Identifier, annotate: bool) -> s.NamePattern:
        node = super()._parameter(parameter, annotate)
        self.terms[id(node)] = node, parameter
        return node

    def _of(self, expr: Expr, node: s.Surface) -> s.Surface:
        self.terms.setdefault(id(node), (node, expr))
        return node


class _Marking(Printer):
    """Marks what is printed of a recorded node."""

    terms: dict[int, tuple[object, Expr]]

    def shown(self, node: Node) -> Shown:
        level, document = super().shown(node)
        recorded = self.terms.get(id(node))
        return (level, document) if recorded is None else (level, Mark(recorded[1], document))
