"""Which memory-bound strategy fits a program, and that it derives a kernel without parameters."""

from __future__ import annotations

import re

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.specialise import inputs_of
from rise.errors import CompilationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.auto import auto
from strategies.memory_bound.family import fitting
from tests.support.nightly import every_other
from tests.support.programs import program, succeeded

STENCIL = (
    "fun(xss: 17.33.f32 => xss |> padClamp2D(1, 1) |> slide2D(3, 1) |> map2D(fun(w => w |> idx2D(0, 1))))"
)
RMS_NORM = (
    "fun(xss: 5.67.f32 => xss |> map(fun(r =>"
    " let s = rsqrt((r |> map(fun(x => x * x)) |> mean) + 0.001) in r |> map(fun(x => x * s)))))"
)
FAMILIES = {
    "fun((xs: 101.f32, ys: 101.f32) => axpy(2)(xs)(ys))": "elementwise",
    "fun((xs: 5.67.f32, ys: 67.f32) => xs |> map(fun(r => zip(r)(ys) |> map(fun((x, y) => x + y)))))": (
        "elementwise"
    ),
    "fun((xs: 7.f32, ys: 9.f32) => outer(xs)(ys))": "elementwise",
    "fun(xs: 101.f32 => xs |> map(fun(x => (x, x + 1))))": "elementwise",
    "fun((xs: 5.67.f16, ys: 5.67.Idx[9]) => zip(xs)(ys) |> map(fun((x, y) => zip(x)(y))))": "elementwise",
    "fun(is: 5.67.Idx[9] => is |> transpose)": "elementwise",
    "generate(fun((i: Idx[5]) => generate(fun((j: Idx[67]) => f32(i) * f32(j)))))": "elementwise",
    "fun(xss: 5.67.f16 => transpose(xss))": "transposition",
    "fun(xss: 5.67.f32 => xss |> map(map(relu)) |> transpose)": "transposition",
    STENCIL: "stencil",
    "fun(xss: 5.67.f32 => xss |> map(softmax))": "rows",
    "fun(xss: 2.3.67.f32 => xss |> map(map(softmax)))": "rows",
    "fun((g: 67.f32, b: 67.f32, xss: 3.67.f32) => xss |> map(layernorm(0.001)(g)(b)))": "rows",
    RMS_NORM: "rows",
    "fun(xss: 5.67.f32 => xss |> map(mean))": "rows",
    "fun(xss: 5.67.f32 => xss |> map(argmax))": "rows",
    "fun(xss: 5.67.f32 => xss |> map(maximum))": "reduction",
    "fun(xss: 2.3.7.f32 => xss |> map(map(sum)))": "reduction",
    "fun((A: 5.67.f32, x: 67.f32) => matvec(A)(x))": "reduction",
    "fun(xss: 3.70001.f32 => xss |> map(sum))": "reduction",  # few long rows, in two kernels
    "fun((A: 3.70002.f32, x: 70002.f32) => matvec(A)(x))": "reduction",
    "fun(xs: 101.f32 => nrm2(xs))": "reduction",
    "fun(xs: 20011.f32 => argmax(xs))": "reduction",
    "fun((xs: 20011.f32, ys: 20011.f32) => dot(xs)(ys) / (nrm2(xs) * nrm2(ys)))": "reduction",
    "fun(xs: 20011.f32 => variance(xs))": "reduction",
}


@pytest.mark.parametrize("text", every_other(FAMILIES))
def test_the_strategy_that_fits_derives_a_kernel(text: str) -> None:
    term = program(text, prelude=True)
    found = fitting(term)
    assert found is not None and found.strategy.name == FAMILIES[text]
    inputs = random_inputs(inputs_of(term), 0, exact=True)
    made = assemble(succeeded(found.strategy(term)).term, "f")
    assert np.allclose(execute(made, inputs, "emulate"), call(term, *inputs), rtol=1e-5, atol=1e-6)


def test_elements_that_take_too_many_registers_are_computed_fewer_at_once() -> None:
    """Each version of a compiler spills registers in other kernels; loops are slower than half a vector."""
    term = program("fun((A: 5.45.f16, x: 45.f16) => A |> map(row => zip(row)(x) |> map((a, b) => a + b)))")
    widths = []

    def builds(low: Expr, target: str | None) -> int:
        widths.append(vectors(low))
        if widths[-1] > 2:
            raise CompilationError("R0832", "it spills registers")
        return 0

    assert str(auto().first_that(builds).choice(term)).startswith("auto: elementwise vector=2")
    assert widths == [8, 4, 2]


def vectors(low: Expr) -> int:
    """How many elements a thread stores at once, at most."""
    found = re.findall(r"copy_vector<(\d+)>", assemble(low, "f").kernels[0].source)
    return max((int(width) for width in found), default=1)


@pytest.mark.parametrize(
    "text",
    [
        "fun((A: 5.67.f32, B: 67.9.f32) => matmul(A)(B))",  # a reduction for each element of a row
        "fun((A: 5.67.f32, B: 67.9.f32) => matmul(A)(B) |> map(map(relu)))",  # rows of a product
        "fun(xss: 5.67.f32 => xss |> transpose |> map(sum))",  # rows that are not contiguous
        "fun(xs: 101.f32 => scan(+, 0)(xs))",
        "fun(xs: 128.f32 => xs |> mapGlobal(0)(fun(x => x + 1)))",  # it has levels
    ],
)
def test_of_other_programs_no_strategy_fits(text: str) -> None:
    assert fitting(program(text, prelude=True)) is None
