"""A product that starts beside a small kernel in front: it waits where it uses what that computes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir.launch import REGISTERS, register_budget
from codegen.pipeline import assemble
from rise.errors import EmulationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.core import Strategy
from strategies.default import default
from strategies.derive import derived
from strategies.matmul.kernels import each_product_kernel
from strategies.matmul.tensor_core import tensor_core
from strategies.memory_bound.rows import rows
from strategies.places import in_inputs
from tests.support.nightly import every_other
from tests.support.programs import program

SQUARES = "map(fun(x => f32(x) * f32(x))) |> reduce(+, 0)"
DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
# each of two tiles of k, and the same by pairs of blocks, by several tiles to a block, and in turn
GROUPS: dict[str, Any] = {
    "block": (64, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2, "raster_group": 1,
    "epilogue": "bulk", "warp_specialised": True,
}  # fmt: skip
SCHEDULES: dict[str, dict[str, Any]] = {
    "a tile to a block": GROUPS,
    "in turn": {**GROUPS, "persistent_blocks": 2, "ping_pong": 2},
    "clusters": {**GROUPS, "block": (128, 64, 64), "persistent_blocks": 4, "cluster": 2},
    "by lanes": {**GROUPS, "epilogue": "direct"},
}
SIZES = [(1, 64, 64), (127, 72, 72), (129, 8, 136), (128, 192, 128)]


def norms(m: int, n: int, k: int) -> Expr:
    """Rows of a product, each scaled by the sum of squares of the first operand's row."""
    scales = f"X |> map(fun(row => row |> {SQUARES})) |> toMem(Global)"
    return program(
        f"fun((X: {m}.{k}.f16, W: {n}.{k}.f16) => zip({scales})"
        f"(X |> map(fun(row => W |> map(fun(col => {DOT})))))"
        " |> map(fun((s, sums) => sums |> map(fun(x => x * s)))))"
    )


def lowered(blocks: int, **given: Any) -> Strategy:
    return in_inputs(each_product_kernel(tensor_core(**given), rows(few_blocks=blocks)))


@cache
def made(name: str, sizes: tuple[int, int, int]) -> HostProgram:
    return assemble(derived(norms(*sizes), lowered(3, **SCHEDULES[name])).term, "norms")


def run(found: HostProgram, sizes: tuple[int, int, int], seed: int = 0) -> bool:
    inputs = random_inputs(found.inputs, 7, exact=True)
    return np.array_equal(execute(found, inputs, "emulate", seed=seed), call(norms(*sizes), *inputs))


def edited(found: HostProgram, pattern: str, text: str) -> HostProgram:
    """The program with the last kernel changed, once."""
    *others, last = found.kernels
    source, count = re.subn(pattern, text, last.source, count=1)
    assert count == 1
    return replace(found, kernels=(*others, replace(last, source=source)))


@pytest.mark.parametrize(("name", "sizes"), every_other(zip(SCHEDULES, SIZES, strict=True)))
def test_a_product_waits_behind_its_first_tiles(name: str, sizes: tuple[int, int, int]) -> None:
    found = made(name, sizes)
    front, last = found.kernels
    load, compute = last.source.split("registers_decrease")[1].split("registers_increase")
    assert "await" not in load and compute.count("await_previous_grid();") == 1
    assert last.source.count("await_previous_grid();") == 1
    assert compute.index("wgmma<") < compute.index("await_previous_grid();") < compute.index("value[")
    # numbers of rows are read while the last products are under way
    assert compute.index("value[") < compute.index("wgmma_wait<0>")
    assert "start_next_grid();" in front.source and "await" not in front.source
    assert re.search(r"Awaited<const float> value\b", last.source)
    assert "Awaited<const half>" not in last.source
    assert run(found, sizes)


def test_random_sizes_and_schedules_are_exact() -> None:
    random = Random(seed := 20261126)
    name = random.choice(list(SCHEDULES))
    sizes = random.randint(1, 200), 8 * random.randint(1, 12), 8 * random.randint(1, 30)
    found = made(name, sizes)
    assert found.kernels[-1].function.ready >= {"X", "W"}
    assert run(found, sizes), (seed, name, sizes)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"await_previous_grid\(\);\n", "\n"),
        (r"(bulk_load\(ring\b)", r"float early = value[0]; (void)early; \1"),
        (r"await_previous_grid\(\);\n", "if (threadIdx.x) await_previous_grid();\n"),
    ],
    ids=["nobody waits", "the producer reads what is not ready", "a thread does not wait"],
)
def test_a_use_before_the_wait_is_found(pattern: str, text: str) -> None:
    sizes = SIZES[0]
    with pytest.raises(EmulationError, match="R0925"):
        run(edited(made("a tile to a block", sizes), pattern, text), sizes)


def test_a_store_before_the_wait_is_found() -> None:
    """Bulk stores, too: the kernel in front may still read what they overwrite."""
    sizes = (128, 64, 64)
    found = edited(made("a tile to a block", sizes), r"await_previous_grid\(\);\n", "\n")
    found = edited(found, r"value\[[^;]*;", "1.0f;")
    with pytest.raises(EmulationError, match="R0925"):
        run(found, sizes)


def test_what_a_kernel_in_front_stores_is_waited_for_before_it_is_loaded() -> None:
    text = (
        "fun((A: 65.72.f16, B: 40.72.f16) => (A |> map(map(fun(x => max(x, 0)))) |> toMem(Global))"
        f" |> map(fun(row => B |> map(fun(col => {DOT})))))"
    )
    lowering = in_inputs(each_product_kernel(tensor_core(**GROUPS), default()))
    found = assemble(derived(program(text), lowering).term, "rectified")
    last = found.kernels[-1]
    assert not last.function.ready and not last.launch.left
    assert last.source.index("await_previous_grid();") < last.source.index("registers_decrease")


@pytest.mark.parametrize(("name", "sizes"), every_other(zip(SCHEDULES, SIZES, strict=True)))
def test_registers_are_left_to_the_kernel_in_front(name: str, sizes: tuple[int, int, int]) -> None:
    """Four warps of 32, in each quarter of a multiprocessor one."""
    kernel = made(name, sizes).kernels[-1]
    launch = kernel.launch
    low, high = register_budget(launch)
    groups, warps = launch.threads // 128, launch.threads // 32
    assert REGISTERS // 4 - -(-warps // 4) * 32 * launch.registers >= 32 * 32
    assert launch.producers * low + (groups - launch.producers) * high <= groups * launch.registers
    assert f"__maxnreg__({launch.registers})" in kernel.source
    assert made(name, sizes).at({}).beside == {"norms_kernel_1"}


def test_a_kernel_with_many_sums_leaves_none() -> None:
    wide = {**GROUPS, "block": (64, 208, 64), "warp": (64, 208), "fragment": (64, 208, 16)}
    tall = {**wide, "block": (128, 208, 64), "warp": (128, 208)}
    sizes = (128, 208, 64)
    left = [
        assemble(derived(norms(*sizes), lowered(3, **given)).term, "norms").kernels[-1].launch.left
        for given in (wide, tall)
    ]
    assert left[0] > 0 and left[1] == 0


@pytest.mark.parametrize(("count", "length"), [(1, 1), (127, 65), (129, 64), (50, 1001), (1031, 8)])
def test_rows_in_few_blocks_are_exact(count: int, length: int) -> None:
    term = program(f"fun(X: {count}.{length}.f16 => X |> map(fun(row => row |> {SQUARES})))")
    found = assemble(derived(term, rows(few_blocks=5)).term, "squares")
    (kernel,) = found.kernels
    (blocks, *_), threads = kernel.launch.grid_at({}), kernel.launch.threads
    assert blocks <= 5 and threads == 128
    assert kernel.launch.shared_bytes <= 1024  # of which a small block has so much beside a product
    inputs = random_inputs(found.inputs, 3, exact=True)
    assert np.array_equal(execute(found, inputs, "emulate"), call(term, *inputs))
    assert "__syncthreads" not in kernel.source  # no warp waits for another
