"""Operands through shared memory: exact for every layout, with few barriers and wide copies."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import check_text
from rise.errors import TranslationError
from rise.expr import Expr, inline
from rise.normal import data_flow
from tests.support.nightly import every_other, in_turn
from tests.support.products import assert_exact, derive, matrices

# --- exact --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stages", "tiles"), every_other(product([1, 2, 3, 5], [1, 2, 4])))
def test_pipelines_of_any_depth_over_any_number_of_tiles(stages: int, tiles: int) -> None:
    assert_exact(*derive("rows", matrices(32, 64, 32 * tiles), stages=stages))


@pytest.mark.parametrize(("stages", "tiles"), every_other(product([1, 2, 3], [1, 2, 4])))
def test_tiles_are_prefetched_into_registers(stages: int, tiles: int) -> None:
    term, kernel = derive("columns", matrices(32, 64, 32 * tiles), stages=stages, cp_async=False)
    # there is nothing to prefetch where all tiles are loaded before the loop
    assert "prefetched" in kernel.source or tiles == 1 or tiles < stages
    assert "copy_async" not in kernel.source
    assert_exact(term, kernel)


@pytest.mark.parametrize(
    ("name", "epilogue"),
    in_turn(["rows", "columns", "scaled", "biased", "rectified", "inside"], ["direct", "shared"]),
)
def test_layouts_prologues_and_epilogues(name: str, epilogue: str) -> None:
    assert_exact(*derive(name, matrices(64, 96, 96), stages=3, epilogue=epilogue))


@pytest.mark.parametrize("name", ["rowBias", "residual", "three"])
def test_any_function_of_products_and_other_matrices(name: str) -> None:
    assert_exact(*derive(name, matrices(64, 32, 96), stages=2, epilogue="shared"))


@pytest.mark.parametrize("epilogue", ["direct", "shared"])
def test_two_products_of_different_depth(epilogue: str) -> None:
    assert_exact(*derive("two", {**matrices(32, 64, 64), "l": 96}, stages=2, epilogue=epilogue))


def test_batched_products_are_blocks_in_the_third_dimension() -> None:
    term, kernel = derive("batched", {"b": 3, **matrices(32, 64, 64)}, stages=3)
    assert kernel.launch.grid == (2, 1, 3)
    assert_exact(term, kernel)


def test_a_convolution_is_a_product_whose_operand_is_never_built() -> None:
    term, kernel = derive("convolved", {"h": 4, "w": 8, "c": 32, "o": 32}, stages=3)
    assert "copy_async<8>(&ring" in kernel.source
    assert_exact(term, kernel)


@pytest.mark.parametrize("name", ["rows", "scaled"])
def test_tiles_in_groups_of_rows(name: str) -> None:
    term, kernel = derive(name, matrices(128, 96, 64), stages=2, raster_group=2)
    assert kernel.launch.grid == (12, 1, 1)
    assert_exact(term, kernel)


@pytest.mark.parametrize(("name", "slice_k"), in_turn(["columns", "scaled", "two", "rectified"], [2, 4]))
def test_steps_of_k_are_shared_out_among_warps(name: str, slice_k: int) -> None:
    sizes = {**matrices(32, 64, 192), **({"l": 64} if name == "two" else {})}
    given: dict[str, Any] = {"block": (32, 32, 64), "epilogue": "shared", "stages": 2}
    term, kernel = derive(name, sizes, slice_k=slice_k, **given)
    assert kernel.launch.threads == 128 * slice_k
    assert_exact(term, kernel)


# --- structure ----------------------------------------------------------------------------------------


def test_a_pipeline_needs_one_barrier_for_each_tile() -> None:
    _, kernel = derive("rows", matrices(64, 64, 256), stages=3)
    assert kernel.source.count("__syncthreads();") == 1


def test_operands_are_copied_sixteen_bytes_at_once() -> None:
    _, kernel = derive("columns", matrices(64, 64, 256), block=(64, 64, 32), warp=(32, 32), stages=3)
    assert set(re.findall(r"copy_async<\d+>", kernel.source)) == {"copy_async<8>"}


def test_the_epilogue_reuses_the_memory_of_the_operands() -> None:
    _, staged = derive("scaled", matrices(64, 64, 256), stages=3)
    _, shared = derive("scaled", matrices(64, 64, 256), stages=3, epilogue="shared")
    assert staged.launch.shared_bytes >= shared.launch.shared_bytes > 0


def test_without_stages_nothing_goes_through_shared_memory() -> None:
    _, kernel = derive("rows", matrices(64, 64, 64), stages=0)
    assert kernel.launch.shared_bytes == 0


# --- vectors ------------------------------------------------------------------------------------------


def kernel_of(body: str) -> tuple[Expr, Kernel]:
    term = data_flow(inline(check_text(f"def f = {body}")["f"].body))
    return term, generate(term, "f")


COPY = "mapThreads(fun(v => v)) |> asScalar |> toMem(Shared) |> mapThreads(fun(x => x + 1))"


def test_vectors_are_copied_as_one_where_they_are_aligned() -> None:
    term, kernel = kernel_of(
        f"fun((xs: 2.64.f16) => xs |> mapBlock(fun(r => r |> asVectorAligned(8) |> {COPY})))"
    )
    assert "copy_vector<8>" in kernel.source
    assert_exact(term, kernel)


def test_vectors_that_are_not_aligned_are_copied_by_elements() -> None:
    term, kernel = kernel_of(
        f"fun((xs: 2.65.f16) => xs |> mapBlock(fun(r => r |> drop(1) |> asVector(8) |> {COPY})))"
    )
    assert kernel.source.count("copy_vector") == 1  # into the tile, where they are aligned
    assert_exact(term, kernel)


def test_what_is_computed_with_is_loaded_and_stored_as_vectors() -> None:
    term, kernel = kernel_of(
        f"fun((xs: 2.64.f32) => xs |> mapBlock(fun(r => r |> map(fun(x => x * x)) |> asVector(4) |> {COPY})))"
    )
    assert kernel.source.count("copy_vector<4>") == 2
    assert_exact(term, kernel)


@pytest.mark.parametrize(
    "body",
    [
        f"fun((xs: 2.65.f16) => xs |> mapBlock(fun(r => r |> drop(1) |> asVectorAligned(8) |> {COPY})))",
        "fun((xs: 2.64.f16) => xs |> mapBlock(fun(r => r |> map(fun(x => x + 1)) |> asVector(8)"
        " |> mapThreads(fun(v => v)) |> asScalar |> copyAsync |> mapThreads(fun(x => x)))))",
    ],
)
def test_promises_that_cannot_be_kept_are_refused(body: str) -> None:
    with pytest.raises(TranslationError) as caught:
        kernel_of(body)
    assert caught.value.code == "R0724"
    assert caught.value.origin is not None
