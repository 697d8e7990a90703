"""Changes that hints propose: what a hint quotes is tried, and offered if it leaves fewer mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rise.errors import RiseError
from rise.lsp.documents import Analysis, Documents
from rise.lsp.positions import offset, span_of
from rise.source import Source, Span, place
from rise.suggest import nearest
from rise.syntax.mistakes import CLOSING

QUOTED = re.compile(r"`([^`]+)`")
NOT_CLOSED = re.compile(r"the `(.)` at line \d+, column \d+ is not closed")
IMPORT = re.compile(r'import "[^"]+"')
MOST = 4  # proposals of one hint that are tried


@dataclass(frozen=True)
class Fix:
    """A text in place of a span, and the mistake that it mends."""

    title: str
    span: Span
    text: str
    mistake: RiseError


def fixes(documents: Documents, analysis: Analysis, first_line: int, last_line: int) -> Iterator[Fix]:
    """For the mistakes on some lines."""
    for mistake in analysis.checked.mistakes:
        span = place(mistake.origin)
        if span is None or span.source.name != analysis.source.name:
            continue
        if span.end_line < first_line or last_line < span.line:
            continue
        for fix in list(_proposals(mistake, span, analysis.source))[:MOST]:
            if _mends(fix, analysis, documents):
                yield fix


def _proposals(mistake: RiseError, span: Span, source: Source) -> Iterator[Fix]:
    """What the quotations of a hint may mean: a text to write instead, to write around, or to insert."""
    hint = mistake.hint or ""
    if open_bracket := NOT_CLOSED.search(hint):
        yield Fix(f"Close the `{open_bracket[1]}`", _before(span, source), CLOSING[open_bracket[1]], mistake)
        return
    for quoted in QUOTED.findall(hint):
        if IMPORT.fullmatch(quoted):
            yield Fix(f"Add `{quoted}`", _first_line(source), f"{quoted}\n", mistake)
        elif quoted.endswith("(…)"):
            name = quoted.removesuffix("(…)")
            yield Fix(f"Convert with `{name}`", span, f"{name}({span.text})", mistake)
        elif quoted == "// …":
            yield Fix("Write `//`", span, "//", mistake)
        elif "…" not in quoted:
            yield Fix(f"Write `{quoted}`", _word_like(quoted, span, source), quoted, mistake)
            yield Fix(f"Insert `{quoted}`", _before(span, source), quoted, mistake)


def _word_like(quoted: str, span: Span, source: Source) -> Span:
    """The word of a place that is most like another one, if it has several."""
    words = {found[0]: found for found in re.finditer(r"\w+", span.text)}
    like = nearest(quoted, words) if len(words) > 1 else None
    if like is None or "\n" in span.text:
        return span
    first = offset(source, (span.line, span.column)) + words[like].start()
    return span_of(source, first, first + len(like))


def _before(span: Span, source: Source) -> Span:
    """Behind what stands in front of a place."""
    end = len(source.text[: offset(source, (span.line, span.column))].rstrip())
    return span_of(source, end, end)


def _first_line(source: Source) -> Span:
    """Before the first import; without imports, before the first line that is not a comment."""
    lines = source.text.split("\n")
    imports = [number for number, line in enumerate(lines, 1) if line.startswith("import")]
    number = imports[0] if imports else _behind_comments(lines)
    return Span(source, number, 1, number, 1)


def _behind_comments(lines: list[str]) -> int:
    """The comments of the first definition stay with it: only those before a blank line are the file's."""
    blank = next((number for number, line in enumerate(lines, 1) if not line.strip()), None)
    head = all(line.startswith("//") for line in lines[: blank - 1]) if blank else False
    return blank if blank and head and blank > 1 else 1


def applied(source: Source, span: Span, text: str) -> str:
    first = offset(source, (span.line, span.column))
    return source.text[:first] + text + source.text[offset(source, (span.end_line, span.end_column)) :]


def _mends(fix: Fix, analysis: Analysis, documents: Documents) -> bool:
    """Whether the program has fewer mistakes with it."""
    text = applied(analysis.source, fix.span, fix.text)
    return documents.mistakes_with(analysis.path, text) < len(analysis.checked.mistakes)
