"""References of the programs on vectors and matrices, sparse ones included."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

import numpy as np

from references.reference import Array, Reference, References, one_hot, rounded, sizes

ONE = sizes(n=(1, 13))
TWO = sizes(m=(1, 5, 7), n=(1, 7, 3))
THREE = sizes(m=(1, 5, 3), n=(1, 7, 2), k=(1, 3, 11))


def convolution(image: Array, filters: Array) -> Array:
    """For each place, row by row, and each filter: windows of 3 × 3 with all channels."""
    h, w, c = image.shape[0] - 2, image.shape[1] - 2, image.shape[2]
    patches = [image[y : y + 3, x : x + 3].reshape(9 * c) for y in range(h) for x in range(w)]
    return np.stack(patches) @ filters.T


def tf32(array: Array) -> Array:
    """The nearest numbers of 11 digits, the larger one of two."""
    significand, exponent = np.frexp(array)
    return np.ldexp(np.copysign(np.floor(np.abs(significand) * 2**11 + 0.5), array), exponent - 11)


GEMM: References = {
    "gemm": Reference(lambda A, B, C, alpha, beta: alpha * (A @ B) + beta * C, THREE),
    "matmul": Reference(lambda A, B: A @ B, THREE),
    "matmul_bt": Reference(lambda A, B: A @ B.T, THREE),
    "matmul_at": Reference(lambda A, B: A.T @ B, THREE),
    "matmul_bt_f16": Reference(lambda A, B: A @ B.T, THREE),
    "gemm_f16": Reference(lambda A, B, C, alpha, beta: alpha * (A @ B) + beta * C, THREE),
    "matmul_tf32": rounded(lambda A, B: tf32(A) @ tf32(B), THREE, A=(-4, 4), B=(-4, 4)),
}

PRODUCTS: References = {
    "mixedDot": Reference(lambda xs, ys: xs @ ys, ONE),
    "biasRelu": Reference(lambda A, B, bias: np.maximum(A @ B + bias, 0), THREE),
    "sumOfProducts": Reference(
        lambda A, B, C, D: A @ B + C @ D.T, sizes(m=(1, 5), n=(1, 7), k=(1, 3), l=(1, 2))
    ),
    "reluProduct": Reference(lambda A, B: np.maximum(A, 0) @ B, THREE),
    "batchedProducts": Reference(lambda As, Bs: As @ Bs, sizes(b=(1, 3), m=(1, 5), n=(1, 7), k=(1, 2))),
    "convolution": Reference(convolution, sizes(h=(1, 3), w=(1, 5), c=(1, 2), o=(1, 3))),
}


def tile_pairs(A: Array, B: Array, *, m: int, n: int, p: int, q: int) -> Array:
    """The tile of A and that of B at each of m rows and n columns of tiles."""
    of_rows, of_columns = A.reshape(m, 1, p, -1), B.reshape(1, n, q, -1)
    return np.repeat(of_rows, n, axis=1), np.repeat(of_columns, m, axis=0)


HOPPER: References = {
    "tilePairs": Reference(tile_pairs, sizes(m=(1, 3), n=(1, 2), k=(1, 5), p=(1, 2), q=(1, 7))),
    "kTiles": Reference(
        lambda A, *, r, n, k: A.reshape(r, n, k).swapaxes(0, 1), sizes(n=(1, 3), r=(1, 5), k=(1, 2))
    ),
    "storePanels": Reference(lambda tile: tile, sizes(m=(8, 24), n=(1, 3))),
    "goal": Reference(lambda A, B: A @ B.T, sizes(q=(1, 2), c=(1, 3), k=(1, 3), p=(1, 5))),
}

LINEAR_ALGEBRA: References = {
    "dot": Reference(lambda xs, ys: xs @ ys, ONE),
    "asum": Reference(lambda xs: np.abs(xs).sum(), ONE),
    "scal": Reference(lambda alpha, xs: alpha * xs, ONE),
    "axpy": Reference(lambda alpha, xs, ys: alpha * xs + ys, ONE),
    "gemv": Reference(lambda alpha, A, x, beta, y: alpha * (A @ x) + beta * y, TWO),
    "ger": Reference(lambda alpha, x, y, A: A + alpha * np.outer(x, y), TWO),
    "mm": Reference(lambda A, B: A @ B, THREE),
    "sgemm": Reference(lambda A, B, C, alpha, beta: alpha * (A @ B) + beta * C, THREE),
}

MATRICES: References = {
    "chain": Reference(lambda A, B, C: A @ B @ C, sizes(m=(1, 5), n=(1, 3), k=(1, 2), l=(1, 7))),
    "gram": Reference(lambda A: A.T @ A, TWO),
    "trace": Reference(np.trace, ONE),
    "frobenius": rounded(np.linalg.norm, TWO),
    "diagonal": Reference(np.diag, ONE),
    "upper": Reference(np.triu, ONE),
    "kronecker": Reference(np.kron, sizes(m=(1, 3), n=(1, 2), p=(1, 5), q=(1, 3))),
    "add2D": Reference(lambda A, B: A + B, TWO),
    "tiledProduct": Reference(lambda A, B: A @ B, THREE),
    "products": Reference(lambda As, Bs: As @ Bs, sizes(b=(1, 3), m=(1, 5), n=(1, 7), k=(1, 2))),
}


# --- iterative methods ------------------------------------------------------------------------------


def jacobi(A: Array, b: Array, x: Array) -> Array:
    diagonal = np.diag(A)
    return (b - (A @ x - diagonal * x)) / diagonal


def jacobi_solve(A: Array, b: Array, *, steps: int) -> Array:
    x = np.zeros_like(b)
    for _ in range(steps):
        x = jacobi(A, b, x)
    return x


def power_iteration(A: Array, x: Array) -> Array:
    return A @ x / np.linalg.norm(A @ x)


def conjugate_gradient(A: Array, x: Array, r: Array, p: Array) -> Array:
    Ap = A @ p
    alpha = r @ r / (p @ Ap)
    following = r - alpha * Ap
    beta = following @ following / (r @ r)
    return x + alpha * p, (following, following + beta * p)


POSITIVE = (1.0, 2.0)

SOLVERS: References = {
    "jacobi": rounded(jacobi, ONE, A=POSITIVE),
    "jacobiSolve": rounded(jacobi_solve, sizes(steps=(1, 4), n=(5, 2)), A=POSITIVE),
    "powerIteration": rounded(power_iteration, ONE, A=POSITIVE, x=POSITIVE),
    "rayleigh": rounded(lambda A, x: x @ A @ x / (x @ x), ONE, x=POSITIVE),
    "leastSquares": Reference(lambda rate, A, b, x: x - rate * (A.T @ (A @ x - b)), TWO),
    "conjugateGradient": rounded(conjugate_gradient, ONE, A=POSITIVE, r=POSITIVE, p=POSITIVE),
}


# --- batches ----------------------------------------------------------------------------------------


def lower_triangular(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """With small numbers below a diagonal near 1."""
    return np.tril(generator.uniform(-0.2, 0.2, shape), -1) + np.eye(shape[-1]) * generator.uniform(1, 2)


def positive_definite(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    lower = lower_triangular(generator, shape)
    return lower @ lower.swapaxes(-1, -2)


BATCHES: References = {
    "matrixVectors": Reference(
        lambda As, xs: (As @ xs[..., None])[..., 0], sizes(b=(1, 3), m=(1, 5), n=(1, 7))
    ),
    "gramMatrices": Reference(lambda As: As @ As.swapaxes(1, 2), sizes(b=(1, 3), m=(1, 5), n=(1, 7))),
    "floatProducts": Reference(lambda As, Bs: As @ Bs, sizes(b=(1, 3), m=(1, 20), n=(1, 20), k=(1, 9))),
    "outerProducts": Reference(
        lambda xs, ys: xs[..., None] * ys[:, None], sizes(b=(1, 3), m=(1, 5), n=(1, 7))
    ),
    "triangularSolve": rounded(
        lambda Ls, ys: np.linalg.solve(Ls, ys[..., None])[..., 0],
        sizes(b=(1, 3), n=(1, 5)),
        Ls=lower_triangular,
    ),
    "cholesky": rounded(np.linalg.cholesky, sizes(b=(1, 3), n=(1, 4)), As=positive_definite),
}


# --- sparse matrices --------------------------------------------------------------------------------


def dense(values: Array, columns: Array, *, n: int) -> Array:
    return (values[..., None] * one_hot(columns, n)).sum(1)


SPARSE: References = {
    "spmv": Reference(
        lambda values, columns, x: (values * x[columns]).sum(1), sizes(m=(1, 7), n=(1, 5), w=(1, 3))
    ),
    "spmm": Reference(
        lambda values, columns, B: np.einsum("mw,mwn->mn", values, B[columns]),
        sizes(m=(1, 7), n=(1, 5), k=(1, 11), w=(1, 3)),
    ),
    "dense": Reference(dense, sizes(m=(1, 7), n=(1, 5), w=(1, 3))),
}
