"""Combinators and traversals on terms small enough to see what they do."""

from __future__ import annotations

from functools import partial

import pytest

from rewrites.algorithmic import MAP_FUSION, MAP_IDENTITY, SPLIT_JOIN
from rewrites.movement import TRANSPOSE_TWICE
from rewrites.result import Failure, Result, Success
from rewrites.strategy import head_of
from rise.check.program import check_expression
from rise.expr import DependentApply, DependentLambda, Expr, Lambda, Literal
from rise.nat import constant
from rise.normal import data_flow
from rise.types import Kind
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    alltd,
    applies,
    apply_n_times,
    argument,
    body,
    choice,
    contains,
    downup,
    fail,
    id_,
    if_,
    is_equal_to,
    not_,
    outermost,
    peek,
    position,
    repeat_n_times,
    seq,
    skip,
    some,
    somebu,
    sometd,
    strategy,
    top_down,
    try_,
)
from strategies.places import arguments, dep_function, map_nest, mapped
from tests.support.programs import succeeded


def term_of(text: str) -> Expr:
    return data_flow(check_expression(text))


SUM = term_of("fun(x: i32 => (1 + (1 + 2)) + 1)")
ONES = 3  # of SUM


def counted_up(old: int, new: int) -> Strategy:
    def run(term: Expr) -> Result:
        if isinstance(term, Literal) and term.value == old:
            return Success(Literal(new, term.type))
        return Failure("literal", term, "another term")

    return FunctionStrategy("literal", run)


def literals(s: Rewrite) -> list[int | float | bool] | None:
    """The literals of SUM, from left to right, after s; None where s fails."""
    result = s(SUM)
    return None if isinstance(result, Failure) else list(_literals(result.term))


def _literals(term: Expr) -> list[int | float | bool]:
    from rise.expr import subterms

    return [part.value for part in subterms(term) if isinstance(part, Literal)]


UP = counted_up(1, 5)


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        (top_down(UP), [5, 1, 2, 1]),
        (skip(1, UP), [1, 5, 2, 1]),
        (skip(2, UP), [1, 1, 2, 5]),
        (skip(ONES, UP), None),
        (sometd(UP), [5, 5, 2, 5]),
        (somebu(UP), [5, 5, 2, 5]),
        (alltd(UP), [5, 5, 2, 5]),
        (alltd(choice(UP, peek(lambda _: None))), [1, 1, 2, 1]),
        (some(UP), None),
        (top_down(repeat_n_times(2, UP)), None),
        (top_down(seq(UP, counted_up(5, 6))), [6, 1, 2, 1]),
        (repeat_n_times(3, top_down(UP)), [5, 5, 2, 5]),
        (repeat_n_times(4, top_down(UP)), None),
        (downup(try_(UP), try_(counted_up(5, 7))), [7, 7, 2, 7]),
        (downup(try_(choice(UP, counted_up(5, 7)))), [7, 7, 2, 7]),
        (if_(contains(UP), top_down(UP)), [5, 1, 2, 1]),
        (if_(contains(counted_up(3, 4)), fail), [1, 1, 2, 1]),
        (seq(contains(UP), not_(contains(counted_up(3, 4)))), [1, 1, 2, 1]),
        (contains(counted_up(3, 4)), None),
        (not_(top_down(UP)), None),
        (not_(fail), [1, 1, 2, 1]),
        (strategy(UP) @ top_down, [5, 1, 2, 1]),
    ],
)
def test_what_becomes_of_a_sum(s: Rewrite, expected: list[int] | None) -> None:
    assert literals(s) == expected


def test_position_counts_from_the_top() -> None:
    seen: list[Expr] = []
    peeking = peek(seen.append)
    assert isinstance(position(0, peeking)(SUM), Success)
    assert seen == [SUM]
    assert isinstance(position(99, peeking)(SUM), Failure)


def test_is_equal_to_does_not_look_at_names() -> None:
    left, right = term_of("fun(x: i32 => x + 1)"), term_of("fun(y: i32 => y + 1)")
    assert isinstance(is_equal_to(left)(right), Success)
    assert isinstance(is_equal_to(left)(SUM), Failure)


def test_apply_n_times_nests_a_traversal() -> None:
    term = term_of("fun(xs: 6.i32 => xs |> map(fun(x => x)) |> map(fun(x => x + 1)) |> map(fun(x => x * 2)))")
    for s in (apply_n_times(2, argument, MAP_IDENTITY), arguments(2, MAP_IDENTITY)):
        result = succeeded(body(s)(term))
        assert [step.path for step in result.steps] == [(0, 1, 1)]
    assert apply_n_times(0, argument, MAP_IDENTITY)(term) == MAP_IDENTITY(term)


def test_a_traversal_with_a_predicate_is_partial() -> None:
    term = term_of("fun(xs: 4.6.i32 => xs |> map(fun(r => r |> map(fun(x => x + 1)))))")
    result = succeeded(
        (strategy(SPLIT_JOIN.with_sizes(n=2)) @ mapped @ partial(outermost, map_nest(2)))(term)
    )
    assert result.steps[0].path == (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("depth", "text", "holds"),
    [
        (1, "xs |> map(fun(r => r))", True),
        (2, "xs |> map(fun(r => r |> map(fun(x => x + 1))))", True),
        (3, "xs |> map(fun(r => r |> map(fun(x => x + 1))))", False),
        (2, "xs |> map(fun(r => r |> map(fun(x => x + 1)) |> split(2)))", False),
        (1, "xs |> transpose", False),
        (0, "xs", True),
    ],
)
def test_map_nests(depth: int, text: str, holds: bool) -> None:
    term = term_of(f"fun(xs: 4.6.i32 => {text})")
    assert isinstance(term, Lambda)
    assert map_nest(depth)(term.body) is holds


def test_what_is_applied_to_a_size() -> None:
    inner = term_of("fun(xs: 6.i32 => xs |> map(fun(x => x)))")
    term = DependentApply(DependentLambda("n", Kind.NAT, inner), constant(3))
    result = succeeded(dep_function(top_down(MAP_IDENTITY))(term))
    assert result.steps[0].path == (0, 0, 0)
    assert isinstance(dep_function(id_)(inner), Failure)


# --- choosing rules by what a term applies ------------------------------------------------------------


def test_a_choice_tries_only_rules_for_what_a_term_applies() -> None:
    tried: list[str] = []

    def watched(name: str, head: tuple[str, int] | None) -> Strategy:
        def refuse(term: Expr) -> Result:
            tried.append(name)
            return Failure(name, term, "no")

        return FunctionStrategy(name, refuse, head)

    term = term_of("fun(xs: 6.i32 => xs |> map(fun(x => x + 1)))")
    assert isinstance(term, Lambda)
    parts = [watched("map", ("map", 2)), watched("reduce", ("reduce", 3)), watched("any", None)]
    assert isinstance(choice(*parts)(term.body), Failure)
    assert tried == ["map", "any"]
    tried.clear()
    assert choice(*parts[1:2])(term.body) == Failure("reduce", term.body, "no")
    assert isinstance(choice()(term), Failure)


def test_heads_of_strategies() -> None:
    assert head_of(MAP_FUSION) == ("map", 2)
    assert head_of(seq(TRANSPOSE_TWICE, id_)) == ("transpose", 1)
    assert head_of(choice(MAP_FUSION)) is None
    assert applies("map")(term_of("fun(xs: 2.i32 => xs |> map(fun(x => x)))").body)  # type: ignore[union-attr]
