"""Rows and columns reduced beside a matrix: the laws, on programs that are drawn."""

from __future__ import annotations

from itertools import product
from random import Random
from string import Template

import pytest

from rewrites.beside import ROWS_BY_PARTS, beside
from rewrites.result import Failure
from rewrites.row_parts import REDUCTIONS_INWARD
from rise.check.program import check_expression
from rise.normal import data_flow
from rise.testing import assert_equivalent
from rise.testing.rewriting import assert_preserves
from strategies.auto import split
from strategies.core import top_down
from strategies.places import in_inputs
from tests.support.programs import succeeded

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


# several reductions of a row, or one of pairs, and what is made of them
SEVERAL = {
    "a log-sum-exp": (
        "r |> reduce(max, -infinity) |> fun(m => log(r |> map(fun(x => exp(x - m))) |> reduce(+, 0)) + m)"
    ),
    "a maximum from a number on, and a sum": (
        "r |> map(fun(x => x * 0.25)) |> fun(r => r |> reduce(max, 0) |> fun(m =>"
        " (m, r |> map(fun(x => exp2((x - m) * 2))) |> reduce(+, 0))))"
    ),
    "sums of squares and elements": (
        "(r |> map(fun(x => x * x)) |> reduce(+, 0)) - (r |> reduce(+, 0)) * (r |> reduce(+, 0))"
    ),
    "the first of the largest": (
        "zip(generate(fun((i: Idx[$n]) => i)))(r) |> reduce(fun(((i, x), (j, y)) =>"
        " select(x > y || (x == y && i < j))((i, x))((j, y))), (0, r |> idx(0))) |> fst"
    ),
    "the last of the smallest, and its element": (
        "zip(r |> map(fun(x => max(x, 0))))(generate(fun((i: Idx[$n]) => indexToInt(i))))"
        " |> reduce(fun(((x, i), (y, j)) => select(x < y || (x == y && i > j))((x, i))((y, j))),"
        " (max(r |> idx(0), 0), 0))"
    ),
    "a log-sum-exp less the element that an index chooses": (
        "r |> reduce(max, -infinity) |> fun(m => log(r |> map(fun(x => exp(x - m))) |> reduce(+, 0)) + m"
        " - (r |> idx(i)))"
    ),
}


@pytest.mark.parametrize(("name", "seed"), list(product(SEVERAL, range(4))))
def test_several_reductions_of_a_row_combine(name: str, seed: int) -> None:
    """Also behind the end, where there are elements that change none of them."""
    random = Random(f"{name} {seed}")
    m, n, k = (random.choice((1, 2, 3, 5, 7)) for _ in range(3))
    numbers = f"zip(p)(is) |> map(fun((r, i) => {Template(SEVERAL[name]).substitute(n=n)}))"
    beside = "(p |> map(map(fun(x => x + 1))), {})" if random.random() < 0.5 else "{}"
    product = f"a |> map(fun(r => b |> map(fun(c => {DOT}))))"
    width = random.choice((1, 2, 4))
    text = (
        f"fun((a: {m}.{k}.f32, b: {n}.{k}.f32, is: {m}.Idx[{n}]) => ({product})"
        f" |> fun(p => {beside.format(numbers)}))"
    )
    print(name, seed, width, text)
    rule = ROWS_BY_PARTS.with_sizes(w=width, n=width * random.choice((1, 3)))
    start = data_flow(check_expression(text))
    assert_equivalent(start, succeeded(top_down(rule)(start)).term, seeds=range(2), rounding=True)


def test_elements_behind_the_end_need_one_that_changes_none_of_the_reductions() -> None:
    """There is none for a maximum and a sum of the same elements; if parts divide the row none is needed."""
    product = f"a |> map(fun(r => b |> map(fun(c => {DOT}))))"
    numbers = "p |> map(fun(r => (r |> reduce(+, 0)) + (r |> reduce(max, 0))))"
    text = f"fun((a: 2.3.i32, b: 6.3.i32) => ({product}) |> fun(p => {numbers}))"
    assert_preserves(top_down(ROWS_BY_PARTS.with_sizes(w=2, n=6)), text, seeds=range(2))
    _, term = split(data_flow(check_expression(text)))
    refused = ROWS_BY_PARTS.with_sizes(w=2, n=4)(term)
    assert isinstance(refused, Failure) and "changes none of the reductions" in refused.reason


def test_parts_narrower_than_fragments_are_refused() -> None:
    text = REDUCTIONS_INWARD.instances[-1].replace("r |> split(8)", "r |> split(4)")
    result = in_inputs(REDUCTIONS_INWARD)(data_flow(check_expression(text)))
    assert isinstance(result, Failure) and "rows are not in tiles" in result.reason


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("(p, p)", "expected numbers for each row"),
        ("(p, q |> map(reduce(+, 0)))", "not computed from one product"),
        ("(p, a |> map(reduce(+, 0)))", "not computed from a product"),
        ("p |> map(fun(r => (r |> reduce(+, 0)) * (r |> reduce(*, 1))))", "expected a maximum and sums"),
        ("p |> map(fun(r => (r |> reduce(min, 9)) * (r |> reduce(max, 0))))", "expected a maximum and sums"),
        (
            "p |> map(fun(r => r |> reduce(+, 0)"
            " |> fun(s => r |> map(fun(x => (x - s) * x)) |> reduce(+, 0))))",
            "uses a reduction that is not a maximum",
        ),
        (
            "zip(p)(q) |> map(fun((r, t) => (r |> reduce(+, 0)) + (t |> reduce(+, 0))))",
            "not computed from one element",
        ),
    ],
)
def test_other_programs_are_not_such(result: str, why: str) -> None:
    ps = f"a |> map(fun(r => b |> map(fun(c => {DOT}))))"
    qs = f"b |> map(fun(r => a |> map(fun(c => {DOT}))))"
    text = f"fun((a: 3.3.i32, b: 3.3.i32) => ({ps}) |> fun(p => ({qs}) |> fun(q => {result})))"
    _, term = split(data_flow(check_expression(text)))
    refused = ROWS_BY_PARTS(term)
    assert beside(term) is None and isinstance(refused, Failure) and why in refused.reason
