"""References of neural networks, physics, statistics, complex numbers and finance."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

from collections.abc import Mapping
from math import erf, sqrt

import numpy as np

from references.reference import (
    Array,
    Domain,
    Reference,
    References,
    complex_of,
    one_hot,
    parts_of,
    rounded,
    sizes,
    softmax,
)

ONE = sizes(n=(1, 13))
ROWS = sizes(b=(1, 3), n=(1, 7))

# --- attention and networks -------------------------------------------------------------------------


def attention(Q: Array, K: Array, V: Array) -> Array:
    """Over the last two axes; those in front are heads."""
    return softmax(Q @ np.swapaxes(K, -1, -2)) @ V


def scaled_attention(Q: Array, K: Array, V: Array) -> Array:
    return attention(Q / np.sqrt(Q.shape[1]), K, V)


def causal_attention(Q: Array, K: Array, V: Array) -> Array:
    return softmax(np.where(np.tri(len(Q)), Q @ K.T, -np.inf)) @ V


def multi_head(Q: Array, K: Array, V: Array) -> Array:
    return np.concatenate(list(attention(Q, K, V)), axis=1)


HEADS = sizes(m=(1, 5), n=(1, 7), d=(1, 3), e=(1, 2))

ATTENTION: References = {
    "attention": rounded(attention, HEADS),
    "attentionByRow": rounded(attention, HEADS),
    "scaledAttention": rounded(scaled_attention, HEADS),
    "causalAttention": rounded(causal_attention, sizes(n=(1, 7), d=(1, 3), e=(1, 2))),
    "multiHead": rounded(multi_head, sizes(h=(1, 2), m=(1, 5), n=(1, 7), d=(1, 3), e=(1, 2))),
    "flashAttention": rounded(attention, HEADS),
}


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def layer_norm(gamma: Array, beta: Array, xs: Array) -> Array:
    return (xs - xs.mean(1, keepdims=True)) / np.sqrt(xs.var(1, keepdims=True) + 1e-5) * gamma + beta


def layer_norm_with_statistics(gamma: Array, beta: Array, xs: Array) -> Array:
    return layer_norm(gamma, beta, xs), (xs.mean(1), 1 / np.sqrt(xs.var(1) + 1e-5))


def quantise_rows(xs: Array) -> Array:
    scale = np.maximum(np.abs(xs).max(1), 1e-30) / 127
    return np.round(xs / scale[:, None]), scale


def rms_norm(gamma: Array, xs: Array) -> Array:
    return xs / np.sqrt((xs**2).mean(1, keepdims=True) + 1e-5) * gamma


def cross_entropy(scores: Array, labels: Array) -> Array:
    return -np.log(softmax(scores)[np.arange(len(labels)), labels]).mean()


NETWORKS: References = {
    "dense": Reference(lambda W, b, x: np.maximum(W @ x + b, 0), sizes(m=(1, 5), n=(1, 7))),
    "perceptron": rounded(
        lambda W1, W2, xs: gelu(xs @ W1) @ W2, sizes(b=(1, 3), n=(1, 5), h=(1, 7), o=(1, 2))
    ),
    "layerNorm": rounded(layer_norm, ROWS),
    "layerNormWithStatistics": rounded(layer_norm_with_statistics, ROWS),
    "quantiseRows": rounded(quantise_rows, ROWS),
    "rmsNorm": rounded(rms_norm, ROWS),
    "softmaxRows": rounded(softmax, ROWS),
    "classify": Reference(lambda scores: scores.argmax(1), ROWS),
    "crossEntropy": rounded(cross_entropy, ROWS),
    "embedding": Reference(lambda table, tokens: table[tokens], sizes(v=(1, 5), n=(1, 7), d=(1, 3))),
}


# --- bodies and clusters ----------------------------------------------------------------------------


def accelerations(positions: Array, masses: Array) -> Array:
    d = positions[None, :, :] - positions[:, None, :]
    r = 1 / np.sqrt((d**2).sum(2, keepdims=True) + 0.01)
    return (masses[None, :, None] * r**3 * d).sum(1)


def body_step(dt: Array, masses: Array, positions: Array, velocities: Array) -> Array:
    faster = velocities + dt * accelerations(positions, masses)
    return positions + dt * faster, faster


NBODY: References = {
    "accelerations": rounded(accelerations, sizes(n=(1, 5))),
    "step": rounded(body_step, sizes(n=(1, 5)), dt=(0, 0.125)),
    "kineticEnergy": Reference(lambda masses, v: (masses * (v**2).sum(1)).sum() / 2, ONE),
}


def pairwise_distances(ps: Array, qs: Array) -> Array:
    return ((ps[:, None, :] - qs[None, :, :]) ** 2).sum(2)


def assign(centers: Array, points: Array) -> Array:
    return pairwise_distances(points, centers).argmin(1)


def update(assignment: Array, points: Array, *, k: int) -> Array:
    members = one_hot(assignment, k)
    return members.T @ points / np.maximum(members.sum(0), 1)[:, None]


def cluster_step(points: Array, centers: Array) -> Array:
    return update(assign(centers, points), points, k=len(centers))


CLUSTERS = sizes(n=(1, 13), k=(1, 3), d=(1, 2))

CLUSTERING: References = {
    "squaredDistance": Reference(lambda p, q: ((p - q) ** 2).sum(), sizes(d=(1, 5))),
    "pairwiseDistances": Reference(pairwise_distances, sizes(m=(1, 5), n=(1, 7), d=(1, 3))),
    "assign": Reference(assign, CLUSTERS),
    "update": rounded(update, CLUSTERS),
    "step": rounded(cluster_step, CLUSTERS),
}


# --- statistics -------------------------------------------------------------------------------------


def covariance(xs: Array) -> Array:
    centered = xs - xs.mean(0)
    return centered.T @ centered / len(xs)


def linear_fit(xs: Array, ys: Array) -> Array:
    slope = ((xs - xs.mean()) * (ys - ys.mean())).mean() / xs.var()
    return slope, ys.mean() - slope * xs.mean()


SAMPLES = sizes(n=(1, 13), d=(1, 3))
SEVERAL = sizes(n=(7, 13))
SPREAD = (0.0, 8.0)

STATISTICS: References = {
    "means": rounded(lambda xs: xs.mean(0), SAMPLES),
    "centered": rounded(lambda xs: xs - xs.mean(0), SAMPLES),
    "covariance": rounded(covariance, SAMPLES),
    "correlation": rounded(lambda xs, ys: np.corrcoef(xs, ys)[0, 1], SEVERAL, xs=SPREAD, ys=SPREAD),
    "meanAndVariance": rounded(lambda xs: (xs.mean(), xs.var()), ONE),
    "linearFit": rounded(linear_fit, SEVERAL, xs=SPREAD, ys=SPREAD),
}

HISTOGRAMS: References = {
    "histogram": Reference(lambda values, *, k: np.bincount(values, minlength=k), sizes(n=(1, 13), k=(1, 5))),
    "weighted": Reference(
        lambda values, weights, *, k: np.bincount(values, weights, k), sizes(n=(1, 13), k=(1, 5))
    ),
    "mode": Reference(lambda values: np.bincount(values).argmax(), sizes(n=(1, 13), k=(1, 5))),
    "lookUp": Reference(lambda table, values: table[values], sizes(n=(1, 13), k=(1, 5))),
}


# --- complex numbers --------------------------------------------------------------------------------


def mandelbrot(left: Array, top: Array, pixel: Array, *, h: int, w: int, steps: int) -> Array:
    rows, columns = np.arange(h)[:, None], np.arange(w)[None, :]
    return escape_time(left + pixel * columns, top - pixel * rows, steps=steps)


def escape_time(re: Array, im: Array, *, steps: int) -> Array:
    c = re + 1j * im
    z, count = np.zeros_like(c), np.zeros(np.shape(c), int)
    for _ in range(steps):
        inside = abs(z) <= 2
        z, count = np.where(inside, z * z + c, z), count + inside
    return count


def quarters(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Quarters from -2 to 1: where points escape late, and few bits are needed."""
    return generator.integers(-8, 5, shape) / 4


# from -2 + i in steps of a quarter: the point -2 keeps |z| at 2 exactly, and never escapes
CORNER: Mapping[str, Domain] = {"left": (-2, -2), "top": (1, 1), "pixel": (0.25, 0.25)}

MANDELBROT: References = {
    "escapeTime": Reference(escape_time, sizes(steps=(1, 7)), domains={"re": quarters, "im": quarters}),
    "mandelbrot": Reference(mandelbrot, sizes(h=(1, 9), w=(1, 13), steps=(5, 7)), domains=CORNER),
}

COMPLEX_NUMBERS: References = {
    "add": Reference(lambda x, y: (x[0] + y[0], x[1] + y[1])),
    "multiply": Reference(lambda x, y: parts_of(complex_of(x) * complex_of(y))),
    "products": Reference(lambda xs, ys: parts_of(complex_of(xs) * complex_of(ys)), ONE),
    "conjugates": Reference(lambda xs: parts_of(np.conj(complex_of(xs))), ONE),
    "magnitudes": rounded(lambda xs: abs(complex_of(xs)), ONE),
    "innerProduct": Reference(lambda xs, ys: parts_of(np.vdot(complex_of(xs), complex_of(ys))), ONE),
    "complexMatmul": Reference(
        lambda A, B: parts_of(complex_of(A) @ complex_of(B)), sizes(m=(1, 5), n=(1, 7), k=(1, 3))
    ),
    "parts": Reference(lambda xs: xs, ONE),
}


def butterfly(w: Array, pair: Array) -> Array:
    turn, first, second = complex_of(w), complex_of(pair[0]), complex_of(pair[1])
    return parts_of(np.array([first + second, turn * (first - second)]))


def fourier(xs: Array) -> Array:
    return parts_of(np.fft.fft(complex_of(xs)))


def stage(xs: Array, *, l: int, m: int) -> Array:  # noqa: E741  # the name of the size
    first, second = complex_of(xs).reshape(2, l, m)
    turns = np.exp(-1j * np.pi * np.arange(l) / l)[:, None]
    return parts_of(np.stack([first + second, turns * (first - second)], 1).ravel())


def stage_by_index(m: Array, xs: Array, *, h: int) -> Array:
    return stage(xs, l=h // int(m), m=int(m))


FOURIER: References = {
    "times": Reference(lambda x, y: parts_of(complex_of(x) * complex_of(y))),
    "unit": rounded(lambda turns: parts_of(np.exp(-2j * np.pi * turns)), turns=(0, 1)),
    "dft": rounded(fourier, ONE),
    "butterfly": Reference(butterfly),
    "stage": rounded(stage, sizes(l=(1, 4, 3), m=(1, 2, 5))),
    "fft8": rounded(fourier),
    "stageByIndex": rounded(stage_by_index, sizes(h=(1, 5)), m=(1, 1)),
    "fft": rounded(fourier, sizes(doublings=(1, 4))),
}


# --- polynomials and finance ------------------------------------------------------------------------


def with_derivative(coefficients: Array, x: Array) -> Array:
    return np.polyval(coefficients, x), np.polyval(np.polyder(coefficients), x)


def newton(coefficients: Array, xs: Array) -> Array:
    value, slope = with_derivative(coefficients, xs)
    return xs - value / slope


SHORT = sizes(n=(1, 5))

POLYNOMIALS: References = {
    "horner": Reference(np.polyval, SHORT),
    "evaluate": Reference(np.polyval, sizes(m=(1, 3), n=(1, 5))),
    "withDerivative": Reference(with_derivative, SHORT),
    "newton": rounded(newton, sizes(m=(1, 3), n=(2, 5)), coefficients=(1, 2), xs=(1, 2)),
    "multiply": Reference(np.convolve, sizes(m=(1, 3, 5), n=(1, 5, 3))),
}


def normal(x: Array) -> Array:
    """To the 7.5e-8 of the program's approximation."""
    return np.vectorize(lambda v: (1 + erf(v / sqrt(2))) / 2)(x)


def black_scholes(rate: Array, volatility: Array, options: Array) -> Array:
    spot, (strike, years) = options
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * np.exp(-rate * years)
    return spot * normal(d1) - discounted * normal(d2), discounted * normal(-d2) - spot * normal(-d1)


def present_value(rate: Array, payments: Array) -> Array:
    return (payments / (1 + rate) ** np.arange(1, len(payments) + 1)).sum()


FINANCE: References = {
    "normal": rounded(normal, x=(-4, 4)),
    "blackScholes": rounded(black_scholes, ONE, rate=(0.01, 0.05), volatility=(0.1, 0.5), options=(1, 2)),
    "presentValue": rounded(present_value, ONE, rate=(0.01, 0.1)),
}
