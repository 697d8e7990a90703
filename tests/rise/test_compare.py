"""The bound within which two results of one program agree follows from what the program computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rise.check.compare import EPSILON, compare, tolerance
from rise.check.program import check_expression, check_text
from rise.check.specialise import specialise
from rise.check.undefined import where_defined
from rise.interpret import call
from rise.normal import data_flow
from rise.primitives.declare import REGISTRY, plain_pattern

FOLDS = {
    "reduce(+, 0)", "reduceSeq(+, 0)", "reduceSeqUnroll(+, 0)", "scan(+, 0)", "scanSeq(+, 0)",
    "reducePipelined(2)(fun(x => x), +, 0)", "reduceRoleSplit(2, 1, 2)(fun(x => x), +, 0)",
}  # fmt: skip


@pytest.mark.parametrize("fold", sorted(FOLDS))
def test_a_sum_is_rounded_once_for_each_term(fold: str) -> None:
    found = tolerance(check_expression(f"fun(xs: 997.f16 => xs |> {fold})"))
    assert found.sums == 997 * EPSILON["f16"]


def test_without_a_sum_each_element_is_rounded_a_few_times() -> None:
    found = tolerance(check_expression("fun(xs: 997.f16 => xs |> map(fun(x => x * x)))"))
    assert (found.sums, found.relative) == (0, 4 * EPSILON["f16"])


def test_every_way_of_executing_a_fold_is_known() -> None:
    folds = {name for name, d in REGISTRY.items() if plain_pattern(d) in ("reduce", "scan")}
    assert folds == {fold.partition("(")[0] for fold in FOLDS}


PARTS = """
def f(counts: 3.Idx[5], xss: 3.4.f32): 3.(4.f32, (4.i32, 4.bool)) =
  zip(xss |> prefixes(counts))(zip(
    generate((i: Idx[3]) => generate((j: Idx[4]) => indexToInt(j))) |> prefixes(counts))(
    xss |> map(map(x => x < 0)) |> prefixes(counts)))
"""


def test_what_a_program_leaves_undefined_may_be_anything() -> None:
    """Of every type, and in each part of a result; what it defines has to be right, NaN too."""
    program = data_flow(specialise(check_text(PARTS)["f"], {}))
    xss = np.arange(12, dtype=np.float32).reshape(3, 4) - 6
    xss[1, 0] = np.nan
    inputs = [np.array([4, 1, 0], np.int32), xss]
    expected: Any = call(program, *inputs)
    floats, (numbers, flags) = copied(expected)
    for part, anything in ((floats, 7), (numbers, 7), (flags, False)):
        part[1, 1:], part[2] = anything, anything
    result = (floats, (numbers, flags))
    assert not compare(result, expected).agrees
    assert compare(where_defined(program, inputs, result, expected), expected).agrees
    for wrong in (floats, numbers, flags):
        right = wrong[0, 1]
        wrong[0, 1] = not right
        assert right != wrong[0, 1]
        assert not compare(where_defined(program, inputs, result, expected), expected).agrees
        wrong[0, 1] = right
    for other in ((floats,), floats):  # of another form
        assert not compare(where_defined(program, inputs, other, expected), expected).agrees
    floats[1, 0] = 0  # where it should be NaN
    assert not compare(where_defined(program, inputs, result, expected), expected).agrees


def copied(result: Any) -> Any:
    return tuple(map(copied, result)) if isinstance(result, tuple) else np.array(result)


def test_where_another_number_makes_an_index_wrong_the_result_stays() -> None:
    """The program has a result all the same, since it chooses none of the undefined numbers."""
    text = """
def f(xs: 2.f32, counts: 1.Idx[3]): 2.f32 =
  makeArray(1)(makeArray(2)(0, 1)) |> prefixes(counts) |> join
  |> map(i => xs |> idx(natAsIndex(2)(max(i, 0)))) |> take(2)
"""
    program = data_flow(specialise(check_text(text)["f"], {}))
    inputs = [np.array([1, 2], np.float32), np.array([1], np.int32)]
    expected = call(program, *inputs)  # of the smallest integer, element 0; the largest is no index
    result = np.array([1, 3], np.float32)
    assert where_defined(program, inputs, result, expected) is result
