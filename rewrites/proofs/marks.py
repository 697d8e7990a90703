"""What is known of our rules: kept in `proved.json`, so that a listing needs neither z3 nor time.

`python -m rewrites.proofs` proves all of them and writes the file. It keeps a digest of both sides, so a rule
that has changed since has no mark. Of the others the tests prove a part again, another one each day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from functools import cache
from hashlib import sha256
from importlib.resources import files

from rewrites.rule import Computed, Rule


class Mark(Enum):
    """How a rule is known to be right."""

    PROVED = "proved for all sizes"
    REORDERED = "proved for all sizes, up to the rounding of sums"
    TESTED = "tested"


def mark(rule: Rule | Computed) -> Mark:
    """TESTED is every rule that is not known to be proved: instances of it are compared by the tests."""
    if isinstance(rule, Computed):
        return Mark.TESTED
    known = proved().get(rule.name)
    return Mark[known[1]] if known is not None and known[0] == digest(rule) else Mark.TESTED


def digest(rule: Rule) -> str:
    """Of both sides as they are written."""
    text = f"{rule.left}\n{rule.right}"
    return sha256(text.encode()).hexdigest()[:16]


@cache
def proved() -> Mapping[str, tuple[str, str]]:
    """For each rule that is proved the digest of its sides, and the name of its mark."""
    text = files("rewrites.proofs").joinpath("proved.json").read_text(encoding="utf-8")
    return {name: (found, mark) for name, (found, mark) in json.loads(text).items()}
