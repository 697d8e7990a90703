"""Source texts, places in them, and the excerpt with carets that every message shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from rise.frozen import cached_property, filled_at_once

# lines longer than this are shown from and up to a column, around what is marked
WIDEST = 110


@dataclass(frozen=True)
class Source:
    """A named text: a file, a string given to a function, or a rule's side; or some lines of one.

    first: the number of its first line
    """

    name: str
    text: str = field(repr=False)
    first: int = 1

    @cached_property
    def _lines(self) -> list[str]:
        # as the parser counts them: form feeds and their like do not end a line
        return [line.removesuffix("\r") for line in self.text.split("\n")]

    def line(self, number: int) -> str:
        """The text of a line, counted from 1; empty beyond the end."""
        index = number - self.first
        return self._lines[index] if 0 <= index < len(self._lines) else ""


def without_mark(text: str) -> str:
    """The text behind the byte order mark that some editors put in front of every file."""
    return text.removeprefix("\ufeff")


@filled_at_once
@dataclass(frozen=True, slots=True)
class Span:
    """The characters from (line, column) up to, not including, (end_line, end_column); counted from 1."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """What the span covers."""
        lines = [self.source.line(number) for number in range(self.line, self.end_line + 1)]
        lines[-1] = lines[-1][: self.end_column - 1]
        lines[0] = lines[0][self.column - 1 :]
        return "\n".join(lines)

    def excerpt(self) -> str:
        """The lines that the span begins and ends on, each with carets under the part it covers."""
        return "\n".join(gutter + text for gutter, text in self.excerpt_lines())

    def excerpt_lines(self) -> list[tuple[str, str]]:
        """Line number with its bar, and text, by turns of source and carets."""
        numbers = [self.line] if self.end_line <= self.line else [self.line, self.end_line]
        width = len(str(numbers[-1]))
        shown: list[tuple[str, str]] = []
        for number in numbers:
            if number > self.line + 1:
                shown.append((f"{'…':>{width}} | ", ""))
            text, carets = self._marked(number)
            shown += [(f"{number:>{width}} | ", text), (f"{'':>{width}} | ", carets)]
        return [(gutter, text.rstrip()) if text else (gutter.rstrip(), "") for gutter, text in shown]

    def _marked(self, number: int) -> tuple[str, str]:
        """A line and its carets; of the last of several lines, the indentation is not marked."""
        text = self.source.line(number).replace("\t", " ")
        start = self.column if number == self.line else len(text) - len(text.lstrip()) + 1
        end = self.end_column if number == self.end_line else len(text) + 1
        carets = " " * (start - 1) + "^" * max(1, end - start)
        return _window(text, carets, start) if len(text) > WIDEST else (text, carets)


def _window(text: str, carets: str, start: int) -> tuple[str, str]:
    """The part of a long line around what is marked."""
    first = max(0, start - 1 - WIDEST // 3)
    last = first + WIDEST
    before, after = "…" if first else "", "…" if last < len(text) else ""
    return before + text[first:last] + after, " " * len(before) + carets[first:last]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Derived:
    """The origin of a node that a rule made: the rule's name and the origin of the node it replaced."""

    rule: str
    parent: Origin


@filled_at_once
@dataclass(frozen=True, slots=True)
class Located:
    """The origin of a node of a whole program: its path there, and the origin that it had before."""

    path: tuple[int, ...]
    parent: Origin


Origin = Span | Derived | Located | None


@dataclass(frozen=True)
class Note:
    """A remark of a message about another place: the other use, the definition that asks for it."""

    text: str
    origin: Origin = None


def place(origin: Origin) -> Span | None:
    """The source span at the bottom of an origin, if there is one."""
    while isinstance(origin, Derived | Located):
        origin = origin.parent
    return origin


def path_of(origin: Origin) -> tuple[int, ...] | None:
    """Where the node is in the whole program that was located last, if it is a part of one."""
    while isinstance(origin, Derived):
        origin = origin.parent
    return origin.path if isinstance(origin, Located) else None
