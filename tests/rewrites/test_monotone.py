"""Maxima of monotone functions: of random compositions they are the same; other functions are refused."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from rewrites.monotone import MAXIMUM_OF_MONOTONE, NAMED_IN_MAXIMUM
from rewrites.result import Failure, Success
from rise.check.program import check_expression
from rise.expr import Expr, Lambda, application
from rise.interpret import call
from rise.normal import data_flow
from rise.pretty import show
from strategies.core import seq, top_down
from tests.support.programs import succeeded

SEED = 20261126
DRAWS = 80
# what is done with a number, with 1 where it grows with it, -1 where it falls, 0 for others
STEPS = {
    "({} * 0.5)": 1, "({} * (-2.0))": -1, "({} / exp2(s))": 1, "({} + 3.0)": 1, "(1.5 - {})": -1,
    "tanh({})": 1, "exp2({})": 1, "exp({})": 1, "(-{})": -1, 
    "(1.0 / (1.0 + exp2({})))": -1, "reciprocal(1.0 + exp({}))": -1, "(-2.0 / (0.5 + exp2({})))": 1,
    "f32(f16({}))": 1, "(f32(7) + {})": 1,
    "({0} * {0})": 0, "abs({})": 0, "sin({})": 0, "({} + f32(i))": 0, "({} * s)": 0, "({} + s)": 0,
    "({} + infinity)": 0, "({} * infinity)": 0, "reciprocal({})": 0, "select({0} < s, {0}, -infinity)": 0,
    "({} * 0.0)": 0, "floor({})": 0,
    # these make a number of what is none
    "min({}, s)": 0, "max(s, {})": 0,
}  # fmt: skip
NUMBERS = (-np.inf, -3e38, -70.0, -1.25, -1e-30, 0.0, 0.5, 2.0, 90.0, 3e38, np.inf)


def maximum(body: str, size: int = 4, operator: str = "max", start: str = "-infinity") -> Expr:
    of_numbers = f"generate(fun(i => {body.replace('f32(i)', 'f32(indexToInt(i))')}))"
    return data_flow(
        check_expression(f"fun((xs: {size}.f32, s: f32) => {of_numbers} |> reduce({operator}, {start}))")
    )


def drawn(random: Random) -> tuple[str, int]:
    """A composition, and how it goes with the element: 0 where that is not known of all of its steps."""
    body, sign = "(xs |> idx(i))", 1
    for _ in range(random.randint(1, 4)):
        step = random.choice(list(STEPS))
        body, sign = step.format(body), sign * STEPS[step]
    return body, sign


def value(term: Expr, xs: np.ndarray, s: float) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(call(term, xs, np.float32(s)))


def elements(term: Expr, xs: np.ndarray, s: float) -> Any:
    """What the maximum is taken of."""
    assert isinstance(term, Lambda) and isinstance(term.body, Lambda)
    of = application(term.body.body)[2][2]
    return value(Lambda(term.parameter, Lambda(term.body.parameter, of)), xs, s)


def test_random_compositions_have_the_same_maximum() -> None:
    random, seen = Random(SEED), Counter[str]()
    for number in range(DRAWS):
        body, sign = drawn(random)
        size = random.randint(1, 5)
        term = maximum(body, size)
        made = top_down(MAXIMUM_OF_MONOTONE)(term)
        seen["applied" if isinstance(made, Success) else "refused"] += 1
        if sign > 0:
            assert isinstance(made, Success), (SEED, number, body)
        if isinstance(made, Failure):
            continue
        for _ in range(4):
            xs = np.array([random.choice(NUMBERS) for _ in range(size)], np.float32)
            s = random.choice((-2.0, 0.0, 1.5))
            if np.isnan(elements(term, xs, s)).all():
                seen["no number"] += 1  # every element is NaN, which has no maximum
                continue
            wanted, found = value(term, xs, s), value(made.term, xs, s)
            seen["compared"] += 1
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"{SEED} {number} {body} {xs} {s}")
    assert min(seen["applied"], seen["refused"]) > DRAWS // 10, seen
    assert seen["compared"] > 10 * seen["no number"], seen


@pytest.mark.parametrize("step", [step for step, sign in STEPS.items() if sign <= 0])
def test_functions_that_are_not_known_to_grow_are_refused(step: str) -> None:
    made = top_down(MAXIMUM_OF_MONOTONE)(maximum(step.format("(xs |> idx(i))")))
    assert isinstance(made, Failure)


@pytest.mark.parametrize(
    "term",
    [
        maximum("tanh(xs |> idx(i))", 0),  # -∞, which tanh is not
        maximum("tanh(xs |> idx(i))", operator="min", start="infinity"),
        maximum("tanh(xs |> idx(i))", operator="+", start="-infinity"),
        maximum("tanh(xs |> idx(i))", start="0.5"),
        maximum("select(i == i, tanh(xs |> idx(i)), -infinity)".replace("i == i", "f32(i) < 2")),
        data_flow(
            check_expression(
                "depFun((n: Nat) => fun(xs: n.f32 => generate(fun(i => tanh(xs |> idx(i))))"
                " |> reduce(max, -infinity)))"
            )
        ),
    ],
)
def test_maxima_that_may_be_of_nothing_and_other_reductions_are_refused(term: Expr) -> None:
    assert isinstance(top_down(MAXIMUM_OF_MONOTONE)(term), Failure)


ROWS = "fun((xs: 3.4.f32, s: f32) => generate(fun(i => generate(fun(j => {})))) |> fun(ys => {}))"
TOP = "(generate(fun(j => ys |> idx(i) |> idx(j))) |> reduce(max, -infinity))"


def test_a_maximum_of_named_elements_is_taken_of_what_they_are_made_of() -> None:
    use = f"generate(fun(i => {TOP} * ({TOP.replace('max', 'min').replace('-inf', 'inf')})))"
    term = data_flow(check_expression(ROWS.format("tanh(xs |> idx(i) |> idx(j)) - 0.5", use)))
    made = succeeded(top_down(seq(NAMED_IN_MAXIMUM, top_down(MAXIMUM_OF_MONOTONE)))(term)).term
    assert "tanh(\n" in show(made) or "tanh(generate" in show(made)
    xs = np.random.default_rng(SEED).standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_allclose(call(made, xs, np.float32(0)), call(term, xs, np.float32(0)), rtol=1e-6)


def test_elements_that_are_reduced_are_not_computed_twice() -> None:
    element = "(xs |> idx(i) |> reduce(+, 0)) + (xs |> idx(i) |> idx(j))"
    term = data_flow(check_expression(ROWS.format(element, f"generate(fun(i => {TOP}))")))
    assert isinstance(NAMED_IN_MAXIMUM(term), Failure)
