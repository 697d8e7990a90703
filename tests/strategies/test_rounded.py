"""Numbers that are rounded anyway take fewer instructions; numbers that may be exact stay exact."""

from __future__ import annotations

import re

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import generate
from rise.types import shape
from strategies.memory_bound.rows import rows
from strategies.rounded import by_reciprocals
from tests.support.programs import program, succeeded

# what rows are divided by, and whether it is rounded, and the same number for a row
DIVISORS = {
    "let s = sqrt(r |> reduce(+, 0)) in r |> map(fun(x => x / s))": True,
    "let s = r |> map(fun(x => exp(x))) |> reduce(+, 0) in let t = s + 1 in r |> map(fun(x => x / t))": True,
    "let s = tanh(r |> reduce(+, 0)) in r |> map(fun(x => let t = s in x / t))": True,
    "r |> map(fun(x => x / sqrt(r |> reduce(+, 0))))": True,
    "let s = r |> reduce(+, 0) in r |> map(fun(x => x / s))": False,
    "r |> map(fun(x => x / sqrt(x)))": False,
    "r |> map(fun(x => let s = exp(x) in x / s))": False,
    "let s = exp(r |> reduce(+, 0)) in r |> map(fun(s => s / s))": False,
    "let s = exp(r |> reduce(+, 0)) in let s = r |> reduce(max, 0) in r |> map(fun(x => x / s))": False,
    "let s = exp(r |> reduce(+, 0)) in r |> map(fun(x => 1 / s))": False,
}
FLOATS = "fun(xss: 7.61.f32 => xss |> map(softmax))"
HALVES = """fun(xss: 5.37.f32 => xss |> map(fun(row =>
  let top = maximum(row) in
  let powers = row |> map(fun(x => exp(x - top))) in
  let total = sum(powers) in
  powers |> map(fun(p => f16(p / total))))))"""


@pytest.mark.parametrize("text", DIVISORS)
def test_only_what_is_rounded_and_the_same_for_many_becomes_a_reciprocal(text: str) -> None:
    result = succeeded(by_reciprocals(program(f"fun(xss: 3.5.f32 => xss |> map(fun(r => {text})))")))
    assert [step.rule for step in result.steps] == ["x / y → x * (1 / y)"] * DIVISORS[text]


@pytest.mark.parametrize("text", [FLOATS, HALVES])
def test_a_softmax_divides_by_no_number_that_is_not_one(text: str) -> None:
    """Also where powers vanish: exponents down to -200."""
    made = generate(succeeded(rows()(program(text, prelude=True))).term, "rows")
    assert set(re.findall(r"[^ ]+ / tile", made.source)) == {"(1.0f / tile"}
    ((_, type_),) = made.inputs
    xss = np.random.default_rng(5).integers(-100, 101, size=[n.value or 0 for n in shape(type_)[0]])
    found = execute(made, [np.float32(xss)], "emulate")
    powers = np.exp(np.float64(xss - xss.max(axis=1, keepdims=True)))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    assert np.count_nonzero(wanted < 1e-38) > 20
    assert np.abs(found - wanted).max() <= np.finfo(found.dtype).eps
