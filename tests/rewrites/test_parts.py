"""Reductions in parts: random programs compute the same, exactly, and a wrong combination is noticed.

Scores are whole numbers between -4 and 4 and weights powers of two, so all sums are exact in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from rewrites.folds import FACTORS
from rewrites.masks import BLOCKS_OF_A_MASK
from rewrites.parts import IN_PARTS
from rewrites.result import Failure
from rewrites.rolling import ROLLING
from rewrites.typed import instance
from rise.expr import Expr, Literal, apply, call, map_children
from rise.testing import assert_equivalent
from strategies.core import Rewrite, seq, try_
from strategies.places import in_inputs
from tests.support.programs import succeeded
from tests.support.rows import PLAIN, ROUNDED, SCORE, drawn, passed, term_of

DRAWS = 30


def test_parts_compute_the_same() -> None:
    random, seen = Random(20261124), Counter[str]()
    for seed in range(DRAWS):
        m, d, e = (random.choice((1, 2, 3, 5)) for _ in range(3))
        t, size = random.choice((2, 3, 5, 7)), random.choice((1, 2, 3, 4))
        if t <= size:
            continue
        term = term_of(drawn(random, random.choice((PLAIN, ROUNDED)), m=m, t=t, d=d, e=e))
        made = passed(seq(try_(FACTORS), IN_PARTS.with_sizes(n=size)), term)
        assert_equivalent(term, made, seeds=(seed,))
        seen["ragged" if t % size else "whole"] += 1
    assert min(seen["ragged"], seen["whole"]) > DRAWS / 10


def test_each_part_may_be_a_pass_over_blocks() -> None:
    """Parts of four elements, in blocks of two; then the combination, in one block."""
    random = Random(4)
    for seed in range(4):
        term = term_of(drawn(random, PLAIN, m=3, t=7, d=3, e=2))
        made = succeeded(in_inputs(seq(try_(FACTORS), IN_PARTS.with_sizes(n=4)))(term)).term
        assert_equivalent(term, in_each_part(made, ROLLING.with_sizes(n=2)), seeds=(seed,))


def in_each_part(term: Expr, s: Rewrite) -> Expr:
    """s for the outermost maps to which it applies: those over the rows of a part."""
    if (found := call(term)) is not None and found[0] == "map":
        result = s(term)
        if not isinstance(result, Failure):
            return result.term
    return map_children(term, lambda part: in_each_part(part, s))


MASKED = (
    "fun((a: 3.2.f16, us: 3.i32, b: 7.2.f16, v: 7.2.f16) => zip(a)(us) |> map(fun((q, u) =>"
    " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((k, j) => select(j == max(min(u, 6), 0),"
    f" {SCORE}, -infinity))) |> fun(scores => scores |> reduce(max, -infinity) |> fun(m =>"
    " scores |> map(fun(s => exp2(s - m))) |> fun(w => w |> reduce(+, 0) |> fun(l =>"
    f" transpose(v) |> map(fun(c => {PLAIN} |> fun(o => o + l"
)


CAUSAL = MASKED.replace("j == max(min(u, 6), 0)", "j <= u").replace(
    "zip(a)(us)", "zip(a)(generate(fun(i => indexToInt(i))))"
)


def test_a_part_that_is_masked_as_a_whole_adds_nothing() -> None:
    """Each row has one element at most, so all parts but one have none; the rows draw which one."""
    term = term_of(MASKED)
    for size in (1, 2, 3, 6):
        made = passed(IN_PARTS.with_sizes(n=size), term)
        assert_equivalent(term, made, seeds=tuple(range(4)))


def test_a_mask_of_a_part_says_what_it_says_of_blocks() -> None:
    """Its condition is on the number of the part times its size, and on the number in the part."""
    term = term_of(CAUSAL)
    parts = passed(IN_PARTS.with_sizes(n=4), term)
    made = in_each_part(parts, seq(BLOCKS_OF_A_MASK.with_sizes(n=2), ROLLING.with_sizes(n=2)))
    assert made != in_each_part(parts, ROLLING.with_sizes(n=2))
    assert_equivalent(term, made, seeds=tuple(range(4)))


@pytest.mark.parametrize(
    ("weight", "reason"),
    [("1 / (1 + (s - m) * (s - m))", "no repair is known"), ("exp2(s * m)", "no repair is known")],
)
def test_what_has_no_repair_is_refused(weight: str, reason: str) -> None:
    text = (
        "fun((a: 3.4.f32, v: 4.2.f32) => a |> map(fun(r => r |> reduce(max, -1000.0) |> fun(m =>"
        f" r |> map(fun(s => {weight})) |> fun(w => transpose(v) |> map(fun(c => zip(w)(c)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0)))))))"
    )
    result = in_inputs(IN_PARTS.with_sizes(n=2))(term_of(text))
    assert isinstance(result, Failure)
    assert reason in result.reason


def test_one_part_is_refused() -> None:
    result = in_inputs(IN_PARTS.with_sizes(n=8))(term_of(drawn(Random(1), PLAIN, m=3, t=7, d=3, e=2)))
    assert isinstance(result, Failure)
    assert "one part has all elements" in result.reason


# --- seeded faults --------------------------------------------------------------------------------------


def without_repair(term: Expr) -> Expr:
    """Sums of parts are added as they are."""
    match call(term):
        case "mul", _, [kept, power] if (found := call(power)) and found[0] == "exp2" and "k" in kept.free:
            return kept
        case _:
            return map_children(term, without_repair)


def opposite_repair(term: Expr) -> Expr:
    """Each sum is repaired from the new maximum to the old one."""
    match call(term):
        case "sub", head, [first, second] if "k" in second.free or "k" in first.free:
            return apply(head, second, first)
        case _:
            return map_children(term, opposite_repair)


def sum_of_maxima(term: Expr) -> Expr:
    """The maxima of parts are added."""
    match call(term):
        case "reduce", head, [_, start, xs] if "parts" in xs.free and isinstance(start, Literal):
            if start.value != 0:
                return apply(head, instance("add", (start.type,), None), Literal(0.0, start.type), xs)
    return map_children(term, sum_of_maxima)


@pytest.mark.parametrize("fault", [without_repair, opposite_repair, sum_of_maxima])
def test_a_wrong_combination_is_noticed(fault: Callable[[Expr], Expr]) -> None:
    random, wrong, draws = Random(7), 0, 8
    for seed in range(draws):
        term = term_of(drawn(random, PLAIN, m=3, t=7, d=3, e=2))
        made = passed(seq(try_(FACTORS), IN_PARTS.with_sizes(n=2)), term)
        assert fault(made) != made
        try:
            assert_equivalent(term, fault(made), seeds=(seed,))
        except AssertionError:
            wrong += 1
    assert wrong >= draws / 2
