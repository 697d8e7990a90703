"""Rows of an operand reduced in the loop of its product: exact, in one kernel, refused by name elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.derivation import programs
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.matmul.columns import scales_outside
from strategies.matmul.tensor_core import tensor_core
from strategies.places import in_inputs
from strategies.search.choice import Search, reduced_beside
from strategies.search.hardware import for_target
from strategies.search.problem import Problem
from tests.support.nightly import every_other
from tests.support.programs import loaded, succeeded

FUSED = loaded(Path(__file__).parents[2] / "benchmarks" / "tables" / "fused.rise")
DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"


def product(name: str) -> str:
    return f"(a |> map(fun(row => transpose({name}) |> map(fun(col => {DOT})))))"


SQUARES = "(r |> map(fun(x => f32(x) * f32(x))) |> reduce(+, 0))"
LARGEST = "(r |> map(fun(x => max(f32(x))(0 - f32(x)))) |> reduce(max, 0))"
SUM = "(r |> map(fun(x => f32(x))) |> reduce(+, 0))"
ONE = f"zip(a)({product('b')}) |> map(fun((r, xs) => "
PROGRAMS = {
    "squares": f"{ONE}{SQUARES} |> fun(s => xs |> map(fun(x => x * s)))))",
    "largest": f"{ONE}{LARGEST} |> fun(s => xs |> map(fun(x => f16(x + s))))))",
    "several": f"{ONE}{SUM} |> fun(t => xs |> map(fun(x => (x - t) * ({SQUARES} - t * t))))))",
    "two products": f"zip(a)(zip({product('b')})({product('c')})) |> map(fun((r, (xs, ys)) =>"
    f" {SQUARES} |> fun(s => zip(xs)(ys) |> map(fun((x, y) => (x + s) * y)))))",
}
GROUPS: dict[str, Any] = {
    "block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "raster_group": 1,
    "epilogue": "bulk", "warp_specialised": True,
}  # fmt: skip
WARPS: dict[str, Any] = {
    "block": (64, 32, 32), "warp": (32, 32), "fragment": (16, 8, 16), "swizzled": True,
    "prefetch_fragments": True, "epilogue": "direct",
}  # fmt: skip
ALONE = {"block": (64, 64, 64), "persistent_blocks": 2, "ping_pong": 2}
# each program with some schedule of each kind, and sizes that tiles divide, or not
CASES: dict[str, tuple[str, dict[str, Any], tuple[int, int, int]]] = {
    "groups, direct": ("squares", {**GROUPS, "epilogue": "direct"}, (128, 64, 192)),
    "groups, tiles stick out": ("largest", GROUPS, (131, 72, 128)),
    "in clusters": ("several", {**GROUPS, "persistent_blocks": 2, "cluster": 2}, (128, 192, 64)),
    "in turn": ("squares", {**GROUPS, **ALONE}, (192, 64, 128)),
    "two products": ("two products", GROUPS, (65, 64, 64)),
    "warps": ("several", WARPS, (67, 40, 64)),
    "warps, two products": ("two products", {**WARPS, "raster_group": 2}, (61, 40, 96)),
}


def program(name: str, m: int, n: int, k: int) -> Expr:
    inputs = f"a: {m}.{k}.f16, b: {k}.{n}.f16, c: {k}.{n}.f16"
    return data_flow(check_expression(f"fun(({inputs}) => {PROGRAMS[name]})"))


@pytest.mark.parametrize("case", every_other(CASES))
def test_rows_are_reduced_in_the_loop_of_their_product(case: str) -> None:
    name, parameters, sizes = CASES[case]
    term = program(name, *sizes)
    made = assemble(succeeded(tensor_core(**parameters)(term)).term, "f")
    (kernel,) = made.kernels
    assert "mma" in kernel.source and "shuffle_xor" in kernel.source
    inputs = random_inputs(inputs_of(term), 7, exact=True)
    np.testing.assert_array_equal(execute(made, inputs, "emulate"), call(term, *inputs))


def test_every_step_preserves_a_product_with_norms() -> None:
    term = program("several", 64, 32, 64)
    made = succeeded(tensor_core(**{**WARPS, "raster_group": 1})(term))
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    wanted = np.asarray(call(term, *inputs))
    for step, whole in zip(made.steps, programs(term, made), strict=True):
        np.testing.assert_array_equal(call(whole, *inputs), wanted, err_msg=step.rule)
    assert {"column on fragments", "tupling", "pointwise on fragments"} <= {step.rule for step in made.steps}


def test_squares_are_computed_while_tensor_cores_multiply() -> None:
    """A step's rows are loaded when its products are under way; its slots are handed back in the next."""
    made = assemble(succeeded(tensor_core(**GROUPS)(program("squares", 128, 64, 512))).term, "f")
    _, after = made.kernels[0].source.split("wgmma_commit();", 1)
    order = [
        after.index(text) for text in ("wgmma_wait<1>", "barrier_arrive", "load_matrices", "shuffle_xor")
    ]
    assert order == sorted(order)
    # a slot of the rows is read by products, too, that are under way behind the last load
    assert "barrier_arrive" not in after[order[-1] : after.index("wgmma_wait<0>")]


REFUSED: dict[str, tuple[str, dict[str, Any], tuple[int, int, int], str]] = {
    "of the transposed result": ("squares", {**GROUPS, "swap_operands": True}, (128, 128, 64), "has them as"),
    "parts of columns": ("squares", {**WARPS, "warp": (32, 16)}, (64, 32, 32), "parts of the 32 columns"),
    "parts of k": ("squares", {**GROUPS, "split_k": 2}, (128, 64, 128), "only a part of k"),
    "through shared memory": ("squares", {**GROUPS, "epilogue": "shared"}, (128, 64, 64), "in its registers"),
    "WMMA": (
        "squares", {"block": (32, 32, 32), "warp": (32, 32), "epilogue": "direct"}, (32, 32, 32),
        "which threads hold a row",
    ),
    "steps that do not divide k": ("squares", WARPS, (64, 32, 40), "32 does not divide 40"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_no_worker_holds_are_refused(case: str) -> None:
    name, parameters, sizes, reason = REFUSED[case]
    failure = tensor_core(**parameters)(program(name, *sizes))
    assert isinstance(failure, Failure)
    assert reason in failure.reason


def test_rows_of_another_matrix_are_refused() -> None:
    text = PROGRAMS["squares"].replace("zip(a)(", "zip(d)(", 1)
    inputs = "a: 64.32.f16, b: 32.32.f16, d: 64.32.f16"
    failure = tensor_core(**WARPS)(data_flow(check_expression(f"fun(({inputs}) => {text})")))
    assert isinstance(failure, Failure)
    assert "not those of the products' first operand" in failure.reason


def test_auto_takes_norms_into_the_product_of_few_columns() -> None:
    """A scale inside of a rounding moves out of it, and out of the sum."""
    term = data_flow(specialise(FUSED["rmsProduct"], {"m": 70, "n": 40, "k": 128}))
    found = auto()
    assert len(found.choice(term).kernels) == 1
    problem = Problem.of(succeeded(in_inputs(scales_outside)(term)).term)
    assert problem is not None and not problem.computed  # products read the rows as they lie
    inputs = random_inputs(inputs_of(term), 5, exact=False)
    result = execute(assemble(succeeded(found(term)).term, "f"), inputs, "emulate")
    assert compare(result, call(term, *inputs), tolerance(term)).agrees


@pytest.mark.parametrize(("sizes", "one"), [((16384, 256, 1024), True), ((4096, 4096, 4096), False)])
def test_a_kernel_before_reduces_rows_that_many_tiles_have(sizes: tuple[int, int, int], one: bool) -> None:
    """Each column of tiles would reduce them again."""
    term = data_flow(specialise(FUSED["rmsScaled"], dict(zip("mnk", sizes, strict=True))))
    search = Search(for_target("sm_90a"), "sm_90a")
    problem = Problem.of(term)
    # squares of elements, and a scale of each result
    assert problem is not None and (problem.row_work, problem.work) == (3, 2)
    assert reduced_beside(search, term) is one
