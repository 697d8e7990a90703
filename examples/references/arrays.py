"""References of the programs that rearrange, generate, reduce and scan arrays, and of low-level ones."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

import math

import numpy as np

from references.reference import Array, Reference, References, permutation, rounded, sizes, windows

ONE = sizes(n=(1, 13))
TWO = sizes(m=(1, 5, 7), n=(1, 7, 3))
THREE = sizes(m=(1, 5, 3), n=(1, 7, 2), k=(1, 3, 11))
BLOCKS = sizes(m=(1, 3), n=(1, 2))
STRIDED = sizes(n=(1, 7, 5), s=(3, 2, 1))


def same(xs: Array) -> Array:
    return xs


PADDING: References = {
    "clampBoth": Reference(lambda xs: np.pad(xs, 1, "edge"), ONE),
    "clampLeft": Reference(lambda xs: np.pad(xs, (2, 0), "edge"), ONE),
    "clampRight": Reference(lambda xs: np.pad(xs, (0, 3), "edge"), ONE),
    "zeros": Reference(lambda xs: np.pad(xs, (2, 1)), ONE),
    "prepend": Reference(lambda x, xs: np.array([x, *xs]), ONE),
    "append": Reference(lambda x, xs: np.array([*xs, x]), ONE),
    "clamp2D": Reference(lambda A: np.pad(A, 1, "edge"), TWO),
    "frame": Reference(lambda A: np.pad(A, (1, 2)), TWO),
    "padThenTranspose": Reference(lambda A: np.pad(A.T, 1, "edge"), TWO),
    "transposeThenPad": Reference(lambda A: np.pad(A.T, 1, "edge"), TWO),
}


# --- places -----------------------------------------------------------------------------------------


def to_places(places: Array, xs: Array) -> Array:
    result = np.empty_like(xs)
    result[places] = xs
    return result


def with_stride(xs: Array, *, s: int) -> Array:
    return xs.reshape(-1, s).T.ravel()


REORDERING: References = {
    "transposed": Reference(np.transpose, TWO),
    "transposedByIndex": Reference(np.transpose, TWO),
    "reversed": Reference(np.flip, ONE),
    "reversedByScatter": Reference(np.flip, ONE),
    "withStride": Reference(with_stride, STRIDED),
    "withStrideByTranspose": Reference(with_stride, STRIDED),
    "rowsWithStride": Reference(
        lambda A, *, s: np.stack([with_stride(row, s=s) for row in A]), sizes(m=(1, 3), n=(1, 5), s=(1, 2))
    ),
    "toPlaces": Reference(to_places, ONE, domains={"places": permutation}),
    "rotate": Reference(lambda xs, *, k: np.roll(xs, -k), sizes(n=(1, 7), k=(1, 3))),
    "interleave": Reference(lambda xs, ys: np.stack([xs, ys], 1).ravel(), ONE),
}

GENERATORS: References = {
    "iota": Reference(lambda *, n: np.arange(n), ONE),
    "multiplicationTable": Reference(lambda *, m, n: np.outer(np.arange(1, m + 1), np.arange(1, n + 1)), TWO),
    "identity": Reference(lambda *, n: np.eye(n), ONE),
    "linspace": rounded(lambda first, last, *, n: np.linspace(first, last, n + 1), ONE),
    "eitherRamp": Reference(lambda up, *, n: np.arange(n) if up else -np.arange(n), ONE),
    "eitherOrder": Reference(lambda first, left, right, xs: xs[left] if first else xs[right], ONE),
    "merge": Reference(np.where, ONE),
}

SHARING: References = {
    "squareOfLet": Reference(lambda x: (x + 2) ** 2),
    "squareOfStored": Reference(lambda x: (x + 2) ** 2),
    "squares": Reference(lambda xs: (xs + 2) ** 2, ONE),
    "fromZero": Reference(lambda xs: xs - xs.min(), ONE),
    "spread": Reference(np.ptp, ONE),
}


# --- reductions and scans ---------------------------------------------------------------------------

REDUCTIONS: References = {
    "asumInChunks": Reference(lambda xs: np.abs(xs).sum(), sizes(n=(1, 3))),
    "sumByHalving": Reference(np.sum, sizes(k=(1, 5))),
    "range": Reference(lambda xs: (xs.min(), xs.max()), ONE),
    "countPositive": Reference(lambda xs: (xs > 0).sum(), ONE),
    "isSorted": Reference(lambda xs: (np.diff(xs) >= 0).all(), sizes(n=(1, 2, 13))),
    "whereLargest": Reference(np.argmax, ONE),
    "columnSums": Reference(lambda A: A.sum(0), TWO),
    "gcd": Reference(math.gcd, domains={"a": (0, 10**9), "b": (1, 10**9)}),
}


def segmented_sum(starts: Array, xs: Array) -> Array:
    segments = np.cumsum(starts)
    return np.array([xs[: i + 1][segments[: i + 1] == segments[i]].sum() for i in range(len(xs))])


def recurrence(factors: Array, terms: Array) -> Array:
    found = [0.0]
    for a, b in zip(factors, terms, strict=True):
        found.append(a * found[-1] + b)
    return np.array(found[1:])


def integral_image(A: Array) -> Array:
    return A.cumsum(0).cumsum(1)


SCANS: References = {
    "prefixSum": Reference(np.cumsum, ONE),
    "offsets": Reference(lambda lengths: np.cumsum(lengths) - lengths, ONE),
    "runningMaximum": Reference(np.maximum.accumulate, ONE),
    "segmentedSum": Reference(segmented_sum, ONE),
    "recurrence": Reference(recurrence, sizes(n=(1, 7))),
    "smooth": rounded(
        lambda weight, xs: recurrence(np.full(len(xs), 1 - weight), weight * xs), ONE, weight=(0, 1)
    ),
    "integralImage": Reference(integral_image, TWO),
    "movingSum": Reference(lambda xs, *, w: windows(xs, w).sum(1), sizes(n=(1, 13), w=(1, 5))),
}


# --- low-level programs -----------------------------------------------------------------------------

COPIES: References = {
    "copy1D": Reference(same, ONE),
    "copy2D": Reference(same, TWO),
    "copy3D": Reference(same, sizes(l=(1, 2), m=(1, 3), n=(1, 5))),
    "copySplit": Reference(lambda xs: xs.reshape(-1, 4), sizes(n=(1, 3))),
    "copyWindows": Reference(lambda xs: windows(xs, 3), ONE),
    "copyGlobal": Reference(same, ONE),
    "transposeReading": Reference(np.transpose, TWO),
    "transposeWriting": Reference(np.transpose, TWO),
    "copyThroughShared": Reference(same, TWO),
}

KERNELS: References = {
    "axpyThreads": Reference(lambda a, xs, ys: a * xs + ys, ONE),
    "matvecBlocks": Reference(lambda A, x: A @ x, BLOCKS),
    "matmulThreads": Reference(lambda A, B: A @ B, THREE),
    "matmulTiles": Reference(lambda A, B: A @ B, sizes(m=(1, 2), n=(1, 3), k=(2, 1))),
    "sum3Blocks": Reference(lambda xs: windows(xs, 3).sum(1), sizes(n=(1, 3))),
    "tensorTile": Reference(lambda A, B: A @ B),
}
