"""examples/schedules/: variants of the schedule of products, as compositions of phases. Each is exact."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.program import Loader, Program, check_expression
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies import core
from strategies.matmul import bulk, epilogue, grid, instructions, schedules, staging, tiling
from strategies.matmul import products as matmul_products
from strategies.matmul.tensor_core import tensor_core
from strategies.registry import find
from tests.support.examples import EXAMPLES
from tests.support.nightly import every_other
from tests.support.pages import blocks
from tests.support.programs import succeeded

FOLDER = EXAMPLES / "schedules"
PAGE = EXAMPLES.parent / "docs" / "schedules-of-products.md"
MATRICES = {"m": 64, "n": 96, "k": 64}
# a schedule, its program, the sizes, how many kernels, and what is in their text
VARIANTS: dict[str, tuple[str, dict[str, int], int, tuple[str, ...]]] = {
    "dual_product": ("dual", {"m": 64, "n": 128, "k": 96}, 1, ("mma_sync(", "copy_async")),
    "two_results": ("twoResults", {"m": 128, "n": 128, "k": 128}, 1, ("wgmma<", "bulk_load")),
    "normalised_rows": ("normalised", MATRICES, 2, ("mma_sync(",)),
    "row_sums": ("rowSums", {"m": 128, "n": 128, "k": 64}, 2, ("wgmma<", "shuffle_xor")),
    "scaled_rows": ("scaledRows", MATRICES, 2, ("mma_sync(",)),
    "squares_beside": ("scaledRows", MATRICES, 1, ("mma_sync(", "shuffle_xor")),
    "chain": ("chain", {**MATRICES, "l": 32}, 2, ("mma_sync(",)),
    "raster_order": ("plain", MATRICES, 1, ("mma_sync(",)),
    "through_shared": ("residual", MATRICES, 1, ("mma_sync(",)),
    "shared_operand": ("batched", {"b": 2, **MATRICES}, 1, ("Swizzled<", "blockIdx.z")),
    "convolution": ("convolution", {"h": 8, "w": 8, "c": 32, "o": 64}, 1, ("mma_sync(",)),
}


@cache
def programs() -> Program:
    return Loader().load(FOLDER / "programs.rise").program


def program(name: str, sizes: dict[str, int]) -> Expr:
    return data_flow(inline(specialise(programs()[name], sizes)))


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("variant", every_other(VARIANTS))
def test_a_variant_is_exact(variant: str) -> None:
    name, sizes, kernels, said = VARIANTS[variant]
    term = program(name, sizes)
    strategy = find(f"{FOLDER / variant}.py:schedule").make({})
    made = assemble(succeeded(strategy(term)).term, variant)
    text = "".join(kernel.source for kernel in made.kernels)
    assert len(made.kernels) == kernels and all(part in text for part in said)
    inputs = random_inputs(inputs_of(term), seed=5, exact=True)
    found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_products_that_share_an_operand_load_it_once() -> None:
    name, sizes, *_ = VARIANTS["dual_product"]
    made = find(f"{FOLDER / 'dual_product'}.py:schedule").make({})
    rules = [step.rule for step in succeeded(made(program(name, sizes))).steps]
    assert rules.count("tupling") == 1


def test_every_schedule_is_short_and_run() -> None:
    files: list[Path] = sorted(FOLDER.glob("*.py"))
    assert [file.stem for file in files] == sorted(VARIANTS)
    assert all(len(file.read_text(encoding="utf-8").splitlines()) <= 30 for file in files)


def test_the_schedule_of_the_page_is_that_of_the_parameters() -> None:
    """docs/schedules-of-products.md builds it; a matrix of 1024 × 2048 has whole tiles in whole groups."""
    (code,) = blocks(PAGE, "python")
    scope: dict[str, Any] = {}
    for module in (core, bulk, epilogue, grid, instructions, matmul_products, schedules, staging, tiling):
        scope |= vars(module)
    exec(code, scope)
    dot = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
    text = f"A |> map(fun(row => B |> map(fun(col => f16({dot})))))"
    term = data_flow(check_expression(f"fun((A: 1024.256.f16, B: 2048.256.f16) => {text})"))
    by_parameters = tensor_core(
        (128, 256, 64), (64, 256), (64, 256, 16), stages=3, raster_group=8, epilogue="bulk",
        warp_specialised=True, persistent_blocks=132, cluster=2,
    )  # fmt: skip
    assert succeeded(scope["whole"](term)).term == succeeded(by_parameters(term)).term


def test_the_page_names_every_variant() -> None:
    named = re.findall(r"^\| `(\w+)\.py` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(VARIANTS)
