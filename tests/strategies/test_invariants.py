"""What a loop computes alike for every element is computed once, before the loop, where that pays."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.invariants import INVARIANT_FIRST, steps
from rewrites.result import Failure
from rise.check.specialise import inputs_of
from rise.expr import Expr, Lambda, children
from rise.expr import call as called
from rise.interpret import call, random_inputs
from strategies.auto import auto
from tests.support.batches import program
from tests.support.programs import succeeded

AUTO = auto("sm_90a")
SHARES = "def f(xs: {n}.i32): {n}.i32 = xs |> map(x => x * (xs |> reduce(+, 0)))"
CENTRED = "def f(X: {m}.{n}.i32): {m}.{n}.i32 = X |> map(row => row |> map(x => x - (row |> reduce(+, 0))))"
NESTED = (
    "def f(xs: {m}.i32, ys: {n}.i32): {m}.i32 = xs |> map(x =>"
    " let total = ys |> reduce(+, 0) in let sums = ys |> map(y => y - total) |> scan(+, 0) in"
    " sums |> map(s => select(s < x, 1, 0)) |> reduce(+, 0))"
)
LARGEST = "(row |> reduce(max, -9))"
DEVIATIONS = (
    "def f(X: {m}.{n}.i32): {m}.{n}.i32 = X |> map(row => row |> map(x =>"
    f" (x - {LARGEST}) * (row |> map(y => (y - {LARGEST}) * (y - {LARGEST})) |> reduce(+, 0))))"
)
PROGRAMS = {"shares": SHARES, "centred": CENTRED, "nested": NESTED, "deviations": DEVIATIONS}
SCHEDULES = {
    "shares": ["reduction", "elementwise"],
    "centred": ["rows"],
    "deviations": ["rows"],
}


def loop_of(term: Expr) -> list[Expr]:
    """The function and the array of the loop that a program is."""
    while (found := called(term)) is None:
        (term,) = children(term)
    return found[2]


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_value_without_a_name_gets_the_schedules_of_one_with_a_name(name: str) -> None:
    term = program(PROGRAMS[name].format(m=911, n=2003))
    assert [kernel.point.strategy for kernel in AUTO.choice(term).kernels] == SCHEDULES[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_the_same(name: str) -> None:
    random = Random(f"invariants {name}")
    for _ in range(3):
        sizes = {"m": random.randint(1, 9), "n": random.choice((1, 5, 31, 523))}
        term = program(PROGRAMS[name].format(**sizes))
        inputs = random_inputs(inputs_of(term), random.randrange(1 << 30), exact=True)
        kernels = assemble(succeeded(AUTO(term)).term, "f")
        np.testing.assert_array_equal(execute(kernels, inputs, "emulate"), call(term, *inputs))


def test_a_value_moves_with_the_lets_that_it_uses() -> None:
    """All of the loop's folds but that of the element stand before it then."""
    loop = program(NESTED.format(m=7, n=100))
    while called(loop) is None:
        (loop,) = children(loop)
    made = succeeded(INVARIANT_FIRST(loop)).term
    applied = called(made)
    assert applied is not None and applied[0] == "let"
    assert steps(applied[2][0]) == 200 and steps(loop) == 7 * 300


def test_a_part_that_stands_elsewhere_too_moves_first() -> None:
    """So a value that uses it, and what is left, have one name for it."""
    function, _ = loop_of(program(DEVIATIONS.format(m=7, n=100)))
    assert isinstance(function, Lambda)
    for _ in range(2):
        moved = called(succeeded(INVARIANT_FIRST(function.body)).term)
        assert moved is not None and moved[0] == "let"
        value, function = moved[2]
        assert steps(value) == 100 and isinstance(function, Lambda)
    assert steps(function.body) == 0


def test_values_of_short_rows_are_computed_with_the_row() -> None:
    """Each of them takes few steps, but the rows of a kernel reduce them with many threads."""
    text = DEVIATIONS.format(m=999, n=400)
    assert [kernel.point.strategy for kernel in AUTO.choice(program(text)).kernels] == ["rows"]


def test_a_cheap_value_stays_in_each_thread() -> None:
    chosen = [kernel.point.strategy for kernel in AUTO.choice(program(SHARES.format(n=61))).kernels]
    assert chosen != SCHEDULES["shares"]
    assert len(chosen) == 1


def test_what_uses_the_element_stays() -> None:
    loop = children(program("def f(X: 3.4.i32): 3.i32 = X |> map(row => row |> reduce(+, 0))"))[0]
    assert isinstance(INVARIANT_FIRST(loop), Failure)
