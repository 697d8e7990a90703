"""Products as the papers evaluate them: in four layouts, with a prologue, with an epilogue, and two at once.

References at sampled elements, and the same in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.fused import flops, rounded
from bench.operations import Expected, Inputs, Mesh, Operation, Positive, Transposed, product

HALF_WHOLE = 2**11  # whole numbers up to here are exact in f16
ROUNDINGS = 4  # of f16 sums: more than four standard deviations of what the partial sums lose


@dataclass(frozen=True)
class Layout:
    """Which operands of a product lie transposed in memory."""

    a_transposed: bool = False
    b_transposed: bool = False

    def of(self, a: Any, b: Any, mesh: Mesh) -> Expected:
        left = Transposed(a) if self.a_transposed else a
        return product(left, b, mesh[0], mesh[1], self.b_transposed)

    def torch(self, a: Any, b: Any) -> tuple[Any, Any]:
        return a.t() if self.a_transposed else a, b.t() if self.b_transposed else b


LAYOUTS: Mapping[str, Layout] = {
    "": Layout(),
    "Bt": Layout(b_transposed=True),
    "At": Layout(a_transposed=True),
    "AtBt": Layout(True, True),
}


# --- references ---------------------------------------------------------------------------------------------


def _relu_product(layout: Layout, x: Inputs, mesh: Mesh) -> Expected:
    return layout.of(Positive(x[0]), x[1], mesh)


def _bias_relu(layout: Layout, x: Inputs, mesh: Mesh) -> Expected:
    p, bias = layout.of(x[0], x[1], mesh), x[2].at(*mesh)
    sums = Expected(np.maximum(p.values + bias, 0), p.magnitude + np.abs(bias))
    return rounded(sums, x[0].shape[not layout.a_transposed])


def _two_products(layout: Layout, x: Inputs, mesh: Mesh) -> Expected:
    first, second = layout.of(x[0], x[1], mesh), layout.of(x[2], x[3], mesh)
    sums = Expected(first.values + second.values, first.magnitude + second.magnitude)
    return rounded(sums, 2 * x[0].shape[not layout.a_transposed])


def _accumulated(x: Inputs, mesh: Mesh) -> Expected:
    p, given = product(x[0], x[1], *mesh), x[2].at(*mesh)
    return Expected(p.values + given, p.magnitude + np.abs(given))


def _accumulated_half(x: Inputs, mesh: Mesh) -> Expected:
    """Every partial sum is rounded to f16. Their errors partly cancel, so the bound is no worst case."""
    return rounded(_accumulated(x, mesh), x[0].shape[1], ROUNDINGS)


def _in_layouts(
    name: str,
    expected: Callable[[Layout, Inputs, Mesh], Expected],
    products: int = 1,
    whole: int = HALF_WHOLE,
) -> dict[str, Operation]:
    return {
        name + suffix: Operation(
            lambda s: products * flops(s), lambda s: products * s["k"], partial(expected, layout), whole=whole
        )
        for suffix, layout in LAYOUTS.items()
    }


OPERATIONS: Mapping[str, Operation] = {
    **_in_layouts("reluHalf", _relu_product),
    **_in_layouts("biasMatrixRelu", _bias_relu),
    **_in_layouts("twoProducts", _two_products, products=2),
    "accumulated": Operation(flops, lambda s: s["k"], _accumulated),
    "accumulatedHalf": Operation(flops, lambda s: s["k"], _accumulated_half, whole=HALF_WHOLE),
}


# --- torch --------------------------------------------------------------------------------------------------


def functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Each takes the inputs of its operation and gives its result."""

    def multiplied(layout: Layout, a: Any, b: Any) -> Any:
        return torch.mm(*layout.torch(a, b))

    made: dict[str, Callable[..., Any]] = {}
    for suffix, layout in LAYOUTS.items():
        of = partial(multiplied, layout)
        made["reluHalf" + suffix] = lambda a, b, of=of: of(torch.relu(a), b)
        made["biasMatrixRelu" + suffix] = lambda a, b, bias, layout=layout: torch.relu(
            torch.addmm(bias, *layout.torch(a, b))
        )
        made["twoProducts" + suffix] = lambda a, b, c, d, of=of, layout=layout: torch.addmm(
            of(a, b), *layout.torch(c, d)
        )
    made["accumulated"] = lambda a, b, c: torch.mm(a, b, out_dtype=torch.float32) + c
    made["accumulatedHalf"] = lambda a, b, c: torch.addmm(c, a, b)
    return made
