"""Tiles through shared memory to their place as bulk copies: exact, fenced, waited for, no conflicts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.emulation.emulator import Emulation
from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.ir.imperative import Scope
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from codegen.runtime.compiling import compiler_report
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import EmulationError, StrategyError, TranslationError
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.kernels import emulated_exactly
from tests.support.nightly import every_other
from tests.support.programs import program, succeeded
from tests.support.warpgroups import DOT, SMALL, agrees, derived, product

SAME = "zip(row)(col) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"
FINISHED = f"{DOT} |> fun(r => f16(max(r + b, 0.0)))"
# a tile of 64 × 64 by way of a fragment, and of shared memory
THROUGH = """fun(t => t |> asFragment |> fun((f: Fragment[64, 64, 16, f16, Accum]) => f) |> toMem(Local)
  |> asMatrix |> toMem(Shared, swizzled(128)) |> bulkStore)"""
TILES = f"fun(xs: 2.3.2.64.64.f16 => xs |> mapBlock(0)(mapSeq(mapWarpGroup({THROUGH}))))"


def biased(n: int) -> str:
    """Bias, ReLU and a conversion to 16 bits: 128 × n."""
    types = f"A: 128.64.f16, B: {n}.64.f16, bias: {n}.f32"
    return f"fun(({types}) => A |> map(fun(row => zip(B)(bias) |> map(fun((col, b) => {FINISHED})))))"


def wide(n: int, **parameters: Any) -> dict[str, Any]:
    """A block has all columns, a fragment as well."""
    return {"block": (128, n, 64), "warp": (64, n), "fragment": (64, n, 16), "epilogue": "bulk", **parameters}


@cache
def by_hand(text: str) -> Kernel:
    return generate(program(text), "tiles")


def emulated(text: str, made: Kernel, seed: int = 0) -> Emulation:
    return emulated_exactly(check_expression(text), made, seed)


def wavefronts(found: Emulation, made: Kernel, function: str) -> set[float]:
    """How many wavefronts a phase takes, on the lines that call a function."""
    lines = [n for n, line in enumerate(made.source.splitlines(), 1) if f"{function}<" in line]
    return {c.wavefronts / c.phases for n, c in found.conflicts.items() if n in lines}


@pytest.mark.parametrize("n", every_other([24, 96, 256]))
def test_matrices_of_16_bits_are_stored_without_conflicts(n: int) -> None:
    """128, 64 or no bytes are swizzled, as the length of rows asks for."""
    made = derived(biased(n), 2, **wide(n))
    pattern = {24: "Shared<half> tile", 96: "Swizzled<half, 64> tile"}.get(n, "Swizzled<half, 128> tile")
    assert pattern in made.source and f"store_matrices<{2 if n % 16 else 4}>" in made.source
    assert wavefronts(emulated(biased(n), made), made, "store_matrices") == {1.0}


@pytest.mark.parametrize(
    ("text", "n"),
    [(product(64, n=128, operand="bf16"), 128), (product(64, n=64, dot=SAME), 64)],
)  # fmt: skip
def test_results_of_both_widths_are_exact(text: str, n: int) -> None:
    made = derived(text, 2, **wide(n))
    assert "bulk_store(output_map" in made.source and "&output[" not in made.source
    assert all(agrees(text, made, seed) for seed in range(3))


def test_operands_may_lie_in_any_way() -> None:
    text = biased(128).replace("A |>", "transpose(A) |>").replace("zip(B)", "zip(transpose(B))")
    text = text.replace("A: 128.64", "A: 64.128").replace("B: 128.64", "B: 64.128")
    made = derived(text, 2, **wide(128))
    assert "Major::MN, Major::MN" in made.source and "bulk_store(" in made.source and agrees(text, made)


def test_a_second_operand_is_read_directly() -> None:
    text = (
        "fun((A: 128.64.f16, B: 64.64.f16, C: 128.64.f32, alpha: f32, beta: f32) => zip(A)(C) |> "
        "map(fun((row, cs) => zip(B)(cs) |> map(fun((col, c) => "
        f"{DOT} |> fun(r => alpha * r + beta * c))))))"
    )
    made = derived(text, 2, **wide(64))
    assert "bulk_store(output_map" in made.source and agrees(text, made)


def test_partial_sums_are_stored_so_for_another_kernel() -> None:
    """Of several kernels each has the maps that it uses."""
    text = product(128, m=64, n=64)
    schedule = tensor_core(**{**SMALL, "block": (64, 64, 64), "stages": 2, "epilogue": "bulk", "split_k": 2})
    result = succeeded(schedule(data_flow(check_expression(text))))
    made = assemble(result.term, "product")
    inputs = random_inputs(inputs_of(check_expression(text)), seed=7, exact=True)
    assert "bulk_store(" in made.kernels[0].source and not made.kernels[1].function.maps
    assert np.array_equal(execute(made, inputs, "emulate"), call(check_expression(text), *inputs))


# --- who waits for whom -----------------------------------------------------------------------------------


def of_scope(made: Kernel, scope: Scope) -> int:
    return sum(c == i.Barrier(scope) for c in i.commands(made.function.body))


def test_a_store_is_fenced_and_a_tile_is_written_again_when_it_is_read() -> None:
    """In a loop over tiles, with no barrier of the block: a warpgroup keeps to itself."""
    made = by_hand(TILES)
    assert (of_scope(made, Scope.BLOCK), of_scope(made, Scope.WARPGROUP)) == (0, 2)
    loop = made.source[made.source.index("// mapSeq") :]
    order = ["bulk_wait_read", "named_barrier", "store_matrices", "fence_async_shared", "named_barrier",
             "bulk_store", "bulk_commit", "bulk_wait_read"]  # fmt: skip
    places = [loop.index(order[0])]
    for name in order[1:]:
        places.append(loop.index(name, places[-1] + 1))
    assert loop.count("fence_async_shared") == 1 and loop.count("bulk_wait_read") == 2
    for seed in range(3):
        emulated(TILES, made, seed)


def test_one_tile_is_not_waited_for_before_it_is_written() -> None:
    source = derived(biased(64), 2, **wide(64)).source
    assert source.count("bulk_wait_read") == 1 and source.count("named_barrier") == 1


def test_the_tile_takes_the_place_of_the_operands() -> None:
    """Not before all warpgroups have multiplied with them: there the block meets."""
    text = biased(64).replace(".64.f16", ".320.f16")
    bulk, direct = (derived(text, 4, **wide(64, epilogue=e)) for e in ("bulk", "direct"))
    assert bulk.launch.shared_bytes == direct.launch.shared_bytes
    assert bulk.source.count("__syncthreads") == direct.source.count("__syncthreads") + 1
    assert agrees(text, bulk)


def test_a_tile_keeps_its_memory_until_it_is_read() -> None:
    """In a loop it would be written by the next iteration: the operands' tile lies elsewhere."""
    text = """fun(xs: 3.2.64.64.f16 => xs |> mapSeq(fun(t =>
      t |> mapSeq(mapSeq(mapThreads(0)(fun(x => x)))) |> toMem(Shared)
      |> mapWarpGroup(fun(t => t |> asFragment |> fun((f: Fragment[64, 64, 16, f16, Accum]) => f)))
      |> toMem(Local)
      |> mapWarpGroup(fun(f => f |> asMatrix |> toMem(Shared, swizzled(128)) |> bulkStore)))))"""
    made = by_hand(text)
    assert made.launch.shared_bytes == 2 * 16384
    for seed in range(3):
        emulated(text, made, seed)


def test_a_block_stores_what_its_threads_wrote() -> None:
    """Rows that are an odd number of chunks of 16 bytes."""
    text = """fun(xs: 3.5.24.f16 => xs |> mapBlock(0)(fun(t =>
      t |> join |> mapThreads(0)(fun(x => x + 1)) |> split(24) |> toMem(Shared) |> bulkStore)))"""
    made = by_hand(text)
    assert of_scope(made, Scope.BLOCK) == 1 and "fence_async_shared" in made.source
    for seed in range(3):
        emulated(text, made, seed)


def test_a_warp_stores_its_own_tile() -> None:
    text = """fun(xs: 2.3.4.32.f32 => xs |> mapBlock(0)(mapWarp(fun(t =>
      t |> mapSeq(mapLane(fun(x => x * 2))) |> toMem(Shared) |> bulkStore))))"""
    made = by_hand(text)
    assert "threadIdx.x % 32 == 0" in made.source and of_scope(made, Scope.BLOCK) == 0
    emulated(text, made)


# --- faults -----------------------------------------------------------------------------------------------

FAULTS = {
    "writes are not fenced": ("fence_async_shared();", ";", "R0920"),
    "nobody meets": ("named_barrier(threadIdx.x / 128 + 1, 128);", ";", "R09(07|16|19|20)"),
    "the box is written while it is read": (
        "bulk_wait_read<0>();\n    named", "named", "R0919"
    ),
    "the block ends while its box is read": ("  bulk_wait_read<0>();\n}", "}", "R0924"),
    "another pattern": ("Swizzled<half, 128> tile = swizzled_memory<half, 128>",
                        "Swizzled<half, 64> tile = swizzled_memory<half, 64>", "wrong"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_text_is_noticed(name: str) -> None:
    made = by_hand(TILES)
    right, wrong, code = FAULTS[name]
    assert right in made.source, made.source
    faulty = replace(made, source=made.source.replace(right, wrong))
    with pytest.raises((EmulationError, AssertionError)) as caught:
        emulated(TILES, faulty)
    if isinstance(caught.value, EmulationError):
        assert caught.match(code) or code in str(caught.value.code)
    else:
        assert code == "wrong"


# --- text and refusals ------------------------------------------------------------------------------------


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize(
    "roles", [{}, {"warp_specialised": True, "raster_group": 1, "persistent_blocks": 4, "cluster": 2}]
)
def test_the_text_compiles_without_spills(roles: dict[str, Any]) -> None:
    """With roles in clusters the products were serialized when only who has stored waited for his stores."""
    shape = wide(256, fragment=(64, 128, 16)) if roles else wide(256)
    text = product(256, 1024, 1024, dot=f"{DOT} |> fun(r => f16(r))") if roles else biased(256)
    report = compiler_report(derived(text, 4, **shape, **roles).source, "sm_90a")
    assert "serialized" not in report and "0 bytes stack frame, 0 bytes spill stores" in report


REFUSED = {
    "in a map over threads": (
        "fun(xs: 3.2.32.f32 => xs |> mapBlock(0)(fun(t => t |> mapSeq(mapThreads(0)(fun(x => x)))"
        " |> toMem(Shared) |> mapThreads(0)(fun(r => r |> bulkStore)))))",
        "R0735",
    ),
    "from global memory": ("fun(xs: 3.2.32.f32 => xs |> mapBlock(0)(fun(t => t |> bulkStore)))", "R0731"),
    "of padded rows": (
        "fun(xs: 3.2.32.f32 => xs |> mapBlock(0)(fun(t => t |> mapSeq(mapThreads(0)(fun(x => x)))"
        " |> toMem(Shared, padded(4)) |> bulkStore)))",
        "R0731",
    ),
    "transposed": (
        "fun(xs: 3.32.32.f32 => xs |> mapBlock(0)(fun(t => t |> mapSeq(mapThreads(0)(fun(x => x)))"
        " |> toMem(Shared) |> transpose |> bulkStore)))",
        "R0731",
    ),
    "of panels that start within a pattern": (
        "fun(xs: 3.5.64.f32 => xs |> mapBlock(0)(fun(t => t |> map(split(32)) |> transpose"
        " |> mapSeq(mapSeq(mapThreads(0)(fun(x => x))))"
        " |> toMem(Shared, swizzled(128)) |> bulkStore |> transpose |> map(join))))",
        "R0731",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_box_of_shared_memory_is_refused(name: str) -> None:
    text, code = REFUSED[name]
    with pytest.raises(TranslationError) as caught:
        by_hand(text)
    assert caught.value.code == code


def test_only_fragments_of_warpgroups_are_stored_so() -> None:
    with pytest.raises(StrategyError, match="only fragments of warpgroups"):
        tensor_core(**{**SMALL, "fragment": (16, 8, 16), "epilogue": "bulk"})
