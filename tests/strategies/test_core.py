"""Laws of the combinators and traversals, and of what they record."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rewrites.algorithmic import MAP_FUSION, MAP_IDENTITY, SPLIT_JOIN
from rewrites.movement import TRANSPOSE_TWICE
from rewrites.result import Failure, Result, Success
from rise.check.program import check_expression
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, call, children
from rise.testing import assert_equivalent, replayed
from rise.types import I32
from strategies.core import (
    REMEMBERED,
    FunctionStrategy,
    Rewrite,
    Strategy,
    all_,
    all_bottom_up,
    all_top_down,
    applies,
    argument,
    argument_of,
    body,
    bottom_up,
    check,
    choice,
    everywhere,
    fail,
    function,
    id_,
    innermost,
    normalize,
    one,
    outermost,
    repeat,
    seq,
    some,
    strategy,
    top_down,
    try_,
)
from strategies.normal_forms import view_inward
from tests.support.nightly import every_other
from tests.support.programs import program, succeeded

TEXTS = (
    "fun(xs: 6.i32 => xs |> map(fun(x => x + 1)) |> map(fun(x => x * 2)) |> map(fun(x => x)))",
    "fun(xs: 4.6.i32 => xs |> transpose |> transpose |> map(fun(r => r |> map(fun(x => x)))))",
    "fun((xs: 6.i32, ys: 6.i32) => zip(xs)(ys) |> map(fun((x, y) => x * y)) |> reduce(+, 0))",
    "fun(x: i32 => x + 1)",
)
RULES: tuple[Rewrite, ...] = (MAP_FUSION, MAP_IDENTITY, TRANSPOSE_TWICE, SPLIT_JOIN.with_sizes(n=2))
PARTS: tuple[Rewrite, ...] = (
    id_, fail, *(top_down(r) for r in RULES), body(body(MAP_FUSION)), bottom_up(MAP_FUSION), body(MAP_FUSION),
)  # fmt: skip


PROGRAMS = tuple(program(text) for text in TEXTS)


def same(left: Rewrite, right: Rewrite) -> None:
    """Equal results on all programs: term and steps, or both failures."""
    for term in PROGRAMS:
        a, b = left(term), right(term)
        if isinstance(a, Success):
            assert a == b
        else:
            assert isinstance(b, Failure)


# --- combinators ------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", PARTS)
def test_id_and_fail_are_neutral(s: Rewrite) -> None:
    same(seq(id_, s), s)
    same(seq(s, id_), s)
    same(choice(fail, s), s)
    same(choice(s, fail), s)
    same(seq(fail, s), fail)
    same(choice(id_, s), id_)


@pytest.mark.parametrize("a", every_other(PARTS))
@pytest.mark.parametrize("b", PARTS)
def test_seq_and_choice_associate(a: Rewrite, b: Rewrite) -> None:
    for c in PARTS:
        same(seq(seq(a, b), c), seq(a, seq(b, c)))
        same(choice(choice(a, b), c), choice(a, choice(b, c)))
        same(seq(a, b, c), seq(a, seq(b, c)))


def test_operators_are_seq_and_choice() -> None:
    a, b = strategy(PARTS[2]), PARTS[3]
    same(a >> b, seq(a, b))
    same(a | b, choice(a, b))


def test_choice_does_not_take_back_a_choice() -> None:
    """(a <+ b) ; c is not (a ; c) <+ (b ; c): a succeeded, so b is not tried."""
    term = PROGRAMS[0]
    assert isinstance(seq(choice(id_, top_down(MAP_FUSION)), fail)(term), Failure)
    assert isinstance(choice(seq(id_, fail), top_down(MAP_FUSION))(term), Success)


@pytest.mark.parametrize("s", PARTS)
def test_try_never_fails(s: Rewrite) -> None:
    for term in PROGRAMS:
        result, alone = try_(s)(term), s(term)
        assert result == (alone if isinstance(alone, Success) else Success(term))


def test_repeat_goes_on_until_nothing_applies() -> None:
    result = succeeded(repeat(top_down(MAP_FUSION))(PROGRAMS[0]))
    assert [step.rule for step in result.steps] == ["mapFusion"] * 2
    assert isinstance(top_down(MAP_FUSION)(result.term), Failure)


def test_repeat_that_does_not_end_is_a_failure() -> None:
    for s in (id_, top_down(SPLIT_JOIN.with_sizes(n=1))):
        result = repeat(s, limit=5)(PROGRAMS[0])
        assert isinstance(result, Failure)
        assert result.reason.startswith("still applicable after 5 repetitions")
        assert result.rule == "repeat"


def test_a_choice_keeps_the_failure_that_came_closest() -> None:
    near, far = Failure("near", PROGRAMS[0], "almost", depth=3), Failure("far", PROGRAMS[0], "no", depth=1)
    for order in ((near, far), (far, near)):
        result = choice(*(lambda _, f=f: f for f in order))(PROGRAMS[0])
        assert result is near


def test_check_succeeds_where_the_predicate_holds() -> None:
    is_lambda = check(lambda t: isinstance(t, Lambda), "is a function")
    assert is_lambda(PROGRAMS[0]) == Success(PROGRAMS[0])
    failed = is_lambda(Literal(1, I32))
    assert isinstance(failed, Failure)
    assert failed.rule == "is a function"


# --- one level --------------------------------------------------------------------------------------

ONE, TWO = Literal(1, I32), Literal(2, I32)


def sum_of(left: Expr, right: Expr) -> Expr:
    plus = check_expression("fun(x: i32 => x + 1)")
    assert isinstance(plus, Lambda)
    assert isinstance(plus.body, Apply)
    assert isinstance(plus.body.function, Apply)
    return Apply(Apply(plus.body.function.function, left), right)


def literal(old: int, new: int) -> Strategy:
    def run(term: Expr) -> Result:
        if isinstance(term, Literal) and term.value == old:
            return Success(Literal(new, term.type))
        return Failure("literal", term, "another term")

    return FunctionStrategy("literal", run)


def test_one_stops_at_the_first_child() -> None:
    term = sum_of(ONE, ONE)
    assert top_down(literal(1, 2))(term) == Success(sum_of(TWO, ONE))
    assert one(literal(1, 2))(term) == Success(sum_of(ONE, TWO))
    assert isinstance(one(literal(3, 4))(term), Failure)


def test_all_needs_every_child_and_holds_for_leaves() -> None:
    assert isinstance(all_(literal(1, 2))(sum_of(ONE, ONE)), Failure)
    assert all_(id_)(sum_of(ONE, TWO)) == Success(sum_of(ONE, TWO))
    assert all_(fail)(ONE) == Success(ONE)


def test_some_takes_the_children_that_it_can() -> None:
    assert some(literal(1, 2))(sum_of(ONE, ONE)) == Success(sum_of(ONE, TWO))
    assert isinstance(some(fail)(sum_of(ONE, ONE)), Failure)
    assert isinstance(some(id_)(ONE), Failure)
    assert isinstance(one(id_)(ONE), Failure)


# --- traversals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", RULES)
def test_equations_of_traversals(s: Rewrite) -> None:
    same(top_down(s), choice(s, one(top_down(s))))
    same(bottom_up(s), choice(one(bottom_up(s)), s))
    if s is not RULES[-1]:  # which leaves a map below to which it applies again
        same(all_top_down(try_(s)), seq(try_(s), all_(all_top_down(try_(s)))))
        same(normalize(s), repeat(top_down(s)))
    same(all_bottom_up(try_(s)), seq(all_(all_bottom_up(try_(s))), try_(s)))
    same(outermost(applies("map"), s), top_down(seq(check(applies("map"), "map"), s)))
    same(innermost(applies("map"), s), bottom_up(seq(check(applies("map"), "map"), s)))


def visited(traversal: Callable[[Rewrite], Strategy], term: Expr) -> list[Expr]:
    seen: list[Expr] = []

    def look(t: Expr) -> Result:
        seen.append(t)
        return (
            Success(t) if traversal in (all_top_down, all_bottom_up) else Failure("look", t, "just looking")
        )

    traversal(look)(term)
    return seen


def preorder(term: Expr) -> list[Expr]:
    return [term, *(t for c in children(term) for t in preorder(c))]


def postorder(term: Expr) -> list[Expr]:
    return [*(t for c in children(term) for t in postorder(c)), term]


@pytest.mark.parametrize("term", PROGRAMS)
def test_order_of_traversal(term: Expr) -> None:
    assert visited(top_down, term) == preorder(term) == visited(all_top_down, term)
    assert visited(bottom_up, term) == postorder(term) == visited(all_bottom_up, term)


def test_outermost_and_innermost() -> None:
    term = program("fun(xs: 4.6.i32 => xs |> map(fun(r => r |> map(fun(x => x + 1)))))")
    split = SPLIT_JOIN.with_sizes(n=2)
    outer, inner = outermost(applies("map"), split)(term), innermost(applies("map"), split)(term)
    assert isinstance(outer, Success)
    assert isinstance(inner, Success)
    assert outer.steps[0].path == (0,)
    assert inner.steps[0].path == (0, 0, 1, 0)


def test_everywhere_applies_where_it_can() -> None:
    result = everywhere(literal(1, 2))(sum_of(ONE, sum_of(ONE, TWO)))
    assert result == Success(sum_of(TWO, sum_of(TWO, TWO)))
    assert everywhere(fail)(PROGRAMS[0]) == Success(PROGRAMS[0])


def test_traversals_that_know_the_language() -> None:
    x = Identifier("x", I32)
    assert body(id_)(Lambda(x, x)) == Success(Lambda(x, x))
    for s in (body, function, argument):
        assert isinstance(s(id_)(ONE), Failure)
    term = sum_of(ONE, ONE)
    assert argument(literal(1, 2))(term) == Success(sum_of(ONE, TWO))
    assert function(argument(literal(1, 2)))(term) == Success(sum_of(TWO, ONE))
    assert argument_of("add", literal(1, 2))(term) == Success(sum_of(ONE, TWO))
    assert isinstance(argument_of("mul", id_)(term), Failure)


def test_applies_means_a_full_application() -> None:
    term = PROGRAMS[3]
    assert isinstance(term, Lambda)
    assert applies("add")(term.body)
    assert not applies("add")(children(term.body)[0])
    assert not applies("mul")(term.body)


# --- what is recorded -------------------------------------------------------------------------------

DEEP: tuple[Rewrite, ...] = (
    normalize(choice(MAP_FUSION, MAP_IDENTITY, TRANSPOSE_TWICE)),
    seq(try_(top_down(SPLIT_JOIN.with_sizes(n=2))), view_inward),
    all_bottom_up(try_(choice(MAP_IDENTITY, MAP_FUSION))),
    everywhere(choice(MAP_FUSION, TRANSPOSE_TWICE)),
)


@pytest.mark.parametrize("s", DEEP)
@pytest.mark.parametrize("term", PROGRAMS)
def test_replaying_the_steps_gives_the_result(s: Rewrite, term: Expr) -> None:
    result = succeeded(s(term))
    current = term
    for _, current in replayed(term, result.steps):
        assert_equivalent(term, current)
    assert current == result.term


def test_a_failure_names_its_place() -> None:
    succeeded(body(argument(MAP_FUSION))(PROGRAMS[0]))
    failed = body(argument(TRANSPOSE_TWICE))(PROGRAMS[0])
    assert isinstance(failed, Failure)
    assert failed.path == (0, 1)
    assert failed.rule == "T >> T"
    story = r"`T >> T` does not apply at <expression>:1:\d+: expected .*`transpose`.*"
    assert re.fullmatch(story, failed.story())


HALVING = """fun(xs: 24.i32 => xs |> iterate(3)((l: Nat) => (xs: (l*2).i32) =>
  xs |> map(fun(x => x + 1)) |> split(l) |> transpose |> map(reduce(+, 0))))"""


def test_a_term_that_has_a_normal_form_is_not_searched_again() -> None:
    """It remembers the last forms, however many strategies are made anew for it."""
    asked: list[Expr] = []

    def nowhere(term: Expr) -> Result:
        asked.append(term)
        return Failure("nowhere", term, "it never applies")

    term = program("fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> map(fun(x => x * 3)))")
    form = normalize(nowhere)
    form(term)
    searched = len(asked)
    form(term)
    assert searched == len(asked) > 10
    for _ in range(20):
        normalize(nowhere)(term)
    assert len(asked) == 21 * searched and len(term.__dict__["settled"]) == 1 + REMEMBERED


@pytest.mark.parametrize("traversal", [top_down, bottom_up, normalize])
def test_what_is_right_for_some_sizes_of_an_iteration_only_is_refused(
    traversal: Callable[..., Strategy],
) -> None:
    term = program(HALVING)
    succeeded(bottom_up(SPLIT_JOIN.with_sizes(n=2))(term))  # two divides 2l, whatever l is
    result = traversal(SPLIT_JOIN.with_sizes(n=3))(term)
    assert result == Success(term) or isinstance(result, Failure) and "no caller chooses" in result.reason


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "fun(xs: 12.i32 => xs |> map(fun(x => x + 1)) |> split(3)"
        " |> map(fun(b => b |> map(fun(x => x * 2)))))",
        "fun((xs: 12.i32, ys: 12.f32) => zip(xs)(ys) |> split(4))",
        "fun((xs: 3.4.i32, z: i32) => xs |> map(fun(r => r |> map(fun(x => x + z)))) |> transpose)",
    ],
)  # fmt: skip
def test_normal_forms_are_normal(text: str) -> None:
    once = succeeded(view_inward(program(text)))
    assert view_inward(once.term) == Success(once.term)
    assert_equivalent(program(text), once.term)


def test_call_of_a_full_application() -> None:
    applied = call(sum_of(ONE, TWO))
    assert applied is not None
    assert applied[0] == "add"
    assert applied[2] == [ONE, TWO]
