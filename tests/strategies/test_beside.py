"""Rows and columns reduced in the kernel of a product, from its registers: exact, on whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from codegen.runtime.compiling import compiler_report
from rewrites.result import Failure
from rewrites.storing import GLOBAL_FIRST
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.expr import Expr, application, children
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import split
from strategies.core import seq, try_
from strategies.cuts import value_stored
from strategies.matmul.beside import stored_together
from strategies.matmul.separate import is_one_kernel, rows_stored, separate_kernels
from strategies.matmul.tensor_core import tensor_core
from strategies.memory_bound.family import fitting
from strategies.places import in_inputs
from tests.support.nightly import every_other
from tests.support.programs import succeeded

DOT = "zip(r)(c) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
SUMS = "map(fun(r => r |> reduce(+, 0)))"
GROUPS: dict[str, Any] = {"block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2}
ROLES: dict[str, Any] = {"warp_specialised": True, "raster_group": 2}
WARPS: dict[str, Any] = {"block": (32, 64, 32), "warp": (16, 64), "fragment": (16, 32, 16), "stages": 2}
# a result, sizes, a schedule, the temporaries besides copies of operands
CASES: dict[str, tuple[str, tuple[int, int, int], dict[str, Any], int]] = {
    "a row is one tile": (f"(p, p |> {SUMS})", (70, 64, 64), {**GROUPS, "epilogue": "direct"}, 0),
    "rows of several tiles, results in bulk": (
        "(p |> map(map(fun(x => f16(x)))), p |> map(fun(r => r |> map(fun(x => f32(f16(x)) * f32(f16(x))))"
        " |> reduce(+, 0))))",
        (70, 104, 64),
        {**GROUPS, **ROLES, "epilogue": "bulk"},
        1,
    ),
    "clusters, sizes that nothing divides": (
        "(p, p |> map(fun(r => (r |> map(fun(x => x + 1)) |> reduce(+, 0)) * 2 + 1)))",
        (61, 101, 33),
        {**GROUPS, **ROLES, "raster_group": 1, "cluster": 2, "persistent_blocks": 4, "epilogue": "direct"},
        1,
    ),
    "columns of a result whose operands are swapped": (
        f"(p |> map(map(fun(x => f16(x)))), transpose(p) |> {SUMS})",
        (70, 72, 64),
        {**GROUPS, **ROLES, "epilogue": "bulk", "swap_operands": True},
        1,
    ),
    "columns of a result with an operand that is copied before": (
        f"(p |> map(map(fun(x => f16(x)))), transpose(p) |> {SUMS})",
        (67, 136, 41),
        {**GROUPS, **ROLES, "epilogue": "bulk", "swap_operands": True},
        1,
    ),
    "rows alone, by warps": (
        f"p |> {SUMS}", (37, 48, 40), {**WARPS, "epilogue": "direct", "swizzled": True}, 1,
    ),
}  # fmt: skip


@cache
def program(result: str, m: int, n: int, k: int) -> Expr:
    product = f"a |> map(fun(r => transpose(b) |> map(fun(c => {DOT}))))"
    text = f"fun((a: {m}.{k}.f16, b: {k}.{n}.f16) => let p = {product} in {result})"
    return data_flow(check_expression(text))


def leaves(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield np.asarray(value)


def assert_exact(term: Expr, made: HostProgram) -> None:
    inputs = random_inputs(inputs_of(term), 5, exact=True)
    for found, wanted in zip(
        leaves(execute(made, inputs, "emulate")), leaves(call(term, *inputs)), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", every_other(CASES))
def test_rows_are_reduced_by_those_who_hold_them(name: str) -> None:
    """What is stored of the matrix is the result: only operands and parts of sums are temporaries."""
    result, sizes, parameters, parts = CASES[name]
    term = program(result, *sizes)
    made = assemble(succeeded(tensor_core(**parameters)(term)).term, "f")
    (product,) = (kernel for kernel in made.kernels if "mma" in kernel.source)
    temporaries = {temporary.variable.name for temporary in made.temporaries}
    written = {output.name for output in product.function.outputs} & temporaries
    assert len(written) == parts and "shuffle_xor" in product.source
    assert_exact(term, made)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "operands are swapped": (
        {**GROUPS, **ROLES, "epilogue": "bulk", "swap_operands": True}, "fragments have parts of columns",
    ),
    "results through shared memory": ({**GROUPS, "epilogue": "shared"}, "rows are not in tiles"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_no_fragment_has_are_refused(name: str) -> None:
    failure = tensor_core(**REFUSED[name][0])(program(f"(p, p |> {SUMS})", 128, 128, 64))
    assert isinstance(failure, Failure)
    assert REFUSED[name][1] in failure.reason


def test_the_norms_of_an_operand_are_a_kernel_by_rows_before_the_product() -> None:
    """Their scale commutes with the sums of products: the operand is multiplied as it is."""
    scaled = "map(fun(x => f16(x * rsqrt(s + 1))))"
    norm = "(r |> map(fun(x => f32(x) * f32(x))) |> reduce(+, 0))"
    term = program(f"zip(a)(p) |> map(fun((r, xs) => {norm} |> fun(s => xs |> {scaled})))", 37, 41, 24)
    cut = succeeded(seq(rows_stored, GLOBAL_FIRST)(split(term)[1])).term
    stored, rest = application(cut)[2]
    found = fitting(application(stored)[2][0])
    assert found is not None and found.strategy.name == "rows" and is_one_kernel(children(rest)[0])


def test_a_matrix_and_the_norms_of_its_rows_are_one_kernel_before_another_product() -> None:
    """The next product reads both; the norms are a column in its epilogue."""
    d = f"a |> map(fun(r => transpose(b) |> map(fun(c => f16({DOT})))))"
    sums = "r |> map(fun(x => f32(x))) |> reduce(+, 0)"
    scaled = f"({sums}) |> fun(s => w |> map(fun(c => ({DOT}) * s)))"
    text = f"fun((a: 37.16.f16, b: 16.48.f16, w: 8.48.f16) => ({d}) |> map(fun(r => {scaled})))"
    term = data_flow(check_expression(text))
    cut = succeeded(in_inputs(seq(separate_kernels, try_(GLOBAL_FIRST), stored_together))(term)).term
    made = assemble(succeeded(tensor_core(**WARPS, epilogue="direct")(cut)).term, "f")
    names = [kernel for kernel in made.kernels if "mma" in kernel.source]
    assert len(made.kernels) == 3 and len(names) == 2
    assert_exact(term, made)


def test_two_results_of_one_product_are_one_kernel() -> None:
    """A name for the product does not make a kernel of its own for it."""
    term = program("(p |> map(map(fun(x => max(x, 0)))), p |> map(map(fun(x => x + 1))))", 256, 256, 128)
    assert isinstance(value_stored(split(term)[1]), Failure)


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
def test_no_register_is_spilled() -> None:
    result, _, parameters, _ = CASES["rows of several tiles, results in bulk"]
    large = {**parameters, "block": (128, 256, 64), "warp": (64, 256), "fragment": (64, 256, 16)}
    made = assemble(succeeded(tensor_core(**large)(program(result, 1024, 1024, 256))).term, "f")
    report = compiler_report(made.kernels[0].source, "sm_90a")
    assert "serialized" not in report and "0 bytes stack frame, 0 bytes spill stores" in report
