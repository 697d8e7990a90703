"""Rules are checked when they are declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rewrites.match import Match
from rewrites.rule import RULES, rule
from rise.check.program import check_expression
from rise.errors import RiseError, StrategyError, TypeMismatch
from rise.nat import constant
from rise.source import Span
from tests.support.programs import succeeded


@pytest.fixture(autouse=True)
def _forget_rules() -> Iterator[None]:
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


def refused(left: str, right: str) -> RiseError:
    with pytest.raises(RiseError) as caught:
        rule("r", left, right)
    assert "r" not in RULES
    return caught.value


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("xs |> map(fun(x => x < 1))", "xs |> map(fun(x => x + 1))"),
        ("zip(xs)(ys)", "zip(ys)(xs) |> map(fun((y, x) => (y, (x, x))))"),
        ("xs |> reduce(+, 0)", "xs |> split(n)"),
        ("xs |> join |> map(fun(x => f32(x)))", "xs |> join |> map(fun(x => f16(x)))"),
    ],
)
def test_sides_of_different_type(left: str, right: str) -> None:
    error = refused(left, right)
    assert isinstance(error, TypeMismatch)
    assert error.code == "R0601"
    assert "the sides of `r` differ in type: " in error.message


def test_sides_of_different_size() -> None:
    assert refused("xs |> take(3) |> map(f)", "xs |> take(4) |> map(f)").code == "R0601"


@pytest.mark.parametrize(
    ("right", "name"),
    [("xs |> map(g)", "g"), ("ys", "ys"), ("xs |> map(fun(x => let y = h(x) in f(y)))", "h")],
)
def test_an_unknown_name_on_the_right(right: str, name: str) -> None:
    error = refused("xs |> map(f)", right)
    assert isinstance(error, StrategyError)
    assert error.code == "R0602"
    assert error.message == f"`{name}` occurs on the right of `r` only"


def test_an_unknown_parameter() -> None:
    made = rule("r", "xs |> map(f)", "xs |> split(n) |> map(fun(b => b |> map(f))) |> join")
    with pytest.raises(StrategyError) as caught:
        made.with_sizes(n=2, m=3)
    assert caught.value.code == "R0603"
    assert caught.value.message == "the rule `r` has no parameter `m`"


def test_an_unknown_parameter_of_a_rule_that_is_not_checked_yet() -> None:
    """A name that its text does not have is refused at once, and one that is no size when it is used."""
    sides = "xs |> map(f)", "xs |> split(n) |> map(fun(b => b |> map(f))) |> join"
    made = rule("r", *sides, deferred=True)
    with pytest.raises(StrategyError) as caught:
        made.with_sizes(m=3)
    assert caught.value.code == "R0603" and not made.declared.checked
    later = made.with_sizes(f=3)
    with pytest.raises(StrategyError) as caught:
        later(check_expression("makeArray(2)(1, 2) |> map(fun(x => x))"))
    assert caught.value.code == "R0603" and caught.value.message == "the rule `r` has no parameter `f`"


def test_parameters_given_one_after_the_other() -> None:
    made = rule("r", "e", "e |> split(m) |> map(fun(r => r |> split(n) |> join)) |> join")
    both = made.with_sizes(m=2).with_sizes(n=3)
    assert both.given == {"m": constant(2), "n": constant(3)}
    assert made.given == {}


def test_an_ill_typed_side() -> None:
    for left, right in (
        ("xs |> map(f) |> fst", "xs"),
        ("xs", "transpose(xs)(xs)"),
        ("xs |> map(f)", "xs |> map(f) |> map(fun(x => x + true))"),
    ):
        error = refused(left, right)
        assert error.code == "R0601"
        assert "`r` " in error.message
        assert isinstance(error.origin, Span)
        assert error.origin.source.text in (left, right)
        assert "\n" in error.render()


def test_no_sides_that_are_no_programs() -> None:
    assert refused("xs |> map(", "xs").code.startswith("R01")


def test_a_declared_rule_is_registered() -> None:
    assert RULES["r"] is rule("r", "xs |> map(fun(x => x))", "xs") if "r" in RULES else True
    made = rule("r", "xs |> map(fun(x => x))", "xs")
    assert RULES["r"] is made
    assert (made.left, made.right) == ("xs |> map(fun(x => x))", "xs")


def test_a_name_is_taken_once() -> None:
    rule("a name", "xs |> map(f) |> map(g)", "xs |> map(fun(x => g(f(x))))")
    with pytest.raises(StrategyError) as caught:
        rule("a name", "xs |> join |> split(n)", "xs |> join |> split(n)")
    assert caught.value.code == "R0610"
    assert "declared twice" in caught.value.message


def test_a_condition_reads_the_sizes_of_its_match() -> None:
    """Those that the left side matches, and those that the rule is given."""
    seen: list[object] = []

    def look(match: Match) -> None:
        seen.extend([match.size_of("n"), match.size_of("k")])

    made = rule("r", "xs |> split(n)", "xs |> split(k) |> join |> split(n)", conditions=(look,))
    succeeded(made.with_sizes(k=3)(check_expression("makeArray(6)(1, 2, 3, 4, 5, 6) |> split(2)")))
    assert seen == [constant(2), constant(3)]


def test_a_condition_that_asks_for_an_unknown_size_is_told_which_there_are() -> None:
    made = rule("r", "xs |> split(n) |> join", "xs", conditions=(lambda match: str(match.size_of("m")),))
    with pytest.raises(StrategyError) as caught:
        made(check_expression("makeArray(2)(1, 2) |> split(2) |> join"))
    assert caught.value.code == "R0603"
    assert caught.value.hint == "parameters: `n`"
