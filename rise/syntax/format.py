"""A program set anew: same meaning, same comments, one layout."""

from __future__ import annotations

import sys
from collections import Counter

from rise.errors import RiseError
from rise.source import Source
from rise.syntax.comments import comments_of
from rise.syntax.parser import parse_expression, parse_file
from rise.syntax.printer import print_expression, print_file
from rise.syntax.surface import without_places

# a comment that moves may let its surroundings move together again
ROUNDS = 8


def format_text(source: Source) -> str:
    """The text of a file, formatted. Formatting it again changes nothing.

    ParseError, or several as one, where the text is no program. A result that does not parse to the
    same tree with the same comments is a mistake of the formatter, R0199, and is not given out.
    """
    before = source
    for _ in range(ROUNDS):
        after = Source(source.name, _formatted(before))
        if after.text == before.text:
            return after.text
        before = after
    raise _internal(source, "does not settle")


def format_expression(text: str) -> str:
    """An expression on one line."""
    return print_expression(parse_expression(Source("expression", text)), sys.maxsize)


def _formatted(source: Source) -> str:
    file = parse_file(source)
    text = print_file(file, source)
    try:
        again = parse_file(Source(source.name, text))
    except RiseError as error:
        raise _internal(source, f"gives a text that does not parse ({error.message})") from error
    if without_places(again) != without_places(file):
        raise _internal(source, "changes the program")
    if _comments(text) != _comments(source.text):
        raise _internal(source, "loses a comment")
    return text


def _comments(text: str) -> Counter[str]:
    return Counter(comment.text for comment in comments_of(text))


def _internal(source: Source, reason: str) -> RiseError:
    return RiseError("R0199", f"formatting {source.name} {reason}; nothing was written")
