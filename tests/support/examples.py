"""The examples, their references, and the strategies that are shipped for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codegen.host.program import HostProgram
from rise.check.specialise import size_names, specialise
from rise.expr import Expr, inline
from rise.normal import data_flow
from strategies.registry import find

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import references  # noqa: E402  # beside the examples, in no package
from references import drawing  # noqa: E402

from tests.support.lines import of_program  # noqa: E402
from tests.support.programs import loaded, succeeded  # noqa: E402

Reference = references.Reference
inputs_for = drawing.inputs_for
REFERENCES = references.REFERENCES
# why an example does not become a kernel
REFUSED = {
    ("kernels.rise", "tensorTile"): "R0702",  # it does not say which warp keeps the fragments
}

TARGETS = ("sm_75", "sm_80", "sm_90a")

SIZES = {"m": 256, "n": 256, "k": 256, "l": 128, "b": 2, "h": 16, "w": 16, "c": 32, "o": 64}


@dataclass(frozen=True)
class Shipped:
    """A strategy applied to an example, for targets that have its instructions."""

    file: str
    name: str
    strategy: str
    settings: dict[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = TARGETS

    def __str__(self) -> str:
        return " ".join([self.name, self.strategy, *(f"{n}={v}" for n, v in self.settings.items())])


SMALL = {"block": "64,64,32", "warp": "32,32"}

SINCE_SM_80 = TARGETS[1:]  # asynchronous copies, bf16, mma.sync

SHIPPED = [
    Shipped("gemm.rise", "gemm", "tensor_core", {}, SINCE_SM_80),
    Shipped("gemm.rise", "gemm", "tensor_core", {"cp_async": "false", "stages": "2"}),
    Shipped("gemm.rise", "matmul_at", "tensor_core", {**SMALL, "slice_k": "2"}, SINCE_SM_80),
    Shipped("gemm.rise", "matmul_bt", "tensor_core", {**SMALL, "fragment": "16,8,16"}, SINCE_SM_80),
    Shipped("gemm.rise", "gemm_f16", "tensor_core", {**SMALL, "stages": "0", "epilogue": "direct"}),
    Shipped("gemm.rise", "matmul_tf32", "tensor_core", {**SMALL, "fragment": "16,8,8"}, SINCE_SM_80),
    Shipped("products.rise", "biasRelu", "tensor_core", {**SMALL, "cp_async": "false"}),
    Shipped("products.rise", "sumOfProducts", "tensor_core", {**SMALL, "raster_group": "2"}, SINCE_SM_80),
    Shipped("products.rise", "batchedProducts", "tensor_core", SMALL, SINCE_SM_80),
    Shipped("products.rise", "convolution", "tensor_core", SMALL, SINCE_SM_80),
    Shipped("sparse.rise", "spmv", "reduction"),
    Shipped("gemm.rise", "matmul", "tvm_gemm", {"version": "par"}),
]


def example(file: str, name: str, sizes: Mapping[str, int]) -> Expr:
    """With 256 for each size that is not given."""
    definition = loaded(EXAMPLES / file)[name]
    return data_flow(inline(specialise(definition, {n: sizes.get(n, 256) for n in size_names(definition)})))


def kernels(term: Expr, strategy: str, settings: dict[str, str]) -> HostProgram:
    """The kernels of a program, which know the places of the terms that their lines come from."""
    return of_program(succeeded(find(strategy).make(settings)(term)).term)


def texts(term: Expr, strategy: str, settings: dict[str, str]) -> list[str]:
    """The texts of the kernels of a program."""
    return [made.source for made in kernels(term, strategy, settings).kernels]
