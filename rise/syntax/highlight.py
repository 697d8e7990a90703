"""A Pygments lexer for programs: colours on terminals, in notebooks and in documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups  # type: ignore[import-untyped]
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from rise.syntax.words import DECLARATIONS, KEYWORDS, OPERATORS, PUNCTUATION, VALUES, words

TOKENS = {
    "kind": Keyword.Type,
    "type": Keyword.Type,
    "constructor": Name.Class,
    "constant": Name.Constant,
    "size": Name.Builtin,
    "primitive": Name.Builtin,
}


@cache
def _meanings() -> dict[str, _TokenType]:
    """What a word is; `let` is a keyword before it is a primitive."""
    found = {word: TOKENS[sort] for sort, listed in words().items() for word in listed}
    found.update(dict.fromkeys(DECLARATIONS, Keyword.Declaration))
    found.update(dict.fromkeys(KEYWORDS, Keyword))
    found.update(dict.fromkeys(VALUES, Keyword.Constant))
    return found


def _word(lexer: RegexLexer, match: re.Match[str]) -> Iterator[tuple[int, _TokenType, str]]:
    yield match.start(), _meanings().get(match[0], Name), match[0]


class RiseLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """`.rise` programs."""

    name = "RISE"
    aliases: ClassVar[list[str]] = ["rise"]
    filenames: ClassVar[list[str]] = ["*.rise"]
    mimetypes: ClassVar[list[str]] = ["text/x-rise"]

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*(?:.|\n)*?(?:\*/|\Z)", Comment.Multiline),
            (r'"[^"\n]*"', String),
            (r"(def)(\s+)([A-Za-z_]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (r"[A-Za-z_]\w*", _word),
            (r"\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+", Number.Integer),
            ("|".join(map(re.escape, OPERATORS)), Operator),
            (f"[{re.escape(PUNCTUATION)}]", Punctuation),
        ]
    }
