"""Products of matrices with k shared out among blocks: derived, two kernels, exact."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_expression, check_text
from rise.check.specialise import specialise
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

GEMM = (Path(__file__).parents[2] / "examples" / "gemm.rise").read_text(encoding="utf-8")
SIZES = {"m": 32, "n": 64, "k": 96}


@cache
def product(name: str) -> Expr:
    return data_flow(specialise(check_text(GEMM)[name], SIZES))


@cache
def split(name: str, slices: int) -> tuple[Expr, HostProgram]:
    strategy = tensor_core(block=(32, 32, 32), warp=(16, 16), stages=2, split_k=slices)
    result = succeeded(strategy(product(name)))
    return result.term, assemble(result.term, "f")


@pytest.mark.parametrize("name", ["gemm", "matmul_at"])
def test_slices_of_k_are_blocks_of_one_kernel_and_sums_of_another(name: str) -> None:
    low, made = split(name, 3)
    products, sums = made.kernels
    assert products.launch.grid == (2, 1, 3) and "mma_sync" in products.source
    assert sums.launch.grid == (1, 32, 1) and sums.launch.block == (64, 1, 1)
    assert made.at({}).workspace == 3 * 32 * 64 * 4
    inputs = random_inputs(made.inputs, 1, exact=True)
    wanted = call(product(name), *inputs)
    assert (call(low, *inputs) == wanted).all()
    assert (execute(made, inputs, "emulate", seed=1) == wanted).all()


def test_what_is_done_with_the_sums_is_done_where_they_are_added() -> None:
    _, made = split("gemm", 3)
    taken = [[v.name for v in kernel.function.inputs] for kernel in made.kernels]
    assert taken == [["A", "B"], ["value", "C", "alpha_", "beta_"]]


def test_slices_of_an_array_of_products_are_refused() -> None:
    text = """fun((As: 2.64.96.f16, Bs: 2.96.64.f16) => zip(As)(Bs) |> map(fun((A, B) =>
      A |> map(fun(row => transpose(B) |> map(fun(col =>
        zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))))))))"""
    strategy = tensor_core(block=(32, 32, 32), warp=(16, 16), stages=2, split_k=3)
    result = strategy(data_flow(check_expression(text)))
    assert isinstance(result, Failure) and "one product at a time" in result.story()


def test_slices_are_whole_tiles() -> None:
    """5 slices of 32 for k = 96: the last two are of zeros."""
    _, made = split("matmul", 5)
    assert made.kernels[0].launch.grid == (2, 1, 5)
    inputs = random_inputs(made.inputs, 1, exact=True)
    assert (execute(made, inputs, "emulate") == call(product("matmul"), *inputs)).all()
    with pytest.raises(StrategyError) as refused:
        tensor_core(split_k=0)
    assert refused.value.code == "R0609"
