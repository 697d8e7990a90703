"""Draws, in the form that the generators of this package use.

One small integer a decision: a nested Hypothesis strategy for each node of a term is fifty times slower.
The first of all alternatives is the simplest, so that Hypothesis shrinks towards small terms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


class Choose:
    """Decisions by drawn numbers below a bound."""

    def __init__(self, draw: Callable[[SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def below(self, bound: int) -> int:
        return self._draw(_integers(bound - 1)) if bound > 1 else 0

    def pick(self, alternatives: Sequence[T]) -> T:
        return alternatives[self.below(len(alternatives))]

    def one_in(self, count: int) -> bool:
        return self.below(count) == count - 1


class Drawn(Choose):
    """Decisions from a seed: the same ones each time, without Hypothesis."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        return int(self._random() * bound)


_INTEGERS: dict[int, SearchStrategy[int]] = {}


def _integers(largest: int) -> SearchStrategy[int]:
    if largest not in _INTEGERS:
        from hypothesis.strategies import integers  # late: an extra

        _INTEGERS[largest] = integers(0, largest)
    return _INTEGERS[largest]


def choices() -> SearchStrategy[Choose]:
    """A `Choose` to hand to the generators of this package."""
    from hypothesis.strategies import composite

    return composite(lambda draw: Choose(draw))()
