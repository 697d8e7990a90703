"""References of stencils, convolutions, images and games on grids."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

import numpy as np

from references.reference import Array, Reference, References, correlate, one_hot, rounded, sizes, windows

ONE = sizes(n=(1, 13))
TWO = sizes(m=(1, 5, 7), n=(1, 7, 3))
SPACE = sizes(l=(1, 2), m=(1, 3), n=(1, 5))
IMAGE = sizes(h=(1, 5, 4), w=(1, 7, 3))

CROSS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
BOX = np.ones((3, 3))


def laplace_3d() -> Array:
    """The weights of the seven-point Laplacian."""
    weights = np.zeros((3, 3, 3))
    weights[1, 1, :] += 1
    weights[1, :, 1] += 1
    weights[:, 1, 1] += 1
    weights[1, 1, 1] = -6
    return weights


STENCILS_1D: References = {
    "sum3": Reference(lambda xs: correlate(np.ones(3), xs), ONE),
    "sum3Clamp": Reference(lambda xs: correlate(np.ones(3), np.pad(xs, 1, "edge")), ONE),
    "sum3Zero": Reference(lambda xs: correlate(np.ones(3), np.pad(xs, 1)), ONE),
    "sum3Wrap": Reference(lambda xs: correlate(np.ones(3), np.pad(xs, 1, "wrap")), ONE),
    "differences": Reference(np.diff, ONE),
    "laplace1D": Reference(lambda xs: correlate(np.array([1, -2, 1]), np.pad(xs, 1, "edge")), ONE),
    "dilate": Reference(lambda xs: windows(np.pad(xs, 2, "edge"), 5).max(1), ONE),
    "median3": Reference(lambda xs: np.median(windows(np.pad(xs, 1, "edge"), 3), 1), ONE),
    "overlapping": Reference(lambda xs: windows(xs, 4)[::2].sum(1), sizes(n=(1, 7))),
}

STENCILS_2D: References = {
    "fivePoint": Reference(lambda A: correlate(CROSS, np.pad(A, 1, "edge")) / 4, TWO),
    "ninePoint": Reference(lambda A: correlate(BOX, A), TWO),
    "ninePointZero": Reference(lambda A: correlate(BOX, np.pad(A, 1)), TWO),
    "dilate2D": Reference(lambda A: windows(np.pad(A, 1, "edge"), 3, 3).max((2, 3)), TWO),
    "ninePointTiled": Reference(lambda A: correlate(BOX, A), TWO),
}

STENCILS_3D: References = {
    "sum27": Reference(lambda A: correlate(np.ones((3, 3, 3)), A), SPACE),
    "sum27Clamp": Reference(lambda A: correlate(np.ones((3, 3, 3)), np.pad(A, 1, "edge")), SPACE),
    "laplace3D": Reference(lambda A: correlate(laplace_3d(), np.pad(A, 1)), SPACE),
}


# --- heat -------------------------------------------------------------------------------------------


def rod_step(rate: Array, u: Array) -> Array:
    return u + rate * correlate(np.array([1, -2, 1]), np.pad(u, 1, "edge"))


def rod(rate: Array, u: Array, *, steps: int) -> Array:
    for _ in range(steps):
        u = rod_step(rate, u)
    return u


def plate_step(rate: Array, u: Array) -> Array:
    return u + rate * (correlate(CROSS, np.pad(u, 1)) - 4 * u)


def plate(rate: Array, u: Array, *, steps: int) -> Array:
    for _ in range(steps):
        u = plate_step(rate, u)
    return u


RATE = (0.0, 0.25)

HEAT: References = {
    "rodStep": Reference(rod_step, ONE),
    "rod": rounded(rod, sizes(steps=(1, 5), n=(1, 7)), rate=RATE),
    "plateStep": Reference(plate_step, TWO),
    "plate": rounded(plate, sizes(steps=(1, 3), m=(1, 5), n=(1, 7)), rate=RATE),
}


# --- convolutions -----------------------------------------------------------------------------------

WINDOWS = sizes(m=(1, 5), n=(1, 4), p=(1, 3), q=(1, 2))
CHANNELS = sizes(c=(1, 3), m=(1, 5), n=(1, 4), p=(1, 3), q=(1, 2))
LAYERS = sizes(o=(1, 2), c=(1, 3), m=(1, 5), n=(1, 4), p=(1, 3), q=(1, 2))


def depthwise(weights: Array, channels: Array) -> Array:
    return np.stack([correlate(w, image) for w, image in zip(weights, channels, strict=True)])


def layer(weights: Array, channels: Array) -> Array:
    return np.stack([depthwise(filters, channels).sum(0) for filters in weights])


def pooled(image: Array) -> Array:
    """Windows of two by two that do not overlap."""
    return windows(image, 2, 2)[::2, ::2]


CONVOLUTIONS: References = {
    "filter": Reference(correlate, sizes(n=(1, 13), k=(1, 3))),
    "same": Reference(lambda weights, image: correlate(weights, np.pad(image, 1)), TWO),
    "separable": Reference(lambda column, row, image: correlate(np.outer(column, row), image), WINDOWS),
    "strided": Reference(lambda weights, image: correlate(weights, image)[::2, ::2], TWO),
    "batched": Reference(
        lambda weights, images: np.stack([correlate(weights, image) for image in images]),
        sizes(b=(1, 3), m=(1, 5), n=(1, 4), p=(1, 3), q=(1, 2)),
    ),
    "depthwise": Reference(depthwise, CHANNELS),
    "pointwise": Reference(
        lambda weights, channels: np.einsum("oc,cmn->omn", weights, channels),
        sizes(o=(1, 2), c=(1, 3), m=(1, 5), n=(1, 4)),
    ),
    "layer": Reference(layer, LAYERS),
    "maxPool": Reference(lambda image: pooled(image).max((2, 3)), TWO),
    "meanPool": Reference(lambda image: pooled(image).mean((2, 3)), TWO),
}


# --- images -----------------------------------------------------------------------------------------

SOBEL = np.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
BINOMIAL = np.outer([1, 2, 1], [1, 2, 1]) / 16


def sobel(image: Array) -> Array:
    padded = np.pad(image, 1, "edge")
    return np.hypot(correlate(SOBEL, padded), correlate(SOBEL.T, padded))


def adaptive_threshold(image: Array) -> Array:
    return (image > windows(np.pad(image, 2, "edge"), 5, 5).mean((2, 3))) * 1.0


def resize_nearest(image: Array, *, p: int, q: int) -> Array:
    rows, columns = (np.arange(to) * of // to for to, of in zip((p, q), image.shape, strict=True))
    return image[np.ix_(rows, columns)]


def resize_bilinear(image: Array) -> Array:
    height, width = (2 * (n - 1) for n in image.shape)
    wide = np.stack([np.interp(np.arange(width) / 2, np.arange(image.shape[1]), row) for row in image])
    return np.stack([np.interp(np.arange(height) / 2, np.arange(len(wide)), column) for column in wide.T], 1)


def equalize(image: Array, *, k: int) -> Array:
    counts = one_hot(image.ravel(), k).sum(0)
    return (np.cumsum(counts) / image.size)[image]


def gray(pixels: Array) -> Array:
    red, (green, blue) = pixels
    return 0.299 * red + 0.587 * green + 0.114 * blue


IMAGES: References = {
    "blur": rounded(lambda image: correlate(BINOMIAL, np.pad(image, 1, "edge")), IMAGE),
    "sobel": rounded(sobel, IMAGE),
    "gray": rounded(gray, IMAGE),
    "flip": Reference(np.fliplr, IMAGE),
    "rotate": Reference(lambda image: np.rot90(image, -1), IMAGE),
    "adaptiveThreshold": Reference(adaptive_threshold, IMAGE),
    "enlarge": Reference(
        lambda image, *, p: np.kron(image, np.ones((p, p))), sizes(h=(1, 3), w=(1, 2), p=(3, 2))
    ),
    "resizeNearest": Reference(resize_nearest, sizes(h=(1, 5, 3), w=(1, 7, 2), p=(3, 2, 5), q=(1, 3, 7))),
    "resizeBilinear": Reference(resize_bilinear, IMAGE),
    "equalize": rounded(equalize, sizes(h=(1, 5), w=(1, 7), k=(2, 5))),
}


# --- the game of life -------------------------------------------------------------------------------


def next_generation(padded: Array) -> Array:
    """One step on a board with a border of cells that are not part of it."""
    around = windows(padded, 3, 3).sum((2, 3))
    board = padded[1:-1, 1:-1]
    return ((around - board == 3) | ((board == 1) & (around - board == 2))) * 1


def play(board: Array, *, generations: int) -> Array:
    for _ in range(generations):
        board = next_generation(np.pad(board, 1))
    return board


ALIVE = {"board": (0.0, 1.0)}

GAME_OF_LIFE: References = {
    "rule": Reference(lambda w: next_generation(w)[0, 0], domains={"w": (0.0, 1.0)}),
    "generation": Reference(lambda board: next_generation(np.pad(board, 1)), TWO, domains={"x": (0.0, 1.0)}),
    "torus": Reference(
        lambda board: next_generation(np.pad(board, 1, "wrap")), TWO, domains={"x": (0.0, 1.0)}
    ),
    "play": Reference(play, sizes(generations=(1, 4), m=(1, 7), n=(1, 5)), domains=ALIVE),
}
