"""Where in a Python file an operation on a traced value stands, to the column.

The interpreter knows for each instruction the extent of its expression (PEP 657); the syntax tree of
the file then gives the extents of the operands. Where the text is not to be had (a program typed at
the prompt `>>>`), a place is a line.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from types import CodeType, FrameType

from rise.source import Source, Span

# code of the embedding is never what an error points at
OWN_MODULES = ("rise.embed", "rise.ops", "rise.notebook", "rise.expr")

# (line, column, end line, end column): lines from 1, columns from 0 in bytes, as in `ast`
Extent = tuple[int, int, int, int]
Callable_ = ast.Lambda | ast.FunctionDef


@dataclass(frozen=True, eq=False)
class PythonFile:
    """A file, or a cell of a notebook, with its syntax tree; an empty text if it is unknown."""

    name: str
    text: str

    @cached_property
    def source(self) -> Source:
        return Source(self.name, self.text)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError):  # what linecache found is not what runs
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def _nodes(self) -> dict[Extent, list[ast.AST]]:
        """Nodes by extent, those further in last."""
        found: dict[Extent, list[ast.AST]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.expr | ast.stmt):
                found.setdefault(extent_of(node), []).append(node)
        return found

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)}

    def expression(self, extent: Extent) -> ast.expr | None:
        """The expression of exactly this extent, the innermost if there are several.

        Of a loop, it is what the loop goes through: an error there is not about the whole loop.
        """
        match self._nodes.get(extent, []):
            case [*_, ast.For(_, iterated)]:
                return iterated
            case [*_, ast.ListComp(generators=[first, *_]) | ast.GeneratorExp(generators=[first, *_])]:
                return first.iter
            case [*_, ast.expr() as found]:
                return found
        return None

    def callables(self, line: int, parameters: Sequence[str]) -> list[Callable_]:
        """The functions that start at a line and have these parameters."""
        return [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Lambda | ast.FunctionDef)
            and first_line(node) == line
            and [a.arg for a in (*node.args.posonlyargs, *node.args.args)] == list(parameters)
        ]

    def span(self, extent: Extent) -> Span:
        """The extent in characters, counted from 1."""
        line, column, end_line, end_column = extent
        return Span(
            self.source,
            line,
            self._characters(line, column) + 1,
            end_line,
            self._characters(end_line, end_column) + 1,
        )

    def _characters(self, line: int, column: int) -> int:
        """A column in bytes as one in characters: a line may hold `é`."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return len(text.encode()[:column].decode(errors="ignore")) if text else column

    def line(self, number: int) -> Span:
        """A whole line without its indentation."""
        if not self.text:
            return _unavailable(self.name, number)
        text = self._lines[number - 1] if number <= len(self._lines) else ""
        start = len(text) - len(text.lstrip())
        return Span(self.source, number, start + 1, number, max(len(text.rstrip()), start + 1) + 1)


def _unavailable(name: str, number: int) -> Span:
    """A line of a text that is not to be had, so that a message says why it shows none."""
    notice = "(the text of this line is not available)"
    source = Source(name, "\n" * (number - 1) + notice)
    return Span(source, number, 1, number, len(notice) + 1)


@dataclass(frozen=True, eq=False)
class Place:
    """The extent of an operation, and the Python expression there, if it is known."""

    file: PythonFile
    span: Span
    node: ast.expr | None = None

    @cached_property
    def operands(self) -> list[ast.expr]:
        """What is operated on, in the order of evaluation; empty where that is not known."""
        match self.node:
            case ast.Call(_, arguments, keywords):
                parts = [*arguments, *(k.value for k in keywords)]
            case ast.BinOp(left, _, right):
                parts = [left, right]
            case ast.Compare(left, [_], [right]):
                parts = [left, right]
            case ast.UnaryOp(_, operand):
                parts = [operand]
            case ast.Subscript(_, ast.Tuple(elements)):
                parts = list(elements)
            case ast.Subscript(_, index):
                parts = [index]
            case ast.Tuple(elements):
                parts = list(elements)
            case _:
                return []
        return [] if any(isinstance(p, ast.Starred) for p in parts) else parts

    def at(self, node: ast.expr) -> Place:
        """The place of an expression within this one."""
        return Place(self.file, self.file.span(extent_of(node)), node)

    def operand(self, number: int) -> Place:
        """The place of an operand; this one where it is not known."""
        return self.at(self.operands[number]) if number < len(self.operands) else self

    @property
    def subject(self) -> Place:
        """The place of what is applied, indexed, or taken apart; this one where it is not known."""
        match self.node:
            case ast.Call(subject) | ast.Subscript(subject) | ast.Attribute(subject):
                return self.at(subject)
        return self

    def surroundings(self) -> Iterator[ast.AST]:
        """The expression, and the Python constructs that it stands in, innermost first."""
        node: ast.AST | None = self.node
        while node is not None:
            yield node
            node = self.file.parents.get(node)


def extent_of(node: ast.expr | ast.stmt | ast.arg) -> Extent:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def first_line(node: Callable_) -> int:
    """The line that the code of a function starts at: that of its first decorator."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(d.lineno for d in decorators)])


# --- from frames to places ------------------------------------------------------------------------

_files: dict[str, tuple[list[str], PythonFile]] = {}


def python_file(name: str, namespace: dict[str, object] | None = None) -> PythonFile:
    """The file of that name as `linecache` has it: notebooks and doctests put their cells there."""
    lines = linecache.getlines(name, namespace)
    known = _files.get(name)
    if known is None or known[0] is not lines:
        known = _files[name] = (lines, PythonFile(name, "".join(lines)))
    return known[1]


def caller() -> FrameType:
    """The innermost frame outside of the embedding."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(OWN_MODULES):
        frame = frame.f_back
    return frame


def here() -> Place:
    """The place of the operation that user code performs now."""
    frame = caller()
    file = python_file(frame.f_code.co_filename, frame.f_globals)
    line, end_line, column, end_column = _positions(frame.f_code)[frame.f_lasti // 2]
    if not file.text or line is None or end_line is None or column is None or end_column is None:
        return Place(file, file.line(frame.f_lineno))
    extent = (line, column, end_line, end_column)
    node = file.expression(extent)
    return Place(file, file.span(extent if node is None else extent_of(node)), node)


def unpacked_into() -> int | None:
    """How many names user code unpacks a value into now, `a, b = p`; None where it does not."""
    frame = caller()
    code, position = frame.f_code.co_code, frame.f_lasti
    return code[position + 1] if code[position] == dis.opmap["UNPACK_SEQUENCE"] else None


@lru_cache(maxsize=1024)
def _positions(code: CodeType) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    return tuple(code.co_positions())


# a number for everything that has to be told apart from all others
unique = count(1)
