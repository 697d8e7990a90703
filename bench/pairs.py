"""Reductions of all pairs of rows in f32: references at sampled elements, and the same in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from bench.operations import Expected, Inputs, Mesh, Operation, batched, product
from bench.table import Sizes


def _differences(x: Inputs, mesh: Mesh) -> Any:
    """Of the rows of two matrices, for each element at a mesh."""
    inner, (rows, columns) = np.arange(x[0].shape[1]), mesh
    return x[0].at(rows[..., None], inner) - x[1].at(columns[..., None], inner)


def _manhattan(x: Inputs, mesh: Mesh) -> Expected:
    found = np.abs(_differences(x, mesh)).sum(-1)
    return Expected(found, found)


def _chebyshev(x: Inputs, mesh: Mesh) -> Expected:
    found = np.abs(_differences(x, mesh)).max(-1)
    return Expected(found, found)


def _shortest(x: Inputs, mesh: Mesh) -> Expected:
    """The least sum of an element of a row and one of a column."""
    inner, (rows, columns) = np.arange(x[0].shape[1]), mesh
    found = (x[0].at(rows[..., None], inner) + x[1].at(inner, columns[..., None])).min(-1)
    return Expected(found, np.abs(found))


def _product(x: Inputs, mesh: Mesh, transposed: bool = False) -> Expected:
    return product(x[0], x[1], mesh[0], mesh[1], transposed)


def _pairs(sizes: Sizes) -> int:
    """Two operations for each pair of elements."""
    return 2 * sizes["m"] * sizes["n"] * sizes["k"]


def _terms(sizes: Sizes) -> int:
    return sizes["k"]


OPERATIONS: Mapping[str, Operation] = {
    "floatProduct": Operation(_pairs, _terms, _product),
    "floatProductBt": Operation(_pairs, _terms, partial(_product, transposed=True)),
    "floatBatch": Operation(lambda s: s["b"] * _pairs(s), _terms, batched),
    "manhattan": Operation(_pairs, _terms, _manhattan),
    "chebyshev": Operation(_pairs, _terms, _chebyshev),
    "shortestPaths": Operation(_pairs, _terms, _shortest),
}


def functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Each takes the inputs of its operation and gives its result; products are of f32, not of tf32."""
    return {
        "floatProduct": torch.mm,
        "floatProductBt": lambda a, b: torch.mm(a, b.t()),
        "floatBatch": torch.bmm,
        "manhattan": lambda a, b: torch.cdist(a, b, p=1.0),
        "chebyshev": lambda a, b: torch.cdist(a, b, p=float("inf")),
        "shortestPaths": lambda a, b: (a[:, :, None] + b[None]).amin(1),
    }
