"""Summands of a maximum, and numbers apart: random programs compute the same, and wrong changes are noticed.

Scores are whole numbers, slopes halves of such and weights powers of two, so all sums are exact in any order.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from rewrites.apart import EXACT, NUMBERS_APART, between
from rewrites.elements import number
from rewrites.folds import FACTORS, is_float, operation
from rewrites.masks import BLOCKS_OF_A_MASK, FACTOR_OF_MASK
from rewrites.result import Failure
from rewrites.rolling import ROLLING
from rewrites.summands import SUMMANDS
from rise.expr import Apply, Expr, Identifier, Lambda, call, map_children, subterms
from rise.nat import constant
from rise.pretty import show
from rise.testing import assert_equivalent
from rise.types import I32, Index
from strategies.core import Rewrite, seq, try_
from strategies.places import in_inputs
from tests.support.programs import succeeded
from tests.support.rows import SCORE, term_of

DRAWS = 40
# of a score s, the numbers i and j of its row and column, and an element u of the row
CHANGES = (
    "s * 2 + f32(j - i)",
    "0.5 * s + 0.5 * (f32(j) - f32(i))",
    "4 * (2 - s) + f32(2 * i + j)",
    "s - 2 * abs(f32(i - j))",
    "2 * (1 - 2 * s)",
    "s + u",
    "-(2 * s) + (3 - f32(i))",
    "s",
)
MASKS = (
    "{}",
    "select(0 <= i - j, {}, -infinity)",
    "select(2 > j - i && (j + i) * 2 < 9 || j < 1, {}, -infinity)",
    "select(j < 2 || i - j < 3 && j <= i, {}, -infinity)",
)
WEIGHTS = ("exp2(s - m)", "2 * exp2(s - m)", "exp2(s) * 0 + exp2(s - m)", "exp2(2 * (s - m))")
RESULTS = ("o", "o / l * l", "o + max(m, -64)")


def drawn(random: Random, **sizes: int) -> str:
    score = random.choice(MASKS).format(random.choice(CHANGES))
    return (
        f"fun((a: {sizes['m']}.{sizes['d']}.f16, us: {sizes['m']}.f32, b: {sizes['t']}.{sizes['d']}.f16,"
        f" v: {sizes['t']}.{sizes['e']}.f16) => zip(zip(a)(us))(generate(fun(i => indexToInt(i)))) |> map("
        f"fun(((q, u), i) => zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((k, j) => {SCORE} |> fun("
        f"s => {score}))) |> fun(scores => scores |> reduce(max, -infinity) |> fun(m =>"
        f" scores |> map(fun(s => {random.choice(WEIGHTS)})) |> fun(w => w |> reduce(+, 0) |> fun(l =>"
        " transpose(v) |> map(fun(c => (zip(w)(c) |> map(fun((x, y) => x * f32(y))) |> reduce(+, 0)) |> fun("
        f"o => {random.choice(RESULTS)}))))))))"
    )


def of_rows(*strategies: Rewrite) -> Rewrite:
    return in_inputs(seq(*map(try_, strategies)))


def rules_of(term: Expr, strategy: Rewrite) -> tuple[Expr, set[str]]:
    made = succeeded(strategy(term))
    return made.term, {step.rule for step in made.steps}


def test_programs_without_summands_compute_the_same() -> None:
    random, seen = Random(20261125), Counter[str]()
    for seed in range(DRAWS):
        m, d, e, t = (random.choice((1, 2, 3, 5)) for _ in range(4))
        term = term_of(drawn(random, m=m, t=t, d=d, e=e))
        apart, first = rules_of(term, of_rows(NUMBERS_APART))
        assert_equivalent(term, apart, seeds=(seed,))
        made, rules = rules_of(apart, of_rows(SUMMANDS))
        assert_equivalent(term, made, seeds=(seed,))
        seen.update(first | rules)
        if rules and t > 1:
            rolled, after = rules_of(made, of_rows(FACTORS, ROLLING.with_sizes(n=2)))
            assert_equivalent(term, rolled, seeds=(seed,))
            seen.update(after)
    assert seen["numbers apart"] > DRAWS / 10
    assert seen["summands of a maximum"] > DRAWS / 4
    assert seen["rolling update"] > DRAWS / 5


def test_masks_and_summands_go_together() -> None:
    """A causal slope: blocks are skipped, and the number of the row is in no weight."""
    text = (
        "fun((a: 6.4.f16, b: 8.4.f16, v: 8.2.f16) => zip(a)(generate(fun(i => indexToInt(i)))) |> map("
        "fun((q, i) => zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((k, j) => select(j <= i,"
        f" {SCORE} + f32(j - i), -infinity))) |> fun(s => s |> reduce(max, -infinity) |> fun(m =>"
        " s |> map(fun(x => exp2(x - m))) |> fun(w => transpose(v) |> map(fun(c => zip(w)(c)"
        " |> map(fun((x, y) => x * f32(y))) |> reduce(+, 0))))))))"
    )
    term = term_of(text)
    steps = (FACTOR_OF_MASK, BLOCKS_OF_A_MASK.with_sizes(n=2), NUMBERS_APART, SUMMANDS)
    made, rules = rules_of(term, of_rows(*steps, ROLLING.with_sizes(n=2)))
    assert {"blocks of a mask", "numbers apart", "summands of a maximum", "rolling update"} <= rules
    assert_equivalent(term, made, seeds=(1, 2))
    floats = [p for p in subterms(made) if isinstance(p, Apply) and p.head == ("cast", 1)]
    numbers = [p for p in floats if p.argument.type == I32]
    assert numbers and not any("indexToInt" in show(p) for p in numbers)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: "mul" if x == "sub" else x,
        lambda x: "add" if x == "sub" else x,
        lambda x: "sub" if x == "add" else x,
    ],
)
def test_a_wrong_sum_is_noticed(change: object) -> None:
    """Each sum of the result replaced by another operation: the comparison fails."""
    term = term_of(drawn(Random(1), m=3, t=5, d=2, e=2))
    made, rules = rules_of(term, of_rows(NUMBERS_APART, SUMMANDS))
    assert "summands of a maximum" in rules
    assert callable(change)
    wrong = _renamed(made, change)
    if wrong != made:
        with pytest.raises(AssertionError):
            assert_equivalent(term, wrong, seeds=(1, 2))


def _renamed(term: Expr, change: object) -> Expr:
    assert callable(change)
    term = map_children(term, lambda child: _renamed(child, change))
    match call(term):
        case ("add" | "sub") as name, _, [a, b] if is_float(term):
            return operation(change(name), a, b)
        case _:
            return term


@pytest.mark.parametrize(
    "score",
    [
        "s + u",  # it may be infinite, and then no weight is a number
        "max(s, u)",
        "s * f32(i)",
    ],
)
def test_what_may_be_infinite_stays(score: str) -> None:
    text = (
        "fun((a: 3.4.f16, us: 3.f32, b: 5.4.f16) => zip(zip(a)(us))(generate(fun(i => indexToInt(i))))"
        f" |> map(fun(((q, u), i) => b |> map(fun(k => {SCORE} |> fun(s => {score}))) |> fun(s =>"
        " s |> reduce(max, -infinity) |> fun(m => s |> map(fun(x => exp2(x - m))) |> reduce(+, 0)))))"
    )
    assert isinstance(in_inputs(SUMMANDS)(term_of(text)), Failure)


@pytest.mark.parametrize("weight", ["exp2(s - m) + m", "exp2(s - 2 * m)", "max(s - m, m)"])
def test_a_maximum_that_is_used_otherwise_keeps_its_summands(weight: str) -> None:
    text = (
        "fun((a: 3.4.f16, b: 5.4.f16) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((q, i) =>"
        f" b |> map(fun(k => {SCORE} + f32(i))) |> fun(s => s |> reduce(max, -infinity) |> fun(m =>"
        f" s |> map(fun(s => {weight})) |> reduce(+, 0)))))"
    )
    assert isinstance(in_inputs(SUMMANDS)(term_of(text)), Failure)


def test_numbers_stay_together_where_floats_do_not_hold_them() -> None:
    def rows(count: int) -> Expr:
        return term_of(
            f"fun((a: {count}.f32, b: 2.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i)"
            " => zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) => f32(i - j)))))"
        )

    assert not isinstance(in_inputs(NUMBERS_APART)(rows(EXACT)), Failure)
    assert isinstance(in_inputs(NUMBERS_APART)(rows(EXACT + 2)), Failure)
    assert between(number(Identifier("i", Index(constant(EXACT + 2))))) is None
    assert isinstance(rows(1), Lambda)
