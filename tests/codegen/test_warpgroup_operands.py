"""Operands of warpgroups' products: in registers, of four bytes and of one; slices; several products."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.emulation.emulator import Buffer, emulate
from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir.fragments import distribution
from codegen.ir.tensor_maps import TensorBuffer
from codegen.pipeline import assemble
from codegen.runtime.compiling import compiler_report
from rewrites.result import Failure, Result
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import EmulationError, StrategyError
from rise.interpret import call, random_inputs
from rise.nat import constant
from rise.normal import data_flow
from rise.types import Fragment, FragmentKind, Scalar
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other
from tests.support.programs import succeeded

FLOATS = "zip(row)(col) |> map(fun((x, y) => f32({x}) * f32({y}))) |> reduce(+, 0)"
SAME = "zip(row)(col) |> map(fun((x, y) => {x} * {y})) |> reduce(+, 0)"
WHOLE = "zip(row)(col) |> map(fun((x, y) => i32({x}) * i32({y}))) |> reduce(+, 0)"
RELU = "max(x, 0.0)"
# a block of 128 × 64, two warpgroups
F16 = {"block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16)}
TF32 = {"block": (128, 24, 32), "warp": (64, 24), "fragment": (64, 24, 8)}
BYTES = {"block": (128, 48, 128), "warp": (64, 48), "fragment": (64, 48, 32)}


def product(
    k: int, n: int = 128, type_: str = "f16", dot: str = FLOATS, x: str = "x", y: str = "y", given: str = ""
) -> str:
    columns = dot.format(x=x, y=y)
    inputs = f"{given}A: 128.{k}.{type_}, B: {n}.{k}.{type_}"
    return f"fun(({inputs}) => A |> map(fun(row => B |> map(fun(col => {columns})))))"


def schedule(text: str, stages: int = 3, **parameters: Any) -> Result:
    return tensor_core(**{**F16, "epilogue": "direct", "stages": stages, **parameters})(
        data_flow(check_expression(text))
    )


@cache
def derived(text: str, stages: int = 3, **parameters: Any) -> HostProgram:
    return assemble(succeeded(schedule(text, stages, **parameters)).term, "product")


def agrees(text: str, made: HostProgram, seed: int = 0) -> bool:
    term = check_expression(text)
    inputs = random_inputs(inputs_of(term), seed=7, exact=True)
    return np.array_equal(execute(made, inputs, "emulate", seed=seed), call(term, *inputs))


def compiles(made: HostProgram) -> bool:
    report = compiler_report(made.kernels[0].source, "sm_90a")
    return "serialized" not in report and "0 bytes spill stores" in report


# --- a function of the first operand ------------------------------------------------------------------------

TRANSPOSED = product(192, x=RELU).replace("A: 128.192", "A: 192.128").replace("=> A |>", "=> transpose(A) |>")
MAPPED = product(256, type_="bf16").replace("A |>", f"A |> map(map(fun(x => {RELU}))) |>")
# with one k tile, one less than the ring has slots, as many, and one more
CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "relu(A)·Bᵀ, one tile": (product(64, x=RELU), {}),
    "(s·A)·Bᵀ, two tiles": (product(128, x="s * x", given="s: f16, "), {}),
    "relu(Aᵀ)·Bᵀ, two by two fragments, three tiles": (
        TRANSPOSED, {"block": (128, 64, 64), "warp": (128, 64), "fragment": (64, 32, 16)},
    ),
    "the matrix relu(A), bf16, four tiles": (MAPPED, {}),
    "loaded for each product": (product(128, x=RELU), {"load_once": False}),
    "sums in f16, panels": (product(256, dot=SAME, x="-x"), {"block": (128, 64, 128), "stages": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", every_other(CHANGED))
def test_a_function_of_the_first_operand_is_applied_in_registers(name: str) -> None:
    text, parameters = CHANGED[name]
    made = derived(text, **parameters)
    source = made.kernels[0].source
    assert "load_matrices" in source and "bulk_load(" in source
    assert ("a_fragment[" in source) == parameters.get("load_once", True)
    assert all(agrees(text, made, seed) for seed in range(3))  # copies arrive late, at once, at random


def test_with_roles_a_slot_is_given_back_when_all_have_read_it() -> None:
    """Products that are over say nothing of what the threads of a warpgroup read themselves."""
    text = product(256, x=RELU)
    made = derived(text, 2, warp_specialised=True, raster_group=1)
    assert all(agrees(text, made, seed) for seed in range(2))
    source, barrier = (
        made.kernels[0].source,
        re.compile(r" *named_barrier\(.*, 128\);\n(?= *if .* barrier_arrive)"),
    )
    (found,) = barrier.findall(source)
    kernel = replace(made.kernels[0], source=source.replace(found, "\n"))
    with pytest.raises(EmulationError, match="writes byte .* of shared memory, which .* read") as caught:
        agrees(text, replace(made, kernels=(kernel,)))
    assert caught.value.code == "R0907"
    assert not barrier.findall(
        derived(product(256), 2, warp_specialised=True, raster_group=1).kernels[0].source
    )


def test_matrices_of_the_first_operand_are_loaded_without_bank_conflicts() -> None:
    text, _ = CHANGED["relu(A)·Bᵀ, one tile"]
    (made,) = derived(text).kernels
    inputs = random_inputs(inputs_of(check_expression(text)), seed=5, exact=True)
    found = execute_counting(made, inputs)
    lines = made.source.splitlines()
    loads = [c for line, c in found.items() if "load_matrices" in lines[line - 1]]
    assert loads and all(c.phases == c.wavefronts for c in loads)


def execute_counting(made: Any, inputs: Any) -> Any:
    """The bank conflicts of a kernel, by line."""
    memory = {name: np.ascontiguousarray(array) for (name, _), array in zip(made.inputs, inputs, strict=True)}
    out = Buffer("output", np.full((128, 128), np.nan, np.float32), initialised=False)
    maps = [TensorBuffer(m.name, memory[m.buffer], m.map) for m in made.function.maps]
    arguments: list[Buffer | np.ndarray | TensorBuffer] = [out, *memory.values(), *maps]
    return emulate(
        made.source,
        made.name,
        made.launch.grid_at({}),
        made.launch.block,
        arguments,
        made.launch.shared_bytes,
    ).conflicts


def test_the_first_operand_is_where_the_instruction_has_it() -> None:
    """The formula of the PTX manual for wgmma's A in registers: 16 bytes of each of 128 threads."""
    for name, k in (("f16", 16), ("tf32", 8), ("i8", 32)):
        element = Scalar(name)
        sizes = constant(64), constant(k), constant(24)
        places = distribution(Fragment(*sizes, element, FragmentKind.A))
        together, held = 4 // element.bytes, Counter[tuple[int, int]]()
        assert places is not None and places.registers == constant(4 * together)
        for thread in range(128):
            for i in range(4 * together):
                row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // together % 2)
                column = thread % 4 * together + i % together + 4 * together * (i // together // 2)
                assert places.at(constant(thread), constant(i)) == (constant(row), constant(column))
                held[row, column] += 1
        assert held == {(row, column): 1 for row in range(64) for column in range(k)}


FAULTS = {
    "registers are not ready": ("wgmma_fence();", ";"),
    "registers are written too early": ("    wgmma_wait<0>();\n", "    wgmma_wait<1>();\n"),
    "matrices of another warp": ("member_row_1 * 1024", "(member_row_1 ^ 1) * 1024"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_text_is_noticed(name: str) -> None:
    text, _ = CHANGED["the matrix relu(A), bf16, four tiles"]
    made = derived(text)
    right, wrong = FAULTS[name]
    assert right in made.kernels[0].source
    kernel = replace(made.kernels[0], source=made.kernels[0].source.replace(right, wrong))
    with suppress(EmulationError):
        assert not agrees(text, replace(made, kernels=(kernel,)))


# --- elements of four bytes and of one ----------------------------------------------------------------------

SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "tf32, one of them changed": (product(160, 72, "tf32", x="tf32(max(f32(x), 0.0))"), TF32),
    "bytes, in panels": (product(512, 96, "i8", WHOLE), {**BYTES, "block": (128, 48, 256)}),
}


@pytest.mark.parametrize("name", SIZES)
def test_operands_of_other_sizes_are_multiplied(name: str) -> None:
    text, parameters = SIZES[name]
    made = derived(text, **parameters)
    assert f"wgmma<{parameters['fragment'][1]}, " in made.kernels[0].source
    assert all(agrees(text, made, seed) for seed in range(3))


# --- slices of the sums, several products -------------------------------------------------------------------

SUM = f"""fun((A: 128.192.f16, B: 128.192.f16, P: 128.128.f16, Q: 128.128.f16) =>
    zip(A)(P) |> map(fun((row, ps) => zip(B)(Q) |> map(fun((col, qs) =>
        ({FLOATS.format(x=RELU, y="y")}) +
        (zip(ps)(qs) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)))))))"""


def test_blocks_share_the_sums_of_a_tile() -> None:
    """Three k tiles a slice, two slices; the second kernel adds them in order."""
    text = product(384, x=RELU)
    made = derived(text, split_k=2)
    first, second = made.kernels
    assert len(first.function.maps) == 2 and not second.function.maps
    assert "hopper" not in second.source and all(agrees(text, made, seed) for seed in range(3))


def test_several_products_are_one_kernel() -> None:
    """One after the other in the same ring, the first operand of one of them in registers."""
    made = derived(SUM)
    (kernel,) = made.kernels
    assert len(kernel.function.maps) == 4 and kernel.launch.shared_bytes < 2 * 3 * 24576
    assert all(agrees(SUM, made, seed) for seed in range(3))


# --- for a GPU ----------------------------------------------------------------------------------------------

BIG: dict[str, dict[str, Any]] = {
    "f16": {"block": (128, 256, 64), "warp": (64, 256), "fragment": (64, 256, 16)},
    "tf32": {"block": (128, 128, 32), "warp": (64, 128), "fragment": (64, 128, 8)},
    "i8": {"block": (128, 256, 128), "warp": (64, 256), "fragment": (64, 256, 32)},
}


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("type_", BIG)
def test_the_text_compiles_without_remarks(type_: str) -> None:
    changed = {"f16": RELU, "tf32": "tf32(max(f32(x), 0.0))", "i8": "max(x, 0)"}[type_]
    dot = WHOLE if type_ == "i8" else FLOATS
    assert compiles(derived(product(512, 256, type_, dot, x=changed), 4, **BIG[type_]))


# --- refusals -----------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "the second operand is computed": (product(128, y="max(y, 0.0)"), {}, "only the first operand can go"),
    "more than single elements": (
        product(128).replace("A: 128", "s: 128.f16, A: 128").replace(
            "A |>", "zip(A)(s) |> map(fun((r, f) => r |> map(fun(x => x * f)))) |>"
        ), {}, "by a function of each element",
    ),
    "another type": (product(128, type_="f32", x="f16(x)", y="f16(y)"), {}, "only the first operand can go"),
    "tf32 across k": (
        product(128, 72, "tf32").replace("=> A", "=> transpose(A)"), TF32, "read operands along k",
    ),
    "bytes across k": (
        product(128, 128, "i8", WHOLE).replace("=> B", "=> transpose(B)"),
        {"block": (128, 128, 128), "warp": (64, 128), "fragment": (64, 128, 32)}, "read operands along k",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_warpgroups_cannot_multiply_is_refused(name: str) -> None:
    text, parameters, why = REFUSED[name]
    result = schedule(text, **parameters)
    assert isinstance(result, Failure) and why in result.story()


def test_a_number_of_columns_that_bytes_do_not_have_is_refused() -> None:
    with pytest.raises(StrategyError, match="no fragment 64×40×32") as caught:
        tensor_core(block=(128, 40, 128), warp=(64, 40), fragment=(64, 40, 32))
    assert caught.value.code == "R0605"
