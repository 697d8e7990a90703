"""Printed kernels as a reader sees them: one file each in `golden`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from strategies.memory_bound.reduction import reduction
from tests.support.golden import assert_golden
from tests.support.indexed_kernels import of_schedule, of_text
from tests.support.kernels import lowered
from tests.support.programs import program, succeeded
from tests.support.warpgroups import ROLES, derived, product

GOLDEN = Path(__file__).parent / "golden"
LONGEST = 150
HISTOGRAM = """fun(xs: 19.Idx[7] => generate(fun(bin: Idx[7] => xs |> map(fun(x => select(x == bin)(1)(0)))
  |> reduce(+, 0))) |> map(fun(n: i32 => n)))"""


def default_of(text: str) -> Kernel:
    return generate(lowered(text, prelude=True), "f")


def sums_by_blocks() -> Kernel:
    result = succeeded(reduction(64, 4, 2, fan=2)(program("fun(xs: 5.1024.f32 => xs |> map(reduce(+, 0)))")))
    return generate(result.term, "f")


KERNELS: dict[str, Callable[[], Kernel]] = {
    "matmul": partial(of_text, "matmul"),
    "batched": partial(of_text, "batched"),
    "transposition": partial(of_text, "flat transposition"),
    "stencil_2d": partial(of_text, "stencil 2D"),
    "stencil_3d_zeros": partial(of_text, "stencil 3D, zeros"),
    "convolution": partial(of_text, "convolution"),
    "softmax": partial(default_of, "fun(xs: 7.33.f32 => xs |> map(softmax))"),
    "scan": partial(default_of, "fun(xs: 7.33.f32 => xs |> map(scan(+, 0)))"),
    "gather": partial(
        default_of, "fun((is: 7.Idx[5], xs: 5.3.f32) => xs |> gather(is) |> map(map(fun(x => x))))"
    ),
    "histogram": partial(default_of, HISTOGRAM),
    "sum": sums_by_blocks,
    "gemm_pipelined": partial(of_schedule, "grouped"),
    "gemm_prefetched": partial(of_schedule, "prefetched"),
    "gemm_warp_specialised": partial(derived, product(192), 3, **ROLES),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_reads_like_this(name: str) -> None:
    assert_golden(GOLDEN / f"{name}.cu", KERNELS[name]().source)


def test_every_golden_file_is_short_and_of_a_kernel() -> None:
    files = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in GOLDEN.glob("*.cu")}
    assert set(files) == set(KERNELS) | {"gemm", "matmul_bt"}  # these two are kept in test_pipeline.py
    assert max(files.values()) < LONGEST
