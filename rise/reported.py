"""Mistakes and places as data, for editors and other programs."""

from __future__ import annotations

from typing import Any

from rise.errors import Mistakes, RiseError
from rise.source import Span, place

Data = dict[str, Any]
# of a place; lines and columns are counted from 1, the end is not included
MEMBERS = ("file", "line", "column", "end_line", "end_column")


def reported_place(span: Span | None) -> Data:
    """Of no place, every member is None."""
    if span is None:
        return dict.fromkeys(MEMBERS)
    found = (span.source.name, span.line, span.column, span.end_line, span.end_column)
    return dict(zip(MEMBERS, found, strict=True))


def reported(mistake: RiseError) -> Data:
    return {
        "code": mistake.code,
        "message": mistake.message,
        "hint": mistake.hint,
        **reported_place(place(mistake.origin)),
        "notes": [note.text for note in mistake.notes],
    }


def all_reported(error: RiseError) -> list[Data]:
    """An error, or each of several mistakes."""
    return [reported(each) for each in (error.mistakes if isinstance(error, Mistakes) else (error,))]
