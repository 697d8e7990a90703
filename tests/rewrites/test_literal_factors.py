"""Literals of products whose power is taken become one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rewrites.exponentials import MODERATE, ONE_LITERAL
from rewrites.result import Failure, Success
from rise.check.program import check_expression
from rise.expr import Expr, Lambda, Literal, subterms
from rise.interpret import call
from rise.normal import data_flow
from strategies.core import normalize

SEED, DRAWS = 20261125, 120


def product(random: Random, depth: int) -> str:
    """Factors in any nesting: literals, a number, functions whose results are rounded."""
    if depth == 0:
        literal = f"{random.choice((-1, 1)) * random.choice((0.125, 0.3, 0.75, 2.0, 3.5))}"
        return random.choice((literal, literal, "x", "exp2(x)", "reciprocal(1.5 + x)", "(x + 0.25)"))
    return f"({product(random, depth - 1)} * {product(random, random.randrange(depth))})"


def literals(term: Expr) -> int:
    return sum(isinstance(part, Literal) for part in subterms(term))


def test_products_with_one_literal_mean_the_same() -> None:
    random, fired = Random(SEED), 0
    print(f"seed {SEED}")
    xs = np.random.default_rng(SEED).uniform(-1, 3, 64).astype(np.float32)
    for _ in range(DRAWS):
        of = product(random, random.randrange(1, 4))
        text = random.choice(("{}", "exp2({} * 0.25)", "exp2({}) + 1.0")).format(of)
        term = data_flow(check_expression(f"fun(xs: 64.f32 => xs |> map(fun(x => {text})))"))
        made = normalize(ONE_LITERAL)(term)
        assert isinstance(made, Success)
        fired += bool(made.steps)
        assert literals(made.term) <= literals(term)
        np.testing.assert_allclose(call(made.term, xs), call(term, xs), rtol=2e-5, atol=1e-30)
    assert fired > DRAWS / 6


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fun(x: f32 => 0.5 * x * 3.0)", "power of two"),
        ("fun(x: f32 => exp2(0.5 * x))", "several literal factors"),
        (f"fun(x: f32 => exp2(2.0 * x * {2 * MODERATE}))", "overflow"),
        (f"fun(x: f32 => exp2(2.0 * x * {0.5 / MODERATE:.12f}))", "vanish"),
    ],
)
def test_other_products_stay(text: str, why: str) -> None:
    """A product that may be exact is not rounded otherwise."""
    term = data_flow(check_expression(text))
    refused = ONE_LITERAL(term.body if isinstance(term, Lambda) else term)
    assert isinstance(refused, Failure) and why in refused.reason
