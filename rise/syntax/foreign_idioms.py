"""What people write who come from other languages, and what it is called here."""

from __future__ import annotations

import re

# what stands in front of a token: a pattern, and its hint, or the hint for each word
Idioms = tuple[tuple[str, str | dict[str, str]], ...]

# names of types elsewhere
TYPES = {
    "float": "f32", "double": "f64", "half": "f16", "bfloat16": "bf16", "boolean": "bool",
    "int": "i32", "long": "i64", "short": "i16", "char": "i8", "byte": "u8", "uint": "u32", "unsigned": "u32",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

LOOPS = "there are no loops: `map`, `reduce`, `scan` and `iterate` repeat"
CHOICE = "`select(condition)(then)(otherwise)` chooses between values"

# words for operators, where one may stand
OPERATORS = {"and": "&&", "or": "||", "mod": "%", "xor": "!=", "div": "/", "is": "=="}

# names of what is called otherwise here, or is not there
NAMES = {
    "filter": "the type of an array says its length: `select(condition)(x)(0)` has zeros for the others",
    **dict.fromkeys(("foldl", "foldr", "fold"), "it is called `reduce`: `xs |> reduce(+, 0)`"),
    **dict.fromkeys(("range", "iota", "arange", "tabulate"), "`generate(i => …)` makes an array"),
    **dict.fromkeys(("for", "while", "loop", "forall", "foreach"), LOOPS),
    **dict.fromkeys(("if", "when", "cond", "where"), CHOICE),
    **dict.fromkeys(("lambda", "fn", "function", "func"), "a function is written `x => …`"),
    **dict.fromkeys(("return", "yield"), "a function returns its body: no word stands in front of it"),
    **dict.fromkeys(("var", "val", "const", "mut"), "a value is named by `let x = … in …`"),
    "not": "it is written `!x`",
    "and": "it is written `a && b`",
    "or": "it is written `a || b`",
    "True": "it is written `true`",
    "False": "it is written `false`",
    "inf": "it is called `infinity`",
    "lowest": "the least floating-point number is `-infinity`",
    "len": "the prelude's `length(xs)` is the size of an array as a value",
    "foldMap": "`map`, then `reduce`",
}  # fmt: skip

# the text before a token that cannot stand there, and what to write
BEFORE_NAME: Idioms = (
    (rf"\b({'|'.join(NAMES)})\s*\Z", NAMES),
    (r"\d\Z", "a number has no suffix: its type comes from where it stands, or write `f32(1.5)`"),
)
BEFORE_EXPRESSION: Idioms = (
    (r"[(,]\s*([+*/%<>]|[<>=!]=|&&|\|\|)\s*\Z", "`{0}` with one operand is `x => x {0} …`"),
)
BEFORE_GIVES: Idioms = (
    (r"(\|>|>>)\s*\w+\s*\Z", "behind `{0}` a function stands in parentheses: `{0} (x => …)`"),
    (r"\w\s*:[^:=]*\Z", "a parameter with a type stands in parentheses: `(x: f32) => …`"),
)
BEFORE_TIMES: Idioms = ((r"\*\Z", "a power is written `x ^ 2`, or `pow(x, 2)`"),)


def told(before: str, idioms: Idioms) -> str | None:
    """The hint for the first habit that the text in front of a token shows."""
    before = before[-80:]  # what is told is near
    for pattern, hint in idioms:
        if found := re.search(pattern, before):
            return hint[found[1]] if isinstance(hint, dict) else hint.format(*found.groups())
    return None


def operator_hint(word: str) -> str | None:
    """For a word that stands where an operator may."""
    return f"it is written `{OPERATORS[word]}`" if word in OPERATORS else None


def name_hint(name: str) -> str | None:
    """For a name that means something in another language."""
    return NAMES.get(name)


def type_hint(name: str) -> str | None:
    """For a name that is a type in another language."""
    known = TYPES.get(name.lower())
    return f"here it is `{known}`" if known else None


def element_hint(array: str, index: str) -> str:
    """For `xs[0]`."""
    return f"an element is `{array} |> idx({index})`"
