"""Arrays of matrices, or of rows, in arrays: references at sampled elements, and the same in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.operations import Expected, Inputs, Mesh, Operation, softmax, transposition
from bench.table import Sizes


def _scores(x: Inputs, mesh: Mesh) -> Expected:
    """Queries b.h.m.k and keys b.h.n.k, or b.n.k that the heads of a group share."""
    queries, keys = x
    batch, head, rows, columns = mesh
    of_head = (batch, head) if len(keys.shape) == len(queries.shape) else (batch,)
    inner = np.arange(queries.shape[-1])
    left = queries.at(batch, head, rows, inner.reshape(1, 1, 1, -1))
    right = keys.at(*of_head, columns, inner.reshape(1, 1, -1, 1))
    return Expected(left @ right, np.abs(left) @ np.abs(right))


def _row_sums(x: Inputs, mesh: Mesh) -> Expected:
    batch, rows = (index[..., None] for index in mesh)
    of_rows = x[0].at(batch, rows, np.arange(x[0].shape[-1]))
    return Expected(of_rows.sum(-1), np.abs(of_rows).sum(-1))


def _times_vectors(x: Inputs, mesh: Mesh) -> Expected:
    batch, rows = (index[..., None] for index in mesh)
    inner = np.arange(x[0].shape[-1])
    products = x[0].at(batch, rows, inner) * x[1].at(batch, inner)
    return Expected(products.sum(-1), np.abs(products).sum(-1))


def _layer(x: Inputs, mesh: Mesh) -> Expected:
    """Rows b.m.k times the rows n.k of weights, with a bias for each of these; nothing is negative."""
    batch, rows, columns = mesh
    inner = np.arange(x[0].shape[-1])
    left, right = x[0].at(batch, rows, inner.reshape(1, 1, -1)), x[1].at(columns, inner.reshape(1, -1, 1))
    bias = x[2].at(columns)
    sums, magnitude = left @ right + bias, np.abs(left) @ np.abs(right) + np.abs(bias)
    return Expected(np.maximum(sums, 0), magnitude)


def _heads_of_rows(x: Inputs, mesh: Mesh) -> Expected:
    """Rows b.m.k times weights h.d.k: of each head, d products of each row."""
    batch, head, rows, columns = mesh
    inner = np.arange(x[0].shape[-1])
    left = x[0].at(batch, rows, inner.reshape(1, 1, 1, -1))
    right = x[1].at(head, columns, inner.reshape(1, 1, -1, 1))
    return Expected(left @ right, np.abs(left) @ np.abs(right))


def _rows_of_heads(x: Inputs, mesh: Mesh) -> Expected:
    """Weights b.h.m.n times values b.h.n.d: of a row, the products of all heads beside each other."""
    batch, rows, columns = mesh
    wide = x[1].shape[-1]
    inner = np.arange(x[0].shape[-1])
    left = x[0].at(batch[..., None], columns[..., None] // wide, rows[..., None], inner)
    right = x[1].at(batch[..., None], columns[..., None] // wide, inner, columns[..., None] % wide)
    return Expected((left * right).sum(-1), np.abs(left * right).sum(-1))


def _distances(x: Inputs, mesh: Mesh) -> Expected:
    """Of points b.m.k and b.n.k: the squares of their distances."""
    batch, rows, columns = (index[..., None] for index in mesh)
    inner = np.arange(x[0].shape[-1])
    left, right = x[0].at(batch, rows, inner), x[1].at(batch, columns, inner)
    magnitude = left**2 + right**2 + 2 * np.abs(left * right)
    return Expected(((left - right) ** 2).sum(-1), magnitude.sum(-1))


def _flops(sizes: Sizes) -> int:
    return 2 * sizes["b"] * sizes["h"] * sizes["m"] * sizes["n"] * sizes["k"]


def _elements(sizes: Sizes) -> int:
    return sizes["b"] * sizes["m"] * sizes["n"]


OPERATIONS: Mapping[str, Operation] = {
    "headScores": Operation(_flops, lambda s: s["k"], _scores),
    "groupScores": Operation(_flops, lambda s: s["k"], _scores),
    "softmaxOfHeads": Operation(lambda s: 5 * s["h"] * _elements(s), lambda s: 64, softmax, exact=False),
    "sumsOfRows": Operation(_elements, lambda s: s["n"], _row_sums),
    "timesVectors": Operation(lambda s: 2 * _elements(s), lambda s: s["n"], _times_vectors),
    "layer": Operation(lambda s: 2 * _elements(s) * s["k"], lambda s: s["k"], _layer),
    "transposedEach": Operation(lambda s: 0, lambda s: 1, transposition),
    "headsOfRows": Operation(
        lambda s: 2 * s["b"] * s["m"] * s["h"] * s["d"] * s["k"], lambda s: s["k"], _heads_of_rows
    ),
    "rowsOfHeads": Operation(
        lambda s: 2 * s["b"] * s["h"] * s["m"] * s["n"] * s["d"], lambda s: s["n"], _rows_of_heads
    ),
    "distances": Operation(lambda s: 2 * _elements(s) * s["k"], lambda s: 3 * s["k"], _distances),
}


def functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Each takes the inputs of its operation and gives its result."""

    def squares(x: Any) -> Any:
        return x.to(torch.float32).square().sum(-1)

    def distances(x: Any, y: Any) -> Any:
        products = torch.matmul(x, y.mT)
        return (squares(x)[:, :, None] + squares(y)[:, None] - 2 * products).to(x.dtype)

    def heads_of_rows(x: Any, w: Any) -> Any:
        heads, wide, length = w.shape
        products = torch.matmul(x, w.reshape(heads * wide, length).mT)
        return products.reshape(*x.shape[:2], heads, wide).swapaxes(1, 2).contiguous()

    def rows_of_heads(w: Any, v: Any) -> Any:
        return torch.matmul(w, v).swapaxes(1, 2).reshape(w.shape[0], w.shape[2], -1)

    return {
        "headScores": lambda q, k: torch.matmul(q, k.mT),
        "groupScores": lambda q, k: torch.matmul(q, k[:, None].mT),
        "softmaxOfHeads": lambda x: torch.softmax(x, -1),
        "sumsOfRows": lambda x: x.sum(-1),
        "timesVectors": lambda x, v: torch.bmm(x, v[..., None])[..., 0],
        "layer": lambda x, w, bias: torch.relu(torch.nn.functional.linear(x, w, bias)),
        "transposedEach": lambda x: x.mT.contiguous(),
        "headsOfRows": heads_of_rows,
        "rowsOfHeads": rows_of_heads,
        "distances": distances,
    }
