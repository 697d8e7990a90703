"""On a machine with a GPU: what a launch of a compiled kernel costs, beside pycuda's own; a short table.

python benchmarks/launch_overhead.py

Three arrays and a number are passed. `submit` is the time until a call returns, `back to back` the time a
call of a long row takes with the GPU's part; host arrays, which are copied, are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import codegen
from codegen import runtime
from rise.check.program import check_text
from strategies.default import default

PROGRAM = """def axpy: {n: Nat} -> n.f32 -> n.f32 -> f32 -> n.f32 =
  fun((xs, ys, a) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))"""
EMPTY = 'extern "C" __global__ void empty(float* out, const float* xs, const float* ys, float a) {}'
N = 1024
ROUNDS, CALLS = 50, 100
LIMIT = 15.0  # µs, for a kernel that is loaded and arguments that have been checked


def submit(call: Callable[[], Any], synchronize: Callable[[], Any]) -> tuple[float, float]:
    """Median µs of a call, and of a call of a row with all of the GPU's work."""
    submitted, rows = [], []
    for _ in range(CALLS):
        call()
    for _ in range(ROUNDS):
        synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        submitted.append((time.perf_counter() - start) / CALLS * 1e6)
        synchronize()
        rows.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(submitted), statistics.median(rows)


def calls() -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    cuda = runtime.driver()
    from pycuda import gpuarray

    definition = check_text(PROGRAM)["axpy"]
    fixed = codegen.compile(definition, default(), sizes={"n": N}, backend="cuda")
    left_open = codegen.compile(definition, default(), runtime=["n"], backend="cuda")
    module = cuda.module_from_buffer(runtime.compile_cubin(EMPTY, runtime.device_target()).read_bytes())
    empty = module.get_function("empty")
    empty.prepare("PPPf")
    xs, ys, out = (gpuarray.to_gpu(np.ones(N, np.float32)) for _ in range(3))
    pointers = [int(a.gpudata) for a in (out, xs, ys)]
    found: dict[str, Callable[[], Any]] = {
        "pycuda, empty kernel, prepared_call": lambda: empty.prepared_call(
            (1, 1), (128, 1, 1), *pointers, 1.0
        ),
        "pycuda, empty kernel, call": lambda: empty(
            *map(np.uintp, pointers), np.float32(1.0), block=(128, 1, 1), grid=(1, 1)
        ),
        "ours, loaded, pycuda arrays": lambda: fixed.loaded(out, xs, ys, 1.0),
        "ours, out=, pycuda arrays": lambda: fixed(xs, ys, 1.0, out=out),
        "ours, run-time size, pycuda arrays": lambda: left_open(xs, ys, 1.0, out=out),
    }
    if find_spec("torch") is not None:
        import torch

        a, b, c = (torch.ones(N, device="cuda") for _ in range(3))
        found |= {
            "torch.add with out=": lambda: torch.add(a, b, alpha=1.0, out=c),
            "ours, out=, torch": lambda: fixed(a, b, 1.0, out=c),
            "ours, new result, torch": lambda: fixed(a, b, 1.0),
        }
    return found


def main() -> None:
    synchronize = runtime.driver().Context.synchronize
    print(f"{'median µs of a call':40}  submit  back to back")
    slow = []
    for name, call in calls().items():
        submitted, row = submit(call, synchronize)
        print(f"{name:40} {submitted:7.2f} {row:13.2f}", flush=True)
        if name.startswith("ours") and submitted > LIMIT:
            slow.append(name)
    print(f"all within {LIMIT} µs" if not slow else f"above {LIMIT} µs: {', '.join(slow)}")


if __name__ == "__main__":
    main()
