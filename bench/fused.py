"""Products fused with what stands around them: references at sampled elements, and the same in torch.

Torch computes each with f16 operands and results, as a user would write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.operations import Expected, Inputs, Mesh, Operation, probabilities, product
from bench.table import Sizes

HALF = 2.0**-11  # how far rounding to f16 takes a number, relative to it
STEP = 2.0**-23  # of f32, in which `operations.bound` counts
MEAN = 1 / 4096  # as the programs say it: a size is not a number of the language's


def flops(sizes: Sizes) -> int:
    return 2 * sizes["m"] * sizes["n"] * sizes["k"]


def rounded(of: Expected, terms: int, steps: float = 1) -> Expected:
    """The same, allowing for operands or intermediate results that are rounded to f16."""
    return Expected(of.values, of.magnitude * (1 + steps * HALF / ((terms + 4) * STEP)))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


class Mapped:
    """A matrix with a function of each element, and of row and column where it takes these."""

    def __init__(self, array: Any, function: Callable[..., Any]) -> None:
        self.array, self.function, self.shape = array, function, tuple(array.shape)

    def at(self, row: Any, column: Any) -> Any:
        return self.function(self.array.at(row, column), row)


def half(x: Any) -> Any:
    return np.asarray(x).astype(np.float16).astype(np.float64)


# --- references -------------------------------------------------------------------------------------------


def _plain(x: Inputs, mesh: Mesh) -> Expected:
    return product(x[0], x[1], *mesh)


def _bias_relu(x: Inputs, mesh: Mesh) -> Expected:
    p, bias = product(x[0], x[1], *mesh), x[2].at(mesh[1])
    return Expected(np.maximum(p.values + bias, 0), p.magnitude + np.abs(bias))


def _gelu_residual(x: Inputs, mesh: Mesh) -> Expected:
    p, bias, added = product(x[0], x[1], *mesh), x[2].at(mesh[1]), x[3].at(*mesh)
    return Expected(gelu(p.values + bias) + added, 1.2 * (p.magnitude + np.abs(bias)) + np.abs(added))


def _gated(x: Inputs, mesh: Mesh) -> Expected:
    gate, value = product(x[0], x[1], *mesh), product(x[0], x[2], *mesh)
    gated = gate.values * sigmoid(gate.values)
    magnitude = 1.1 * gate.magnitude * np.abs(value.values) + np.abs(gated) * value.magnitude
    return Expected(gated * value.values, magnitude + np.abs(gated * value.values))


def _relu_first(x: Inputs, mesh: Mesh) -> Expected:
    return product(Mapped(x[0], lambda v, _: np.maximum(v, 0)), x[1], *mesh)


def _relu_second(x: Inputs, mesh: Mesh) -> Expected:
    return product(x[0], Mapped(x[1], lambda v, _: np.maximum(v, 0)), *mesh)


def _scaled_bytes(x: Inputs, mesh: Mesh) -> Expected:
    return product(Mapped(x[0], lambda v, row: half(v * x[1].at(row))), x[2], *mesh)


def _rms(x: Inputs, mesh: Mesh) -> Expected:
    rows = mesh[0].reshape(-1, 1)
    squares = x[0].at(rows, np.arange(x[0].shape[1])) ** 2
    scale = 1 / np.sqrt(squares.sum(1, keepdims=True) * MEAN + 1e-5)
    p = product(x[0], x[1], *mesh)
    return rounded(Expected(scale * p.values, scale * p.magnitude), x[0].shape[1], 2)


def _chain(x: Inputs, mesh: Mesh, between: Callable[[Any], Any] = lambda v: v) -> Expected:
    a, b, c = x
    inner, k = np.arange(b.shape[1]), np.arange(a.shape[1])
    left = a.at(mesh[0].reshape(-1, 1), k) @ b.at(k[:, None], inner)
    right = c.at(inner[:, None], mesh[1].reshape(1, -1))
    mixed = half(between(left))
    return rounded(Expected(mixed @ right, np.abs(mixed) @ np.abs(right)), len(inner), 2)


def _outer_scales(x: Inputs, mesh: Mesh) -> Expected:
    p, scale = product(x[0], x[1], *mesh), x[2].at(mesh[0]) * x[3].at(mesh[1])
    return Expected(p.values * scale, p.magnitude * np.abs(scale))


def _masked(x: Inputs, mesh: Mesh) -> Expected:
    p, kept = product(x[0], x[1], *mesh), x[2].at(*mesh) > 0
    return Expected(np.where(kept, p.values, 0), p.magnitude)


def _softmax(x: Inputs, mesh: Mesh) -> Expected:
    rows, every = mesh[0].reshape(-1, 1), np.arange(x[1].shape[1])
    scores = product(x[0], x[1], rows, every.reshape(1, -1))
    values = probabilities(scores.values, 1)[:, mesh[1].reshape(-1)]
    largest = scores.magnitude.max(1, keepdims=True)
    return Expected(values, values * (2 * largest + 64))


def _row_sums(x: Inputs, mesh: Mesh) -> Expected:
    rows, every = mesh[0].reshape(-1, 1), np.arange(x[1].shape[1])
    p = product(x[0], x[1], rows, every.reshape(1, -1))
    return Expected(p.values.sum(1), p.magnitude.sum(1))


def _transposed(x: Inputs, mesh: Mesh) -> Expected:
    p = product(x[0], x[1], mesh[1].reshape(-1, 1), mesh[0].reshape(1, -1))
    return Expected(p.values.T, p.magnitude.T)


def _weight_bytes(x: Inputs, mesh: Mesh) -> Expected:
    weights = Mapped(x[1], lambda v, column: half(v * x[2].at(column)))
    return product(x[0], weights, mesh[0], mesh[1], transposed=True)


def _column_maxima(x: Inputs, mesh: Mesh) -> Expected:
    every, columns = np.arange(x[0].shape[0]), mesh[0].reshape(1, -1)
    p = product(x[0], x[1], every.reshape(-1, 1), columns)
    return Expected(p.values.max(0), p.magnitude.max(0))


def _difference_relu(x: Inputs, mesh: Mesh) -> Expected:
    plus, minus = product(x[0], x[1], *mesh), product(x[2], x[3], *mesh)
    return Expected(np.maximum(plus.values - minus.values, 0), plus.magnitude + minus.magnitude)


def _transposed_residual(x: Inputs, mesh: Mesh) -> Expected:
    p, added = _transposed(x, mesh), x[2].at(*mesh)
    return Expected(p.values + added, p.magnitude + np.abs(added))


def _normalised(x: Inputs, mesh: Mesh) -> Expected:
    k = np.arange(x[0].shape[1])
    rows = x[0].at(mesh[0].reshape(-1, 1), k)
    mean = rows.sum(1, keepdims=True) * MEAN
    scale = 1 / np.sqrt((rows**2).sum(1, keepdims=True) * MEAN - mean**2 + 1e-5)
    left, right = half((rows - mean) * scale), x[1].at(k[:, None], mesh[1].reshape(1, -1))
    return rounded(Expected(left @ right, np.abs(left) @ np.abs(right)), len(k), 2)


def _convolution(x: Inputs, mesh: Mesh) -> Expected:
    """Rows are places, line by line; a filter has three lines of three places with all channels."""
    image, weights, bias = x
    width, channels = image.shape[1] - 2, image.shape[2]
    places, inner = mesh[0].reshape(-1, 1), np.arange(9 * channels)
    line, place, channel = inner // (3 * channels), inner // channels % 3, inner % channels
    patches = image.at(places // width + line, places % width + place, channel)
    filters, added = weights.at(mesh[1].reshape(-1, 1), inner).T, bias.at(mesh[1])
    values, magnitude = patches @ filters + added, np.abs(patches) @ np.abs(filters) + np.abs(added)
    return Expected(np.maximum(values, 0), magnitude)


def _clamped(x: Inputs, mesh: Mesh) -> Expected:
    p, scale, shift = product(x[0], x[1], *mesh), x[2].at(mesh[0]), x[3].at(mesh[1])
    magnitude = p.magnitude * np.abs(scale) + np.abs(shift)
    return Expected(np.clip(p.values * scale + shift, 0, 6), magnitude)


def _of(function: Callable[[Inputs, Mesh], Expected], exact: bool = True) -> Operation:
    return Operation(flops, lambda sizes: sizes["k"], function, exact)


OPERATIONS: Mapping[str, Operation] = {
    "matmulHalf": _of(_plain),
    "biasReluHalf": _of(_bias_relu),
    "geluResidual": _of(_gelu_residual, exact=False),
    "gated": Operation(lambda s: 2 * flops(s), lambda s: s["k"], _gated, exact=False),
    "reluFirst": _of(_relu_first),
    "reluSecond": _of(_relu_second),
    "scaledBytes": _of(_scaled_bytes),
    "rmsProduct": _of(_rms, exact=False),
    "chain": Operation(
        lambda s: 2 * s["m"] * s["l"] * (s["k"] + s["n"]), lambda s: s["l"], _chain, exact=False
    ),
    "perceptron": Operation(
        lambda s: 2 * s["m"] * s["l"] * (s["k"] + s["n"]), lambda s: s["l"],
        lambda x, mesh: _chain(x, mesh, lambda v: np.maximum(v, 0)), exact=False,
    ),
    "outerScales": _of(_outer_scales),
    "masked": _of(_masked),
    "softmaxProduct": _of(_softmax, exact=False),
    "rowSums": Operation(flops, lambda s: s["k"] * s["n"], _row_sums),
    "transposedProduct": _of(_transposed),
    "weightBytes": _of(_weight_bytes),
    "columnMaxima": _of(_column_maxima),
    "differenceRelu": Operation(lambda s: 2 * flops(s), lambda s: 2 * s["k"], _difference_relu),
    "transposedResidual": _of(_transposed_residual),
    "normalisedProduct": _of(_normalised, exact=False),
    "convolutionBias": Operation(
        lambda s: 18 * s["h"] * s["w"] * s["c"] * s["o"], lambda s: 9 * s["c"], _convolution
    ),
    "clamped": _of(_clamped),
}  # fmt: skip


# --- torch ------------------------------------------------------------------------------------------------


def functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Each takes the inputs of its operation and gives its result."""
    of, mm = torch.nn.functional, torch.mm
    f16, f32 = torch.float16, torch.float32

    def rms(x: Any, w: Any) -> Any:
        scale = torch.rsqrt(x.to(f32).square().sum(1, keepdim=True) * MEAN + 1e-5)
        return mm((x * scale).to(f16), w)

    def normalised(x: Any, w: Any) -> Any:
        wide = x.to(f32)
        mean, square = wide.sum(1, keepdim=True) * MEAN, wide.square().sum(1, keepdim=True) * MEAN
        return mm(((wide - mean) * torch.rsqrt(square - mean.square() + 1e-5)).to(f16), w)

    def convolution(image: Any, weights: Any, bias: Any) -> Any:
        filters = weights.reshape(len(weights), 3, 3, -1).permute(0, 3, 1, 2)
        made = torch.relu(of.conv2d(image.permute(2, 0, 1)[None], filters, bias))
        return made[0].permute(1, 2, 0).reshape(-1, len(weights))

    return {
        "matmulHalf": mm,
        "biasReluHalf": lambda a, b, bias: torch.relu(torch.addmm(bias, a, b)),
        "geluResidual": lambda a, b, bias, r: of.gelu(torch.addmm(bias, a, b), approximate="tanh") + r,
        "gated": lambda x, w, v: of.silu(mm(x, w)) * mm(x, v),
        "reluFirst": lambda a, b: mm(torch.relu(a), b),
        "reluSecond": lambda a, b: mm(a, torch.relu(b)),
        "scaledBytes": lambda a, s, b: mm(a.to(f16) * s[:, None], b),
        "rmsProduct": rms,
        "chain": lambda a, b, c: mm(mm(a, b), c),
        "perceptron": lambda a, b, c: mm(torch.relu(mm(a, b)), c),
        "outerScales": lambda a, b, r, c: (mm(a, b) * r[:, None] * c).to(f16),
        "masked": lambda a, b, m: torch.where(m > 0, mm(a, b), torch.zeros((), dtype=f16, device="cuda")),
        "softmaxProduct": lambda a, b: torch.softmax(mm(a, b), 1),
        "rowSums": lambda a, b: mm(a, b, out_dtype=f32).sum(1),
        "transposedProduct": lambda a, b: mm(a, b).t().contiguous(),
        "weightBytes": lambda a, b, s: mm(a, (b.to(f16) * s[:, None]).t()),
        "columnMaxima": lambda a, b: mm(a, b, out_dtype=f32).amax(0),
        "differenceRelu": lambda a, b, c, d: torch.relu(mm(a, b) - mm(c, d)),
        "transposedResidual": lambda a, b, r: mm(a, b).t() + r,
        "normalisedProduct": normalised,
        "convolutionBias": convolution,
        "clamped": lambda a, b, s, t: torch.clamp(mm(a, b) * s[:, None] + t, 0, 6).to(f16),
    }
