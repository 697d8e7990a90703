"""Attention and the log-sum-exp of its scores in f64."""

from __future__ import annotations

from typing import Any

import numpy as np


def of_numpy(given: list[Any], seen: Any = True) -> tuple[Any, Any]:
    """Both results in f64, of a scale, queries, keys and values."""
    scale, *matrices = given
    q, k, v = (x.astype(np.float64) for x in matrices)
    scores = np.where(seen, q @ k.swapaxes(-1, -2) * np.float64(np.float32(scale)), -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isinf(top), 0, top))
        total = weights.sum(-1, keepdims=True)
        return weights / total @ v, (np.where(np.isinf(top), 0, top) + np.log(total))[..., 0]


def near(found: tuple[Any, Any], wanted: tuple[Any, Any]) -> None:
    """Weights and results are rounded to f16; the sums are not."""
    o, sums = (np.asarray(x, np.float64) for x in found)
    np.testing.assert_allclose(o, wanted[0], rtol=2e-3, atol=2e-3, equal_nan=True)
    np.testing.assert_allclose(sums, wanted[1], rtol=2e-6, atol=4e-6)
