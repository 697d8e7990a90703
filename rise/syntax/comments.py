"""The comments of a text, and where they go when the program around them is set anew.

A comment behind something on its line stays behind it; any other one stays in front of what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rise.source import Source, Span

# line and column, counted from 1
Place = tuple[int, int]

TOKENS = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|"[^"\n]*"', re.DOTALL)
# what may stand between something and the comment on it: `a, // the first`
SEPARATOR = re.compile(r"\s*(?:,|\|>|>>|->|\|\||&&|[=!<>]=|[-+*/%^<>])?\s*")


@dataclass(frozen=True)
class Comment:
    """`ends_line`: nothing follows on its line; `spaced`: a blank line is in front."""

    text: str
    start: Place
    end: Place
    ends_line: bool
    spaced: bool

    @property
    def is_line(self) -> bool:
        return self.text.startswith("//")


def comments_of(text: str) -> Iterator[Comment]:
    """All comments, in order; blanks at the end of line comments are not part of them."""
    lines = text.split("\n")
    line, scanned = 1, 0
    for found in TOKENS.finditer(text):
        line += text.count("\n", scanned, found.start())
        scanned = found.start()
        if found["comment"] is None:
            continue
        start = (line, _column(text, found.start()))
        end = (line + found[0].count("\n"), _column(text, found.end()))
        ends_line = not lines[end[0] - 1][end[1] - 1 :].strip()
        alone = not lines[line - 1][: start[1] - 1].strip()
        spaced = alone and line > 1 and not lines[line - 2].strip()
        written = found[0].rstrip() if found[0].startswith("//") else found[0]
        yield Comment(written, start, end, ends_line, spaced)


def _column(text: str, offset: int) -> int:
    return offset - text.rfind("\n", 0, offset)


class Comments:
    """Gives out each comment once, in the order of the text."""

    def __init__(self, source: Source) -> None:
        self.lines = source.text.split("\n")
        self.rest = list(reversed(list(comments_of(source.text))))

    def any_before(self, place: Place) -> bool:
        return bool(self.rest) and self.rest[-1].start < place

    def before(self, place: Place) -> list[Comment]:
        """Those in front of a place."""
        taken: list[Comment] = []
        while self.any_before(place):
            taken.append(self.rest.pop())
        return taken

    def behind(self, end: Place, outer_end: Place | None) -> list[Comment]:
        """Those inside what ends at a place, and those on it; what also ends there gets them if larger."""
        taken = self.before(end)
        while self.rest and self._is_on(self.rest[-1], end, outer_end):
            taken.append(self.rest.pop())
            end = taken[-1].end
        return taken

    def behind_word(self, word: str) -> list[Comment]:
        """The next one, if it ends a line on which that word stands in front of it."""
        if not self.rest or not self.rest[-1].is_line:
            return []
        line, column = self.rest[-1].start
        before = self.lines[line - 1][: column - 1].rstrip()
        return [self.rest.pop()] if before.endswith(word) else []

    def _is_on(self, comment: Comment, end: Place, outer_end: Place | None) -> bool:
        line, column = comment.start
        if line != end[0]:
            return False
        between = self.lines[line - 1][end[1] - 1 : column - 1]
        if not between.strip():
            return outer_end is None or outer_end > end
        return comment.is_line and SEPARATOR.fullmatch(between) is not None

    def text_at(self, span: Span) -> str:
        """What stands at a span of one line; nothing where the text has no such place."""
        if span.line != span.end_line or span.line > len(self.lines):
            return ""
        return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]
