"""Columns: what threads hold of the rows of accumulators, and reductions, maps and products with it.

Everything runs in the emulator, on whole numbers: results are exact.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir.fragments import (
    HOLDERS,
    LANES,
    SAME_ROW,
    distribution,
    family_of,
    regrouped,
    row_register,
)
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import EmulationError, TranslationError
from rise.expr import Expr
from rise.instructions import Family
from rise.interpret import call, random_inputs
from rise.nat import Facts, constant
from rise.normal import data_flow
from rise.types import Fragment, FragmentKind, Scalar

SHAPES = (
    (16, 8, 16),
    (16, 40, 16),
    (32, 24, 16),
    (16, 64, 8),
    (16, 200, 16),
    (64, 8, 16),
    (64, 72, 16),
    (64, 256, 16),
)


def fragment(rows: int, columns: int, depth: int, kind: FragmentKind, element: str = "f32") -> Fragment:
    return Fragment(constant(rows), constant(columns), constant(depth), Scalar(element), kind)


# --- who holds what ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_lane_holds_the_rows_of_its_elements(shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    sums = fragment(rows, columns, depth, FragmentKind.ACCUMULATOR)
    column = fragment(rows, 1, depth, FragmentKind.COLUMN)
    held, rows_held = distribution(sums), distribution(column)
    assert held is not None
    assert rows_held is not None
    lanes = HOLDERS.get(family_of(sums) or Family.MMA, LANES)
    for lane in range(0, lanes, 7):
        at = constant(lane)
        for register in range(held.registers.value or 0):
            row, _ = held.at(at, constant(register))
            place = row_register(sums, constant(register))
            assert rows_held.at(at, place) == (row, constant(0))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_lanes_that_hold_a_row_differ_in_two_bits(shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    held = distribution(fragment(rows, columns, depth, FragmentKind.ACCUMULATOR))
    assert held is not None
    lanes = HOLDERS.get(Family.WGMMA, LANES) if rows == 64 else LANES
    holders: dict[int, set[int]] = {}
    for lane in range(lanes):
        for register in range(held.registers.value or 0):
            row, _ = held.at(constant(lane), constant(register))
            holders.setdefault(row.value or 0, set()).add(lane)
    every = {
        sum(bit for n, bit in enumerate(SAME_ROW) if number >> n & 1) for number in range(1 << len(SAME_ROW))
    }
    assert all(lanes == {min(lanes) ^ bits for bits in every} for lanes in holders.values())


def test_operands_of_16_bits_are_held_by_those_who_hold_the_sums() -> None:
    def same(rows: int, columns: int, depth: int, element: str) -> bool:
        sums = fragment(rows, columns, depth, FragmentKind.ACCUMULATOR, element)
        operand = Fragment(
            constant(rows), constant(depth), constant(16), Scalar(element), FragmentKind.A
        )  # fmt: skip
        return regrouped(sums, replace(operand, other=constant(24))) is not None

    assert same(64, 48, 16, "f16")
    assert same(16, 32, 16, "bf16")
    assert same(32, 48, 16, "f16")
    assert not same(64, 32, 8, "tf32")
    assert not same(64, 64, 32, "i8")


@pytest.mark.parametrize("rows", [16, 32, 64])
def test_registers_of_operands_are_those_of_the_sums(rows: int) -> None:
    """Two strips of 16 rows are one after the other in both, so an operand's registers are not adjacent."""
    sums = fragment(rows, 48, 16, FragmentKind.ACCUMULATOR, "f16")
    found = regrouped(sums, fragment(rows, 16, 24, FragmentKind.A, "f16"))
    places = distribution(sums)
    assert found is not None
    assert places is not None
    for register in range(places.registers.value or 0):
        operand, own = found.of_operand(constant(register), Facts())
        assert found.of_accumulator(operand, own, Facts()) == constant(register)


# --- kernels ----------------------------------------------------------------------------------------------

# the product of a tile of 16 rows by a warp, or of 64 rows by a warpgroup, as an accumulator
BY_WARP = """zip(a |> map(split(16)) |> transpose)(b |> map(take(24)) |> split(16))
    |> reduceSeq(Local)((sum, (x, y)) =>
        tensorMatMulAdd((asFragment(x) : Fragment[16, 16, 24, f16, AMatrix]) |> toMem(Local),
        asFragment(y) |> toMem(Local), sum), generateFragment(0.0))"""
WARPS = "(a: 32.32.f16, b: 32.32.f16) => a |> split(16) |> mapWarp(a => {body}) |> join"
EPILOGUES = {
    "sums": "{s} |> reduceRows(+, 0) |> toMem(Local) |> asColumn",
    "least": "{s} |> reduceRows((x, y) => min(x, y), 1000000.0) |> toMem(Local) |> asColumn",
    "centred": """let s = {s} in let r = s |> reduceRows(+, 0) |> toMem(Local) in
        zipFragment(s)(repeatColumn(r)) |> mapFragment((x, r) => 24 * x - r) |> toMem(Local) |> asMatrix""",
    "chain": """zip(({s} |> mapFragment(x => f16(min(max(x, -8), 8))) |> asOperands) |> toMem(Local))
        (b |> map(take(24)) |> split(16)) |> reduceSeqUnroll(Local)((sum, (x, y)) =>
        tensorMatMulAdd(x, asFragment(y) |> toMem(Local), sum), generateFragment(0.0)
        : Fragment[16, 24, 16, f32, Accum]) |> asMatrix""",
    "loaded": """let c = (asFragment(a |> map(take(1)) |> map(map(x => f32(x))))
            : Fragment[16, 1, 16, f32, Column]) |> toMem(Local) in
        zipFragment({s})(repeatColumn(c)) |> mapFragment((x, y) => x * y) |> toMem(Local) |> asMatrix""",
}


def kernel_of(name: str) -> tuple[Expr, Kernel]:
    product = BY_WARP if name != "chain" else BY_WARP.replace("24", "32")
    text = WARPS.format(body=EPILOGUES[name].format(s=f"({product})"))
    term = data_flow(check_expression(text))
    return term, generate(term, "f")


@pytest.mark.parametrize("name", EPILOGUES)
def test_rows_of_warps_are_exact(name: str) -> None:
    term, kernel = kernel_of(name)
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    np.testing.assert_array_equal(execute(kernel, inputs, "emulate"), call(term, *inputs))


def test_lanes_that_are_not_asked_are_noticed() -> None:
    """One bit less, and a lane has half of its row."""
    term, kernel = kernel_of("sums")
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    assert kernel.source.count("shuffle_xor<float>") == len(SAME_ROW)
    source = re.sub(r"shuffle_xor<float>\(rows\.x\[g_\d \+ h\], 2\)", "0.0f", kernel.source)
    broken = replace(kernel, source=source)
    assert broken.source != kernel.source
    assert not np.array_equal(execute(broken, inputs, "emulate"), call(term, *inputs))


def test_a_shuffle_of_some_lanes_is_refused() -> None:
    _, kernel = kernel_of("sums")
    inputs = random_inputs(inputs_of(kernel_of("sums")[0]), 3, exact=True)
    source = re.sub(
        r"(rows\.x\[g_\d \+ h\] = .*shuffle_xor.*, 1\)\);)", r"if (threadIdx.x % 2) \1", kernel.source
    )
    broken = replace(kernel, source=source)
    assert broken.source != kernel.source
    with pytest.raises(EmulationError, match="divergent"):
        execute(broken, inputs, "emulate")


@pytest.mark.parametrize("shape", [(16, 16, 16), (16, 16, 8), (32, 32, 8)], ids=str)
def test_fragments_whose_rows_no_lanes_share_have_none(shape: tuple[int, int, int]) -> None:
    """WMMA's layout is unspecified; with Volta's `mma`, other lanes than four neighbours hold a row."""
    m, n, k = shape
    text = f"""fun(xs: 1.1.{m}.{n}.f32 => xs |> mapBlock(0)(fun(tiles => tiles |> mapWarp(fun(x =>
        (asFragment(x) : Fragment[{m}, {n}, {k}, f32, Accum]) |> toMem(Local) |> reduceRows(+, 0)
        |> toMem(Local) |> asColumn)))))"""
    with pytest.raises(TranslationError, match="R0715"):
        generate(data_flow(check_expression(text)), "f")
