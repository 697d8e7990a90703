"""Texts that do not parse yet: where brackets and `let`s are open, and how they could be closed."""

from __future__ import annotations

import re

from rise.syntax.mistakes import CLOSING, COMMENTS_AND_STRINGS

# what opens and closes, and the two words that belong together
OPENERS = re.compile(r"[()\[\]{}]|\blet\b|\bin\b")


def without_comments(text: str) -> str:
    """The text with blanks in place of comments and strings: everything else stands where it stood."""
    return COMMENTS_AND_STRINGS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def inside_comment(text: str) -> bool:
    """Whether what is typed at the end of a text is part of a comment, or of a string."""
    found = None
    for found in COMMENTS_AND_STRINGS.finditer(text):
        if found["unclosed"]:
            return True
    return found is not None and found.end() == len(text) and found[0].startswith("//")


def completed(text: str) -> str:
    """What closes all that is open at the end of a text, the innermost first: `) in 0)`."""
    stack: list[str] = []
    for found in OPENERS.finditer(without_comments(text)):
        word = found[0]
        if word in CLOSING:
            stack.append(CLOSING[word])
        elif word == "let":
            stack.append(" in 0")
        elif word == "in":
            while stack and stack[-1] in CLOSING.values():
                stack.pop()
            stack = stack[:-1]
        elif word in stack:
            while stack.pop() != word:
                pass
    return "".join(reversed(stack))
