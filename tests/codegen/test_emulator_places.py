"""A fault is shown where it is in the kernel, and where that comes from in the program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from rise.errors import EmulationError
from rise.interpret import random_inputs
from rise.source import place
from tests.support.emulated import needs_compiler
from tests.support.kernels import kernel

pytestmark = needs_compiler

WINDOWS = """fun((xs: 3.66.f32) => xs |> mapBlock(fun(r =>
  r |> mapThreads(fun(x => x + 1)) |> toMem(Shared)
    |> slide(3, 1)
    |> mapThreads(fun(w => w |> reduceSeq(Local)(fun((s, t) => s + t), 0))))))"""


def texts(error: EmulationError) -> list[str]:
    """What of the program the notes of an error show."""
    return [span.text for note in error.notes if (span := place(note.origin)) is not None]


def fails(made: Kernel) -> EmulationError:
    with pytest.raises(EmulationError) as raised:
        execute(made, random_inputs(made.inputs, 0, exact=True), "emulate")
    return raised.value


def test_every_line_of_a_kernel_has_its_place() -> None:
    made = kernel(WINDOWS)
    lines = made.source.splitlines()
    assert len(made.lines) == len(lines)
    found = {
        line.split(" = ")[0].strip(): span.text
        for line, origin in zip(lines, made.lines, strict=True)
        if (span := place(origin)) is not None and "=" in line
    }
    assert found["tile[thread_x]"] == "x + 1"
    assert found["s"] == "s + t"
    assert place(made.lines[0]) is None and place(made.lines[-1]) is None, "they are of the whole kernel"


def test_a_fault_shows_the_program() -> None:
    made = kernel(WINDOWS)
    error = fails(replace(made, source=made.source.replace("__syncthreads();", ";")))
    span = place(error.origin)
    assert span is not None and span.source.name == "f_kernel.cu"
    assert error.code in ("R0904", "R0907")
    assert "s + t" in texts(error)
    assert "reduceSeq(Local)(fun((s, t) => s + t), 0)" in error.render()


def test_a_race_shows_both_parties() -> None:
    made = kernel(
        "fun((xs: 3.64.f32) => xs |> mapSeq(fun(r => r |> mapThreads(fun(x => x + 1)) |> toMem(Shared)"
        " |> reorder(64, natFun(i => 63 - i), natFun(i => 63 - i)) |> mapThreads(fun(y => y * 2)))))"
    )
    first = made.source.replace("__syncthreads();", ";", 1)
    error = fails(replace(made, source=first))
    assert error.code == "R0907"
    assert set(texts(error)) == {"x + 1", "y * 2"}
