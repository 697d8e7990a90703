"""One pass over blocks: random programs of rows compute the same, exactly, and what has no repair is refused.

Scores are whole numbers between -4 and 4 and weights powers of two, so all sums are exact in any order.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from rewrites.folds import FACTORS
from rewrites.result import Failure, Success
from rewrites.rolling import ROLLING
from rewrites.rows import FOLD_OF_MAPS, ROWS_ON_FRAGMENTS
from rise.pretty import show
from rise.testing import assert_equivalent
from strategies.core import seq, try_
from strategies.places import in_inputs
from tests.support.rows import PLAIN, ROUNDED, SCORE, drawn, passed, term_of, without_repair

DRAWS = 30


def test_one_pass_computes_the_same() -> None:
    random, seen = Random(20261123), Counter[str]()
    for seed in range(DRAWS):
        m, t, d, e = (random.choice((1, 2, 3, 5, 7)) for _ in range(4))
        block = random.choice((1, 2, 3, 4, 8))
        term = term_of(drawn(random, PLAIN, m=m, t=t, d=d, e=e))
        made = passed(seq(try_(FACTORS), ROLLING.with_sizes(n=block)), term)
        assert_equivalent(term, made, seeds=(seed,))
        seen["ragged" if t % block else "whole"] += 1
    assert min(seen["ragged"], seen["whole"]) > DRAWS / 5


def test_a_weight_that_is_not_of_its_score_is_not_counted_behind_the_end() -> None:
    """Five elements in blocks of two: the sixth, of zeros, would have the weight exp2(0 - m)."""
    term = term_of(
        "fun((a: 3.2.f16, b: 5.2.f16, bs: 5.f32, v: 5.2.f16) => a |> map(fun(q => b |> map(fun(k => "
        f"{SCORE})) |> fun(scores => scores |> reduce(max, -infinity) |> fun(m =>"
        " bs |> map(fun(b => exp2(max(min(b, 4), -4) - m))) |> fun(w => w |> reduce(+, 0) |> fun(l =>"
        f" transpose(v) |> map(fun(c => {PLAIN} |> fun(o => o + l"
    )
    assert_equivalent(term, passed(ROLLING.with_sizes(n=2), term), seeds=(1, 2))


def test_a_pass_on_fragments_computes_the_same() -> None:
    random = Random(31)
    for seed in range(DRAWS // 4):
        e, t, block = random.choice((8, 24)), random.choice((16, 40, 48)), random.choice((16, 32))
        term = term_of(drawn(random, ROUNDED, m=16, t=t, d=random.choice((16, 32)), e=e))
        on_fragments = seq(try_(FACTORS), ROLLING.with_sizes(n=block), ROWS_ON_FRAGMENTS.with_sizes(k=16))
        assert_equivalent(term, passed(on_fragments, term), seeds=(seed,))


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        ("1 / (1 + (s - m) * (s - m))", "no repair is known"),
        ("exp2(s - m) + exp2(m - s)", "no repair is known"),
        ("exp2(s * m)", "no repair is known"),
        ("exp2(s - m) * m", ""),
        ("s - m", "no repair is known"),
    ],
)
def test_what_has_no_repair_is_refused(weight: str, reason: str) -> None:
    text = (
        "fun((a: 3.4.f32, v: 4.2.f32) => a |> map(fun(r => r |> reduce(max, -1000.0) |> fun(m =>"
        f" r |> map(fun(s => {weight})) |> fun(w => transpose(v) |> map(fun(c => zip(w)(c)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0)))))))"
    )
    term = term_of(text)
    result = seq(try_(in_inputs(FACTORS)), in_inputs(ROLLING.with_sizes(n=2)))(term)
    if not reason:
        assert isinstance(result, Success)
        assert_equivalent(term, result.term, seeds=(1,))
    else:
        assert isinstance(result, Failure)
        assert reason in result.reason


def test_a_wrong_repair_is_noticed() -> None:
    """The comparison tells a pass without its repair from the program."""
    random = Random(7)
    wrong = 0
    for seed in range(12):
        term = term_of(drawn(random, PLAIN, m=3, t=7, d=3, e=2))
        made = passed(seq(try_(FACTORS), ROLLING.with_sizes(n=2)), term)
        try:
            assert_equivalent(term, without_repair(made), seeds=(seed,))
        except AssertionError:
            wrong += 1
    assert wrong >= 6


def test_weights_of_another_type_than_values_are_refused() -> None:
    term = term_of(drawn(Random(1), PLAIN, m=16, t=32, d=16, e=8))
    on_fragments = seq(try_(FACTORS), ROLLING.with_sizes(n=16), ROWS_ON_FRAGMENTS.with_sizes(k=16))
    result = in_inputs(on_fragments)(term)
    assert isinstance(result, Failure)
    assert "round it there" in result.reason


def test_a_product_whose_terms_a_tile_does_not_divide_is_refused() -> None:
    term = term_of(drawn(Random(2), ROUNDED, m=16, t=32, d=24, e=8))
    result = in_inputs(seq(ROLLING.with_sizes(n=16), ROWS_ON_FRAGMENTS.with_sizes(k=16)))(term)
    assert isinstance(result, Failure)
    assert "16 does not divide the 24 terms" in result.reason


def test_a_fold_of_maps_keeps_what_is_computed_out_of_its_step() -> None:
    text = (
        "fun((xs: 4.i32, ys: 3.i32) => xs |> map(fun(x => x * x)) |> toMem(Local) |> map(fun(x =>"
        " ys |> reduceSeq(Local)(fun((a, y) => a * x + y), 0) |> fun(s => s * s)))"
    )
    term = term_of(text)
    made = passed(FOLD_OF_MAPS, term)
    assert_equivalent(term, made, seeds=(1, 2))
    assert show(made).count("toMem") == 1
