"""Floats of indices: what unrolled loops add is converted apart, where floats hold all of it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.passes.floats_of_indices import EXACT
from codegen.pipeline import generate
from rise.check.program import check_expression
from rise.normal import data_flow

SUM = re.compile(r"\(float\)\(\(int\)\(([^;]*)\)\) \+ \(float\)\(\(int\)\(([^;]*)\)\)")


def kernel_of(rows: int, columns: int) -> Kernel:
    """Whose elements are floats of the numbers of columns, which an unrolled loop adds to."""
    text = (
        f"fun((xs: {rows}.{columns}.f32) => zip(xs |> join)(generate(fun(i => indexToInt(i))))"
        f" |> split({columns})"
        " |> mapGlobal(0)(fun(row => row |> mapSeqUnroll(fun((x, i) => x + f32(i))))))"
    )
    return generate(data_flow(check_expression(text)), "floats")


def test_an_unrolled_part_is_added_as_a_float() -> None:
    kernel = kernel_of(6, 3)
    assert (found := SUM.search(kernel.source)) is not None
    assert "3" in found.group(1)
    xs = np.arange(18, dtype=np.float32).reshape(6, 3)
    assert np.array_equal(np.asarray(execute(kernel, [xs], "emulate")).ravel(), np.arange(18) * 2.0)


def test_a_wrong_part_is_noticed() -> None:
    kernel = kernel_of(6, 3)
    found = SUM.search(kernel.source)
    assert found is not None
    place = found.start(2)
    wrong = replace(kernel, source=kernel.source[:place] + "1 + " + kernel.source[place:])
    xs = np.zeros((6, 3), np.float32)
    assert not np.array_equal(np.asarray(execute(wrong, [xs], "emulate")).ravel(), np.arange(18.0))


def test_numbers_that_floats_round_stay_whole() -> None:
    assert SUM.search(kernel_of(EXACT["f32"] // 64 - 1, 64).source) is not None
    assert SUM.search(kernel_of(EXACT["f32"] // 64 + 1, 64).source) is None
