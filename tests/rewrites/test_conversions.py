"""Conversions of factors, last: `max(f32(x), c)` is `f32(max(x, c))`, which tensor cores multiply."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from rewrites.conversions import CONVERSION_LAST
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.expr import Expr
from rise.interpret import call
from strategies.auto import auto
from strategies.core import body
from tests.support.batches import operands_of, program
from tests.support.nightly import every_other

INFINITY = float("inf")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 6e-8, -6e-8, 65504.0, 2049.0, 1 + 2.0**-11, 1 + 2.0**-12, 1e30, -1e-30, 0.1]
SPECIAL += [INFINITY, -INFINITY, float("nan")]
CONVERTED = {"f16": "f32({})", "bf16": "f32({})", "f32": "f32(tf32({}))"}


def number(random: Random, text: str, depth: int) -> str:
    """An expression of a converted number that rounds nothing."""
    if not depth:
        return text
    inner = number(random, text, depth - 1)
    constant = random.choice(("0", "1", "-2", "0.5", "-infinity"))
    forms = ("max({}, c)", "min(c, {})", "-{}", "abs({})", "0 - {}", "select(x < y, {}, c)", "max({}, {})")
    return "(" + random.choice(forms).replace("c)", f"{constant})").replace("(c,", f"({constant},").format(
        *[inner] * 2
    ) + ")"  # fmt: skip


def factors(first: str, second: str, type_: str) -> Expr:
    return check_expression(f"fun((x: {type_}, y: {type_}) => {first} * {second})")


def changed(term: Expr) -> Expr | None:
    """The function of two numbers with the rule applied to its body."""
    result = body(body(CONVERSION_LAST))(term)
    return None if isinstance(result, Failure) else result.term


@pytest.mark.parametrize("type_", CONVERTED)
def test_drawn_factors_are_equal_for_all_numbers(type_: str) -> None:
    """Also for infinities, NaN, numbers halfway between two others, and those that round to zero."""
    random, fired = Random(f"conversions {type_}"), 0
    for _ in range(40):
        first, second = (
            number(random, CONVERTED[type_].format(name), random.randint(0, 3)) for name in ("x", "y")
        )
        before = factors(first, second, type_)
        after = changed(before)
        fired += after is not None
        values = [random.choice(SPECIAL) for _ in range(6)] + [random.gauss(0, 100) for _ in range(3)]
        for x, y in product(values, values):
            stored = np.float16 if type_ == "f16" else np.float32
            with np.errstate(over="ignore"):
                given = (stored(x), stored(y)) if type_ != "bf16" else (x, y)
            found = [float(call(term, *given)) for term in (before, after or before)]
            assert np.array_equal(found[0], found[1], equal_nan=True), (first, second, x, y, found)
    assert fired > 25


@pytest.mark.parametrize(
    ("first", "type_"),
    [
        ("max(f32(x), 0.1)", "f16"),  # f16 has no 0.1
        ("max(f32(x), 2049)", "f16"),  # nor 2049
        ("max(f32(x), 257)", "bf16"),
        ("max(f32(tf32(x)), 2049)", "f32"),
        ("(f32(x) + 1)", "f16"),
        ("(1 - f32(x))", "f16"),
        ("exp(f32(x))", "f16"),
        ("max(f32(x), f32(bf16(y)))", "f16"),
        ("f32(x)", "f16"),
        ("x", "f32"),
    ],
)
def test_factors_that_may_be_rounded_stay_as_they_are(first: str, type_: str) -> None:
    assert changed(factors(first, CONVERTED[type_].format("y"), type_)) is None


PROLOGUES = {
    "max(f32(x), 0)": True,
    "-f32(x)": True,
    "(0 - abs(min(f32(x), 6)))": True,
    "select(f32(x) > 0, f32(x), 0)": True,
    "select((0 - f32(x)) > 0, (0 - f32(x)), max(f32(x), f32(x)))": True,
    "exp(f32(x))": False,
    "(f32(x) - 0.1)": False,
}


@pytest.mark.parametrize("prologue", every_other(PROLOGUES))
def test_tensor_cores_multiply_operands_that_are_narrow_after_all(prologue: str) -> None:
    """Of batches and of large matrices. Others are f32, which threads multiply."""
    term = f"zip(row)(col) |> map((x, y) => {prologue} * f32(y)) |> reduce(+, 0)"
    many = program(
        "def f(As: 20000.35.34.f16, Bs: 20000.34.33.f16) = zip(As)(Bs) |> map((A, B) => A |> map(row =>"
        f" transpose(B) |> map(col => {term})))"
    )
    [choice] = auto().choice(many).kernels
    by_fragments = operands_of(choice) == "bulk" and "warps" in choice.reason
    assert by_fragments == PROLOGUES[prologue] and choice.point.strategy == "batch"
    large = program(
        f"def f(A: 1024.512.f16, B: 512.768.f16) = A |> map(row => transpose(B) |> map(col => {term}))"
    )
    assert (auto().choice(large).kernels[-1].point.strategy == "tensor_core") == PROLOGUES[prologue]
