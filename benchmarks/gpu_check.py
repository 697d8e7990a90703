"""On a machine with a GPU: checks and sanitizes derived kernels. `rise bench` times them.

python benchmarks/gpu_check.py              everything
python benchmarks/gpu_check.py --only check what compute-sanitizer runs
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gpu_scalars
import hopper_programs
import numpy as np

from codegen import runtime
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.check.program import check_text, load
from rise.check.specialise import specialise
from rise.errors import RiseError
from rise.expr import inline
from rise.interpret import random_inputs
from rise.normal import data_flow
from strategies.core import Strategy
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SHAPES = ((1024, 1024, 1024), (512, 1536, 768))
WIDE = (8, 32, 16)  # no fragments for a first operand that lies across k
# the schedules that are checked: every path that operands and results take
CHECKED: tuple[dict[str, Any], ...] = (
    {},
    {"epilogue": "direct"},
    {"stages": 1, "raster_group": 2},
    {"stages": 0, "epilogue": "direct"},
    {"fragment": WIDE},
    {"cp_async": False, "stages": 2, "slice_k": 2},
    {"fragment": (16, 8, 16), "swizzled": True, "prefetch_fragments": True, "stages": 3},
    {"fragment": (16, 16, 8), "epilogue": "direct", "stages": 2},
    {"block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "epilogue": "direct", "stages": 3},
)
TILES: dict[str, Any] = {"block": (64, 64, 32), "warp": (32, 32)}
PRODUCTS: dict[str, dict[str, int]] = {
    "biasRelu": {"m": 256, "n": 192, "k": 160},
    "sumOfProducts": {"m": 128, "n": 192, "k": 96, "l": 64},
    "reluProduct": {"m": 128, "n": 128, "k": 128},
    "batchedProducts": {"b": 3, "m": 128, "n": 64, "k": 96},
    "convolution": {"h": 16, "w": 8, "c": 32, "o": 64},
}
LARGE = "def increased = depFun((n: Nat) => fun((xs: n.u8) => xs |> map(fun(x => x + 1))))"
EVERYTHING = """
def scale = fun((xs: 1000.f32, ys: 1000.f32) => zip(xs)(ys) |> map(fun((x, y) => x * y + 1)))
def rows = fun((xss: 37.53.f32) => xss |> map(fun(xs => xs |> reduce(+, 0))))
def turned = fun((xss: 37.53.f32) => xss |> transpose)
def stencil = fun((xs: 1026.f32) => xs |> slide(3, 1) |> map(fun(w => w |> reduce(+, 0))))
"""


def derive(name: str, sizes: dict[str, int], strategy: Strategy, file: str = "gemm.rise") -> Kernel:
    """The kernel of a definition of an example."""
    result = strategy(data_flow(inline(specialise(load(EXAMPLES / file)[name], sizes))))
    if isinstance(result, Failure):
        raise RiseError("R0600", result.story())
    return generate(result.term, name)


def integers(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return random.integers(-4, 5, shape).astype(dtype)


def expected(name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, list[object]]:
    """The exact result and the inputs of a definition, from A (m.k), B (k.n), C (m.n)."""
    product = a.astype(np.float32) @ b.astype(np.float32)
    turn = np.ascontiguousarray
    match name:
        case "gemm":
            return 2 * product + 3 * c, [a, b, c, 2.0, 3.0]
        case "matmul":
            return product, [a, b]
        case "matmul_bt":
            return product, [a, turn(b.T)]
        case "matmul_at":
            return product, [turn(a.T), b]
        case _:
            return (2 * product + 3 * c).astype(np.float16), [a, b, c.astype(np.float16), 2.0, 3.0]


def check(name: str, m: int, n: int, k: int, strategy: Strategy, on_device: bool = False) -> str:
    """Runs on integers small enough that every sum is exact, into a poisoned output; compares bits."""
    random = np.random.default_rng(m + n + k)
    a, b, c = (
        integers(random, (m, k), "f2"),
        integers(random, (k, n), "f2"),
        integers(random, (m, n), "f4"),
    )
    wanted, inputs = expected(name, a, b, c)
    kernel = derive(name, {"m": m, "n": n, "k": k}, strategy)
    result = np.full(wanted.shape, np.nan, wanted.dtype)
    if on_device:
        from pycuda import gpuarray

        there = gpuarray.to_gpu(result)
        runtime.load(kernel)(there, *(gpuarray.to_gpu(x) if isinstance(x, np.ndarray) else x for x in inputs))
        result = there.get()
    else:
        runtime.launch(kernel, [result, *inputs])
    if not np.array_equal(result, wanted):
        raise RiseError("R0830", f"{name} {m}×{n}×{k} is wrong in {np.sum(result != wanted)} elements")
    where = "pycuda arrays" if on_device else "NumPy arrays"
    return f"{name:10} {m:5}×{n:5}×{k:5} {where}: equal, {kernel.launch}"


def check_default(name: str, inputs: Sequence[np.ndarray], wanted: np.ndarray) -> str:
    program = check_text(EVERYTHING)
    result = default()(data_flow(inline(program[name].body)))
    if isinstance(result, Failure):
        raise RiseError("R0600", result.story())
    output = np.full(wanted.shape, np.nan, wanted.dtype)
    runtime.launch(generate(result.term, name), [output, *inputs])
    if not np.array_equal(output, wanted):
        raise RiseError("R0830", f"{name} is wrong")
    return f"{name:10} default strategy: equal"


def check_product(name: str, sizes: dict[str, int], schedule: dict[str, Any]) -> str:
    """A program of examples/products.rise against its reference."""
    sys.path.insert(0, str(EXAMPLES))
    from references import REFERENCES

    kernel = derive(name, sizes, tensor_core(**{**TILES, **schedule}), "products.rise")
    inputs = random_inputs(kernel.inputs, 11, exact=True)
    wanted = REFERENCES["products.rise", name]([x.astype(np.float64) for x in inputs], sizes)
    result = np.full(wanted.shape, np.nan, np.float32)
    runtime.launch(kernel, [result, *inputs])
    if not np.array_equal(result, wanted):
        raise RiseError("R0830", f"{name} is wrong in {np.sum(result != wanted)} elements")
    return f"{name:15} {schedule}: equal, {kernel.launch}"


def check_large(count: int = 6_442_450_944) -> str:
    """More bytes than 32 bits count, each one more than it was: all of them are looked at, in parts."""
    from codegen.runtime.device import driver

    definition = check_text(LARGE)["increased"]
    result = default()(data_flow(inline(specialise(definition, {"n": count}))))
    if isinstance(result, Failure):
        raise RiseError("R0600", result.story())
    cuda, loaded = driver(), runtime.load(generate(result.term, "increased"))
    source, target = cuda.mem_alloc(count), cuda.mem_alloc(count)
    part = np.arange(251 * 2**20, dtype=np.uint8) % 251  # no power of two divides its period
    pieces = [(start, min(len(part), count - start)) for start in range(0, count, len(part))]
    for start, size in pieces:
        cuda.memcpy_htod(int(source) + start, part[:size])
        cuda.memset_d8(int(target) + start, 0xFF, size)
    arrays = (Bytes(int(pointer), count) for pointer in (target, source))
    loaded(*arrays)
    cuda.Context.synchronize()
    found = np.empty_like(part)
    for start, size in pieces:
        cuda.memcpy_dtoh(found[:size], int(target) + start)
        if not np.array_equal(found[:size], part[:size] + np.uint8(1)):
            raise RiseError("R0830", f"bytes from {start} on are wrong")
    return f"increased  {count} bytes: equal"


class Bytes:
    """Bytes in the memory of the GPU."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (pointer, False), "shape": (size,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def checks(small: bool) -> None:
    """All programs; `small` for the sanitizer, which is slow."""
    shapes = ((256, 128, 192),) if small else SHAPES
    for schedule in CHECKED:
        strategy = tensor_core(**{**TILES, **schedule})
        for m, n, k in shapes:
            names = ["gemm", "matmul", "matmul_bt", "gemm_f16"]
            if schedule.get("fragment") != WIDE:
                names.append("matmul_at")
            for name in names:
                print(check(name, m, n, k, strategy), flush=True)
    for name, sizes in PRODUCTS.items():
        for schedule in CHECKED[:2]:
            print(check_product(name, sizes, schedule), flush=True)
    print(check("gemm", *shapes[-1], tensor_core(**TILES), on_device=True), flush=True)
    random = np.random.default_rng(7)
    x, y = integers(random, (1000,), "f4"), integers(random, (1000,), "f4")
    xss, window = integers(random, (37, 53), "f4"), integers(random, (1026,), "f4")
    print(check_default("scale", [x, y], x * y + 1))
    print(check_default("rows", [xss], xss.sum(1)))
    print(check_default("turned", [xss], np.ascontiguousarray(xss.T)))
    if not small:
        print(check_large())
    print(check_default("stencil", [window], window[:-2] + window[1:-1] + window[2:]))


def sanitize() -> None:
    """compute-sanitizer over the checks, in processes of their own, all at once.

    initcheck does not see what the copying unit stores, which the second kernel of `slices of sums` reads.
    """
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        print("compute-sanitizer is not installed")
        return
    programs = ([__file__, "--only", "small"], [str(ROOT / "benchmarks" / "hopper_programs.py"), "cuda"])
    unseen = {"initcheck": ["slices of sums"]}
    start = time.time()
    running = [
        (kind, Path(program[0]).stem, subprocess.Popen(
            [tool, "--tool", kind, "--error-exitcode", "9", sys.executable, *program]
            + (unseen.get(kind, []) if program[-1] == "cuda" else []),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ))
        for kind in ("memcheck", "racecheck", "synccheck", "initcheck")
        for program in programs
    ]  # fmt: skip
    for kind, name, process in running:
        output, _ = process.communicate()
        lines = [line for line in output.splitlines() if line.startswith("=====")]
        summary = lines[-1] if lines else output[-300:]
        passed = sum("equal" in line for line in output.splitlines())
        print(f"{kind} {name}: exit {process.returncode}, {passed} checks equal, {summary}", flush=True)
        if process.returncode:
            print("\n".join(output.splitlines()[-30:]), flush=True)
    print(f"sanitized in {time.time() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("check", "small", "sanitize"))
    only = parser.parse_args().only
    if only == "small":
        checks(small=True)
    if only in (None, "check"):
        checks(small=False)
        gpu_scalars.main("cuda")
        hopper_programs.main("cuda")
    if only in (None, "sanitize"):
        sanitize()


if __name__ == "__main__":
    main()
