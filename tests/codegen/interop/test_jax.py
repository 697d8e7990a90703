"""Exported programs as custom calls of XLA: JAX calls them on the CPU, in the emulator."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import codegen
from codegen.emulation.compiling import compiler
from codegen.export import export
from rise.check.program import check_text
from strategies.default import default

# two kernels with a temporary between them; an array of pairs is read, and made; a number, and one of 16 bits
PAIRS = """def pairs{n: Nat}(xs: n.(f32, i32), a: f32, s: f16): n.(f32, i32) =
  let total = xs |> map(fst) |> reduce(+, 0) |> toMem(Global) in
  xs |> map((x, i) => (a * x - total + f32(s), i + i32(x)))"""
N = 37
jax = pytest.importorskip("jax", reason="jax is not installed")


@pytest.mark.skipif(compiler() is None or shutil.which("gcc") is None, reason="no C and C++ compilers")
def test_jax_calls_an_exported_program_and_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    program = check_text(PAIRS)["pairs"]
    made = codegen.compile(program, default(), sizes={"n": N}, backend="emulate")
    export(made.program, "pairs", tmp_path, "sm_80")
    library = built(tmp_path, "pairs")
    jax.ffi.register_ffi_target("pairs", jax.ffi.pycapsule(library.pairs_jax), platform="cpu")

    def call(xs: Any, indices: Any) -> Any:
        shapes = [jax.ShapeDtypeStruct((N,), dtype) for dtype in (np.float32, np.int32)]
        half = np.float16(-1.5).view(np.uint16)
        return jax.ffi.ffi_call("pairs", shapes)(xs, indices, a=np.float32(3), s=half)

    called = jax.jit(call)
    xs, indices = np.arange(N, dtype=np.float32) % 5, np.arange(N, dtype=np.int32)
    for shift in (0, 4):  # a second call, with the program that is loaded
        first, second = called(xs + shift, indices)
        assert np.array_equal(first, 3 * (xs + shift) - (xs + shift).sum() - np.float32(1.5))
        assert np.array_equal(second, indices + (xs + shift).astype(np.int32))
    for wrong, said in [((xs[1:], indices), "36 elements, not 37"), ((xs, xs), "elements of another type")]:
        with pytest.raises(jax.errors.JaxRuntimeError, match=said):
            called(*wrong)


def built(folder: Path, name: str) -> Any:
    """As CMake does with -DRISE_EMULATION=ON; the handler for a GPU compiles, too."""
    include = ["-I.", "-Idriver", "-Iemulation", f"-I{jax.ffi.include_dir()}", "-std=c++17"]
    emulator = ["emulation/driver.cpp", "emulation/kernels.cpp"]
    for command in (
        ["gcc", "-fPIC", "-Idriver", "-c", f"{name}.c"],
        ["g++", *include, "-fsyntax-only", f"{name}_jax.cpp"],
        ["g++", *include, "-w", "-fPIC", "-shared", "-DRISE_ON_CPU", "-ffp-contract=off", "-o", "made.so",
         f"{name}_jax.cpp", f"{name}.o", *emulator],
    ):  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "made.so"))
