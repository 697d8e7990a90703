"""JSON that people and other programs may have changed, read strictly: damage is said in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

LONGEST = 300  # digits of a number


def parsed(text: str) -> Any:
    """What a text of JSON says. ValueError where it is none, nests too deeply or gives a name twice."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_whole, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"`{brief(name)}` is given twice")
        found[name] = value
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _constant(name: str) -> float:
    raise ValueError(f"`{name}` is no number of JSON")


def shown(value: Any, longest: int = 60) -> str:
    """A value for a message, as Python writes it, on one line and not longer than that."""
    return brief(repr(value), longest)


def brief(text: str, longest: int = 60) -> str:
    """A name, or another text, for a message: on one line and not longer than that."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}…"


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; Python takes truth values for such."""
    return isinstance(value, int) and not isinstance(value, bool)
