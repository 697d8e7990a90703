"""Each side condition keeps a rule from a term that it would otherwise change, and says why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rewrites.conditions import described
from rewrites.library import rules
from rewrites.result import Success
from rewrites.rule import Rule
from rise.errors import EvaluationError
from rise.interpret import evaluate
from rise.testing import exact_inputs
from tests.rewrites.notation import body, refused, the
from tests.support.programs import program, succeeded

TILES = "fun((a: {a}, b: {b}, c: {c}) => zip(c)(a) |> map(fun((cr, r) => zip(cr)(b) |> map(fun((x, col) => "
PRODUCT = TILES + "x + (zip(r)(col) |> map(fun((p, q) => f32(p) * f32(q))) |> reduce(+, 0)))))))"
MATRICES = (
    "fun((a: 2.3.{0}, b: 4.3.{0}) => a |> map(fun(r => b |> map(fun(c => "
    "zip(r)(c) |> map(fun((p, q) => {1})) |> reduce(+, 0))))))"
)

COLUMNS = (
    "fun((r: 3.f16, b: {0}) => b |> map(fun({1} => zip(r)({2}) |> map(fun((p, q) => {3})) |> reduce(+, 0))))"
)


def product(m: int, n: int, k: int, element: str, accumulator: str = "f32") -> str:
    return PRODUCT.format(a=f"{m}.{k}.{element}", b=f"{n}.{k}.{element}", c=f"{m}.{n}.{accumulator}")


# condition, rule, sizes, a term to which the rule must not apply, why
REFUSALS = (
    (
        "x is not 1",
        the("x / y → x * (1 / y)"),
        "fun((y: f32) => 1.0 / y)",
        "it is a reciprocal",
    ),
    (
        "y is rounded",
        the("x / y → x * reciprocal(y)"),
        "fun((x: f32, y: f32) => x / (y + 2.0))",
        "the divisor may be exact",
    ),
    (
        "f or g only changes the form of data",
        the("mapViewFusion"),
        "fun(xs: 3.i32 => xs |> map(neg) |> map(abs))",
        "both functions compute",
    ),
    (
        "f only changes the form of data",
        the("zip(*f, )"),
        "fun((xs: 3.i32, ys: 3.i32) => zip(xs |> map(neg))(ys))",
        "the function computes",
    ),
    (
        "f computes",
        the("map → mapSeq, computing"),
        "fun(xs: 3.(i32, f32) => xs |> map(fun((x, y) => (y, x))))",
        "the function only changes the form of data",
    ),
    (
        "f is not the identity",
        the("flatten, inner only"),
        "fun((xs: 3.i32, ys: 2.i32) => xs |> map(fun(x => ys |> map(fun(y => y)))) |> join)",
        "nothing is mapped",
    ),
    (
        "f does more than pair its arguments",
        the("flatten"),
        "fun((xs: 3.i32, ys: 2.i32) => xs |> map(fun(x => ys |> map(fun(y => (x, y))))) |> join)",
        "the function only pairs its arguments",
    ),
    (
        "f is total",
        the("roundUp *f", p=2),
        "fun((xs: 3.i32, ys: 8.f32) => xs |> map(fun(x => idx(natAsIndex(8)(x))(ys))))",
        "`natAsIndex` is not defined for every value",
    ),
    (
        "f is total",
        the("roundUp *f", p=2),
        "fun((is: 3.Idx[4], ys: 4.f32) => is |> map(fun(i => idx(i)(ys))))",
        "an undefined index may be out of range",
    ),
    ("f is total", the("roundUp *f", p=1), "fun(xs: 3.i32 => xs |> map(fun(x => 6 / x)))", "`div`"),
    (
        "h is total",
        the("*f >> scatter"),
        "fun((xs: 2.i32, is: 2.Idx[3]) => xs |> map(fun(x => 6 % x)) |> scatter(is))",
        "`mod` is not defined for every value",
    ),
    (
        "of integers",
        the("first operand minus z"),
        "fun((xs: 3.f32, ys: 3.f32, z: f32) =>"
        " zip(xs)(ys) |> map(fun((x, y) => (x - z) * y)) |> reduce(+, 0))",
        "`f32` is not an integer type",
    ),
    (
        "xs: numbers",
        the("asVector >> asScalar, introduced", n=2),
        "fun(xs: 4.(i32, i32) => xs)",
        "`(i32, i32)` is not a number",
    ),
    (
        "xs: numbers",
        the("vectorize", n=2),
        "fun(xs: 4.3.i32 => xs |> map(fun(r => r |> reduce(+, 0))))",
        "`3.i32` is not a number",
    ),
    (
        "elements of xss: numbers",
        the("a tile by threads", v=2, t=2, n=4),
        "fun(xss: 2.4.(i32, i32) => xss)",
        "`(i32, i32)` is not a number",
    ),
    (
        "f: numbers",
        the("vectorize", n=2),
        "fun(xs: 4.i32 => xs |> map(fun(x => (x, x))))",
        "`(i32, i32)` is not a number",
    ),
    (
        "changes an operand",
        the("prologueSame"),
        MATRICES.format("f32", "p * q"),
        "the operands are used as they are",
    ),
    (
        "changes the operand",
        the("prologue of columns"),
        COLUMNS.format("4.3.f16", "c", "c", "f32(p) * f32(q + 1)"),
        "the operand is used as it is",
    ),
    (
        "keeps conversions",
        the("prologue of columns, same"),
        COLUMNS.format("4.(3.f16, f16)", "(c, s)", "c", "f32(p) * f32(q * s)"),
        "a conversion stays in the product",
    ),
    (
        "keeps types",
        the("prologueSame"),
        MATRICES.format("f16", "f32(p) * f32(q)"),
        "`g` changes the type from `f16` to `f32`",
    ),
    (
        "f of zeros is 0",
        the("roundUp sums", p=2),
        "fun((xs: 3.i32, ys: 3.i32) => zip(xs)(ys) |> map(fun((x, y) => x * y + 1)) |> reduce(+, 0))",
        "the function of two zeros is not known to be 0",
    ),
    (
        "f of zeros is 0",
        the("roundUp sums", p=2),
        "fun((xs: 3.f32, ys: 3.f32, z: f32) => zip(xs)(ys) |> map(fun((x, y) => x * z)) |> reduce(+, 0))",
        "the function of two zeros is not known to be 0",
    ),
    (
        "w is a conversion",
        the("tensorise"),
        product(16, 8, 16, "f16").replace("f32(p) * f32(q)", "abs(f32(p)) * abs(f32(q))"),
        "`w` does more than convert a number",
    ),
    (
        "changes an operand",
        the("tensorise, first operand computed"),
        product(16, 8, 16, "f16"),
        "the operands are used as they are",
    ),
    (
        "has instruction",
        the("tensorise"),
        product(16, 12, 8, "f16"),
        "there is no tensor-core instruction for 16×12×8, operands of type `f16`",
    ),
    (
        "has instruction",
        the("tensorise"),
        product(16, 16, 16, "i8"),
        "there is no tensor-core instruction for 16×16×16, operands of type `i8`",
    ),
)


@pytest.mark.parametrize(("condition", "rule", "text", "reason"), REFUSALS)
def test_a_condition_refuses(condition: str, rule: Rule, text: str, reason: str) -> None:
    assert condition in [described(c)[0] for c in rule.conditions]
    assert refused(rule, text).startswith(reason)


# these are of the tensor-core rules and of those for blocks, and are tested with them
ELSEWHERE = {"same element", "known elements", "not yet copied", "is matrix"}
LIKEWISE = {
    "g: numbers": "f: numbers",
    "elements of xsss: numbers": "elements of xss: numbers",
    "elements of xssss: numbers": "elements of xss: numbers",
}


def test_a_number_in_range_is_an_index_for_every_value() -> None:
    text = "fun((xs: 3.i32, ys: 8.f32) => xs |> map(fun(x => idx(natAsIndex(8)($))(ys))))"
    made = the("roundUp *f", p=2)
    assert isinstance(made(body(program(text.replace("$", "7")))), Success)
    for number in ("8", "0 - 1", "x"):
        assert "`natAsIndex` is not defined" in refused(made, text.replace("$", number))


def test_every_condition_refuses_something() -> None:
    declared = {
        described(c)[0] for made in rules().values() if isinstance(made, Rule) for c in made.conditions
    }
    refusing = {condition for condition, *_ in REFUSALS}
    assert {LIKEWISE.get(name, name) for name in declared} - ELSEWHERE <= refusing


@pytest.mark.parametrize("text", [text for name, _, text, _ in REFUSALS if name == "f is total"])
def test_what_is_not_total_fails_on_undefined_elements(text: str) -> None:
    rule = rules()["roundUp *f"]
    assert isinstance(rule, Rule)
    start = program(text)
    result = succeeded(replace(rule, conditions=()).with_sizes(p=2)(body(start)))
    inputs = exact_inputs(body(start), 0)
    if "xs: 3.i32" in text:
        inputs["xs"] = np.arange(1, 4, dtype=np.int32)
    evaluate(body(start), inputs)
    if "div" not in text and "/" not in text:  # what the interpreter puts there is no zero
        with pytest.raises(EvaluationError):
            evaluate(result.term, inputs)


def test_every_condition_gives_a_reason() -> None:
    for made in rules().values():
        for condition in getattr(made, "conditions", ()):
            name, reason = described(condition)
            assert name
            assert reason or name in ELSEWHERE, (made.name, name)


def test_without_its_condition_each_rule_would_apply() -> None:
    """So it is the condition that refuses, and not the form of the term."""
    for _, made, text, _ in REFUSALS:
        assert isinstance(made, Rule)
        unguarded = replace(made, conditions=())
        assert isinstance(unguarded(body(program(text))), Success), text
