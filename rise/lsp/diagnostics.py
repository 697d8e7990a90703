"""Mistakes as an editor shows them: at their places, with the other places that have to do with them."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import (
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    Location,
    Position,
    Range,
)

from rise.errors import MOST_SHOWN, Difference, RiseError
from rise.lsp.documents import Analysis
from rise.lsp.positions import Positions
from rise.lsp.uris import uri_of
from rise.source import Note, Span, place


def diagnostics(analysis: Analysis, positions: Positions) -> list[Diagnostic]:
    return [_diagnostic(mistake, analysis, positions) for mistake in analysis.checked.mistakes[:MOST_SHOWN]]


def _diagnostic(mistake: RiseError, analysis: Analysis, positions: Positions) -> Diagnostic:
    where = shown_at(mistake, analysis)
    return Diagnostic(
        positions.range(where) if where else Range(Position(0, 0), Position(0, 1)),
        message(mistake),
        DiagnosticSeverity.Error,
        mistake.code,
        source="rise",
        related_information=list(_related(mistake, where, positions)),
    )


def shown_at(mistake: RiseError, analysis: Analysis) -> Span | None:
    """The first place of a mistake in this file: for one in an imported file, the import."""
    for origin in (mistake.origin, *(note.origin for note in mistake.notes)):
        span = place(origin)
        if span is not None and span.source.name == analysis.source.name:
            return span
    return None


def message(mistake: RiseError) -> str:
    """The sentence, what differs, the remarks without a place, and the hint."""
    lines = [mistake.message]
    if mistake.difference:
        lines += _difference(mistake.difference)
    lines += [f"note: {note.text}" for note in mistake.notes if place(note.origin) is None]
    if mistake.hint:
        lines.append(f"hint: {mistake.hint}")
    return "\n".join(lines)


def _difference(difference: Difference) -> Iterator[str]:
    yield f"expected  {difference.expected.text}"
    yield f"found     {difference.found.text}"


def _related(
    mistake: RiseError, shown: Span | None, positions: Positions
) -> Iterator[DiagnosticRelatedInformation]:
    for note in (Note(mistake.message, mistake.origin), *mistake.notes):
        span = place(note.origin)
        if span is not None and span is not shown:
            yield DiagnosticRelatedInformation(location(span, positions), note.text)


def location(span: Span, positions: Positions) -> Location:
    """A place in any file, which our spans name by its path."""
    own = Positions(span.source, positions.encoding)
    return Location(uri_of(span.source.name), own.range(span))
