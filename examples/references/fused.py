"""References of the products with what is done to their elements."""

# ruff: noqa: N803  # matrices are called A, B, R

from __future__ import annotations

import numpy as np

from references.reference import Array, Reference, References, rounded, sizes

ONE = sizes(k=(1, 7))
TWO = sizes(m=(1, 5), n=(1, 3))
THREE = sizes(m=(1, 5, 3), n=(1, 7, 2), k=(1, 3, 11))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def to_byte(x: Array) -> Array:
    return np.clip(x, -128, 127)


def with_row_sums(A: Array, B: Array, bias: Array) -> Array:
    D = np.maximum(A @ B + bias, 0)
    return D, D.sum(1)


def rows_quantised(A: Array, B: Array) -> Array:
    """In f32, as the program: what is cut off depends on the last digit."""
    D = (A @ B).astype(np.float32)
    top = np.maximum(np.abs(D).max(1, keepdims=True), np.float32(1))
    return np.clip(np.trunc(D * (np.float32(127) / top)), -128, 127)


RESIDUAL = rounded(lambda A, B, bias, R: gelu(A @ B + bias) + R, THREE)

FUSED: References = {
    "mixedDot": Reference(lambda xs, ys: xs @ ys, ONE),
    "AB": Reference(lambda A, B: A @ B, THREE),
    "toByte": Reference(to_byte),
    "addRow": Reference(lambda v, A: A + v, TWO),
    "addMatrix": Reference(lambda R, A: A + R, TWO),
    **dict.fromkeys(("chained", "zipped", "indexed", "named", "broadcast"), RESIDUAL),
    "transposedResidual": rounded(lambda A, B, bias, R: gelu(A @ B + bias) + R.T, THREE),
    "transposedResult": rounded(lambda A, B, bias, R: (gelu(A @ B + bias) + R).T, THREE),
    "scaled": Reference(lambda A, B, C, alpha, beta: alpha * (A @ B) + beta * C, THREE),
    "rowsAndColumns": Reference(lambda A, B, bias, scales, R: (A @ B + bias) * scales[:, None] + R, THREE),
    "dequantised": rounded(
        lambda A, B, rows, columns, alpha: alpha * (A @ B) * np.outer(rows, columns), THREE
    ),
    "quantised": Reference(lambda A, B, scales: to_byte(A @ B * scales[:, None]), THREE),
    "masked": Reference(lambda A, B: np.tril(A @ B), THREE),
    "tanhOf": rounded(lambda A, B, bias: np.tanh(A @ B + bias), THREE),
    "sigmoidOf": rounded(lambda A, B: sigmoid(A @ B), THREE),
    "siluOf": rounded(lambda A, B, bias: (A @ B + bias) * sigmoid(A @ B + bias), THREE),
    "bfloats": Reference(lambda A, B, bias: np.maximum(A @ B + bias, 0), THREE),
    "both": Reference(lambda A, B, bias: (A @ B + bias, np.maximum(A @ B + bias, 0)), THREE),
    "rowSums": Reference(lambda A, B, bias: (A @ B + bias).sum(1), THREE),
    "columnMaxima": Reference(lambda A, B: (A @ B).max(0), THREE),
    "withRowSums": Reference(with_row_sums, THREE),
    "rowsQuantised": Reference(rows_quantised, THREE),
    "ofTwoTypes": Reference(lambda A, B: (A @ B, np.maximum(A @ B, 0)), THREE),
}


# --- rows of products that are only reduced ---------------------------------------------------------------


def log_sum_exps(X: Array, Y: Array) -> Array:
    P = X @ Y.T
    top = P.max(1)
    return np.log(np.exp(P - top[:, None]).sum(1)) + top


def linear_cross_entropy(X: Array, Y: Array, classes: Array) -> Array:
    return log_sum_exps(X, Y) - (X * Y[classes]).sum(1)


def partition(X: Array, Y: Array) -> Array:
    P = X @ Y.T
    top = P.max(1)
    return top, np.exp(P - top[:, None]).sum(1)


def contrastive(scale: Array, X: Array, Y: Array) -> Array:
    both = (log_sum_exps(scale * X, Y).mean() + log_sum_exps(scale * Y, X).mean()) / 2
    return both - scale * (X * Y).sum(1).mean()


REDUCED_ROWS: References = {
    "scores": Reference(lambda X, Y: X @ Y.T, THREE),
    "logSumExps": rounded(log_sum_exps, THREE),
    "linearCrossEntropy": rounded(linear_cross_entropy, THREE),
    "scoresAndLogSumExps": rounded(lambda X, Y: (X @ Y.T, log_sum_exps(X, Y)), THREE),
    "best": Reference(lambda X, Y: (X @ Y.T).argmax(1), THREE),
    "nearest": Reference(lambda X, Y, norms: (norms - 2 * (X @ Y.T)).argmin(1), THREE),
    "partition": rounded(partition, THREE),
    "contrastive": rounded(contrastive, sizes(n=(1, 7), k=(1, 5))),
}
