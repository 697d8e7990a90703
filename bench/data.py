"""Inputs of any size from a few megabytes of numbers: each array repeats them with a period that is prime.

So a GPU fills gigabytes by itself, the host knows every element, and an element that is taken from a wrong
place still differs from the right one, for no row or tile is a multiple of the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

PERIOD = 4194301  # the largest prime below 2^22
EXACT = 2**24  # integers up to here are exact in f32


@dataclass(frozen=True)
class Pattern:
    """An array: its shape, and the numbers that its elements repeat, row by row."""

    shape: tuple[int, ...]
    numbers: Any

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.numbers.dtype
        return found

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    def at(self, *indices: Any) -> Any:
        """The elements at indices that broadcast against each other, one for each dimension, as f64."""
        return self.numbers[linear(self.shape, indices) % len(self.numbers)].astype(np.float64)

    def total(self) -> tuple[float, float]:
        """The sum of all elements and of their magnitudes, in f64."""
        numbers = self.numbers.astype(np.float64)
        whole, rest = divmod(self.size, len(numbers))
        sums = [whole * part.sum() + part[:rest].sum() for part in (numbers, np.abs(numbers))]
        return float(sums[0]), float(sums[1])


def linear(shape: Sequence[int], indices: Sequence[Any]) -> Any:
    """Where elements lie in an array that is stored row by row."""
    position: Any = np.int64(0)
    for size, index in zip(shape, indices, strict=True):
        position = position * size + np.asarray(index, np.int64)
    return position


def normal(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Pattern:
    """Random normal numbers."""
    count = min(PERIOD, max(prod(shape), 1))
    return Pattern(shape, _normal_numbers(seed)[:count].astype(dtype))


@cache
def _normal_numbers(seed: int) -> Any:
    """A whole period of them: drawn once for all cases."""
    return np.random.default_rng(seed).standard_normal(PERIOD, np.float32)


def integers(
    shape: tuple[int, ...], dtype: np.dtype[Any], seed: int, terms: int, whole: int = EXACT
) -> Pattern:
    """Small whole numbers, of which `terms` products (or numbers) add up exactly, in any order.

    whole: up to where whole numbers are exact in the type of the sums

    Up to 4 in magnitude; for very long sums zeros and ones, so few ones that the sum stays exact.
    """
    random = np.random.default_rng(seed)
    count = min(PERIOD, max(prod(shape), 1))
    for largest in (4, 2, 1):
        if largest**2 * terms < whole:
            return Pattern(shape, random.integers(-largest, largest + 1, count).astype(dtype))
    ones = random.random(count) < whole / 4 / terms
    return Pattern(shape, ones.astype(dtype))


def sampled(shape: Sequence[int], seed: int = 0, most: int = 2048) -> tuple[Any, ...]:
    """For each dimension indices that are looked at: the first, the last and random ones between.

    Their open mesh has at most `most` points, 45 by 45 of a matrix.
    """
    random = np.random.default_rng(seed)
    each = max(2, int(most ** (1 / max(len(shape), 1))))
    chosen = []
    for size in shape:
        if size <= each:
            chosen.append(np.arange(size))
            continue
        inner = (
            random.choice(size - 2, each - 2, replace=False) + 1
            if size < 2**20
            else (random.integers(1, size - 1, each - 2))
        )
        chosen.append(np.unique(np.concatenate([[0], inner, [size - 1]])))
    return np.ix_(*chosen) if chosen else ()
