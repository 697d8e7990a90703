"""Sums of products as one product of matrices beside each other: one accumulator, one loop, one ring."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rewrites.sums import DIFFERENCE_AS_SUM
from rise.canonical import canonical
from rise.check.program import check_expression
from rise.expr import Expr
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import assert_preserves
from strategies.core import seq, try_
from strategies.matmul.products import operands, outline
from strategies.matmul.sums import in_one_sum
from strategies.places import in_inputs
from strategies.search.hardware import H200
from strategies.search.problem import Problem
from strategies.search.space import ranked
from tests.support.programs import succeeded
from tests.support.warpgroups import ROLES, agrees, derived

SUM = "zip(r)(c) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
BY_ROWS, BY_COLUMNS = "n.k", "k.n"


def added(
    m: int, n: int, depths: tuple[int, ...], element: str = "", stored: tuple[str, ...] = (BY_ROWS,) * 4
) -> str:
    """A product for each depth, and an element of the result as a function of theirs, {0}, {1} and so on.

    stored: how the second operand of each lies in memory
    """
    inputs, elements = [], []
    for number, k in enumerate(depths):
        across = stored[number] == BY_COLUMNS
        inputs += [
            f"A{number}: {m}.{k}.f16",
            f"B{number}: {k}.{n}.f16" if across else f"B{number}: {n}.{k}.f16",
        ]
        columns = f"transpose(B{number})" if across else f"B{number}"
        product = f"A{number} |> map(fun(r => {columns} |> map(fun(c => {SUM}))))"
        elements.append(f"({product} |> idx(i) |> idx(j))")
    result = (element or " + ".join(f"{{{number}}}" for number in range(len(depths)))).format(*elements)
    return f"fun(({', '.join(inputs)}) => generate(fun(i => generate(fun(j => {result})))))"


def outlined(text: str) -> Expr:
    """Inside of all inputs: products as matrices, and what is done with their elements."""
    term = data_flow(check_expression(text))
    while hasattr(term, "body"):
        term = term.body
    return succeeded(outline(term)).term


def products_left(text: str, depth: int) -> int:
    """After the step, which preserves the value."""
    assert_preserves(in_inputs(seq(outline, in_one_sum(depth))), data_flow(check_expression(text)))
    result = in_one_sum(depth)(outlined(text))
    return len(list(operands(succeeded(result).term)))


# --- what becomes one product ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (added(3, 4, (16, 32)), 1),
        (added(3, 4, (16, 32, 48)), 1),
        (added(3, 4, (16, 7), "2.0 * ({0} + {1}) - 1.0"), 1),
        (added(3, 4, (5, 7)), 1),  # with eleven zeros behind the five
        (added(3, 4, (16, 16), "{0} * {1}"), 2),
        (added(3, 4, (16, 16), "{0} + 2.0 * {1}"), 2),
        (added(3, 4, (16, 16), "({0} + {1}) * {0}"), 2),
        (added(3, 4, (16, 16), stored=(BY_ROWS, BY_COLUMNS)), 2),
        (added(3, 4, (16, 16, 16), stored=(BY_ROWS, BY_COLUMNS, BY_ROWS)), 3),
    ],
)
def test_products_are_one_where_nothing_but_their_sum_is_used(text: str, left: int) -> None:
    assert products_left(text, depth=16) == left


# --- kernels -----------------------------------------------------------------------------------------------


SIZES = {
    "whole tiles": (128, 64, (128, 64)),
    "different depths that tiles do not divide": (65, 72, (72, 200)),
    "three products, one row": (1, 40, (8, 64, 136)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sums_are_exact_in_one_ring(name: str) -> None:
    m, n, depths = SIZES[name]
    text = added(m, n, depths)
    made = derived(text, **ROLES)
    assert made.source.count("Shared<half>") == 2  # tiles of first and of second operands
    assert made.source.count("{  // load") == len(depths)  # a loop for each, and no condition in it
    assert "if (k" not in made.source.split("// 2 compute")[0]
    assert agrees(text, made)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {**ROLES, "cluster": 2, "persistent_blocks": 2},
        {**ROLES, "swap_operands": True, "epilogue": "bulk"},
        {**ROLES, "epilogue": "shared", "split_cluster": 2, "block": (64, 64, 64)},
    ],
)
def test_schedules_of_one_product_take_sums_of_two(parameters: dict[str, Any]) -> None:
    text = added(192, 72, (72, 136), "f16({0} + {1})", (BY_COLUMNS, BY_COLUMNS))
    assert agrees(text, derived(text, **parameters))


def test_random_sums() -> None:
    random = Random(seed := 1123)
    for _ in range(2):
        depths = tuple(8 * random.randint(1, 20) for _ in range(random.randint(2, 3)))
        m, n, how = random.randint(1, 140), 8 * random.randint(1, 12), random.choice([BY_ROWS, BY_COLUMNS])
        text = added(m, n, depths, stored=(how,) * 3)
        assert agrees(text, derived(text, **ROLES, stages=random.randint(2, 4))), (seed, m, n, depths, how)


def test_the_search_takes_them_as_one_product() -> None:
    """The same schedule as for a product of the depth of both."""
    two = Problem.of(data_flow(check_expression(added(1792, 1280, (3208, 632)))))
    one = Problem.of(data_flow(check_expression(added(1792, 1280, (3840,)))))
    assert two is not None and one is not None
    first, second = (ranked("tensor_core", p, H200)[0] for p in (two, one))
    assert first.point == second.point


def crosswise(element: str) -> str:
    """An element as a function of those of A·C, B·D, A·D and B·C."""
    sums = [f"({a} |> map(fun(r => {b} |> map(fun(c => {SUM})))))" for a, b in ("AC", "BD", "AD", "BC")]
    elements = [f"({p} |> idx(i) |> idx(j))" for p in sums]
    inputs = "A: 3.16.f16, B: 3.16.f16, C: 4.16.f16, D: 4.16.f16"
    return f"fun(({inputs}) => generate(fun(i => generate(fun(j => {element.format(*elements)})))))"


@pytest.mark.parametrize(
    ("element", "left"),
    [
        ("({0} + {1}, {2} + {3})", 2),  # [A B]·[C D] and [A B]·[D C]
        ("({0} + {1}, {3} + {2})", 2),
        ("({1} + {0}) * ({2} + {3})", 2),
        ("({0} - {1}, {2} + {3})", 4),
        ("({0} + {1}, {2})", 3),
        ("({0} + {2}, {1})", 3),
    ],
)
def test_products_that_share_operands_stay_in_one_loop(element: str, left: int) -> None:
    """Unless their sums share what stands beside each other, too."""
    assert products_left(crosswise(element), 16) == left
    joined = succeeded(in_one_sum(16)(outlined(crosswise(element)))).term
    firsts = [canonical(first) for first, _ in operands(joined)]
    assert left != 2 or len(set(firsts)) == 1, "one loop over tiles of the same first operand"


@pytest.mark.parametrize(
    ("element", "sums"),
    [
        ("({0} - {1}, {2} + {3})", 1),
        ("({0} - {1}, {2} - {3})", 2),
        ("{0} - f32(f16({1}))", 0),
        ("({0} - {1}) * {1}", 0),
        ("{0} - 2.0 * {1}", 0),
    ],
)
def test_differences_of_products_are_sums_of_one_with_a_negated_operand(element: str, sums: int) -> None:
    term = outlined(crosswise(element))
    result = try_(DIFFERENCE_AS_SUM)(term)
    assert show(succeeded(result).term).count("toMem(Global)") == sums
    whole = data_flow(check_expression(crosswise(element)))
    assert_preserves(in_inputs(seq(outline, try_(DIFFERENCE_AS_SUM))), whole)
    bytes_ = crosswise(element).replace("f16", "i8")
    assert not succeeded(try_(DIFFERENCE_AS_SUM)(outlined(bytes_))).steps, "-128 has no opposite"
