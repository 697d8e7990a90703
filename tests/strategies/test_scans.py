"""Long scans are computed in blocks, exactly, wherever they stand in a program."""

from __future__ import annotations

import pytest

from strategies.auto import auto
from tests.support.batches import exact, program
from tests.support.nightly import every_other
from tests.support.programs import succeeded

AUTO = auto()
# how many kernels each program is: sums of blocks, their scan, scans of blocks, what is computed of these
PROGRAMS = {
    "of blocks": ("x: 2048.i32) = x |> scan(+, 0)", 3),
    "of a prime": ("x: 1031.f32) = x |> scan(max, -10000)", 4),
    "of what is mapped, mapped": ("x: 1500.i32) = x |> map(a => a * a) |> scan(+, 0) |> map(s => s - 1)", 4),
    "in two turns": ("x: 140001.i32) = x |> scan(+, 0)", 6),
    "of rows": ("X: 3.1500.i32) = X |> map(scan(+, 0))", 4),
    "of rows in matrices": ("X: 2.3.1100.i32) = X |> map(map(r => r |> scan(+, 0) |> map(s => 2 * s)))", 4),
    "beside each other": ("x: 1280.f32) = (x |> scan(+, 0), x |> scan(max, -10000))", 6),
    "of sums, which are computed once": ("X: 1200.7.i32) = X |> map(reduce(+, 0)) |> scan(+, 0)", 4),
    "short": ("x: 1024.i32) = x |> scan(+, 0)", 1),
    "of many rows": ("X: 8193.1100.i32) = X |> map(scan(+, 0))", 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_long_scans_are_several_kernels(name: str) -> None:
    text, kernels = PROGRAMS[name]
    assert len(AUTO.choice(program(f"def f({text}")).kernels) == kernels


@pytest.mark.parametrize("name", [*every_other(list(PROGRAMS)[:7]), "of sums, which are computed once"])
def test_scans_in_blocks_are_exact(name: str) -> None:
    term = program(f"def f({PROGRAMS[name][0]}")
    assert exact(term, succeeded(AUTO(term)).term)
