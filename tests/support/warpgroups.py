"""Products of warpgroups: programs, and their kernels on tiles that are quickly emulated."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"

ROLES: dict[str, Any] = {"warp_specialised": True, "raster_group": 1}
SMALL: dict[str, Any] = {
    "block": (128, 64, 64),
    "warp": (64, 64),
    "fragment": (64, 64, 16),
    "epilogue": "direct",
}


def product(k: int, m: int = 128, n: int = 128, operand: str = "f16", dot: str = DOT) -> str:
    inputs = f"A: {m}.{k}.{operand}, B: {n}.{k}.{operand}"
    return f"fun(({inputs}) => A |> map(fun(row => B |> map(fun(col => {dot})))))"


PROGRAMS = {
    "A·Bᵀ": product(128),
    "bf16": product(128, operand="bf16"),
    "f16 sums": product(128, dot="zip(row)(col) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"),
    "αA·Bᵀ + βC": "fun((A: 128.128.f16, B: 128.128.f16, C: 128.128.f32, alpha: f32, beta: f32) => "
    "zip(A)(C) |> map(fun((row, cs) => zip(B)(cs) |> map(fun((col, c) => "
    f"{DOT} |> fun(r => alpha * r + beta * c))))))",
    "a bias for each row": "fun((A: 128.128.f16, B: 128.128.f16, bias: 128.f32) => zip(A)(bias) |> "
    f"map(fun((row, b) => B |> map(fun(col => {DOT} |> fun(r => f16(2.0 * r + b)))))))",
    "bias, ReLU, f16": "fun((A: 128.128.f16, B: 128.128.f16, bias: 128.f32) => A |> map(fun(row => "
    f"zip(B)(bias) |> map(fun((col, b) => {DOT} |> fun(r => f16(max(r + b, 0.0))))))))",
    "batched": f"fun((As: 2.128.128.f16, Bs: 2.128.128.f16) => zip(As)(Bs) |> map(fun((A, B) => "
    f"A |> map(fun(row => B |> map(fun(col => {DOT})))))))",
}


@cache
def derived(text: str, stages: int = 3, **parameters: Any) -> Kernel:
    return generate(
        succeeded(
            tensor_core(**{**SMALL, "stages": stages, **parameters})(data_flow(check_expression(text)))
        ).term,
        "product",
    )


def agrees(text: str, made: Kernel, seed: int = 0) -> bool:
    term = check_expression(text)
    inputs = random_inputs(inputs_of(term), seed=7, exact=True)
    return np.array_equal(execute(made, inputs, "emulate", seed=seed), call(term, *inputs))
