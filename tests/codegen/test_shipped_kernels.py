"""What the shipped strategies make of the examples compiles for every target, and nothing is spilled."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codegen import runtime
from codegen.pipeline import assemble
from codegen.runtime import check_spills, resources
from rewrites.result import Success
from rise.check.program import Loader
from rise.check.specialise import size_names, specialise
from rise.expr import Expr, inline
from rise.normal import data_flow
from strategies.registry import find

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from references import REFERENCES  # noqa: E402  # lies beside the examples, in no package

from tests.codegen.test_default import REFUSED  # noqa: E402

TARGETS = ("sm_75", "sm_80", "sm_90a")

pytestmark = pytest.mark.skipif(not runtime.can_compile(), reason="there is no compiler for CUDA")

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


def example(file: str, name: str, sizes: dict[str, int]) -> Expr:
    """With 256 for each size that is not given."""
    definition = Loader().load(EXAMPLES / file).program[name]
    return data_flow(inline(specialise(definition, {n: sizes.get(n, 256) for n in size_names(definition)})))


def texts(term: Expr, strategy: str, settings: dict[str, str]) -> list[str]:
    """The kernels of a program."""
    result = find(strategy).make(settings)(term)
    assert isinstance(result, Success), result.story()
    return [made.source for made in assemble(result.term, "shipped").kernels]


def compiles(text: str, target: str) -> None:
    """For a target, with all of its values in registers."""
    (found,) = resources(text, target).values()
    check_spills(found)
    assert 0 < found.registers <= 255


@pytest.mark.parametrize("shipped", SHIPPED, ids=str)
def test_a_strategy_makes_kernels_for_its_targets(shipped: Shipped) -> None:
    term = example(shipped.file, shipped.name, SIZES if shipped.strategy == "tensor_core" else {})
    for text in texts(term, shipped.strategy, shipped.settings):
        for target in shipped.targets:
            compiles(text, target)


def test_examples_of_every_file_compile() -> None:
    """One of each file, by the default strategy; the targets take turns."""
    one_of_each = {file: name for file, name in sorted(REFERENCES) if (file, name) not in REFUSED}
    assert len(one_of_each) > 30
    for number, (file, name) in enumerate(one_of_each.items()):
        definition = Loader().load(EXAMPLES / file).program[name]
        term = data_flow(specialise(definition, REFERENCES[file, name].sizes[-1]))
        for text in texts(term, "default", {}):
            compiles(text, TARGETS[number % len(TARGETS)])
