"""Prints programs as written: `rise fmt`. Surface trees become documents, comments are kept.

Parentheses are set where the grammar needs them. A chain of pipes is broken a step a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isinf

from rise.document import LINE_END, SPACE, Document, concat, group, indented, render, solid
from rise.source import Source
from rise.syntax import layout
from rise.syntax import surface as s
from rise.syntax.comments import Comment, Comments
from rise.syntax.definitions import Header, header_of, lists
from rise.syntax.layout import ANNOTATED, ATOM, COMPOSE, INFINITY, LOOSEST, PIPE, UNARY
from rise.syntax.type_printer import (
    FUNCTIONS,
    Node,
    Shown,
    TypePrinter,
    behind,
    components,
    end_of,
    in_front,
    start_of,
)

WIDTH = 100


def print_expression(node: s.Surface, width: int = WIDTH) -> str:
    return render(_bare().expression(node), width)


def print_type(node: s.SurfaceType, width: int = WIDTH) -> str:
    return render(_bare().type(node), width)


def print_file(file: s.FileSyntax, source: Source | None = None, width: int = WIDTH) -> str:
    """A file with a line end at its end; with its source, the comments and blank lines of that."""
    printer = _bare() if source is None else Printer(Comments(source))
    return printer.file(file, width)


def _bare() -> Printer:
    return Printer(Comments(Source("", "")))


class Printer(TypePrinter):
    """Files and expressions; types, sizes and patterns are inherited."""

    # --- files ---

    def file(self, file: s.FileSyntax, width: int) -> str:
        items: list[s.ImportSyntax | s.DefinitionSyntax] = [*file.imports, *file.definitions]
        items.sort(key=lambda item: start_of(item.span))
        lines: list[str] = []
        for item in items:
            self._own_lines(self.comments.before(start_of(item.span)), lines)
            if lines and self._blank_before(item.span.line):
                lines.append("")
            lines.append(render(self._item(item), width))
        self._own_lines(self.comments.before((len(self.comments.lines) + 1, 1)), lines)
        return "\n".join(lines) + "\n" if lines else ""

    def _own_lines(self, comments: Iterable[Comment], lines: list[str]) -> None:
        for comment in comments:
            lines += ["", comment.text] if lines and comment.spaced else [comment.text]

    def _blank_before(self, line: int) -> bool:
        lines = self.comments.lines
        return line > len(lines) or (line > 1 and not lines[line - 2].strip())

    def _item(self, item: s.ImportSyntax | s.DefinitionSyntax) -> Document:
        document = f'import "{item.path}"' if isinstance(item, s.ImportSyntax) else self._definition(item)
        return concat(document, *behind(self.comments.behind(end_of(item.span), None)))

    def _definition(self, item: s.DefinitionSyntax) -> Document:
        """Behind parameters and types the body may start on a line of its own, if it was so."""
        header = header_of(item)
        groups = [layout.inferred(self._names(item.implicit))] if item.implicit else []
        groups += (layout.parameters(self._names(names)) for names in lists(header.binders))
        result = "" if header.result is None else concat(": ", self.type(header.result))
        start = layout.header(item.name, groups, result)
        line_end = LINE_END if self._ends_line(item, header) else SPACE
        remark = self.remark("=")
        self.ends.append(end_of(item.span))
        body = self.expression(header.body)
        self.ends.pop()
        return group(start, " =", remark, indented(line_end, body))

    def _ends_line(self, item: s.DefinitionSyntax, header: Header) -> bool:
        """Whether the body starts below the parameters and types, of which there are some."""
        last = [*item.implicit, *(name for names in lists(header.binders) for name in names)][-1:]
        shown = header.result or (last[0] if last else None)
        return shown is not None and shown.span.end_line < header.body.span.line

    # --- expressions ---

    def expression(self, node: s.Surface, level: int = LOOSEST) -> Document:
        return self.with_comments(node, level)

    def shown(self, node: Node) -> Shown:
        match node:
            case s.Name(name):
                return ATOM, name
            case s.Number():
                return self._number(node)
            case s.Text(value):
                return ATOM, f'"{value}"'
            case s.Operator(operator):
                return ATOM, f"({operator})"
            case s.Binary(operator, left, right):
                places = zip((left, right), layout.operand_levels(operator), strict=True)
                before, after = (self._side(side, operator, level) for side, level in places)
                return layout.BINARY[operator], layout.infix(before, operator, after)
            case s.Unary(operator, operand):
                return UNARY, concat(operator, self._operand(operand))
            case s.Call(piped=True):
                return PIPE, self._pipe(node)
            case s.Call():
                return ATOM, self._call(node)
            case s.Compose():
                return COMPOSE, self._composition(node)
            case s.Tuple():
                parts = components(node)
                return ATOM, layout.pair([self.expression(part) for part in parts])
            case s.Function() | s.DependentFunction():
                return LOOSEST, self._function(node)
            case s.NatLambda(parameter, size):
                head = concat("natFun(", parameter, " =>", self.remark("=>"))
                return ATOM, concat(layout.abstraction(head, self.type(size)), ")")
            case s.Let():
                return LOOSEST, self._let(node)
            case s.Annotated(expression, type_):
                return ANNOTATED, concat(self.expression(expression, ATOM), ": ", self.type(type_))
            case _:
                return super().shown(node)

    def _side(self, node: s.Surface, operator: str, level: int) -> Document:
        """An `&&` inside of an `||` is parenthesised for the reader."""
        mixed = operator == "||" and isinstance(node, s.Binary) and node.operator == "&&"
        return self.expression(node, ATOM if mixed else level)

    def _number(self, node: s.Number) -> Shown:
        """As its text spells it: `1e-3` is not set as `0.001`."""
        if isinstance(node.value, bool):
            return ATOM, "true" if node.value else "false"
        written = self.comments.text_at(node.span).replace(" ", "")
        if not _spells(written, node.value):
            written = repr(node.value)
            if isinf(node.value):
                written = f"-{INFINITY}" if node.value < 0 else INFINITY
        return (UNARY if written.startswith("-") else ATOM), written

    def _operand(self, node: s.Surface) -> Document:
        """`-(1)` is a negation, `-1` a literal."""
        if isinstance(node, s.Number) and not isinstance(node.value, bool):
            return layout.parenthesised(self.expression(node))
        return self.expression(node, UNARY)

    def _function(self, node: s.Surface) -> Document:
        """`x => (y, z) => …`: parameters stand on one line with their arrows, where that has room."""
        heads: list[Document] = []
        remark: Document = ""
        while isinstance(node, FUNCTIONS) and not (heads and self.comments.any_before(start_of(node.span))):
            shown = self._names(node.parameters)
            match node.parameters:
                case (s.NamePattern(_, None),):
                    head = shown[0]
                case _:
                    head = layout.parameters(shown)
            head = concat(head, " =>")
            heads.append(concat(remark, group(SPACE, head)) if heads else head)
            remark = self.remark("=>")
            node = node.body
        parameters = concat(solid(indented(*heads, by=4)), remark)
        return layout.abstraction(parameters, self.expression(node))

    def _names(self, names: Iterable[s.KindedName | s.Pattern]) -> list[Document]:
        return [self.with_comments(name, ATOM) for name in names]

    def _let(self, node: s.Let) -> Document:
        """A line each, if they do not fit on one or if one of them ended its line."""
        bound: list[Document] = []
        line_end: Document = SPACE
        body: s.Surface = node
        while isinstance(body, s.Let) and not (bound and self.comments.any_before(start_of(body.span))):
            pattern = self.with_comments(body.pattern, ATOM)
            value = self.expression(body.value)
            bound.append(layout.binding(pattern, value, self.remark("in")))
            if body.value.span.end_line < body.body.span.line:
                line_end = LINE_END
            body = body.body
        return layout.bindings(bound, self.expression(body), line_end)

    # --- calls and chains ---

    def _call(self, node: s.Call) -> Document:
        """The function, then its arguments: `f(a)(b)` from the left."""
        document = self.expression(node.function, ATOM)
        in_place = _in_place(node.arguments) and not self.comments.any_before(
            start_of(node.arguments[0].span)
        )
        arguments = [self._argument(a) for a in node.arguments]
        return layout.call(document, arguments, in_place)

    def _argument(self, node: s.Surface) -> Document:
        if not isinstance(node, s.Operator):
            return self.expression(node)
        before = in_front(self.comments.before(start_of(node.span)))
        return concat(*before, node.operator)

    def _pipe(self, node: s.Call) -> Document:
        stages: list[s.Surface] = []
        start: s.Surface = node
        while isinstance(start, s.Call) and start.piped:
            stages.append(start.function)
            (start,) = start.arguments
        return self._chain(self.expression(start, ANNOTATED), "|> ", stages[::-1], COMPOSE)

    def _composition(self, node: s.Compose) -> Document:
        stages: list[s.Surface] = []
        start: s.Surface = node
        while isinstance(start, s.Compose):
            stages.append(start.second)
            start = start.first
        return self._chain(self.expression(start, layout.OR), ">> ", stages[::-1], layout.OR)

    def _chain(self, start: Document, operator: str, stages: Sequence[s.Surface], level: int) -> Document:
        documents: list[Document] = []
        for stage in stages:
            before = in_front(self.comments.before(start_of(stage.span)))
            documents.append(concat(*before, operator, self.expression(stage, level)))
        *others, last = stages
        hugged = len(stages) <= 2 and _is_in_place(last) and not any(map(_has_function, others))
        return layout.chain(start, documents, hugged)


def _spells(written: str, value: float) -> bool:
    """Whether a text is a literal of that value and of its type."""
    digits = written.removeprefix("-")
    if not digits[:1].isdigit():
        return False
    found = int(digits) if digits.isdigit() else float(digits)
    return repr(-found if written.startswith("-") else found) == repr(value)


def _in_place(arguments: Sequence[s.Surface]) -> bool:
    """Whether the last argument is a function, and nothing else may need two lines."""
    *others, last = arguments
    return isinstance(last, FUNCTIONS) and all(isinstance(a, s.Name | s.Number | s.Operator) for a in others)


def _has_function(stage: s.Surface) -> bool:
    """Whether a function is written in place among the arguments of a stage of a chain, or is the stage."""
    while isinstance(stage, s.Call):
        if any(isinstance(argument, FUNCTIONS) for argument in stage.arguments):
            return True
        stage = stage.function
    return isinstance(stage, FUNCTIONS)


def _is_in_place(stage: s.Surface) -> bool:
    """Whether a stage of a chain ends in a function written in place."""
    while isinstance(stage, s.Call):
        if _in_place(stage.arguments):
            return True
        stage = stage.function
    return isinstance(stage, FUNCTIONS)
