"""What people write who come from other languages, and what it is called here."""

from __future__ import annotations

import re

# names of types elsewhere
TYPES = {
    "float": "f32", "double": "f64", "half": "f16", "bfloat16": "bf16", "boolean": "bool",
    "int": "i32", "long": "i64", "short": "i16", "char": "i8", "byte": "u8", "uint": "u32", "unsigned": "u32",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

# the text before a token that cannot stand there, and what to write
BEFORE_NAME = (
    (r"\blambda\s*\Z", "a function is written `fun(x => …)`"),
    (r"\b(if|when)\s*\Z", "`select(condition)(then)(otherwise)` chooses between values"),
    (r"\d\Z", "a number has no suffix: its type comes from where it stands, or write `f32(1.5)`"),
)
BEFORE_EXPRESSION = (
    (r"[(,]\s*([+*/%<>]|[<>=!]=|&&|\|\|)\s*\Z", "`{0}` with one operand is `fun(x => x {0} …)`"),
)
BEFORE_TIMES = ((r"\*\Z", "a power is written `x ^ 2`, or `pow(x, 2)`"),)


def told(before: str, habits: tuple[tuple[str, str], ...]) -> str | None:
    """The hint for the first habit that the text in front of a token shows."""
    for pattern, hint in habits:
        if found := re.search(pattern, before):
            return hint.format(*found.groups())
    return None


def type_hint(name: str) -> str | None:
    """For a name that is a type in another language."""
    known = TYPES.get(name.lower())
    return f"here it is `{known}`" if known else None


def element_hint(array: str, index: str) -> str:
    """For `xs[0]`."""
    return f"an element is `{array} |> idx({index})`"
