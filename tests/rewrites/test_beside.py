"""Rows and columns reduced beside a matrix: the laws, on programs that are drawn."""

from __future__ import annotations

from random import Random

import pytest

from rewrites.beside import ROWS_BY_PARTS, beside
from rewrites.result import Failure
from rewrites.row_parts import REDUCTIONS_INWARD
from rise.check.program import check_expression
from rise.normal import data_flow
from rise.testing.rewriting import assert_preserves
from strategies.auto import split
from strategies.core import top_down
from strategies.places import in_inputs

DOT = "zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"
OPERATORS = ("reduce(+, 0)", "reduce(max, -100000)", "reduce(min, 100000)", "reduce(*, 1)")
TERMS = ("x", "x * x - 1", "max(x, 2)")
AFTER = ("s", "s * 2 + 1")


def drawn(seed: int) -> tuple[str, int, int]:
    """A program, the width of a part, and of which number of columns there is a multiple."""
    random = Random(seed)
    m, n, k = (random.choice((1, 2, 3, 5)) for _ in range(3))
    operator, stored, term, after = map(random.choice, (OPERATORS, TERMS, TERMS, AFTER))
    rows = random.choice(("p", "transpose(p)"))
    numbers = f"{rows} |> map(fun(r => r |> map(fun(x => {term})) |> {operator} |> fun(s => {after})))"
    result = f"(p |> map(map(fun(x => {stored}))), {numbers})" if random.random() < 0.7 else numbers
    product = f"a |> map(fun(r => b |> map(fun(c => {DOT}))))"
    width = random.choice((1, 2, 4))
    text = f"fun((a: {m}.{k}.i32, b: {n}.{k}.i32) => ({product}) |> fun(p => {result}))"
    return text, width, width * random.choice((1, 3))


@pytest.mark.parametrize("seed", range(12))
def test_reductions_by_parts_are_those_of_rows(seed: int) -> None:
    text, width, columns = drawn(seed)
    print(seed, width, columns, text)
    assert_preserves(top_down(ROWS_BY_PARTS.with_sizes(w=width, n=columns)), text, seeds=range(1))


def test_parts_narrower_than_fragments_are_refused() -> None:
    text = REDUCTIONS_INWARD.instances[-1].replace("r |> split(8)", "r |> split(4)")
    result = in_inputs(REDUCTIONS_INWARD)(data_flow(check_expression(text)))
    assert isinstance(result, Failure) and "rows are not in tiles" in result.reason


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("(p, p)", "expected a number for each row"),
        ("(p, q |> map(reduce(+, 0)))", "not computed from one product"),
        ("(p, a |> map(reduce(+, 0)))", "not computed from a product"),
        ("p |> map(fun(r => (r |> reduce(+, 0)) * (r |> reduce(max, 0))))", "expected one reduction"),
    ],
)
def test_other_programs_are_not_such(result: str, why: str) -> None:
    ps = f"a |> map(fun(r => b |> map(fun(c => {DOT}))))"
    qs = f"b |> map(fun(r => a |> map(fun(c => {DOT}))))"
    text = f"fun((a: 3.3.i32, b: 3.3.i32) => ({ps}) |> fun(p => ({qs}) |> fun(q => {result})))"
    _, term = split(data_flow(check_expression(text)))
    refused = ROWS_BY_PARTS(term)
    assert beside(term) is None and isinstance(refused, Failure) and why in refused.reason
