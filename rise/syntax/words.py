"""The words of the language by what they are, from where they are declared: for editors and colours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

# what the grammar gives a meaning of its own; none of them can be a name
DECLARATIONS = ("def", "import")
KEYWORDS = ("let", "in", "fun", "depFun", "natFun")
VALUES = ("true", "false", "infinity")
# longer ones first: where one begins another, it is preferred
OPERATORS = (
    "|>", ">>", "->", "=>", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "!",
    "=", ":",
)  # fmt: skip
PUNCTUATION = "()[]{},."


@cache
def words() -> Mapping[str, tuple[str, ...]]:
    """`kind`, `type` (scalars), `constructor` (`Array` …), `constant` (`Local` …), `size` and `primitive`."""
    from rise.primitives.declare import REGISTRY
    from rise.syntax.resolve import APPLICATIONS, FRAGMENT_KINDS, KINDS, LAYOUTS, SPACES
    from rise.types import ROW_MAJOR, SCALARS

    return {
        "kind": tuple(KINDS),
        "type": tuple(SCALARS),
        "constructor": tuple(APPLICATIONS),
        "constant": (*SPACES, *FRAGMENT_KINDS, ROW_MAJOR.name, *LAYOUTS),
        "size": ("ceildiv",),
        "primitive": tuple(sorted(REGISTRY)),
    }
