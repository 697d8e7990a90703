"""Products with what is done to their elements, in many ways of writing it: one kernel each, and exact."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from codegen.runtime.compiling import compiler_report
from rise.check.program import Program
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.matmul.tensor_core import tensor_core
from tests.support.examples import EXAMPLES
from tests.support.nightly import every_other, in_turn
from tests.support.products import assert_same
from tests.support.programs import loaded, succeeded

MMA: dict[str, Any] = {"block": (32, 32, 32), "warp": (16, 16), "fragment": (16, 8, 16)}
GROUPS: dict[str, Any] = {"block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2}
ROLES: dict[str, Any] = {"warp_specialised": True, "raster_group": 1}
SCHEDULES: dict[str, dict[str, Any]] = {
    "mma direct": {**MMA, "epilogue": "direct"},
    "mma shared": {**MMA, "epilogue": "shared"},
    "wmma direct": {**MMA, "fragment": (16, 16, 16), "epilogue": "direct"},
    "wgmma direct": {**GROUPS, "epilogue": "direct"},
    "wgmma shared": {**GROUPS, "epilogue": "shared"},
    "wgmma bulk, roles": {**GROUPS, "epilogue": "bulk", **ROLES},
}
HELPERS = ("mixedDot", "AB", "toByte", "addRow", "addMatrix")
# how many kernels: sums alone are one pass over the columns where there are few tiles
OF_WHOLE_ROWS = {"rowSums": 1, "columnMaxima": 2, "withRowSums": 2, "rowsQuantised": 2}


@cache
def fused() -> Program:
    return loaded(EXAMPLES / "fused.rise")


NAMES = [name for name in fused().own if name not in (*HELPERS, *OF_WHOLE_ROWS)]


@cache
def program(name: str, m: int, n: int, k: int) -> Expr:
    return data_flow(inline(specialise(fused()[name], {"m": m, "n": n, "k": k})))


@cache
def derived(name: str, sizes: tuple[int, int, int], schedule: str, **changed: Any) -> Kernel:
    parameters = {**SCHEDULES[schedule], **changed}
    return generate(succeeded(tensor_core(**parameters)(program(name, *sizes))).term, name)


def assert_exact(name: str, sizes: tuple[int, int, int], kernel: Kernel | HostProgram) -> None:
    term = program(name, *sizes)
    inputs = random_inputs(inputs_of(term), seed=3, exact=True)
    found, wanted = execute(kernel, inputs, "emulate"), call(term, *inputs)
    assert_same(found, wanted, term)


# each program once, by warps or by warpgroups, whose results are stored in three ways in turn:
# `test_random_epilogues` draws from all pairs
PAIRS = in_turn(NAMES, SCHEDULES)


@pytest.mark.parametrize(("name", "schedule"), PAIRS)
def test_what_is_done_with_a_product_is_fused_and_exact(name: str, schedule: str) -> None:
    sizes = (64, 64, 32) if schedule.startswith("mma") else (128, 64, 64)
    kernel = derived(name, sizes, schedule)
    assert kernel.source.count("__global__") == 1
    assert kernel.source.count("wgmma<" if schedule.startswith("wgmma") else "mma_sync(") == 1
    assert_exact(name, sizes, kernel)


@pytest.mark.parametrize(
    ("name", "schedule"),
    in_turn(
        ["indexed", "rowsAndColumns", "transposedResult", "masked", "ofTwoTypes"],
        ["mma direct", "mma shared", "wgmma direct"],
    ),
)
def test_tiles_may_stick_out(name: str, schedule: str) -> None:
    sizes = (48, 40, 24) if schedule.startswith("mma") else (120, 72, 40)
    assert_exact(name, sizes, derived(name, sizes, schedule))


def test_two_ways_of_writing_a_program_give_one_kernel() -> None:
    sizes = (128, 64, 64)
    sources = {
        derived(name, sizes, "wgmma direct").source.replace(name, "kernel") for name in ("chained", "zipped")
    }
    assert len(sources) == 1


def test_a_matrix_that_is_used_twice_is_computed_once() -> None:
    assert derived("named", (128, 64, 64), "wgmma direct").source.count("power_of_two(") == 1


@pytest.mark.parametrize("name", every_other(OF_WHOLE_ROWS))
def test_what_needs_whole_rows_is_one_pass_or_a_kernel_after_the_product(name: str) -> None:
    sizes = (64, 520, 32)  # more columns than a tile has
    made = assemble(succeeded(auto("sm_90a")(program(name, *sizes))).term, name)
    assert len(made.kernels) == OF_WHOLE_ROWS[name] and "mma" in made.kernels[0].source
    assert_exact(name, sizes, made)


# small tiles leave room for bulk stores, large ones need the most registers
BLOCKS = {
    "bulk": {"block": (128, 128, 64), "warp": (64, 128)},
    "direct": {"block": (128, 256, 64), "warp": (64, 256)},
}


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize(("name", "epilogue"), in_turn(["chained", "rowsAndColumns", "ofTwoTypes"], BLOCKS))
def test_no_register_is_spilled(name: str, epilogue: str) -> None:
    """Two results of 32 bits do not fit beside a ring of three slots."""
    shape = {
        "fragment": (64, 128, 16),
        "stages": 3 if name == "chained" else 2,
        "epilogue": epilogue,
        **BLOCKS[epilogue],
    }
    made = derived(name, (1024, 1024, 1024), "wgmma bulk, roles", **shape)
    report = compiler_report(made.source, "sm_90a")
    assert "serialized" not in report and "0 bytes stack frame, 0 bytes spill stores" in report
