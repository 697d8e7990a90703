"""Inputs that repeat with a prime period, sums that stay exact, samples that include the ends."""

from __future__ import annotations

import numpy as np
import pytest

from bench import data
from bench.data import EXACT, PERIOD, Pattern, integers, linear, normal, sampled


def whole(pattern: Pattern) -> np.ndarray:
    return np.resize(pattern.numbers, pattern.size).reshape(pattern.shape)


def test_the_period_is_prime() -> None:
    assert all(PERIOD % divisor for divisor in range(2, int(PERIOD**0.5) + 1))


@pytest.mark.parametrize("shape", [(1,), (7, 11), (3, 5, 13)])
def test_elements_are_those_of_the_repeated_numbers(shape: tuple[int, ...]) -> None:
    pattern = Pattern(shape, np.arange(5, dtype=np.float32))
    indices = np.ix_(*(np.arange(size) for size in shape))
    assert np.array_equal(pattern.at(*indices), whole(pattern))
    assert pattern.total() == (whole(pattern).sum(), np.abs(whole(pattern)).sum())


def test_places_beyond_2_to_31_are_counted() -> None:
    assert linear((2**20, 2**20), (2**20 - 1, 2**20 - 1)) == 2**40 - 1


@pytest.mark.parametrize("terms", [1, 4096, 2**20, 2**23, 2**30])
def test_whole_numbers_add_up_exactly(terms: int) -> None:
    pattern = integers((min(terms, 2**22),), np.dtype(np.float32), 3, terms)
    largest = np.abs(pattern.numbers).max()
    if terms < EXACT:
        assert largest**2 * terms < EXACT
        assert pattern.numbers.min() < 0 or terms == 1
        return
    assert set(np.unique(pattern.numbers)) == {0, 1}
    assert pattern.numbers.mean() * terms < EXACT / 2, "expected ones among that many"


def test_the_numbers_of_a_seed_are_always_the_same() -> None:
    first, again, other = (normal((100,), np.dtype(np.float16), seed) for seed in (1, 1, 2))
    assert np.array_equal(first.numbers, again.numbers)
    assert not np.array_equal(first.numbers, other.numbers)


@pytest.mark.parametrize("shape", [(1,), (2,), (1000,), (3, 5), (16384, 16384), (10**6, 16, 16), (2**30,)])
def test_samples_include_the_ends(shape: tuple[int, ...]) -> None:
    mesh = sampled(shape)
    assert np.broadcast_shapes(*(index.shape for index in mesh)) == tuple(i.size for i in mesh)
    assert np.prod([i.size for i in mesh]) <= 2100
    for size, index in zip(shape, mesh, strict=True):
        assert {0, size - 1} <= set(index.reshape(-1))
        assert index.max() < size


def test_it_is_the_data_that_is_tested() -> None:
    assert data.normal((2, 3), np.dtype(np.float32), 0).at(1, 2) != 0
