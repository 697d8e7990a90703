"""Cases of which CI, which has ten minutes, runs a part, and the profile `nightly` all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def in_turn(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Each value of each axis: as many cases as the longest axis has. Nightly: their product."""
    values = [list(axis) for axis in axes]
    if NIGHTLY:
        return list(product(*values))
    return [tuple(axis[i % len(axis)] for axis in values) for i in range(max(map(len, values)))]


def every_other(cases: Iterable[Any], start: int = 0) -> list[Any]:
    """Every second case, from the one at `start` on. Nightly: all."""
    return list(cases) if NIGHTLY else list(cases)[start::2]
