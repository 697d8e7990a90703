"""Small programs for warpgroups, by every path that operands and results take; see gpu_check.py.

python benchmarks/hopper_programs.py [cuda|emulate] [all but these …]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import RiseError
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core

DOT = "zip(row)(col) |> map(fun((x, y) => f32({x}) * f32(y))) |> reduce(+, 0)"
RELU = "max(x, 0.0)"
BLOCK: dict[str, Any] = {
    "block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 3, "epilogue": "direct",
}  # fmt: skip
ROLES = {**BLOCK, "warp_specialised": True, "raster_group": 1}
BULK = {**ROLES, "epilogue": "bulk"}
IN_TURN = {**BULK, "block": (64, 64, 64), "ping_pong": 2, "persistent_blocks": 4, "cluster": 2}


def product(m: int, n: int, k: int, element: str, a: str = "A", b: str = "B", more: str = "") -> str:
    """Of A (m.k, or k.m where `a` transposes it) and B (n.k or k.n)."""
    left, right = (
        f"{k}.{rows}" if side.startswith("transpose") else f"{rows}.{k}" for side, rows in ((a, m), (b, n))
    )
    inputs = f"A: {left}.f16, B: {right}.f16{more}"
    return f"fun(({inputs}) => {a} |> map(fun(row => {b} |> map(fun(col => {element})))))"


def added(m: int, n: int, k: int) -> str:
    inputs = f"A: {m}.{k}.f16, B: {n}.{k}.f16, C: {m}.{n}.f32, alpha: f32, beta: f32"
    element = f"{DOT.format(x='x')} |> fun(r => alpha * r + beta * c)"
    return (
        f"fun(({inputs}) => zip(A)(C) |> map(fun((row, cs) =>"
        f" zip(B)(cs) |> map(fun((col, c) => {element})))))"
    )


def biased(m: int, n: int, k: int) -> str:
    element = f"f16(max(({DOT.format(x='x')}) + b, 0.0))"
    return (
        f"fun((A: {m}.{k}.f16, B: {k}.{n}.f16, bias: {n}.f32) => A |> map(fun(row =>"
        f" zip(transpose(B))(bias) |> map(fun((col, b) => {element})))))"
    )


PLAIN = DOT.format(x="x")
HALF = f"f16({PLAIN})"
PAIR = (
    "fun((A: 256.192.f16, B: 128.192.f16, P: 256.128.f16, Q: 128.128.f16) => zip(A)(P) |>"
    f" map(fun((row, ps) => zip(B)(Q) |> map(fun((col, qs) => ({PLAIN}) +"
    " (zip(ps)(qs) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)))))))"
)
TF32 = product(256, 48, 160, PLAIN).replace("f16", "tf32")
BYTES = product(256, 96, 384, PLAIN.replace("f32", "i32")).replace("f16", "i8")


def sum_of_products(m: int, n: int, k: int, other: int) -> str:
    first, second = (
        PLAIN.replace("(row)(col)", f"({r})({c})") for r, c in (("row", "col"), ("other", "last"))
    )
    return (
        f"fun((A: {m}.{k}.f16, B: {k}.{n}.f16, C: {m}.{other}.f16, D: {other}.{n}.f16) => zip(A)(C) |> map("
        "fun((row, other) => zip(transpose(B))(transpose(D)) |> map(fun((col, last) =>"
        f" f16(({first}) + ({second})))))))"
    )


PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "A·Bᵀ": (product(256, 192, 320, PLAIN), BLOCK),
    "relu(A)·Bᵀ, registers": (product(256, 192, 320, DOT.format(x=RELU)), BLOCK),
    "relu(A)·Bᵀ, registers, roles": (
        product(256, 192, 320, DOT.format(x=RELU)),
        {**ROLES, "persistent_blocks": 4},
    ),
    "roles, blocks that stay": (product(384, 192, 320, PLAIN), {**ROLES, "persistent_blocks": 4}),
    "clusters, A and B across k": (
        product(256, 192, 320, PLAIN, "transpose(A)", "transpose(B)"),
        {**ROLES, "persistent_blocks": 4, "cluster": 2},
    ),
    "panels of 32 columns, clusters of 4": (
        product(512, 192, 320, PLAIN, b="transpose(B)"),
        {**ROLES, "block": (128, 96, 64), "warp": (64, 96), "fragment": (64, 96, 16), "cluster": 4},
    ),
    "in turn": (
        product(512, 192, 320, PLAIN),
        {**ROLES, "block": (64,) * 3, "warp": (64, 64), "ping_pong": 2, "persistent_blocks": 4, "cluster": 2},
    ),
    "bulk stores": (product(384, 192, 320, HALF), {**BULK, "persistent_blocks": 4}),
    "bulk stores, in turn, clusters": (product(512, 192, 320, HALF), IN_TURN),
    "bulk stores of f32, parts": (product(256, 128, 192, PLAIN), {**BULK, "fragment": (64, 32, 16)}),
    "any size": (product(200, 104, 88, HALF), {**BULK, "persistent_blocks": 2}),
    "any size, added": (added(200, 104, 88), {**ROLES, "persistent_blocks": 2}),
    "bias, ReLU, any size": (biased(200, 104, 88), {**BULK, "cluster": 2}),
    "slices of sums": (product(256, 128, 512, HALF), {**BULK, "split_k": 2}),
    "slices of sums, by clusters": (
        product(200, 104, 520, HALF),
        {**ROLES, "epilogue": "shared", "split_cluster": 4},
    ),
    "operands swapped, any size, bias": (
        biased(200, 104, 88),
        {**BULK, "block": (64, 72, 64), "warp": (64, 72), "fragment": (64, 72, 16), "swap_operands": True},
    ),
    "operands swapped, in turn, clusters": (
        product(192, 512, 320, HALF),
        {**IN_TURN, "swap_operands": True},
    ),
    "rows of odd length": (product(200, 103, 88, HALF), {**ROLES, "epilogue": "shared", "cluster": 2}),
    "added, four warpgroups": (added(512, 128, 320), {**ROLES, "block": (256, 64, 64), "cluster": 2}),
    "two products": (PAIR, {**ROLES, "ping_pong": 2, "persistent_blocks": 3, "block": (64, 64, 64)}),
    "sum of products, any depth, clusters": (
        sum_of_products(200, 104, 88, 200),
        {**IN_TURN, "block": (64, 96, 64), "fragment": (64, 96, 16), "warp": (64, 96)},
    ),
    "tf32": (TF32, {**ROLES, "block": (128, 48, 32), "warp": (64, 48), "fragment": (64, 48, 8)}),
    "bytes": (BYTES, {**ROLES, "block": (128, 48, 128), "warp": (64, 48), "fragment": (64, 48, 32)}),
}  # fmt: skip


def check(name: str, backend: str) -> str:
    """A program against the interpreter, on integers small enough that every sum is exact: equal bits."""
    text, parameters = PROGRAMS[name]
    term = check_expression(text)
    result = tensor_core(**parameters)(data_flow(term))
    if isinstance(result, Failure):
        raise RiseError("R0600", f"{name}: {result.story()}")
    made = assemble(result.term, "product")
    inputs = random_inputs(inputs_of(term), seed=7, exact=True)
    found, wanted = execute(made, inputs, backend), call(term, *inputs)
    if not np.array_equal(found, wanted):
        raise RiseError("R0830", f"{name} is wrong in {np.sum(found != wanted)} of {wanted.size} elements")
    return f"{name:36} equal, {made.kernels[0].launch}"


def main(backend: str = "cuda", *without: str) -> None:
    for name in PROGRAMS:
        if name not in without:
            print(check(name, backend), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
