"""Every rule of the library: both sides compute the same, and so does what the rule makes of a term."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import settings

import rewrites.algorithmic
import rewrites.lowering
import rewrites.movement
import rewrites.tensor  # noqa: F401  # each import declares rules
from rewrites.result import Success
from rewrites.rule import COMPUTED, RULES
from rise.check.program import check_expression
from rise.expr import Expr, Lambda, Literal, Primitive, subterms
from rise.normal import data_flow
from rise.primitives.declare import primitive
from rise.testing import Choose, Hint, assert_preserves, assert_sound
from rise.types import F16, F32, I32, SCALARS, Array, Function, Scalar, Type, array
from strategies.core import top_down

SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))


# --- what instances have to look like for rules with conditions -----------------------------------


def tiles(*combinations: tuple[Scalar, Scalar]) -> Hint:
    """Operands of one type and an accumulator of another, in a shape of tensor cores."""

    def types(choose: Choose) -> Mapping[str, Type]:
        m, n, k = choose.pick(SHAPES)
        operand, accumulator = choose.pick(combinations)
        return {"a": array(m, k, operand), "b": array(n, k, operand), "c": array(m, n, accumulator)}

    return Hint(types)


def monoid(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """+ with 0, or the maximum with what is below all inputs."""
    type_ = types["z"]
    if not isinstance(type_, Scalar):
        raise TypeError(str(type_))
    name, neutral = choose.pick((("add", 0), ("max", -100)))
    zero = Literal(float(neutral) if type_.is_float else neutral, type_)
    return {"op": Primitive(primitive(name), (type_,)), "z": zero}


REDUCTION = Hint(lambda choose: {"z": choose.pick((I32, F32))}, monoid)


def endofunction(arguments: int) -> Hint:
    """g from elements to elements of the same type."""

    def types(choose: Choose) -> Mapping[str, Type]:
        scalar = choose.pick((F32, F16, I32))
        type_: Type = scalar
        for _ in range(arguments):
            type_ = Function(scalar, type_)
        return {"g": type_}

    return Hint(types)


ONE_RESHAPES = Hint(views=frozenset({"f"}))
HINTS: Mapping[str, Hint] = {
    "blockReduce": REDUCTION,
    "tensorise": tiles((F16, F32), (SCALARS["bf16"], F32)),
    "tensoriseSame": tiles((F16, F16)),
    "asMatrix >> **g": endofunction(1),
    "zip2D(asMatrix, ) >> **g": endofunction(2),
    "zip(*f, )": ONE_RESHAPES,
    "zip(, *f)": ONE_RESHAPES,
    "mapViewFusion": ONE_RESHAPES,
}
# a product of tiles takes longest to evaluate
EXPENSIVE = {"tensorise", "tensoriseSame"}


def binders(term: Expr) -> int:
    return sum(isinstance(part, Lambda) for part in subterms(term))


# --- the property -----------------------------------------------------------------------------------


def examples(name: str) -> int:
    wanted = settings().max_examples
    return wanted // 4 if name in EXPENSIVE else wanted


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_preserves_type_and_value(name: str) -> None:
    evidence = assert_sound(RULES[name], HINTS.get(name), max_examples=examples(name))
    if not RULES[name].conditions:
        assert evidence.applied == evidence.examples, evidence.refusals


@pytest.mark.parametrize("name", sorted(n for n in RULES if binders(RULES[n].lhs) > 1))
def test_a_rule_respects_binders_that_hide_each_other(name: str) -> None:
    assert_sound(RULES[name], HINTS.get(name), hide=True, max_examples=max(10, examples(name) // 4))


@pytest.mark.parametrize(("name", "text"), [(n, t) for n in COMPUTED for t in COMPUTED[n].instances])
def test_a_computed_rule_preserves_its_instances(name: str, text: str) -> None:
    assert_preserves(top_down(COMPUTED[name]), text, seeds=range(5))


MORE_INSTANCES = (
    ("separateReduction", "fun((xss: 3.4.i32, y: i32) => xss |> map(fun(xs => (xs |> reduce(+, y)) * y)))"),
    (
        "separateReduction",
        "fun(xsss: 2.3.4.i32 => xsss |> map(fun(xss => xss |> map(fun(xs => 1 + (xs |> reduce(+, 0)))))))",
    ),
    (
        "dropUnused",
        "fun((a: 4.i32, b: 4.i32, c: 4.f32) => zip(zip(a)(c))(b) |> map(fun(((x, y), z) => x - z)))",
    ),
    (
        "dropUnused",
        "fun((a: 2.3.i32, b: 2.i32) => zip(a)(b) |> map(fun((r, y) => r |> map(fun(x => x - 1)))))",
    ),
    ("dropUnused", "fun((a: 2.i32, b: 2.i32, x: i32) => zip(a)(b) |> map(fun((y, z) => z - x)))"),
)


@pytest.mark.parametrize(("name", "text"), MORE_INSTANCES)
def test_a_computed_rule_preserves_further_programs(name: str, text: str) -> None:
    assert_preserves(top_down(COMPUTED[name]), text, seeds=range(5))


def test_drop_unused_keeps_what_is_used_as_a_whole() -> None:
    text = "fun((a: 4.i32, b: 4.i32) => zip(a)(b) |> map(fun(p => (p, fst(p)))))"
    result = top_down(COMPUTED["dropUnused"])(data_flow(check_expression(text)))
    assert not isinstance(result, Success)


def test_every_computed_rule_has_instances() -> None:
    assert all(rule.instances for rule in COMPUTED.values())


def test_arrays_in_hints_have_the_shape_of_the_rules() -> None:
    """A hint that names no free identifier of its rule would be a hint without effect."""
    for name, hint in HINTS.items():
        wanted = set(hint.types(Choose(lambda _: 0))) | hint.views
        assert wanted <= RULES[name].lhs.free, name
        assert all(isinstance(t, Array | Scalar | Function) for t in hint.types(Choose(lambda _: 0)).values())
