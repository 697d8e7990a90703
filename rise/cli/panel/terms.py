"""The term of a program that a cursor is on, and those around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewrites.derivation import part_at
from rewrites.result import Path, shown
from rise.expr import Expr, Lambda, children
from rise.notation import show_type
from rise.reported import reported_place
from rise.requests import malformed
from rise.source import Span, place
from rise.types import is_data

Data = dict[str, Any]


def path_at(program: Expr, file: str, line: int, column: int) -> Path:
    """Of the smallest value whose text a cursor is on; of the whole body where it is on none.

    A function is not what rules are for: a cursor on `map` is on what the map is applied to and makes.
    """
    best: tuple[Path, Span] | None = None
    for path, term in _values(program, ()):
        span = place(term.origin)
        if span is None or span.source.name != file or not _holds(span, line, column):
            continue
        if best is None or _extent(span) < _extent(best[1]):
            best = path, span
    return body_path(program) if best is None else best[0]


def body_path(program: Expr) -> Path:
    """The program without its inputs."""
    path: Path = ()
    while isinstance(program, Lambda):
        program, path = program.body, (*path, 0)
    return path


def term_at(program: Expr, path: Path) -> Expr:
    """UsageError R0063 where there is none."""
    found = part_at(program, path)
    if found is None:
        raise malformed(f"the program has no term at {list(path)}")
    return found


def described(term: Expr, path: Path) -> Data:
    return {
        "path": list(path),
        "text": shown(term),
        "type": show_type(term.type),
        "place": reported_place(place(term.origin)),
    }


def around(program: Expr, path: Path) -> list[Data]:
    """The values that a term is a part of, from the outside in; of several at one place the outermost."""
    found: list[Data] = []
    seen: set[tuple[int, ...]] = {_extent_of(term_at(program, path))}
    for length in range(len(body_path(program)), len(path)):
        outer = term_at(program, path[:length])
        if is_data(outer.type) and _extent_of(outer) not in seen:
            seen.add(_extent_of(outer))
            found.append(described(outer, path[:length]))
    return found


def _values(term: Expr, path: Path) -> Iterator[tuple[Path, Expr]]:
    """Outer ones first."""
    if is_data(term.type):
        yield path, term
    for number, child in enumerate(children(term)):
        yield from _values(child, (*path, number))


def _holds(span: Span, line: int, column: int) -> bool:
    return (span.line, span.column) <= (line, column) <= (span.end_line, span.end_column)


def _extent(span: Span) -> tuple[int, int]:
    """How much a place covers, by lines and then by columns."""
    return span.end_line - span.line, span.end_column - span.column


def _extent_of(term: Expr) -> tuple[int, ...]:
    span = place(term.origin)
    return () if span is None else (span.line, span.column, span.end_line, span.end_column)
