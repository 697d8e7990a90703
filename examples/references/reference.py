"""What a reference is, and the few words in which the references are written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any  # an array of NumPy, a number, or a pair of these: what an input or a result is
Sizes = Mapping[str, int]
Drawn = Callable[[np.random.Generator, tuple[int, ...]], Array]
Domain = tuple[float, float] | Drawn


@dataclass(frozen=True)
class Reference:
    """What a definition of an example has to compute.

    compute: the same in NumPy. It gets the definition's inputs, floats as f64, an array of pairs as a pair
             of arrays; keyword-only parameters that have the names of sizes are given these.
    sizes:   the assignments of sizes to try; awkward ones, such as primes and one
    exact:   whether whole numbers give whole numbers, so that results have to be equal; otherwise they
             have to agree within the roundings of the program
    domains: for inputs that are not to be whole numbers from -4 to 4, by name: the interval they are drawn
             from (whole numbers of it, if the input holds such), or a function that draws an array
    """

    compute: Callable[..., Array]
    sizes: tuple[Sizes, ...] = ({},)
    exact: bool = True
    domains: Mapping[str, Domain] = field(default_factory=dict)

    def __call__(self, inputs: list[Array], sizes: Sizes) -> Array:
        """The result that is expected, in NumPy's own types."""
        parameters = inspect.signature(self.compute).parameters.values()
        wanted = {p.name: sizes[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in sizes}
        return self.compute(*inputs, **wanted)


References = Mapping[str, Reference]


def sizes(**choices: tuple[int, ...]) -> tuple[Sizes, ...]:
    """sizes(m=(1, 3), n=(1, 5)) are two assignments: m=1, n=1 and m=3, n=5."""
    return tuple(dict(zip(choices, values, strict=True)) for values in zip(*choices.values(), strict=True))


def rounded(compute: Callable[..., Array], at: tuple[Sizes, ...] = ({},), **domains: Domain) -> Reference:
    """A reference whose results are rounded, with inputs drawn from domains where they are given."""
    return Reference(compute, at, False, domains)


def permutation(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """The numbers below the only extent of the shape, in any order."""
    return generator.permutation(shape[0])


# --- arrays of pairs --------------------------------------------------------------------------------


def complex_of(pair: Array) -> Array:
    """A pair of real and imaginary parts as complex numbers."""
    return pair[0] + 1j * pair[1]


def parts_of(numbers: Array) -> Array:
    """Complex numbers as a pair of real and imaginary parts."""
    return np.real(numbers), np.imag(numbers)


# --- windows ----------------------------------------------------------------------------------------


def windows(array: Array, *shape: int) -> Array:
    """All windows of a shape, at every place where one fits: the places first, then the window."""
    return np.lib.stride_tricks.sliding_window_view(array, shape)


def correlate(weights: Array, image: Array) -> Array:
    """Weights slid over an image of as many dimensions: the sum of products at each place."""
    axes = tuple(range(-weights.ndim, 0))
    return (windows(image, *weights.shape) * weights).sum(axes)


def softmax(scores: Array) -> Array:
    """The exponentials along the last axis, scaled so that their sum is 1."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def one_hot(indices: Array, below: int) -> Array:
    """Rows of the identity matrix."""
    return np.eye(below)[indices]
