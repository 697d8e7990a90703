"""Places as an editor counts them: lines from 0, columns in units of the encoding agreed on, mostly UTF-16.

Our own places count lines and characters from 1. A character outside of the basic plane, `𝒳`, is one
character and two units of UTF-16.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol.types import Position, PositionEncodingKind, Range

from rise.source import Source, Span

# line and column, counted from 1
Place = tuple[int, int]


@dataclass(frozen=True)
class Positions:
    """Between the places of a text and those of an editor."""

    source: Source
    encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16

    def position(self, line: int, column: int) -> Position:
        before = self.source.line(line)[: column - 1]
        return Position(line - 1, self._units(before))

    def range(self, span: Span) -> Range:
        start = self.position(span.line, span.column)
        return Range(start, self.position(span.end_line, span.end_column))

    def place(self, position: Position) -> Place:
        """The character that a position is in front of; the end of the line where it lies beyond."""
        column, units = 1, 0
        for character in self.source.line(position.line + 1):
            if units >= position.character:
                break
            units += self._units(character)
            column += 1
        return position.line + 1, column

    def _units(self, text: str) -> int:
        if self.encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        if self.encoding == PositionEncodingKind.Utf32:
            return len(text)
        return len(text) + sum(character > "\uffff" for character in text)


def start(span: Span) -> Place:
    return span.line, span.column


def end(span: Span) -> Place:
    return span.end_line, span.end_column


def contains(span: Span, place: Place) -> bool:
    """Whether a cursor in front of that character is on the span; behind its last one it still is."""
    return start(span) <= place <= end(span)


def offset(source: Source, place: Place) -> int:
    """How many characters of the text are in front of a place."""
    lines = source.text.split("\n")
    return sum(len(line) + 1 for line in lines[: place[0] - source.first]) + place[1] - 1


def place_at(source: Source, offset: int) -> Place:
    before = source.text[:offset]
    return before.count("\n") + source.first, offset - before.rfind("\n")


def span_of(source: Source, first: int, last: int) -> Span:
    """The characters from one offset up to another."""
    return Span(source, *place_at(source, first), *place_at(source, last))


def whole(source: Source) -> Span:
    return span_of(source, 0, len(source.text))
