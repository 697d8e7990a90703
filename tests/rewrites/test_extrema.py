"""Indices of extrema: an argmax is a maximum, and the least index where it is."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from rewrites.algorithmic import is_reduction
from rewrites.extrema import INDEX_OF_EXTREMUM
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.expr import Expr, subterms
from rise.normal import data_flow
from rise.testing.rewriting import assert_preserves
from strategies.core import top_down

# of two pairs (index, element): which one is taken
ORDERS = {
    "the first of the largest": "x > y || (x == y && i < j)",
    "the last of the largest": "x > y || (x == y && i > j)",
    "the first of the smallest": "x < y || (x == y && i < j)",
    "the last of the smallest": "!(x > y) && (x != y || j <= i)",
}


def argument(order: str, size: int, start: int, type_: str, numbers: bool, swapped: bool, xs: str) -> str:
    """The index and the element that such an order takes, of a function of the elements of an array."""
    index = f"fun((i: Idx[{size}]) => {'indexToInt(i)' if numbers else 'i'})"
    arrays = [f"generate({index})", f"xs |> map(fun(x => {xs}))"]
    first, second, begins = ("(i, x)", "(j, y)", f"({start}, ys |> idx({start}))")
    if swapped:
        arrays.reverse()
        first, second, begins = "(x, i)", "(y, j)", f"(ys |> idx({start}), {start})"
    operator = f"fun(({first}, {second}) => select({order})({first})({second}))"
    return (
        f"fun((xs: {size}.{type_}) => ({arrays[1 - swapped]}) |> fun(ys =>"
        f" zip({arrays[0]})({arrays[1]}) |> reduce({operator}, {begins})))"
    )


@pytest.mark.parametrize(("name", "seed"), list(product(ORDERS, range(3))))
def test_an_index_and_its_element_stay_those_that_the_order_takes(name: str, seed: int) -> None:
    """Whichever comes first in the pairs, of signed and unsigned numbers and floats, with many equal ones."""
    random = Random(f"{name} {seed}")
    size, start = random.choice((1, 2, 3, 7, 16)), 0
    start = random.randrange(size)
    type_, (numbers, swapped) = random.choice(("f32", "i32", "u8", "f16")), random.choices((True, False), k=2)
    few = "x % 3" if type_ in ("i32", "u8") else "max(x, 1)"
    text = argument(ORDERS[name], size, start, type_, numbers, swapped, few)
    print(name, seed, text)
    assert_preserves(top_down(INDEX_OF_EXTREMUM), text, seeds=range(4))


REFUSED = {
    "of equal elements, either": (("x > y", 5, 0, "f32", False, False, "x"), "does not take the better"),
    "the other one": (("i < j", 5, 0, "f32", False, False, "x"), "does not take the better"),
    "an element and another index": (
        ("x > y || (x == y && i < j)", 5, 0, "f32", False, False, "x"),
        "starts from",
    ),
}


def reduction(text: str) -> Expr:
    """The reduction of pairs in a program."""
    return next(filter(is_reduction, subterms(data_flow(check_expression(text)))))


@pytest.mark.parametrize("name", REFUSED)
def test_other_reductions_of_pairs_stay(name: str) -> None:
    arguments, why = REFUSED[name]
    text = argument(*arguments)
    if "starts" in why:
        text = text.replace("(0, ys |> idx(0))", "(1, ys |> idx(0))")
    refused = INDEX_OF_EXTREMUM(reduction(text))
    assert isinstance(refused, Failure) and why in refused.reason


def test_an_operator_that_uses_another_number_stays() -> None:
    text = argument("x > y || (x == y && i < j)", 5, 0, "f32", False, False, "x")
    free = text.replace("fun((xs: 5.f32) =>", "fun((t: f32, xs: 5.f32) =>").replace("x > y", "x > y + t")
    refused = INDEX_OF_EXTREMUM(reduction(free))
    assert isinstance(refused, Failure) and "does not take the better" in refused.reason
