"""The TextMate grammar, by which editors colour programs: `python -m rise.syntax.textmate > FILE`.

Scopes are named as in https://macromates.com/manual/en/language_grammars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from rise.syntax.words import DECLARATIONS, KEYWORDS, OPERATORS, VALUES, words

SCOPES = {
    "kind": "storage.type.kind",
    "type": "storage.type",
    "constructor": "support.type",
    "constant": "support.constant",
    "size": "support.function",
    "primitive": "support.function",
}
NAME = r"[A-Za-z_]\w*"


def grammar() -> str:
    """The grammar as JSON, with a line end at its end."""
    patterns = [
        {"name": "comment.line.double-slash.rise", "match": "//.*$"},
        {"name": "comment.block.rise", "begin": r"/\*", "end": r"\*/"},
        {"name": "string.quoted.double.rise", "match": '"[^"]*"'},
        {
            "match": rf"\b(def)\s+({NAME})",
            "captures": {
                "1": {"name": "keyword.declaration.rise"},
                "2": {"name": "entity.name.function.rise"},
            },
        },
        _words("keyword.declaration", DECLARATIONS),
        _words("keyword.control", KEYWORDS),
        _words("constant.language", VALUES),
        # `let` is a keyword before it is a primitive
        *(_words(SCOPES[sort], (w for w in found if w not in KEYWORDS)) for sort, found in words().items()),
        {"name": "variable.parameter.rise", "match": rf"\b{NAME}(?=\s*=>)"},
        {"name": "variable.other.rise", "match": rf"\b{NAME}"},
        {"name": "constant.numeric.rise", "match": r"\b\d+(\.\d+)?([eE][+-]?\d+)?\b"},
        {"name": "keyword.operator.rise", "match": "|".join(map(re.escape, OPERATORS))},
    ]
    made = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "RISE",
        "scopeName": "source.rise",
        "fileTypes": ["rise"],
        "patterns": patterns,
    }
    return json.dumps(made, indent=2) + "\n"


def _words(scope: str, found: Iterable[str]) -> dict[str, str]:
    return {"name": f"{scope}.rise", "match": rf"\b({'|'.join(found)})\b"}


if __name__ == "__main__":
    print(grammar(), end="")
