"""Reductions of columns: references at sampled columns, and the same in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.operations import Expected, Inputs, Mesh, Operation, probabilities
from bench.table import Sizes


def _of_columns(x: Any, mesh: Mesh) -> Any:
    """All elements of the columns that a mesh is of, the columns last, in f64."""
    *outer, columns = mesh
    rows = [np.arange(size) for size in x.shape[len(outer) : -1]]
    apart = np.ix_(*(index.reshape(-1) for index in outer), *rows, columns.reshape(-1))
    return x.at(*apart)


def _sums(x: Inputs, mesh: Mesh) -> Expected:
    """Of columns of all rows, whatever arrays these are in."""
    found = _of_columns(x[0], mesh[-1:])
    summed = tuple(range(found.ndim - 1))
    return Expected(found.sum(summed), np.abs(found).sum(summed))


def _times_transposed(x: Inputs, mesh: Mesh) -> Expected:
    products = _of_columns(x[0], mesh) * x[1].at(np.arange(x[1].shape[0]))[:, None]
    return Expected(products.sum(0), np.abs(products).sum(0))


def _means(x: Inputs, mesh: Mesh) -> Expected:
    found = _of_columns(x[0], mesh)
    return Expected(found.mean(-2), np.abs(found).mean(-2))


def _variances(x: Inputs, mesh: Mesh) -> Expected:
    found = _of_columns(x[0], mesh)
    return Expected(found.var(0), np.square(found).mean(0))


def _softmax(x: Inputs, mesh: Mesh) -> Expected:
    """Columns as probabilities. Exponentials of f32 are right to about 2^-21, whatever they are."""
    rows, _ = mesh
    values = probabilities(_of_columns(x[0], mesh[-1:]), 0)[rows.reshape(-1)]
    return Expected(values, values)


def _elements(sizes: Sizes) -> int:
    return sizes.get("b", 1) * sizes["m"] * sizes["n"]


def _terms(sizes: Sizes) -> int:
    return sizes.get("b", 1) * sizes["m"]


OPERATIONS: Mapping[str, Operation] = {
    "columnSums": Operation(_elements, _terms, _sums),
    "biasGradient": Operation(_elements, _terms, _sums),
    "timesTransposed": Operation(lambda s: 2 * _elements(s), _terms, _times_transposed),
    "channelMeans": Operation(_elements, lambda s: s["m"], _means, exact=False),
    "columnVariances": Operation(lambda s: 4 * _elements(s), _terms, _variances, exact=False),
    "softmaxOfColumns": Operation(lambda s: 5 * _elements(s), lambda s: 64, _softmax, exact=False),
}


def functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Each takes the inputs of its operation and gives its result."""
    return {
        "columnSums": lambda x: x.sum(0),
        "biasGradient": lambda x: x.sum((0, 1), dtype=torch.float32),
        "timesTransposed": lambda x, v: torch.mv(x.mT, v),
        "channelMeans": lambda x: x.mean(1),
        "columnVariances": lambda x: x.var(0, correction=0),
        "softmaxOfColumns": lambda x: torch.softmax(x, 0),
    }
