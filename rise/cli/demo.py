"""`rise demo`: every stage of compiling a matrix product to tensor cores, each shown briefly."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

from codegen.execute import available_backend, execute
from codegen.ir.kernel import Kernel
from rewrites.result import Success
from rise.check.compare import Tolerance, compare, tolerance
from rise.check.program import load
from rise.check.specialise import inputs_of, specialise
from rise.cli.derive import counts
from rise.cli.options import sizes as given_sizes
from rise.cli.stages import derived, kernel_of
from rise.expr import Definition, Expr
from rise.interpret import call, random_inputs
from rise.pretty import full_type, show, show_definition
from rise.progress import progress
from rise.shipped import shipped
from strategies.registry import find, show_value

T = TypeVar("T")
EXAMPLE = "examples/gemm.rise"
SIZE = 256  # of what is not given
LINES = 34  # of the low-level program and of the kernel: about one screen each
CONTEXT = 3  # lines before and after one that multiplies on tensor cores


def run(arguments: argparse.Namespace) -> int:
    """From the high-level program to a checked result. Exit status 1 if the result is wrong."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    started = time.perf_counter()
    sizes = {**dict.fromkeys("mnk", SIZE), **given_sizes(arguments.size)}
    definition = example()
    _title(console, "1. The program: what to compute")
    console.print(show_definition(definition))
    console.print(f"\ntype: {full_type(definition)}")
    program = specialise(definition, sizes)
    inputs = random_inputs(inputs_of(program), seed=0, exact=False)
    backend = available_backend()
    if backend is None:
        agrees = _interpret_only(console, program, inputs)
    else:
        agrees = _compile_and_run(console, program, inputs, backend)
    console.print(f"total {time.perf_counter() - started:.1f} s")
    return 0 if agrees else 1


def example() -> Definition:
    """`gemm` of the example file, from the working directory or else as it came with the project."""
    own = Path(EXAMPLE)
    return load(own if own.is_file() else shipped(EXAMPLE))["gemm"]


def _compile_and_run(console: Console, program: Expr, inputs: list[Any], backend: str) -> bool:
    success, seconds = timed("deriving", lambda: derived(program, find("tensor_core").make({})))
    _title(console, f"2. The derivation: {len(success.steps)} steps in {seconds:.1f} s")
    settings = ", ".join(f"{s.name} {show_value(s.default)}" for s in find("tensor_core").settings)
    console.print(f"strategy tensor_core: {settings}; rules applied:")
    console.print(counts(success))
    _show_low(console, success)
    kernel, seconds = timed("translating", lambda: kernel_of(success, "gemm"))
    _show_kernel(console, kernel, seconds)
    where = "on the GPU" if backend == "cuda" else "in the emulator (no GPU here)"
    result, seconds = timed(f"running {where}", lambda: execute(kernel, inputs, backend))
    _title(console, f"5. The result, computed {where}: {seconds:.1f} s, compilation included")
    if backend == "cuda":
        console.print(f"time on the GPU: {_gpu_time(kernel, inputs, result):.2f} µs, median over launches")
    return _check(console, program, inputs, result)


def _gpu_time(kernel: Kernel, inputs: list[Any], result: Any) -> float:
    from bench.gpu import median_time

    return median_time(kernel, inputs, result)


def _interpret_only(console: Console, program: Expr, inputs: list[Any]) -> bool:
    _title(console, "2. The result")
    console.print("There is no GPU and no C++ compiler here, so the reference interpreter runs the program.")
    console.print("With g++ or clang++ the demo derives a CUDA kernel and runs it in the emulator.")
    result, seconds = timed("the interpreter runs", lambda: call(program, *inputs))
    console.print(f"interpreted in {seconds:.2f} s")
    return _check_numpy(console, inputs, result, tolerance(program))


def _show_low(console: Console, success: Success) -> None:
    _title(console, "3. The low-level program: every decision explicit")
    console.print(excerpt(show(success.term), LINES, "tensorMatMulAdd"))


def _show_kernel(console: Console, kernel: Kernel, seconds: float) -> None:
    _title(console, f"4. The CUDA kernel, translated in {seconds:.1f} s")
    console.print(excerpt(kernel.source, LINES, "mma_sync("))
    console.print(f"\nlaunch: {kernel.launch}")


def _check(console: Console, program: Expr, inputs: list[Any], result: Any) -> bool:
    allowed = tolerance(program)
    reference, seconds = timed("the interpreter runs", lambda: call(program, *inputs))
    verdict = compare(result, reference, allowed)
    word = "agrees" if verdict.agrees else "WRONG"
    console.print(f"against the interpreter ({seconds:.1f} s): {word}, {verdict}")
    return _check_numpy(console, inputs, result, allowed) and verdict.agrees


def _check_numpy(console: Console, inputs: list[Any], result: Any, allowed: Tolerance) -> bool:
    """In double precision: an oracle that shares nothing with the language."""
    a, b, c, alpha, beta = (np.asarray(x, np.float64) for x in inputs)
    verdict = compare(result, (alpha * (a @ b) + beta * c).astype(np.float32), allowed)
    word = "agrees" if verdict.agrees else "WRONG"
    console.print(f"against NumPy in double precision: {word}, {verdict}")
    return verdict.agrees


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(f"── {text}", style="bold")
    console.print()


def excerpt(text: str, lines: int, marked: str) -> str:
    """The first lines, and those that hold the marked word with what is around them.

    An arrow stands before each of the latter; the number of lines that are left out stands in their place.
    """
    all_lines = text.rstrip("\n").splitlines()
    found = {number for number, line in enumerate(all_lines) if marked in line}
    around = {near for number in found for near in range(number - CONTEXT, number + CONTEXT + 1)}
    kept = sorted((around | set(range(max(1, lines - len(around))))) & set(range(len(all_lines))))
    shown: list[str] = []
    expected = 0
    for number in [*kept, len(all_lines)]:
        if number > expected:
            shown.append(f"  … {number - expected} more lines")
        if number < len(all_lines):
            shown.append(("→ " if number in found else "  ") + all_lines[number])
        expected = number + 1
    return "\n".join(shown)


def timed(what: str, action: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    with progress(what):
        result = action()
    return result, time.perf_counter() - started
