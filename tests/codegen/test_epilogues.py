"""What is done with a product: other operands and other functions than GEMM's, by the same strategy."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other
from tests.support.programs import succeeded

SIZES = {"m": 64, "n": 96, "k": 64}
DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
HEAD = "def f = depFun((m: Nat, n: Nat, k: Nat) => "
PROGRAMS = {
    "bias and ReLU": HEAD + "fun((A: m.k.f16, B: k.n.f16, bias: n.f32) => A |> map(fun(row => "
    f"zip(transpose(B))(bias) |> map(fun((col, b) => {DOT} |> fun(s => max(s + b, 0.0))))))))",
    "a bias for each row": HEAD + "fun((A: m.k.f16, B: k.n.f16, bias: m.f32) => zip(A)(bias) |> "
    f"map(fun((row, b) => transpose(B) |> map(fun(col => {DOT} |> fun(s => max(s + b, 0.0))))))))",
    "bf16": HEAD + "fun((A: m.k.bf16, B: k.n.bf16, bias: n.f32) => A |> map(fun(row => "
    f"zip(transpose(B))(bias) |> map(fun((col, b) => {DOT} |> fun(s => s - b)))))))",
    "two matrices": HEAD + "fun((A: m.k.f16, B: k.n.f16, C: m.n.f32, D: m.n.f32) => zip(A)(zip(C)(D)) |> "
    "map(fun((row, (cs, ds)) => zip(transpose(B))(zip(cs)(ds)) |> map(fun((col, (c, d)) => "
    f"({DOT}) * c + d))))))",
    "its square": HEAD + "fun((A: m.k.f16, B: k.n.f16) => A |> map(fun(row => transpose(B) |> "
    f"map(fun(col => {DOT} |> fun(s => s * s - s)))))))",
    "a residual in f16": HEAD + "fun((A: m.k.f16, B: k.n.f16, R: m.n.f16) => zip(A)(R) |> "
    "map(fun((row, rs) => zip(transpose(B))(rs) |> map(fun((col, r) => "
    f"f16({DOT}) + r))))))",
    "a row and a column": HEAD + "fun((A: m.k.f16, B: k.n.f16, u: m.f32, v: n.f32) => zip(A)(u) |> "
    "map(fun((row, y) => zip(transpose(B))(v) |> map(fun((col, z) => "
    f"{DOT} |> fun(s => s + y * z)))))))",
    "a column and a matrix": HEAD
    + "fun((A: m.k.f16, B: k.n.f16, u: m.f32, C: m.n.f32) => zip(A)(zip(u)(C)) |> "
    "map(fun((row, (y, cs)) => zip(transpose(B))(cs) |> map(fun((col, c) => "
    f"{DOT} |> fun(s => y * s + c)))))))",
}


def program(text: str) -> Expr:
    return data_flow(inline(specialise(check_text(text)["f"], SIZES)))


def assert_exact(kernel: Kernel, term: Expr) -> None:
    inputs = random_inputs(inputs_of(term), seed=3, exact=True)
    np.testing.assert_array_equal(execute(kernel, inputs, "emulate"), call(term, *inputs))


@pytest.mark.parametrize("name", every_other(PROGRAMS))
def test_an_epilogue_is_fused_and_exact(name: str) -> None:
    term = program(PROGRAMS[name])
    result = succeeded(tensor_core(block=(32, 48, 32), warp=(16, 48), epilogue="direct")(term))
    kernel = generate(result.term, "f_kernel")
    assert kernel.source.count("mma_sync") == 1
    assert kernel.source.count("__global__") == 1
    assert_exact(kernel, term)
