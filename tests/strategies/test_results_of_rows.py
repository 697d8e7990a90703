"""Rows that give an array and numbers, or several arrays: by all threads of a block, in one kernel."""

from __future__ import annotations

from random import Random

import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from tests.support.programs import loaded, succeeded

SUM = "let s = r |> reduce(+, 0) in"
PROGRAMS = {
    "numbers": "X |> map(r => (r |> reduce(+, 0), r |> reduce(max, -infinity))) |> unzip",
    "a row and a number": f"X |> map(r => {SUM} (r |> map(x => x / s), s)) |> unzip",
    "a row and a number, as pairs": f"X |> map(r => {SUM} (r |> map(x => x / s), s))",
    "a number and a row": f"X |> map(r => {SUM} (s, r |> map(x => x - s))) |> unzip",
    "two rows": f"X |> map(r => {SUM} (r |> map(x => x - s), r |> map(x => x * s))) |> unzip",
    "a row and two numbers": f"X |> map(r => {SUM} (r |> map(x => x - s), (s, s * 2))) |> unzip",
    "a row without the number": "X |> map(r => (r |> map(x => x * 2), r |> reduce(+, 0))) |> unzip",
    "rows of matrices": f"X |> split(1) |> map(A => A |> map(r => {SUM} (r |> map(x => x - s), s))"
    " |> unzip) |> unzip",
    "parts of rows": "X |> map(r => let v = r |> drop(1) in let s = v |> reduce(+, 0) in"
    " (v |> map(x => x - s), s)) |> unzip",
}


def of_rows(name: str, m: int, n: int) -> Expr:
    text = f'import "prelude.rise" def f(m: Nat, n: Nat)(X: m.n.f32) = {PROGRAMS[name]}'
    return data_flow(specialise(check_text(text)["f"], {"m": m, "n": n}))


def is_one_kernel_of(strategy: str, term: Expr) -> bool:
    """Whether `auto` computes a program by that strategy alone, and rightly."""
    (chosen,) = auto().choice(term).kernels
    made, inputs = assemble(succeeded(auto()(term)).term, "f"), random_inputs(inputs_of(term), 5, exact=False)
    found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
    return (
        chosen.point.strategy == strategy
        and len(made.kernels) == 1
        and compare(found, wanted, tolerance(term)).agrees
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_give_parts(name: str) -> None:
    random = Random(name)
    for n in (random.choice((2, 3, 17)), random.choice((31, 33, 300)), random.choice((515, 520, 1030))):
        assert is_one_kernel_of("rows", of_rows(name, random.choice((1, 2, 5)), n)), n


@pytest.mark.parametrize(
    "text",
    [
        "X |> map(r => r |> map(x => (x * 2, x + 1)) |> unzip) |> unzip",
        "X |> join |> map(x => (x * 2, x + 1)) |> unzip",
        "X |> join |> map(x => (x * 2, (x, x + 1))) |> unzip",
    ],
)
def test_elements_give_parts(text: str) -> None:
    program = check_text(f"def f(m: Nat, n: Nat)(X: m.n.f32) = {text}")["f"]
    for sizes in ({"m": 3, "n": 37}, {"m": 1, "n": 1}, {"m": 2, "n": 256}):
        assert is_one_kernel_of("elementwise", data_flow(specialise(program, sizes)))


@pytest.mark.parametrize("name", ["layerNormWithStatistics", "quantiseRows"])
def test_examples_are_one_kernel(name: str) -> None:
    program = loaded("examples/networks.rise")[name]
    for n in (7, 130, 1030):
        assert is_one_kernel_of("rows", data_flow(specialise(program, {"b": 3, "n": n})))
