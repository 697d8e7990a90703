"""The bound within which two results of one program agree follows from what the program computes."""

from __future__ import annotations

import pytest

from rise.check.compare import EPSILON, tolerance
from rise.check.program import check_expression
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
