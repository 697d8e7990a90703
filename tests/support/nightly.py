"""CI has ten minutes, so it runs a part of these cases; the profile `nightly` runs all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def in_turn(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Each value of each axis: as many cases as the longest axis has. Nightly: their product.

    Each round of a shorter axis starts one value further, so that axes are not in step.
    """
    values = [list(axis) for axis in axes]
    if NIGHTLY:
        return list(product(*values))
    cases = range(max(map(len, values)))
    return [tuple(axis[(i + i // len(axis)) % len(axis)] for axis in values) for i in cases]


def every_other(cases: Iterable[Any], start: int = 0, step: int = 2) -> list[Any]:
    """Every second case, or every so many, from the one at `start` on. Nightly: all."""
    return list(cases) if NIGHTLY else list(cases)[start::step]
