"""examples/hopper.rise: the goal program of the design goes through the compiler and is exact."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import available_backend, execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import load
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import random_inputs
from rise.normal import data_flow
from tests.support.nightly import every_other

EXAMPLE = Path(__file__).parents[2] / "examples" / "hopper.rise"
SIZES = {"q": 1, "c": 2, "k": 5, "p": 3}  # eight pairs of tiles on three clusters, more k tiles than slots


@cache
def goal() -> tuple[Expr, Kernel]:
    program = specialise(load(EXAMPLE)["goal"], SIZES)
    return program, generate(data_flow(program), "goal")


@pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("seed", every_other(range(3)))  # copies arrive late, at once, at random
def test_it_is_exact_in_the_emulator(seed: int) -> None:
    program, made = goal()
    a, b = random_inputs(inputs_of(program), seed, exact=True)
    found = execute(made, [a, b], "emulate", seed=seed)
    assert np.array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T)


def test_its_kernel_is_what_the_program_says() -> None:
    """Clusters of two blocks of three warpgroups. A block loads its rows of A, and half of B for both."""
    launch, text = goal()[1].launch, goal()[1].source
    assert (launch.grid, launch.block, launch.cluster) == ((6, 1, 1), (384, 1, 1), 2)
    assert re.findall(r"bulk_load\w*\(\w+", text) == ["bulk_load(ring", "bulk_load_multicast(ring_1"]
    assert "registers_decrease" in text and "registers_increase" in text
    assert text.count("wgmma<128, half>") == 1 and text.count("bulk_store(") == 1
    assert text.count("__syncthreads") == 0


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
def test_the_command_line_compiles_it(rise: Any) -> None:
    """A kernel that is serialized, or keeps its registers, fails the command (R0851, R0852)."""
    sizes = [f"{name}={value}" for name, value in SIZES.items()]
    called = rise(
        "compile", str(EXAMPLE), "goal", "--size", *sizes, "--target", "sm_90a", "--stage", "resources"
    )
    assert called.status == 0, called.err
    assert "0 bytes spilled and 0 loaded back" in called.out
