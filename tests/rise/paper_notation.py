"""Programs in the notation of the paper: `fun(x => …)`, and definitions without parameters."""

from __future__ import annotations

from rise.document import Document, concat
from rise.source import Source
from rise.syntax import layout
from rise.syntax import surface as s
from rise.syntax.comments import Comments
from rise.syntax.parser import parse_file
from rise.syntax.printer import Printer
from rise.syntax.type_printer import Node, Shown


def in_paper_notation(text: str, width: int = 100) -> str:
    source = Source("t", text)
    return PaperPrinter(Comments(Source("", ""))).file(parse_file(source), width)


class PaperPrinter(Printer):
    def _definition(self, item: s.DefinitionSyntax) -> Document:
        start: Document = f"def {item.name}"
        type_ = item.annotation
        if item.implicit and type_ is None:
            start = concat(start, layout.inferred(self._names(item.implicit)))
        elif item.implicit and type_ is not None:
            type_ = s.TypeDependent(item.implicit, True, type_, item.span)
        if type_ is not None:
            start = concat(start, ": ", self.type(type_))
        return concat(start, " = ", self.expression(item.body))

    def shown(self, node: Node) -> Shown:
        match node:
            case s.Function((s.NamePattern() as name,), body):
                shown = concat("fun(", self.with_comments(name, layout.ATOM))
            case s.Function(parameters, body):
                shown = concat("fun(", layout.parameters(self._names(parameters)))
            case s.DependentFunction(parameters, body):
                shown = concat("depFun(", layout.parameters(self._names(parameters)))
            case _:
                return super().shown(node)
        return layout.ATOM, concat(shown, " => ", self.expression(body), ")")
