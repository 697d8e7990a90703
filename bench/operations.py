"""The operations of tables: their work, and results in f64 at sampled elements, with error bounds.

Shapes: a mesh is one array of indices for each dimension of the result, broadcasting against each other;
inputs come in the order of the program's parameters, arrays as `Pattern`, numbers as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from bench.data import EXACT
from bench.table import Sizes

Inputs = Sequence[Any]
Mesh = tuple[Any, ...]


@dataclass(frozen=True)
class Expected:
    """values: in f64. magnitude: the sum of the magnitudes of the terms that each of them is a sum of."""

    values: Any
    magnitude: Any


@dataclass(frozen=True)
class Operation:
    """flops: of one result of these sizes. terms: how many are added up for one element.

    exact: whether the result on small whole numbers is exact, in any order of the sum
    whole: up to where partial sums are exact: in f32, or in f16 where these are rounded to it
    """

    flops: Callable[[Sizes], int]
    terms: Callable[[Sizes], int]
    expected: Callable[[Inputs, Mesh], Expected]
    exact: bool = True
    whole: int = EXACT


def bound(expected: Expected, terms: int, dtype: np.dtype[Any]) -> Any:
    """How far a result may be off.

    f32 sums of `terms` products in any order: each partial sum is at most the magnitude, and off by at most
    one unit in the last place (tensor cores truncate). No kernel adds up one after the other more than 2^14
    numbers. Then one rounding to the type of the result, whose numbers next to 0 are a subnormal apart.
    """
    sums = (min(terms, 2**14) + 4) * 2.0**-23 * expected.magnitude
    info = np.finfo(dtype)
    return sums + float(info.eps) * np.abs(expected.values) + float(info.smallest_subnormal)


# --- products -----------------------------------------------------------------------------------------------


def product(a: Any, b: Any, rows: Any, columns: Any, transposed: bool = False) -> Expected:
    """A · B (or A · Bᵀ) at rows (r, 1) and columns (1, c)."""
    inner = np.arange(a.shape[1])
    left = a.at(rows.reshape(-1, 1), inner)
    across = columns.reshape(1, -1)
    right = b.at(across.T, inner).T if transposed else b.at(inner[:, None], across)
    return Expected(left @ right, np.abs(left) @ np.abs(right))


def _gemm(x: Inputs, mesh: Mesh, transposed: bool = False) -> Expected:
    a, b, c, alpha, beta = x
    p, added = product(a, b, mesh[0], mesh[1], transposed), c.at(*mesh)
    return Expected(alpha * p.values + beta * added, abs(alpha) * p.magnitude + abs(beta) * np.abs(added))


def _matmul(x: Inputs, mesh: Mesh) -> Expected:
    return product(x[0], x[1], *mesh)


@dataclass(frozen=True)
class Transposed:
    """A matrix with rows for columns."""

    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(reversed(self.array.shape))

    def at(self, row: Any, column: Any) -> Any:
        return self.array.at(column, row)


def _matmul_of(a_transposed: bool, b_transposed: bool) -> Callable[[Inputs, Mesh], Expected]:
    """A · B where A is stored as k.m, or B as n.k."""

    def expected(x: Inputs, mesh: Mesh) -> Expected:
        a = Transposed(x[0]) if a_transposed else x[0]
        return product(a, x[1], mesh[0], mesh[1], b_transposed)

    return expected


def _bias_relu(x: Inputs, mesh: Mesh) -> Expected:
    p, bias = product(x[0], x[1], *mesh), x[2].at(mesh[1])
    return Expected(np.maximum(p.values + bias, 0), p.magnitude + np.abs(bias))


@dataclass(frozen=True)
class Positive:
    """An array with its negative elements replaced by zeros."""

    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def at(self, *indices: Any) -> Any:
        return np.maximum(self.array.at(*indices), 0)


def _relu_product(x: Inputs, mesh: Mesh) -> Expected:
    return product(Positive(x[0]), x[1], *mesh)


def _sum_of_products(x: Inputs, mesh: Mesh) -> Expected:
    a, b, c, d = x
    rows, columns = mesh
    first, second = product(a, b, rows, columns), product(c, d, rows, columns, transposed=True)
    return Expected(first.values + second.values, first.magnitude + second.magnitude)


def batched(x: Inputs, mesh: Mesh) -> Expected:
    a, b = x
    batch, rows, columns = mesh
    inner = np.arange(a.shape[2])
    left = a.at(batch, rows, inner.reshape(1, 1, -1))
    right = b.at(batch, inner.reshape(1, -1, 1), columns)
    return Expected(left @ right, np.abs(left) @ np.abs(right))


# --- bound by memory ----------------------------------------------------------------------------------------


def _same(values: Any) -> Expected:
    return Expected(values, np.abs(values))


def _copy(x: Inputs, mesh: Mesh) -> Expected:
    return _same(x[0].at(*mesh))


def _axpy(x: Inputs, mesh: Mesh) -> Expected:
    a, left, right = x[0], x[1].at(*mesh), x[2].at(*mesh)
    return Expected(a * left + right, np.abs(a * left) + np.abs(right))


def transposition(x: Inputs, mesh: Mesh) -> Expected:
    """Of a matrix, or of each of an array."""
    *outer, rows, columns = mesh
    return _same(x[0].at(*outer, columns, rows))


def _sum(x: Inputs, mesh: Mesh) -> Expected:
    total, magnitude = x[0].total()
    return Expected(np.array([total]), np.array([magnitude]))


def _five_point(x: Inputs, mesh: Mesh) -> Expected:
    """The mean of the four neighbours; at the border an element is its own neighbour."""
    (image,), (rows, columns) = x, mesh
    last = [size - 1 for size in image.shape]
    neighbours = [
        image.at(np.clip(rows + down, 0, last[0]), np.clip(columns + right, 0, last[1]))
        for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0))
    ]
    return Expected(0.25 * sum(neighbours), 0.25 * sum(np.abs(n) for n in neighbours))


def probabilities(numbers: Any, axis: int) -> Any:
    powers = np.exp(numbers - numbers.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def softmax(x: Inputs, mesh: Mesh) -> Expected:
    """Rows as probabilities. Exponentials of f32 are right to about 2^-21, whatever they are."""
    *outer, columns = mesh
    rows = x[0].at(*outer, np.arange(x[0].shape[-1]))
    values = probabilities(rows, -1)[..., columns.reshape(-1)]
    return Expected(values, values)


def _all(*names: str) -> Callable[[Sizes], int]:
    return lambda sizes: prod(sizes[name] for name in names)


def _of(name: str) -> Callable[[Sizes], int]:
    return lambda sizes: sizes[name]


def _number(value: int) -> Callable[[Sizes], int]:
    return lambda sizes: value


def _product_flops(sizes: Sizes) -> int:
    return 2 * sizes["m"] * sizes["n"] * sizes["k"]


OPERATIONS: Mapping[str, Operation] = {
    "gemm": Operation(_product_flops, _of("k"), _gemm),
    "matmul": Operation(_product_flops, _of("k"), _matmul),
    "gemmBt": Operation(_product_flops, _of("k"), partial(_gemm, transposed=True)),
    "matmulBt": Operation(_product_flops, _of("k"), _matmul_of(False, True)),
    "matmulAt": Operation(_product_flops, _of("k"), _matmul_of(True, False)),
    "matmulAtBt": Operation(_product_flops, _of("k"), _matmul_of(True, True)),
    "biasRelu": Operation(_product_flops, _of("k"), _bias_relu),
    "reluProduct": Operation(_product_flops, _of("k"), _relu_product),
    "sumOfProducts": Operation(
        lambda s: 2 * s["m"] * s["n"] * (s["k"] + s["l"]), lambda s: s["k"] + s["l"], _sum_of_products
    ),
    "batchedProducts": Operation(lambda s: s["b"] * _product_flops(s), _of("k"), batched),
    "batchedHalf": Operation(lambda s: s["b"] * _product_flops(s), _of("k"), batched),
    "copy": Operation(_number(0), _number(1), _copy),
    "axpy": Operation(lambda s: 2 * s["n"], _number(2), _axpy),
    "transposition": Operation(_number(0), _number(1), transposition),
    "sum": Operation(_of("n"), _of("n"), _sum),
    "fivePoint": Operation(lambda s: 4 * s["m"] * s["n"], _number(4), _five_point),
    # sums of positive numbers by halves and threads: far fewer roundings than terms
    "softmax": Operation(lambda s: 5 * s["b"] * s["n"], _number(64), softmax, exact=False),
}
