"""Whether the text of a C function stays inside of its braces."""

from __future__ import annotations

import re

# comments, texts, characters; `<%` and its like are other spellings of brackets
TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<open_comment>/\*)
      | (?P<raw>\b(?:u8|[uUL])?R")
      | (?P<text>"(?:[^"\\\n]|\\.)*"|(?<!\w)'(?:[^'\\\n]|\\.)+')
      | (?P<open_text>"|(?<!\w)')
      | (?P<digraph><%|%>|<:|:>|%:|\?\?[<>()=/'!-])
      | (?P<directive>^[ \t]*\#[ \t]*(?!pragma\b)\w*)
      | (?P<bracket>[{}()\[\]])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
PAIRS = {"}": "{", ")": "(", "]": "["}


def objection(body: str) -> str | None:
    """Why a text is no body of a function: it would end the function, or swallow what stands behind it."""
    if "\\\n" in body or body.endswith("\\"):
        return "it continues a line by a backslash"
    opened: list[str] = []
    last = None
    for token in TOKENS.finditer(body):
        last = token
        match token.lastgroup:
            case "open_comment":
                return "it opens a comment and does not close it"
            case "open_text":
                return "it opens a text and does not close it"
            case "raw":
                return "it has a raw text"
            case "digraph":
                return f"it writes a bracket as `{token[0]}`"
            case "directive":
                return f"it has the directive `{token[0].strip()}`; only `#pragma` is allowed"
            case "bracket" if token[0] in PAIRS:
                if not opened or opened.pop() != PAIRS[token[0]]:
                    return f"it closes a `{token[0]}` that it does not open"
            case "bracket":
                opened.append(token[0])
    if opened:
        return f"it opens a `{opened[-1]}` and does not close it"
    if last is not None and last[0].startswith("//") and last.end() == len(body):
        return "it ends in a comment, which would hide what follows"
    return None
