"""Numbers that are rounded anyway take fewer instructions; numbers that may be exact stay exact."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble, generate
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import load
from rise.check.specialise import inputs_of, specialise
from rise.errors import StrategyError
from rise.expr import Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.types import shape
from strategies.matmul.one_pass import one_pass
from strategies.matmul.tensor_core import tensor_core
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
ATTENTION = Path(__file__).parents[2] / "examples" / "attention.rise"
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


# --- powers beside the special-function units -----------------------------------------------------------


def test_only_powers_of_accumulators_are_computed_alternately() -> None:
    """The repair of a row is one number for many scores."""
    term = data_flow(specialise(load(ATTENTION)["causal"], {"m": 64, "n": 40, "d": 16, "e": 16}))
    low = succeeded(one_pass(rows=64, columns=32, polynomial=3)(term)).term
    used = [part for part in subterms(low) if isinstance(part, Primitive)]
    (alternately,) = (part for part in used if part.name == "alternately")
    assert [str(size) for size in alternately.arguments[:2]] == ["3", "8"]
    assert [part.name for part in used].count("exp2") == 2
    inputs = random_inputs(inputs_of(term), 7, exact=False)
    found = execute(assemble(low, "f"), inputs, "emulate")
    assert compare(found, call(term, *inputs), tolerance(term)).agrees


def test_a_share_of_no_powers_is_refused() -> None:
    product = "zip(r)(c) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
    term = f"fun((a: 64.32.f16, b: 64.32.f16) => a |> map(fun(r => b |> map(fun(c => {product})))))"
    block: dict[str, Any] = {"block": (64, 64, 32), "warp": (64, 64), "fragment": (64, 64, 16)}
    refused = tensor_core(**block, epilogue="direct", polynomial=2)(program(term))
    assert isinstance(refused, Failure) and "no power of two" in refused.story()
    with pytest.raises(StrategyError, match="whole rows"):
        tensor_core(**block, epilogue="shared", polynomial=2)
