"""Colours by meaning: a size, a parameter and a definition look alike to a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol.types import SemanticTokens, SemanticTokensLegend

from rise.lsp.documents import Analysis
from rise.lsp.names import Sort
from rise.lsp.positions import Positions, span_of
from rise.source import Span
from rise.syntax.mistakes import COMMENTS_AND_STRINGS
from rise.syntax.words import DECLARATIONS, KEYWORDS, VALUES

SORTS = [sort.value for sort in Sort]
OTHERS = ["keyword", "comment", "string"]
LEGEND = SemanticTokensLegend(token_types=[*SORTS, *OTHERS], token_modifiers=["declaration"])
WORDS = re.compile(rf"\b(?:{'|'.join((*DECLARATIONS, *KEYWORDS, *VALUES))})\b")


def semantic_tokens(analysis: Analysis, positions: Positions) -> SemanticTokens:
    """Each token as five numbers: lines and columns since the last one, length, type, modifiers."""
    data: list[int] = []
    line = column = 0
    for span, sort, modifiers in sorted(
        _tokens(analysis), key=lambda token: (token[0].line, token[0].column)
    ):
        where = positions.range(span)
        start = where.start
        data += [
            start.line - line,
            start.character - (column if start.line == line else 0),
            where.end.character - start.character,
            LEGEND.token_types.index(sort),
            modifiers,
        ]
        line, column = start.line, start.character
    return SemanticTokens(data)


def _tokens(analysis: Analysis) -> Iterator[tuple[Span, str, int]]:
    for found in analysis.names:
        yield found.span, found.binding.sort.value, int(found.binds)
    source, text = analysis.source, analysis.source.text
    hidden = text
    for found_text in COMMENTS_AND_STRINGS.finditer(text):
        sort = "string" if found_text[0].startswith('"') else "comment"
        hidden = hidden[: found_text.start()] + " " * len(found_text[0]) + hidden[found_text.end() :]
        for line in re.finditer(r"[^\n]+", found_text[0]):  # a token is on one line
            first = found_text.start() + line.start()
            yield span_of(source, first, first + len(line[0])), sort, 0
    for word in WORDS.finditer(hidden):
        yield span_of(source, word.start(), word.end()), "keyword", 0
