"""Normal forms of random programs: reached, kept, and the same program."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from rewrites.algorithmic import FLATTEN, MAP_FUSION, REDUCE_SEQ_MAP
from rewrites.maps import BETA, ETA, MAP_LAST_FISSION
from rewrites.movement import SPLIT_MAP, TRANSPOSE_MAP, TRANSPOSE_TWICE
from rewrites.result import Success
from rewrites.rule import COMPUTED, Rule, rule
from rise.check.program import check_expression
from rise.expr import Apply, Expr, Lambda, alpha_equal, call, subterms
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import assert_equivalent, assert_preserves, programs, redex
from rise.types import Function
from rise.verify import verify
from strategies.core import Strategy, top_down
from strategies.normal_forms import benf, cnf, dfnf, form_outward, rnf, view_inward
from tests.support.nightly import every_other
from tests.support.programs import succeeded

MAPS: tuple[Rule, ...] = (MAP_FUSION, SPLIT_MAP, FLATTEN, REDUCE_SEQ_MAP)
VIEWS: tuple[Rule, ...] = (SPLIT_MAP, TRANSPOSE_TWICE, TRANSPOSE_MAP, REDUCE_SEQ_MAP)


def fold(name: str, form: str, depth: int = 1) -> Rule:
    """A fold whose step computes, then changes the form of the result; only the left side is used."""
    each = "acc |> map(fun(y => y + y))" if depth == 1 else "acc |> map(fun(r => r |> map(fun(y => y + y))))"
    left = f"xs |> reduceSeq(Local)(fun(acc, x => {each} |> {form}), z)"
    return rule(f"{name}, for tests", left, left)


OUTWARD: tuple[Rule, ...] = (
    fold("join", "split(n) |> join"),
    fold("transpose", "transpose", 2),
    fold("*transpose", "map(fun(r => r |> split(n) |> transpose |> transpose |> join))", 2),
    rule("*(join), for tests", *2 * ("xs |> map(fun(x => f(x) |> join))",)),
)
# each form, and rules whose left sides the random programs contain
FORMS: dict[str, tuple[Strategy, tuple[Rule, ...]]] = {
    "benf": (benf, MAPS),
    "dfnf": (dfnf, MAPS),
    "rnf": (rnf, MAPS),
    "cnf": (cnf, MAPS),
    "inward": (view_inward, VIEWS),
    "outward": (form_outward, OUTWARD),
}


def normal(form: Strategy, term: Expr) -> Success:
    return succeeded(form(term))


@pytest.mark.parametrize("name", every_other(FORMS))
def test_a_normal_form_is_reached_and_kept(name: str) -> None:
    """Counted for each planted rule, so that no form is tested on programs that have it from the start."""
    fired = {planted.name: steps_to_form(name, planted).total() for planted in FORMS[name][1]}
    assert min(fired.values()) >= 1, fired
    assert sum(fired.values()) >= 50, fired


def steps_to_form(name: str, planted: Rule) -> Counter[str]:
    """The rules that were applied to programs which contain the left side of the planted one."""
    form, rules = FORMS[name]
    fired = Counter[str]()

    @settings(max_examples=max(settings().max_examples // len(rules), 50))
    @given(programs(planted=redex(planted)))
    def check(term: Expr) -> None:
        start = data_flow(term) if name in ("inward", "outward") else term
        once = normal(form, start)
        fired.update(step.rule for step in once.steps)
        verify(once.term)
        assert_equivalent(term, once.term, seeds=(0,))
        assert alpha_equal(normal(form, once.term).term, once.term), show(once.term)

    check()
    return fired


@pytest.mark.parametrize(
    "text",
    [
        "fun((a: 3.3.i32, b: 2.i32) => b |> reduceSeq(Local)(fun(acc, x => acc |> transpose), a))",
        "fun((a: 4.f16, b: 2.f32) => b |> reduceSeq(Local)(fun(acc, x => acc |> split(1) |> join), a))",
        "fun((a: 2.3.3.i32, b: 2.i32) =>"
        " b |> reduceSeq(Local)(fun(acc, x => acc |> map(fun(r => r |> transpose))), a))",
    ],
)
def test_a_step_that_only_turns_its_accumulator_is_left_alone(text: str) -> None:
    """What is taken out of such a step would come back in with the accumulator, without end."""
    term = data_flow(program(text))
    assert normal(form_outward, term) == Success(term)


def test_a_step_that_computes_gives_up_its_outer_form() -> None:
    text = (
        "fun((a: 3.3.i32, b: 2.i32) => b |> reduceSeq(Local)"
        "(fun(acc, x => acc |> map(fun(r => r |> map(fun(y => y + x)))) |> transpose), a))"
    )
    result = normal(form_outward, data_flow(program(text)))
    assert [step.rule for step in result.steps] == ["view out of reduceSeq"]


@pytest.mark.parametrize("depth", [0, 1, 4, 5, 7])
def test_a_view_leaves_a_step_from_under_any_number_of_maps(depth: int) -> None:
    view, step = "transpose", "acc |> map(fun(y => y + x))"
    for _ in range(depth):
        view = f"map(fun(r => r |> {view}))"
    for _ in range(depth + 1):
        step = step.replace("fun(y => y + x)", "fun(r => r |> map(fun(y => y + x)))")
    sizes = "2." * depth + "3.3"
    text = f"fun((a: {sizes}.i32, b: 2.i32) => b |> reduceSeq(Local)(fun(acc, x => {step} |> {view}), a))"
    result = normal(form_outward, data_flow(program(text)))
    assert [step.rule for step in result.steps] == ["view out of reduceSeq"]
    assert_equivalent(data_flow(program(text)), result.term)
    assert_preserves(form_outward, text)


# --- what the forms look like -----------------------------------------------------------------------

TEXTS = (
    "fun(xs: 7.i32 => xs |> map(fun(x => abs(neg(x * x)))) |> map(fun(x => x + 1)))",
    "fun((xss: 2.3.i32, y: i32) => xss |> map(fun(xs => xs |> map(fun(x => x - y)) |> reduce(+, 0) |> neg)))",
    "fun(xs: 5.i32 => (fun(ys => zip(ys)(ys)))(xs |> map(neg)) |> map(fun((a, b) => a * b)))",
)


def program(text: str) -> Expr:
    return check_expression(text)


@pytest.mark.parametrize("text", TEXTS)
def test_beta_eta_normal_terms_apply_no_lambda_and_wrap_no_function(text: str) -> None:
    term = normal(benf, program(text)).term
    for part in subterms(term):
        assert not isinstance(BETA(part), Success)
        assert not isinstance(ETA(part), Success)


@pytest.mark.parametrize("text", TEXTS)
def test_data_flow_terms_pass_lambdas_only(text: str) -> None:
    term = normal(dfnf, program(text)).term
    for part in subterms(term):
        if isinstance(part, Apply) and isinstance(part.argument.type, Function):
            assert isinstance(part.argument, Lambda)


def maps(term: Expr) -> int:
    """Applications of map to a function and an array."""
    return sum(
        (applied := call(part)) is not None and applied[0] == "map" and len(applied[2]) == 2
        for part in subterms(term)
    )


@pytest.mark.parametrize(("text", "split", "fused"), list(zip(TEXTS, (4, 4, 2), (1, 2, 2), strict=True)))
def test_maps_for_each_function_and_fused_again(text: str, split: int, fused: int) -> None:
    apart = normal(rnf, program(text)).term
    together = normal(cnf, apart).term
    assert maps(apart) == split, show(apart)
    assert maps(together) == fused, show(together)
    assert alpha_equal(together, normal(cnf, program(text)).term)


# --- the rules behind them --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["betaReduction", "etaReduction", "etaAbstraction", "mapLastFission"])
def test_the_rules_preserve_their_instances(name: str) -> None:
    for text in COMPUTED[name].instances:
        term = program(text)
        result = top_down(COMPUTED[name])(term)
        assert isinstance(result, Success), text
        assert [step.rule for step in result.steps] == [name]
        verify(result.term)
        assert_equivalent(term, result.term)
    assert COMPUTED[name].instances


@pytest.mark.parametrize(
    "text",
    [
        "fun((xs: 3.i32, y: i32) => xs |> map(fun(x => y + x)))",
        "fun((xs: 3.i32, y: i32) => xs |> map(fun(x => neg(y))))",
        "fun(xs: 3.i32 => xs |> map(fun(x => (x * x) + x)))",
        "fun(xs: 3.i32 => xs |> map(fun(x => x)))",
    ],
)
def test_a_map_that_does_one_thing_is_not_split(text: str) -> None:
    assert not isinstance(top_down(MAP_LAST_FISSION)(data_flow(program(text))), Success)


def test_eta_looks_at_the_function_too() -> None:
    assert not isinstance(ETA(program("fun(x: i32 => x + x)")), Success)
    assert isinstance(ETA(program("fun(x: i32 => 1 + x)")), Success)


def test_forms_are_derivations() -> None:
    for text in TEXTS:
        for form in (rnf, cnf, view_inward):
            assert_preserves(form, text)
