"""The names by which Python code refers to rules: constants, and parts of tuples and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache

from rewrites.strategy import Strategy


def held(text: str, value: object) -> Iterator[tuple[str, Strategy]]:
    """The rules in the value of an expression, each with the expression for it: `STORED[2]`."""
    if isinstance(value, Strategy):
        yield text, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from held(f"{text}[{key!r}]", part)
    elif isinstance(value, tuple):
        for position, part in enumerate(value):
            yield from held(f"{text}[{position}]", part)


def constant_of(rule: str) -> str:
    """The expression for a rule of ours; the name of any other one."""
    return _constants(len(sys.modules), next(reversed(sys.modules))).get(rule, rule)


@lru_cache(maxsize=1)
def _constants(count: int, last: str) -> Mapping[str, str]:
    """Of all modules that are loaded, so many, the last one of that name: a derivation asks for thousands."""
    found: dict[str, str] = {}
    for module in [name for name in sys.modules if name.startswith("rewrites.")]:
        for constant, value in vars(sys.modules[module]).items():
            if constant.isupper() and constant not in ("RULES", "COMPUTED"):  # tables by name
                for text, rule in held(constant, value):
                    # the shortest, where a tuple holds it as well
                    found[rule.name] = min(found.get(rule.name, text), text, key=len)
    return found
