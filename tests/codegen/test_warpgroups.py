"""Products of warpgroups, fed by bulk copies: derived, run in the emulator, compiled for sm_90a."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from codegen import runtime
from codegen.host.program import alone
from codegen.host.text import cuda_text
from codegen.ir.fragments import distribution
from codegen.pipeline import generate
from codegen.runtime.compiling import compiler_report
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.errors import EmulationError, StrategyError, TranslationError
from rise.nat import constant
from rise.normal import data_flow
from rise.pretty import show
from rise.types import Fragment, FragmentKind, Scalar
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded
from tests.support.warpgroups import PROGRAMS, SMALL, agrees, derived, product


@pytest.mark.parametrize("name", every_other(PROGRAMS))
def test_programs_around_a_product_are_exact(name: str) -> None:
    made = derived(PROGRAMS[name])
    assert "wgmma<64, " in made.source and "bulk_load(" in made.source
    assert agrees(PROGRAMS[name], made)


@pytest.mark.parametrize(("stages", "tiles"), every_other([(2, 1), (2, 5), (3, 2), (3, 3), (4, 9)]))
def test_any_number_of_tiles_goes_through_the_ring(stages: int, tiles: int) -> None:
    """Fewer tiles than slots, as many, and so many that each mbarrier goes through several phases."""
    text = product(64 * tiles)
    for seed in range(3):  # copies arrive late, at once, at random
        assert agrees(text, derived(text, stages), seed)


@pytest.mark.parametrize(
    "shape", [{"block": (64, 128, 64), "warp": (64, 128), "fragment": (64, 128, 16)},
              {"block": (128, 64, 64), "warp": (64, 32), "fragment": (64, 32, 16)},
              {"block": (128, 64, 64), "warp": (128, 64), "raster_group": 1}]
)  # fmt: skip
def test_warpgroups_share_a_block_in_many_ways(shape: dict[str, Any]) -> None:
    text = product(192)
    assert agrees(text, derived(text, 3, **shape))


SHAPES: list[dict[str, Any]] = [{"block": (128, 128, 64), "warp": (64, 128), "fragment": (64, 128, 16)},
              {"block": (64, 64, 128), "stages": 2}]  # fmt: skip
LAYOUTS = [(a, b) for a in ("A", "transpose(A)") for b in ("B", "transpose(B)")]


@pytest.mark.parametrize(("a", "b", "shape"), [(*two, shape) for two, shape in in_turn(LAYOUTS, SHAPES)])
def test_operands_lie_along_k_or_across(a: str, b: str, shape: dict[str, Any]) -> None:
    """Across k, or where more than 64 of k are in a tile, it is copied in panels of 128 bytes a row."""
    text = product(256).replace("=> A |>", f"=> {a} |>").replace("=> B |>", f"=> {b} |>")
    left, right = ("256.128" if side.startswith("transpose") else "128.256" for side in (a, b))
    text = text.replace("A: 128.256", f"A: {left}").replace("B: 128.256", f"B: {right}")
    made = derived(text, **shape)
    across = (a != "A", b != "B")
    majors = ", ".join(f"Major::{'MN' if one else 'K'}" for one in across)
    assert f"half, {majors}" in made.source
    assert agrees(text, made)


@pytest.mark.parametrize(("width", "pattern"), [(96, 64), (48, 32)])
def test_panels_are_as_wide_as_the_longest_pattern(width: int, pattern: int) -> None:
    """Columns of a tile that 64 does not divide: rows of 64 or 32 bytes, and descriptors that say so."""
    text = product(128, n=192).replace("=> B |>", "=> transpose(B) |>").replace("B: 192.128", "B: 128.192")
    shape = {"block": (64, width, 64), "warp": (64, width), "fragment": (64, width, 16)}
    made = derived(text, 2, **shape, warp_specialised=True, raster_group=1, persistent_blocks=2, cluster=2)
    assert f"{8 * pattern}, Swizzle::B{pattern})" in made.source
    assert agrees(text, made)
    wrong = replace(
        made, source=made.source.replace(f"{8 * pattern}, Swizzle::B{pattern}", "1024, Swizzle::B128")
    )
    with pytest.raises(EmulationError, match=f"swizzle of 128 bytes.*one of {pattern}") as caught:
        agrees(text, wrong)
    assert caught.value.code == "R0922"


def test_a_step_has_one_barrier_and_leaves_one_product_under_way() -> None:
    source = derived(product(256)).source
    loop = source[source.index("// reducePipelined") : source.index("wgmma_wait<0>")]
    assert loop.count("__syncthreads") == 1 and loop.count("wgmma_wait<1>") == 1
    assert Counter(re.findall(r"bulk_load|barrier_wait|wgmma_commit", loop)) == {
        "bulk_load": 2, "barrier_wait": 1, "wgmma_commit": 1,
    }  # fmt: skip


def test_the_first_product_replaces_what_is_in_the_registers() -> None:
    source = derived(product(256)).source
    assert "fill_fragment" not in source and re.search(r"wgmma<.*, \w+ \+ \w+ > 0\);", source)


def test_accumulators_are_where_the_instruction_has_them() -> None:
    """The formula of the PTX manual for wgmma's D, over the threads of a warpgroup."""
    rows, columns, k = map(constant, (64, 24, 16))
    places = distribution(Fragment(rows, columns, k, Scalar("f32"), FragmentKind.ACCUMULATOR))
    assert places is not None and places.registers == constant(12)
    held = Counter[tuple[int, int]]()
    for thread in range(128):
        for i in range(12):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i % 4 // 2)
            column = 8 * (i // 4) + 2 * (thread % 4) + i % 2
            assert places.at(constant(thread), constant(i)) == (constant(row), constant(column))
            held[row, column] += 1
    assert held == {(row, column): 1 for row in range(64) for column in range(24)}


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
def test_the_text_compiles_without_remarks() -> None:
    text = PROGRAMS["αA·Bᵀ + βC"].replace("128.128", "256.256")
    made = derived(text, 4, block=(128, 256, 64), warp=(64, 256), fragment=(64, 256, 16))
    report = compiler_report(made.source, "sm_90a")
    assert "serialized" not in report and "0 bytes spill stores" in report


def test_the_text_of_a_file_is_that_of_the_kernel() -> None:
    """The instructions stand before the kernel, whole."""
    made = derived(product(128))
    assert cuda_text(alone(made)) == made.source
    assert made.source.count("struct Wgmma<") == 1 and "TensorMap A_map, " in made.source


# --- faults -----------------------------------------------------------------------------------------------

FAULTS = {
    "tiles are not waited for": ("    barrier_wait(full + slot", "    // barrier_wait(full + slot"),
    "the wrong phase is waited for": (r"barrier_wait(full + slot, ", "barrier_wait(full + slot, 1 - "),
    "slots are filled while they are read": (
        "    wgmma_wait<1>();\n    __syncthreads();\n", "    wgmma_wait<1>();\n"
    ),
    "products are not waited for": ("    wgmma_wait<1>();\n", "    wgmma_wait<2>();\n"),
    "sums are used too early": ("  wgmma_wait<0>(xy_[0].x);\n", ""),
    "too many bytes are expected": (
        "barrier_expect(full + slot_1, 24576)", "barrier_expect(full + slot_1, 24592)"
    ),
    "a copy is missing": ("        bulk_load(ring_1", "        // bulk_load(ring_1"),
    "the first products add": (" > 0);", " >= 0);"),
    "another box": ("k * 64 + 128, block_y", "k * 64 + 64, block_y"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_text_is_noticed(name: str) -> None:
    text = product(320)
    made = derived(text)
    right, wrong = FAULTS[name]
    assert right in made.source
    faulty = replace(made, source=made.source.replace(right, wrong))
    noticed = 0
    for seed in range(3):
        try:
            noticed += not agrees(text, faulty, seed)
        except EmulationError:
            noticed += 1
    assert noticed == 3


# --- refusals ---------------------------------------------------------------------------------------------


def test_what_is_computed_on_the_way_is_refused() -> None:
    """By a program that says it: a schedule leaves a function of the first operand to its fragments."""
    made = succeeded(tensor_core(**SMALL)(data_flow(check_expression(product(128)))))
    right, wrong = "fst(acc) |> bulkCopy(", "fst(acc) |> map(map(fun(x => max(x, 0.0)))) |> bulkCopy("
    text = show(made.term, annotate=True)
    assert right in text
    with pytest.raises(TranslationError, match="it is computed, or not in global memory") as caught:
        generate(data_flow(check_expression(text.replace(right, wrong))), "product")
    assert caught.value.code == "R0731"


def test_a_pipeline_of_one_stage_is_refused() -> None:
    with pytest.raises(StrategyError, match="stages is 1") as caught:
        derived(product(128), 1)
    assert caught.value.code == "R0609" and "`stages=2` or more" in (caught.value.hint or "")


@pytest.mark.parametrize("k", [16, 32])
def test_rows_along_k_are_as_long_as_a_pattern(k: int) -> None:
    text = product(128)
    made = derived(text, 2, block=(128, 64, k))
    assert f"{16 * k}, Swizzle::B{2 * k})" in made.source
    assert agrees(text, made)


def test_rows_that_no_pattern_divides_are_refused() -> None:
    text = product(128, n=144).replace("=> B |>", "=> transpose(B) |>").replace("B: 144.128", "B: 128.144")
    shape = {"block": (64, 72, 64), "warp": (64, 72), "fragment": (64, 72, 16), "stages": 2}
    result = tensor_core(**{**SMALL, **shape})(data_flow(check_expression(text)))
    assert isinstance(result, Failure) and "16 does not divide 72" in result.story()
