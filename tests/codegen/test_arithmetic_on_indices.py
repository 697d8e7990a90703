"""An index is one number in whatever is computed of it, also where the kernel computes it as a sum."""

from __future__ import annotations

import numpy as np
import pytest

import codegen
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.interpret import call, random_inputs
from strategies.core import Strategy
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from strategies.memory_bound.elementwise import elementwise

SIZES = {"m": 64, "n": 48, "k": 32}
OPERATIONS = (
    "i * j", "i - j", "j - i * 3", "-i + j", "abs(i - j)", "(i + 1) * (j + 1) / 5", "i * 7 % (j + 1)",
    "min(i * 2, j * 3)", "max(-i, -j)", "select(i * 2 < j + j)(i)(j)", "i32(i8(i * j))",
    "i32(f32(i) * f32(j))", "i32(u32(i) - u32(j)) / 2",
)  # fmt: skip
NUMBERED = "generate(i => i32(i))"
ELEMENTS = f"def f(m: Nat, n: Nat): m.n.i32 = {NUMBERED} |> map(i => {NUMBERED} |> map(j => {{}}))"
EPILOGUE = (
    "def f(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: n.k.f16): m.n.f32 = "
    f"zip(A)({NUMBERED}) |> map((row, i) => zip(B)({NUMBERED}) |> map((col, j) => "
    "(zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)) + f32({})))"
)


@pytest.mark.parametrize("strategy", [default(), default(levels=2), elementwise(), elementwise(threads=32)])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_elements_may_be_computed_of_their_indices(operation: str, strategy: Strategy) -> None:
    program = specialise(check_text(ELEMENTS.format(operation))["f"], {"m": 37, "n": 83})
    run = codegen.compile(program, strategy, backend="emulate")
    np.testing.assert_array_equal(run(), call(program))


@pytest.mark.parametrize("epilogue", ["direct", "shared"])
def test_an_epilogue_may_use_the_place_of_an_element(epilogue: str) -> None:
    every = " + ".join(f"({operation}) % 64" for operation in OPERATIONS)
    program = specialise(check_text(EPILOGUE.format(every))["f"], SIZES)
    strategy = tensor_core(block=(32, 48, 32), warp=(16, 48), epilogue=epilogue)
    run = codegen.compile(program, strategy, backend="emulate")
    inputs = random_inputs(inputs_of(program), seed=5, exact=True)
    np.testing.assert_array_equal(run(*inputs), call(program, *inputs))
