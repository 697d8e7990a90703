"""Matching: variables applied to bound variables, sizes by solving, no capture, and why not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rewrites.match import abstract, describe, replace_term
from rewrites.result import Failure, Success
from rewrites.rule import RULES, Rule, rule
from rise.check.program import check_expression
from rise.expr import Apply, Expr, Identifier, Lambda, alpha_equal
from rise.nat import constant, variable
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import assert_equivalent, primitive_call
from rise.types import F32, I32, Array, Function, Pair, array
from rise.verify import verify
from strategies.core import top_down
from tests.support.programs import succeeded


@pytest.fixture(autouse=True)
def _forget_rules() -> Iterator[None]:
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


def body_of(text: str) -> Expr:
    term = data_flow(check_expression(text))
    while isinstance(term, Lambda):
        term = term.body
    return term


def rewritten(made: Rule, text: str) -> str:
    term = body_of(text)
    result = made(term)
    assert isinstance(result, Success), result.reason
    verify(result.term)
    assert result.term.free <= term.free
    assert_equivalent(term, result.term)
    return show(result.term)


def reason(made: Rule, text: str) -> str:
    result = made(body_of(text))
    assert isinstance(result, Failure)
    return result.reason


# --- variables applied to bound variables -----------------------------------------------------------


def test_a_variable_becomes_the_function_that_gives_the_term() -> None:
    made = rule("r", "xs |> map(fun(x => f(x)))", "xs |> mapSeq(f)")
    assert (
        rewritten(made, "fun(xs: 4.i32 => xs |> map(fun(y => y * y + 1)))") == "xs |> mapSeq(y => y * y + 1)"
    )


def test_a_projection_says_that_the_rest_is_not_used() -> None:
    made = rule("r", "zip(xs)(ys) |> map(fun((x, y) => g(y)))", "ys |> map(g)")
    text = "fun((xs: 4.i32, ys: 4.i32) => zip(xs)(ys) |> map(fun((x, y) => {})))"
    assert rewritten(made, text.format("y + 1")) == "ys |> map(x => x + 1)"
    assert "`g` must not use" in reason(made, text.format("x + y"))


def test_projections_in_another_order() -> None:
    made = rule(
        "r", "zip(xs)(ys) |> map(fun((x, y) => g(x, y)))", "zip(ys)(xs) |> map(fun((y, x) => g(x, y)))"
    )
    rewritten(made, "fun((xs: 4.i32, ys: 4.i32) => zip(xs)(ys) |> map(fun((x, y) => x - 2 * y)))")


def test_nested_projections() -> None:
    made = rule("r", "xs |> map(fun((x, (y, z)) => g(z, x)))", "xs |> mapSeq(fun((x, (y, z)) => g(z, x)))")
    text = "fun(xs: 3.(i32, (f32, i32)) => xs |> map(fun((a, (b, c)) => {})))"
    rewritten(made, text.format("a - c"))
    assert "must not use" in reason(made, text.format("(a, b)"))


@pytest.mark.parametrize(
    ("first", "second"), [("x", "x_1"), ("x_1", "x"), ("x", "y"), ("acc", "acc_1"), ("x", "x_2")]
)
@pytest.mark.parametrize("used", [0, 1])
def test_both_arguments_of_a_function_keep_their_places(first: str, second: str, used: int) -> None:
    """Names that a fresh name could be must not be confused with it."""
    a, b = Identifier(first, I32), Identifier(second, I32)
    step = Lambda(a, Lambda(b, (a, b)[used]))
    xs, z = Identifier("xs", array(3, I32)), Identifier("z", I32)
    term = primitive_call("reduce", (constant(3), I32), step, z, xs)
    result = succeeded(RULES_REDUCE(term))
    assert_equivalent(term, result.term)


RULES_REDUCE = rule("reduce, for tests", "xs |> reduce(op, z)", "xs |> reduceSeq(Local)(op, z)")


def test_abstraction_does_not_mix_its_parameters() -> None:
    first, second = Identifier("x", I32), Identifier("x_1", I32)
    bound = {"a": first, "b": second}
    parameters = (Identifier("a", I32), Identifier("b", I32))
    made = abstract(first, parameters, bound)
    p, q = Identifier("p", I32), Identifier("q", I32)
    assert alpha_equal(made, Lambda(p, Lambda(q, p)))


def test_a_projection_is_replaced_without_capture() -> None:
    """The new name is bound below, where the old term occurs."""
    pair = Identifier("p", Pair(I32, I32))
    second = primitive_call("snd", (I32, I32), pair)
    new, hidden = Identifier("x", I32), Identifier("x", F32)
    changed = replace_term(Lambda(hidden, second), second, new)
    assert "x" in changed.free


def test_binders_that_hide_each_other() -> None:
    """fun(x => … fun(x => x)): the inner one is meant."""
    row_type = array(3, I32)
    row, x = Identifier("x", row_type), Identifier("x", I32)
    xss = Identifier("xss", array(2, 3, I32))
    inner = primitive_call("map", (constant(3), I32, I32), Lambda(x, primitive_call("neg", (I32,), x)), row)
    term = primitive_call("map", (constant(2), row_type, row_type), Lambda(row, inner), xss)
    made = rule(
        "r",
        "xs |> map(fun(x => h(x) |> map(fun(y => f(x, y)))))",
        "xs |> mapSeq(fun(x => h(x) |> map(fun(y => f(x, y)))))",
    )
    result = succeeded(made(term))
    verify(result.term)
    assert_equivalent(term, result.term)


# --- escaping variables -----------------------------------------------------------------------------


def test_a_function_that_is_known_from_elsewhere_is_applied_to_anything() -> None:
    made = rule(
        "r",
        "zip(xs)(ys) |> map(fun((x, y) => (w(g(x)), w(y))))",
        "zip(xs |> map(g))(ys) |> map(fun((x, y) => (w(x), w(y))))",
    )
    text = "fun((xs: 4.i32, ys: 4.i32, c: i32) => zip(xs)(ys) |> map(fun((x, y) => ({}, {}))))"
    for first, second, g, converted in (
        ("f32(x * c)", "f32(y)", "x => x * c", "f32({})"),
        ("x * x", "y", "x => x * x", "{}"),
        ("abs(neg(x)) + abs(neg(x))", "abs(y) + abs(y)", "x => -x", "abs({0}) + abs({0})"),
    ):
        pair = f"({converted.format('fst(xy)')}, {converted.format('snd(xy)')})"
        wanted = f"zip(xs |> map({g}), ys) |> map(xy => {pair})"
        assert rewritten(made, text.format(first, second)) == wanted
    assert "found `add`" in reason(made, text.format("f32(x) + 1", "f32(y)"))
    assert "would be two different" in reason(made, text.format("abs(x) + abs(neg(x))", "abs(y) + abs(y)"))
    assert "uses what is bound around it" in reason(made, text.format("x + c", "y + c"))
    unknown = rule("s", "xs |> map(fun(x => w(g(x))))", "xs |> map(fun(x => w(g(x))))")
    assert "the function is not determined" in reason(unknown, "fun(xs: 4.i32 => xs |> map(fun(x => x)))")


def test_a_variable_that_would_escape_is_refused() -> None:
    made = rule("r", "xs |> map(fun(x => z))", "generate(fun(i => z))")
    rewritten(made, "fun((xs: 3.i32, k: f32) => xs |> map(fun(x => k)))")
    assert reason(made, "fun(xs: 3.i32 => xs |> map(fun(x => x)))") == "`z` must not use `x`"


def test_inner_arrays_that_depend_on_outer_elements_are_refused() -> None:
    made = rule(
        "r",
        "xs |> map(fun(x => ys |> map(fun(y => f(x, y)))))",
        "ys |> map(fun(y => xs |> map(fun(x => f(x, y))))) |> transpose",
    )
    rewritten(made, "fun((xs: 3.i32, ys: 4.i32) => xs |> map(fun(x => ys |> map(fun(y => x - y)))))")
    assert (
        reason(made, "fun(xs: 3.4.i32 => xs |> map(fun(x => x |> map(fun(y => y + 1)))))")
        == "`ys` must not use `x`"
    )


def test_names_of_the_program_are_not_captured_by_binders_of_the_rule() -> None:
    made = rule("r", "xs |> map(f)", "xs |> map(fun(i => f(i)))")
    for name in ("i", "x", "xs", "f", "acc"):
        rewritten(made, f"fun((ys: 3.i32, {name}: i32) => ys |> map(fun(y => y + {name})))")


# --- sizes ------------------------------------------------------------------------------------------


def test_a_size_is_solved() -> None:
    made = rule("r", "xs |> map(f)", "xs |> split(n) |> map(fun(b => b |> map(f))) |> join").with_sizes(n=32)
    text = "fun(xs: 96.i32 => xs |> map(fun(x => x + 1)))"
    assert "split(32)" in rewritten(made, text)
    term = succeeded(made(body_of(text)))
    assert term.term.type == array(96, I32)
    assert term.steps[0].constraints == ()


def test_a_size_that_does_not_divide_is_refused_with_both_numbers() -> None:
    made = rule("r", "xs |> map(f)", "xs |> split(n) |> map(fun(b => b |> map(f))) |> join")
    text = "fun(xs: {}.i32 => xs |> map(fun(x => x + 1)))"
    assert reason(made.with_sizes(n=32), text.format(97)) == "32 does not divide 97"
    assert reason(made.with_sizes(n=32), text.format(48)) == "32 does not divide 48"


def test_an_unknown_size_records_what_it_needs() -> None:
    made = rule("r", "xs |> map(f)", "xs |> split(n) |> map(fun(b => b |> map(f))) |> join").with_sizes(n=32)
    size = variable("k")
    xs, x = Identifier("xs", Array(size, I32)), Identifier("x", I32)
    term = primitive_call("map", (size, I32, I32), Lambda(x, primitive_call("neg", (I32,), x)), xs)
    result = succeeded(made(term))
    assert [str(c) for c in result.steps[0].constraints] == ["32 | k"]
    assert result.term.type == term.type


def test_a_parameter_that_is_not_given() -> None:
    made = rule("r", "xs |> map(f)", "xs |> split(n) |> map(fun(b => b |> map(f))) |> join")
    assert "does not determine" in reason(made, "fun(xs: 96.i32 => xs |> map(fun(x => x + 1)))")


def test_sizes_that_have_to_be_equal() -> None:
    made = rule(
        "r", "xs |> map(fun(r => r |> take(n))) |> take(n)", "xs |> take(n) |> map(fun(r => r |> take(n)))"
    )
    text = "fun(xs: 8.8.i32 => xs |> map(fun(r => r |> take({}))) |> take({}))"
    rewritten(made, text.format(2, 2))
    assert reason(made, text.format(2, 3)) in ("the size 2 is not 3", "the size 3 is not 2")


def test_a_size_that_would_be_negative() -> None:
    made = rule("r", "xs |> map(f)", "concat(xs |> take(n))(xs |> drop(n)) |> map(f)")
    text = "fun(xs: 4.i32 => xs |> map(fun(x => x + 1)))"
    rewritten(made.with_sizes(n=3), text)
    assert "negative" in reason(made.with_sizes(n=5), text)


# --- variables that occur twice, literals, functions by name ----------------------------------------


def test_a_variable_that_occurs_twice_is_one_term() -> None:
    made = rule("r", "zip(xs)(xs)", "xs |> map(fun(x => (x, x)))")
    rewritten(made, "fun(ys: 3.i32 => zip(ys |> map(fun(a => a + 1)))(ys |> map(fun(b => b + 1))))")
    text = "fun((ys: 3.i32, zs: 3.i32) => zip(ys)(zs))"
    assert reason(made, text) == "`xs` would be two different terms"


def test_types_that_have_to_be_equal() -> None:
    made = rule("r", "zip(xs)(ys) |> map(fun((x, y) => x + y))", "zip(ys)(xs) |> map(fun((y, x) => x + y))")
    text = "fun((xs: 3.i32, ys: 3.i32) => zip(xs)(ys) |> map(fun((x, y) => x + y)))"
    rewritten(made, text)
    assert not isinstance(made(body_of(text.replace("x + y", "x - y"))), Success)


def test_functions_are_matched_up_to_eta() -> None:
    made = rule("r", "xs |> map(f)", "xs |> mapSeq(f)")
    xs, f = Identifier("xs", array(3, I32)), Identifier("f", Function(I32, F32))
    x = Identifier("x", I32)
    types = (constant(3), I32, F32)
    short, long = (primitive_call("map", types, g, xs) for g in (f, Lambda(x, Apply(f, x))))
    results = [made(term) for term in (short, long)]
    assert all(isinstance(r, Success) for r in results)
    left, right = (r.term for r in results if isinstance(r, Success))
    assert alpha_equal(left, right)


@pytest.mark.parametrize(("start", "applies"), [("0", True), ("1", False), ("c", False)])
def test_literals_are_matched_by_value(start: str, applies: bool) -> None:
    made = rule("r", "xs |> reduce(+, 0)", "xs |> reduceSeq(Local)(+, 0)")
    for type_ in ("i32", "f32", "f16"):
        result = made(body_of(f"fun((xs: 3.{type_}, c: {type_}) => xs |> reduce(+, {start}))"))
        assert isinstance(result, Success) == applies


# --- stories ----------------------------------------------------------------------------------------


def test_a_failure_says_what_was_expected_and_how_far_it_got() -> None:
    made = rule("r", "xs |> map(f) |> map(g)", "xs |> map(fun(x => g(f(x))))")
    far = made(body_of("fun(xs: 3.4.i32 => xs |> transpose |> map(fun(r => r |> reduce(+, 0))))"))
    near = made(body_of("fun(xs: 3.4.i32 => xs |> transpose)"))
    assert isinstance(far, Failure)
    assert isinstance(near, Failure)
    assert "`map`" in far.reason
    assert "`map`" in near.reason
    assert far.depth > near.depth
    assert far.closer(near) is far
    assert near.closer(far) is far


def test_a_story_names_the_place_in_the_source() -> None:
    made = rule("r", "xs |> map(f) |> map(g)", "xs |> map(fun(x => g(f(x))))")
    term = data_flow(check_expression("fun(xs: 3.4.i32 =>\n  xs |> transpose)"))
    result = top_down(made)(term)
    assert isinstance(result, Failure)
    assert result.story().startswith("`r` does not apply at <expression>:2:")


def test_terms_in_messages() -> None:
    texts = {"fun(x: i32 => x)": "a function", "fun(x: i32 => 3)": "a function", "3": "the literal 3"}
    assert {text: describe(check_expression(text)) for text in texts} == texts
    assert describe(body_of("fun(x: i32 => x + 1)")) == "`add`"
    assert describe(body_of("fun(x: i32 => x)")) == "`x`"
