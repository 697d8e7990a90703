"""What a text that does not parse is told: what was found, what could follow, what may be meant."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rise.errors import ParseError
from rise.source import Source, Span
from rise.syntax.foreign_idioms import (
    BEFORE_EXPRESSION,
    BEFORE_GIVES,
    BEFORE_NAME,
    BEFORE_TIMES,
    CHOICE,
    element_hint,
    operator_hint,
    told,
)

# terminals that begin, or continue, one thing: the message names the thing
EXPRESSION_START = frozenset(
    "NAME INTEGER FLOAT TRUE FALSE _LPAR _FUN _DEPFUN _NATFUN _LET MINUS NOT".split()
)
TYPE_START = frozenset("NAME INTEGER SIZE_FUNCTION _LPAR _LBRACE MINUS".split())
COMPARISONS = frozenset("EQUAL DIFFERENT BELOW AT_MOST ABOVE AT_LEAST".split())
OPERATORS = COMPARISONS | frozenset("OR AND PLUS MINUS TIMES DIVIDE MODULO POWER".split())
APPLICATION = frozenset(("_PIPE", "_THEN", "_LPAR", "_LBRACKET"))
DEFINITION = frozenset(("_DEF", "_IMPORT"))

# any other terminal, as it is written
WRITTEN = {
    "NAME": "a name",
    "INTEGER": "a number",
    "STRING": "a file name in quotes",
    "$END": "the end",
    "_LPAR": "`(`",
    "_RPAR": "`)`",
    "_LBRACKET": "`[`",
    "_RBRACKET": "`]`",
    "_LBRACE": "`{`",
    "_RBRACE": "`}`",
    "_COMMA": "`,`",
    "_COLON": "`:`",
    "_DOT": "`.`",
    "_EQUALS": "`=`",
    "_GIVES": "`=>`",
    "_ARROW": "`->`",
    "_IN": "`in`",
}

FUNCTION = "a function is written `x => …`"
PARAMETERS = "`def f{n: Nat}(xs: n.f32): f32 = …`"
# what begins an expression elsewhere
NO_EXPRESSION = {
    "_LBRACKET": "`makeArray(2)(1.0, 2.0)` and `generate(i => …)` make arrays; `map` makes one of another",
    "_LBRACE": "a body stands in no braces: these are for inferred parameters",
    "STRING": "there are no values of text: it names files and foreign functions",
}
MISSING_EQUALS = "a definition is written `def f = …`: its `=` is missing"
BODY = "`=` stands in front of the body; the type of a function is written `a -> b`"
BEHIND_TYPE = {"_GIVES": BODY, "_LPAR": f"parameters stand in front of the type: {PARAMETERS}"}
BEHIND_PARAMETERS = {
    "_GIVES": BODY,
    "_ARROW": "the type of the result stands behind a colon: `def f(x: f32): f32 = …`",
    "_LBRACE": f"inferred parameters come first: {PARAMETERS}",
    **dict.fromkeys(("_LBRACKET", "BELOW"), f"inferred parameters stand in braces: {PARAMETERS}"),
}
KEYWORDS = frozenset("def import let in fun depFun natFun true false infinity".split())
CLOSING = {"(": ")", "[": "]", "{": "}"}
ASCII = {
    "λ": "x => …",
    "→": "->",
    "⇒": "=>",
    "×": "*",  # noqa: RUF001
    "·": "*",
    "−": "-",  # noqa: RUF001
    "–": "-",  # noqa: RUF001
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
}

CLOSED = r'//[^\n]*|/\*.*?\*/|"[^"\n]*"'
COMMENTS_AND_STRINGS = re.compile(rf'{CLOSED}|(?P<unclosed>/\*|")', re.DOTALL)
# from the name of a definition on, up to its `=`
HEADER = re.compile(r"\bdef\s+\w+(?P<parameters>[^=]*)\Z")
# comments and strings hide brackets
BRACKETS = re.compile(rf"{CLOSED}|[()\[\]{{}}]", re.DOTALL)
TRAILING = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*\Z", re.DOTALL)


# --- the errors ---------------------------------------------------------------------------------


def unexpected_token(extent: Span, terminal: str, could_follow: frozenset[str]) -> ParseError:
    """R0101"""
    text = _covered(extent)
    message = f"found `{text}`, expected {expected(could_follow)}"
    return ParseError("R0101", message, extent, _token_hint(extent, terminal, could_follow))


def unexpected_end(source: Source, could_follow: frozenset[str]) -> ParseError:
    """R0102; the place is behind the last token."""
    line, column = _position(source, _end_of_program(source.text))
    message = f"the text ends here, expected {expected(could_follow)}"
    extent = Span(source, line, column, line, column + 1)
    return ParseError("R0102", message, extent, _unclosed_bracket(source))


def unexpected_character(source: Source, line: int, column: int) -> ParseError:
    """R0103"""
    extent = Span(source, line, column, line, column + 1)
    character = source.line(line)[column - 1]
    message = f"the character {_visible(character)} has no meaning here"
    before = source.text[: _offset(source, line, column)]
    return ParseError("R0103", message, extent, _character_hint(character, before))


def no_parameter(extent: Span) -> ParseError:
    """R0101 for `(a + 1) => …`"""
    message = f"found `{_covered(extent)}`, expected a parameter"
    return ParseError("R0101", message, extent, FUNCTION)


def check_closed(source: Source) -> None:
    """R0104; the place is where the comment or string starts."""
    for found in COMMENTS_AND_STRINGS.finditer(source.text):
        if opening := found["unclosed"]:
            line, column = _position(source, found.start())
            extent = Span(source, line, column, line, column + len(opening))
            what, closing = ("comment", "*/") if opening == "/*" else ("string", '"')
            message = f"this {what} is not closed"
            raise ParseError("R0104", message, extent, f"close it with `{closing}`")


# --- what could follow, in words ----------------------------------------------------------------


def expected(could_follow: frozenset[str]) -> str:
    """`an expression`, `a type`, or a list such as `an operator, `,` or `)``."""
    return _either(list(_words(could_follow)))


def _words(could_follow: frozenset[str]) -> Iterator[str]:
    rest = set(could_follow)
    if "_FUN" in rest:
        yield "an expression"
        rest -= EXPRESSION_START | OPERATORS
    elif "SIZE_FUNCTION" in rest:
        yield "a type"
        rest -= TYPE_START
    elif {"NAME", "_LPAR"} <= rest:
        yield "a parameter"
        rest -= {"NAME", "_LPAR"}
    if "_PIPE" in rest:
        rest -= {"_GIVES"}  # behind a name that begins an expression there may always be one
    if "TIMES" in rest:
        yield "an operator"
        rest -= OPERATORS | APPLICATION | {"_DOT", "_COLON"}
    if "_DEF" in rest:
        yield "a definition"
        rest -= DEFINITION
    # the order of the table, so that messages do not vary
    yield from (word for terminal, word in WRITTEN.items() if terminal in rest)


def _either(words: list[str]) -> str:
    *others, last = words or ["something else"]
    return f"{', '.join(others)} or {last}" if others else last


# --- what may be meant --------------------------------------------------------------------------


def _token_hint(extent: Span, terminal: str, could_follow: frozenset[str]) -> str | None:
    """The known mistakes, the most telling first."""
    source, text = extent.source, _covered(extent)
    offset = _offset(source, extent.line, extent.column)
    header = HEADER.search(source.text[:offset])
    if header and (hint := _header_hint(header["parameters"], terminal, could_follow)):
        return hint
    if terminal == "NAME" and "TIMES" in could_follow and (hint := operator_hint(text)):
        return hint
    if terminal == "_LET" and "_DEF" in could_follow:
        return "a definition is written `def name = …`; `let x = … in …` stands inside of one"
    if terminal == "_DOT" and "TIMES" in could_follow:
        return _dot_hint(source.text[:offset], source.text[offset + 1 :])
    if terminal in DEFINITION | {"$END"} and "_IN" in could_follow:
        return "a name is followed by where it is used: `let x = … in …`"
    if terminal in ("NAME", "_EQUALS") and re.search(r"\([^()]*,[^()]*\)\s*\Z", source.text[:offset]):
        return "a function is written `(x, y) => …`"
    if terminal == "NAME" and "_PIPE" in could_follow:
        return told(source.text[:offset], BEFORE_NAME) or "a function is applied with parentheses: `f(x)`"
    if terminal == "TIMES" and (hint := told(source.text[:offset], BEFORE_TIMES)):
        return hint
    if terminal in EXPRESSION_START and (hint := told(source.text[:offset], BEFORE_EXPRESSION)):
        return hint
    if terminal == "_EQUALS" and "TIMES" in could_follow:
        return "equality is written `==`"
    if terminal in COMPARISONS and could_follow & {"_DEF", "_RPAR", "_COMMA", "AND"}:
        return "comparisons do not chain: write `a < b && b < c`"
    if terminal == "_GIVES":
        return told(source.text[:offset], BEFORE_GIVES) or FUNCTION
    if terminal == "_ARROW":
        return f"{FUNCTION}; `->` is for types"
    if terminal == "_RPAR" and "_GIVES" in could_follow and "_PIPE" not in could_follow:
        if _covered_by_function(source.text[:offset]).count("->"):
            return f"{FUNCTION}; `->` is for types"
        return f"{FUNCTION}; the body of a `fun` stands inside its parentheses"
    if terminal == "NAME" and could_follow == {"_DEF", "_IMPORT", "$END"}:
        return "an expression stands in a definition: `def name = …`"
    if could_follow == {"_LPAR"} and re.search(r"\bfun\s*\Z", source.text[:offset]):
        return FUNCTION
    if terminal == "_LBRACKET" and source.text[:offset].endswith("]"):
        return f"{element_hint('xs', 'i')}, and one of that is `xs |> idx(i) |> idx(j)`"
    if text in KEYWORDS and could_follow & {"NAME"} and "_FUN" not in could_follow:
        return f"`{text}` is a keyword and cannot be a name"
    if could_follow == {"STRING"}:
        return 'a file is imported by its name: `import "file.rise"`'
    if terminal in NO_EXPRESSION and "_FUN" in could_follow:
        return NO_EXPRESSION[terminal]
    if terminal == "_COMMA" and "_DEF" in could_follow:
        return "a pair stands in parentheses: `(a, b)`"
    if terminal in EXPRESSION_START and "_COMMA" in could_follow:
        return "there may be a `,` missing in front of it"
    if (hint := _bracket_hint(source, offset, text)) is not None:
        return hint
    if terminal == "_COLON" and "TIMES" in could_follow:
        return "a type stands behind a parameter, or in parentheses, `(x: f32)`; `f32(x)` converts a number"
    return None


def _header_hint(parameters: str, terminal: str, could_follow: frozenset[str]) -> str | None:
    """For a token behind the name of a definition and what stands between that and its `=`."""
    if _open_brackets(parameters):
        if terminal == "NAME" and "_COLON" in could_follow:
            return "the type of a parameter stands behind a colon: `x: f32`"
        return "each name in braces has a kind: `{n: Nat}`" if terminal == "_RBRACE" else None
    if terminal == "NAME" and not parameters.strip():
        return "parameters stand in parentheses: `def f(x) = …`"
    if "_EQUALS" not in could_follow:
        return None
    hints = BEHIND_PARAMETERS if "_COLON" in could_follow else BEHIND_TYPE
    return hints.get(terminal, MISSING_EQUALS if terminal in EXPRESSION_START else None)


def _dot_hint(before: str, after: str) -> str:
    """For `xs.map(f)`, and `2.`"""
    if re.search(r"(?<![\w.])\d+\Z", before):
        return "a fraction has digits on both sides of the point: `2.0`"
    function = re.match(r"\s*([A-Za-z_]\w*)", after)
    return f"a function is applied by a pipe: `x |> {function[1] if function else 'f'}`"


def _covered_by_function(before: str) -> str:
    """From the last `fun(` on."""
    return before[before.rfind("fun(") :]


def _visible(character: str) -> str:
    """The character, or what it is called where nothing of it can be seen."""
    if character.isprintable() and not unicodedata.combining(character):
        return f"`{character}`"
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}{f' ({name})' if name else ''}"


def _character_hint(character: str, before: str) -> str | None:
    if character in ASCII:
        return f"write `{ASCII[character]}`"
    if unicodedata.category(character) == "No" and (power := unicodedata.digit(character, None)) is not None:
        return f"a power is written `x ^ {power}`"
    if character == "#":
        return "a comment is written `// …`"
    if character in "'`\u2018\u2019\u201c\u201d":
        return 'texts stand in double quotes: `"…"`'
    if not character.isprintable() or unicodedata.combining(character):
        return "it cannot be seen: delete it"
    if character.isalpha():
        return "a name consists of the letters a to z and A to Z, of digits and `_`"
    if character.isdigit() and not character.isascii():
        return "digits are 0 to 9"
    if character == "\\":
        return FUNCTION
    if character == "?":
        return CHOICE
    if character in "&|":
        return f"write `{character * 2}`"
    if character == ";" and re.search(r"\blet\b(?:(?!\b(?:in|let)\b).)*\Z", before, re.DOTALL):
        return "`let x = … in …`: the name is followed by `in` and where it is used"
    if character == ";":
        return "nothing separates definitions, and nothing ends one"
    return None


# --- brackets -----------------------------------------------------------------------------------


def _bracket_hint(source: Source, offset: int, text: str) -> str | None:
    """For a token that cannot stand where it does because of a bracket."""
    stack = _open_brackets(source.text[:offset])
    if text in CLOSING.values():
        if not stack:
            return f"no bracket is open that this `{text}` could close"
        opening, position = stack[-1]
        if CLOSING[opening] != text:
            return _not_closed(source, opening, position)
    elif text in ("def", "import", "in", "=", ":") and stack:
        return _not_closed(source, *stack[-1])
    return None


def _unclosed_bracket(source: Source) -> str | None:
    stack = _open_brackets(source.text)
    return _not_closed(source, *stack[-1]) if stack else None


def _not_closed(source: Source, opening: str, offset: int) -> str:
    line, column = _position(source, offset)
    return f"the `{opening}` at line {line}, column {column} is not closed"


def _open_brackets(text: str) -> list[tuple[str, int]]:
    """The brackets still open at the end, each with its offset."""
    stack: list[tuple[str, int]] = []
    for found in BRACKETS.finditer(text):
        bracket = found[0]
        if bracket in CLOSING:
            stack.append((bracket, found.start()))
        elif stack and CLOSING[stack[-1][0]] == bracket:
            stack.pop()
    return stack


# --- places -------------------------------------------------------------------------------------


def _offset(source: Source, line: int, column: int) -> int:
    return sum(len(row) + 1 for row in source.text.split("\n")[: line - source.first]) + column - 1


def _position(source: Source, offset: int) -> tuple[int, int]:
    before = source.text[:offset]
    return before.count("\n") + source.first, offset - before.rfind("\n")


def _covered(extent: Span) -> str:
    source = extent.source
    start = _offset(source, extent.line, extent.column)
    return source.text[start : _offset(source, extent.end_line, extent.end_column)]


def _end_of_program(text: str) -> int:
    """Where the last token ends: behind it may be blanks and comments."""
    found = TRAILING.search(text)
    return found.start() if found else len(text)
