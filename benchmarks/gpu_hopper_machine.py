"""On a Hopper GPU: whether hardware and emulator agree about mbarriers, bulk copies, swizzles and wgmma.

Runs the hand-written kernels of tests/codegen/hopper on both and compares each exactly with NumPy.

python benchmarks/gpu_hopper_machine.py            a line a kernel, and how many agree
python benchmarks/gpu_hopper_machine.py --match ring --seconds 20
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from codegen.emulation.emulator import Scalar
from codegen.ir.tensor_maps import ALIGNMENT, ENCODED_BYTES, TensorBuffer, encode
from codegen.runtime import compile_cubin
from codegen.runtime.device import driver
from codegen.runtime.libcuda import Driver, primary
from codegen.runtime.packing import POINTER, Field, natural_offsets, packer
from rise.errors import RiseError
from tests.codegen.hopper.hopper_kernels import Given, Problem, copies, products, rings

TARGET = "sm_90a"
NUMBER = Field.of("i")
MAP = Field.of(f"{ENCODED_BYTES}s", ALIGNMENT)
POISON = 0x7F  # in every byte that the kernel has to write


class Hangs(Exception):
    """A kernel that does not end: a wait for bytes or arrivals that never come."""


def upload(given: Given, cuda: Any) -> Any:
    """An array's copy on the GPU; None for a number."""
    if isinstance(given, Scalar):
        return None
    host = np.ascontiguousarray(given.array).view(np.uint8).reshape(-1)
    return cuda.to_device(host if given.initialised else np.full_like(host, POISON))


def parameter(given: Given, there: Any, library: Any) -> tuple[Field, Any]:
    """How an argument is passed, and what."""
    match given:
        case Scalar():
            return NUMBER, int(given.value)
        case TensorBuffer():
            return MAP, bytes(encode(given.map, int(there), library.cuTensorMapEncodeTiled))
        case _:
            return POINTER, int(there)


def wait(cuda: Any, seconds: float) -> None:
    event = cuda.Event()
    event.record()
    end = time.monotonic() + seconds
    while not event.query():
        if time.monotonic() > end:
            raise Hangs
        time.sleep(0.001)


def on_gpu(problem: Problem, api: Driver, cuda: Any, seconds: float) -> str:
    """`equal`, or what is wrong."""
    module = api.load(compile_cubin(problem.source, TARGET).read_bytes())
    function = api.function(module, "k")
    if problem.shared_bytes > 48 * 1024:
        api.allow_shared(function, problem.shared_bytes)
    there = [upload(given, cuda) for given in problem.arguments]
    passed = [parameter(g, t, api.library) for g, t in zip(problem.arguments, there, strict=True)]
    fields, values = [field for field, _ in passed], [value for _, value in passed]
    offsets = api.parameter_offsets(function, len(fields)) or natural_offsets(fields)
    packed = packer(fields, offsets).pack(*values)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    api.launcher(function, problem.shared_bytes, buffer)(problem.grid, (problem.threads, 1, 1), 0)
    wait(cuda, seconds)
    verdict = "equal"
    for position, wanted in problem.wanted.items():
        found = np.empty(wanted.nbytes, np.uint8)
        cuda.memcpy_dtoh(found, there[position])
        wrong = np.flatnonzero(found.view(wanted.dtype) != wanted.reshape(-1))
        if len(wrong):
            first = found.view(wanted.dtype)[wrong[0]], wanted.reshape(-1)[wrong[0]]
            verdict = f"WRONG in {len(wrong)} of {wanted.size}, first {wrong[0]}: {first[0]} for {first[1]}"
    api.unload(module)
    return verdict


def in_emulator(problem: Problem) -> str:
    try:
        return "equal" if problem.run(seed=2) else "WRONG"
    except RiseError as error:
        return error.code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="only kernels whose name has this in it")
    parser.add_argument("--seconds", type=float, default=10, help="after which a kernel is taken to hang")
    parser.add_argument("--no-emulator", action="store_true", help="run on the GPU only")
    chosen = parser.parse_args()
    cuda, api = driver(), primary()
    problems = [p for p in (*copies(), *products(), *rings()) if chosen.match in p.name]
    agree = 0
    print(f"{'kernel':<72} {'emulator':<9} GPU")
    for problem in problems:
        emulated = "-" if chosen.no_emulator else in_emulator(problem)
        try:
            found = on_gpu(problem, api, cuda, chosen.seconds)
        except Hangs:
            print(f"{problem.name:<72} {emulated:<9} HANGS; nothing more can run in this process", flush=True)
            os._exit(1)
        except RiseError as error:
            found = f"{error.code} {error.message}"
        print(f"{problem.name:<72} {emulated:<9} {found}", flush=True)
        agree += found == "equal" and emulated in ("-", "equal")
    print(f"{agree} of {len(problems)} kernels are exact on both")
    sys.exit(agree != len(problems))


if __name__ == "__main__":
    main()
