"""Source texts, places in them, and the excerpt with a caret that every message shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A named text: a file, a string given to a function, or a rule's side."""

    name: str
    text: str = field(repr=False)

    @staticmethod
    def read(path: Path) -> Source:
        return Source(str(path), path.read_text(encoding="utf-8"))

    def line(self, number: int) -> str:
        """The text of a line, counted from 1; empty beyond the end."""
        lines = self.text.splitlines()
        return lines[number - 1] if 1 <= number <= len(lines) else ""


@dataclass(frozen=True)
class Span:
    """The characters from (line, column) up to, not including, (end_line, end_column); counted from 1."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The line the span starts on, with carets under the part it covers."""
        text = self.source.line(self.line).expandtabs(1)
        end = self.end_column if self.end_line == self.line else len(text) + 1
        carets = "^" * max(1, end - self.column)
        gutter = str(self.line)
        return f"{gutter} | {text}\n{' ' * len(gutter)} | {' ' * (self.column - 1)}{carets}"


@dataclass(frozen=True)
class Derived:
    """The origin of a node that a rule made: the rule's name and the origin of the node it replaced."""

    rule: str
    parent: Origin


Origin = Span | Derived | None


def place(origin: Origin) -> Span | None:
    """The source span at the bottom of an origin, if there is one."""
    while isinstance(origin, Derived):
        origin = origin.parent
    return origin
