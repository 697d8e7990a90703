"""Kernels of a program overlap where one is warp-specialised: each waits for the one in front of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir.imperative import (
    AwaitPreviousGrid,
    Barrier,
    Function,
    Scope,
    Skip,
    StartNextGrid,
    Variable,
    sequence,
)
from codegen.passes import overlap
from codegen.passes.overlap import outliving, waits_at_its_end
from codegen.passes.split_kernels import Temporary
from codegen.pipeline import assemble
from rise.errors import EmulationError
from rise.interpret import call, random_inputs
from rise.nat import constant
from rise.types import F32, Array
from strategies.core import Strategy
from strategies.derive import derived
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import program

# rectified operands are stored by a kernel of their own, and what follows is one, too
TEXT = (
    "fun((A: 65.72.f16, Bt: 40.72.f16) => (A |> map(map(fun(x => max(x, 0)))) |> toMem(Global))"
    " |> map(fun(row => Bt |> map(fun(col =>"
    " zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)))))"
    " |> toMem(Global) |> map(map(fun(x => x + 1))))"
)


def strategy(warp_specialised: bool) -> Strategy:
    block, fragment = (64, 64, 64), (64, 64, 16)
    return tensor_core(
        block,
        (64, 64),
        fragment,
        stages=2,
        raster_group=1,
        epilogue="shared",
        warp_specialised=warp_specialised,
    )


def made(warp_specialised: bool) -> HostProgram:
    return assemble(derived(program(TEXT), strategy(warp_specialised)).term, "chain")


def waits(text: str) -> bool:
    return "await_previous_grid();" in text


def test_every_kernel_waits_before_it_uses_memory() -> None:
    found = made(warp_specialised=True)
    assert len(found.kernels) == 3 and all(waits(kernel.source) for kernel in found.kernels)
    inputs = random_inputs(found.inputs, 7, exact=True)
    for seed in range(3):
        assert np.array_equal(execute(found, inputs, "emulate", seed=seed), call(program(TEXT), *inputs))


def test_kernels_that_start_after_each_other_do_not_wait() -> None:
    """Without roles a program may be for any GPU, and older ones have no such instruction."""
    found = made(warp_specialised=False)
    assert len(found.kernels) == 3 and not any(waits(kernel.source) for kernel in found.kernels)


@pytest.mark.parametrize("number", range(3))
def test_a_kernel_that_waits_too_late_is_found(number: int) -> None:
    found = made(warp_specialised=True)
    kernel = found.kernels[number]
    wrong = kernel.source.replace("await_previous_grid();\n", "if (threadIdx.x) await_previous_grid();\n")
    kernels = [*found.kernels]
    kernels[number] = replace(kernel, source=wrong)
    with pytest.raises(EmulationError, match="R0925"):
        execute(replace(found, kernels=tuple(kernels)), random_inputs(found.inputs, 7, exact=True), "emulate")


# the rows of both operands are copied to longer ones before the product
COPIED = (
    "fun((A: 65.71.f16, Bt: 40.71.f16) => A |> map(fun(row => Bt |> map(fun(col =>"
    " zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))))))"
)


def test_kernels_that_use_nothing_of_each_other_run_at_the_same_time() -> None:
    """The second starts at once, and waits at its end: who waits for it waits for both."""
    found = assemble(derived(program(COPIED), strategy(warp_specialised=True)).term, "product")
    first, second, _ = (kernel.function for kernel in found.kernels)
    assert waits_at_its_end(second) and not waits_at_its_end(first)
    assert all(t.last == 2 for t in found.temporaries)
    inputs = random_inputs(found.inputs, 7, exact=True)
    assert np.array_equal(execute(found, inputs, "emulate"), call(program(COPIED), *inputs))


def test_a_kernel_beside_the_one_whose_results_it_uses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_independent", lambda front, one: not overlap._is_specialised(one))
    found = made(warp_specialised=True)
    with pytest.raises(EmulationError, match="R0925"):
        execute(found, random_inputs(found.inputs, 7, exact=True), "emulate")


def test_what_a_kernel_uses_is_kept_while_the_next_one_runs_beside_it() -> None:
    array = Variable("t", Array(constant(4), F32))
    late = Function("g", (), (), sequence(StartNextGrid(), Skip(), Barrier(Scope.BLOCK), AwaitPreviousGrid()))
    first = Function("f", (), (), Skip())
    kept = outliving([Temporary(array, 0, 0), Temporary(array, 1, 1)], [first, late])
    assert [t.last for t in kept] == [1, 1]


def test_a_single_kernel_without_roles_does_not_wait() -> None:
    alone = assemble(program("fun(xs: 7.f32 => xs |> mapGlobal(fun(x => x + 1)))"), "alone")
    assert not waits(alone.kernels[0].source)


def test_large_kernels_start_after_the_one_in_front() -> None:
    large = TEXT.replace("65.72", "131136.72")
    text = assemble(derived(program(large), strategy(warp_specialised=True)).term, "chain").kernels[0].source
    small = made(warp_specialised=True).kernels[0].source
    assert waits(small) and not waits(text)
