"""Runs a program on NumPy arrays, on a GPU or in the emulator: checks inputs and allocates the output.

An array of pairs is a pair of arrays. The output is poisoned first: with NaN if the type has it, and the
emulator refuses to read it; so an element that a kernel does not write is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.emulation.steps import most_steps
from codegen.host.parameters import (
    Part,
    as_indices,
    as_number,
    leaves,
    results,
    shapes_of,
    stored,
    together,
    without_loss,
    wrong_shape,
    wrong_type,
)
from codegen.host.program import HostCall, HostProgram, Launching, Placed, alone
from codegen.ir.identifiers import shown
from codegen.ir.imperative import Function
from codegen.ir.kernel import Kernel
from codegen.ir.tensor_maps import TensorBuffer
from codegen.passes.overlap import buffers, starts_next_at_once, waits_at_its_end
from rise.errors import LaunchError, UsageError
from rise.progress import stepwise

BACKENDS = ("cuda", "emulate")


def available_backend() -> str | None:
    """`cuda` if there is a GPU, else `emulate` if there is a C++ compiler, else None."""
    from codegen import runtime  # late: looking for a GPU imports its libraries
    from codegen.emulation.compiling import compiler

    if runtime.available():
        return "cuda"
    return "emulate" if compiler() is not None else None


def present_target() -> str | None:
    """The target of this machine's GPU; None where there is none."""
    from codegen import runtime

    return runtime.device_target() if runtime.available() else None


def execute(
    program: Kernel | HostProgram,
    inputs: Sequence[Any],
    backend: str,
    target: str | None = None,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
) -> Any:
    """The result: an array, a NumPy number, or a pair of these.

    inputs:  in the order of the program's parameters: C-contiguous arrays, numbers, tuples for pairs
    backend: `cuda` or `emulate`
    target:  the architecture to compile for, by default that of the GPU
    seed:    determines the order in which the emulator runs blocks and threads
    sizes:   the run-time sizes that no input determines
    """
    if backend not in BACKENDS:
        raise UsageError("R0013", f"kernels run on {' or '.join(BACKENDS)}, not on `{backend}`")
    host = program if isinstance(program, HostProgram) else alone(program)
    call = host.at({**host.sizes_from(shapes_of(host, inputs)), **(sizes or {})})
    given = list(checked_inputs(call, inputs))
    outputs = [poisoned(part) for part in results(call)]
    if backend == "cuda":
        _run_on_gpu(host, outputs, given, target, sizes)
    else:
        run_emulated(call, outputs, given, seed)
    return result_of(call, outputs)


def _run_on_gpu(
    program: HostProgram,
    outputs: Sequence[Any],
    inputs: Sequence[Part],
    target: str | None,
    sizes: Mapping[str, int] | None,
) -> None:
    from codegen import runtime  # late: needs a driver

    runtime.load(program, target)(*outputs, *(part.value for part in inputs), sizes=sizes)


def run_emulated(call: HostCall, outputs: Sequence[Any], inputs: Sequence[Part], seed: int = 0) -> None:
    """Writes the outputs by running the kernels in order. Temporaries share memory as on a GPU."""
    workspace = np.empty(call.workspace, np.uint8)
    memory = dict(zip((v.name for v in call.outputs), outputs, strict=True))
    memory |= {v.name: part.value for v, part in zip(call.parameters, inputs, strict=True)}
    memory |= {name: np.int64(number) for name, number in call.numbers.items()}
    unwritten = {v.name for v in call.outputs} | {p.name for p in call.temporaries}
    launches = stepwise("kernel", call.launches, len(call.launches))
    front: Function | None = None
    for number, launching in enumerate(launches if len(call.launches) > 1 else call.launches):
        memory |= {p.name: _placed(p, workspace) for p in call.temporaries if p.temporary.first == number}
        written = {v.name for v in launching.kernel.function.outputs}
        if not launching.is_empty:
            function = launching.kernel.function
            beside = front is not None and (starts_next_at_once(front) or waits_at_its_end(function))
            _emulate(launching, memory, unwritten, front if beside else None, seed)
            front = function
        unwritten -= written


def _emulate(
    launching: Launching, memory: Mapping[str, Any], unwritten: set[str], front: Function | None, seed: int
) -> None:
    """Runs a kernel, beside the one in front if that is given."""
    from codegen.emulation import emulator

    ready = memory.keys() - {v.name for v in front.outputs} if front is not None else set()
    late = front is not None and waits_at_its_end(launching.kernel.function)
    unused = memory.keys() - buffers(front) if front is not None and late else set()

    def argument(name: str) -> emulator.Argument:
        value = memory[name]
        if isinstance(value, np.ndarray):
            return emulator.Buffer(shown(name), value, name not in unwritten, name in ready, name in unused)
        return emulator.Scalar(shown(name), _number(value))

    kernel, launch = launching.kernel, launching.launch
    arguments = [argument(variable.name) for variable in launching.arguments]
    arguments += [
        TensorBuffer(m.name, memory[m.buffer], m.map.at({}), ready=m.buffer in ready)
        for m in kernel.function.maps
    ]
    emulator.emulate(
        kernel.source,
        kernel.name,
        launch.grid_at({}),
        launch.block,
        arguments,
        launch.shared_bytes,
        seed,
        (launch.cluster, 1, 1),
        origins=kernel.lines,
        most_steps=most_steps(kernel, launch, {s.number: int(memory[s.number]) for s in kernel.sizes}),
    )


def _placed(placed: Placed, workspace: Any) -> Any:
    """The part of the workspace for a temporary, poisoned: all ones is NaN in every type that has it."""
    (part,) = stored(placed.name, placed.temporary.variable.type)
    memory = workspace[placed.bytes.start : placed.bytes.start + part.bytes]
    memory[:] = 0xFF
    return memory.view(part.dtype).reshape(part.shape)


def _number(value: Any) -> Any:
    """A 16-bit float as a Python number, which the emulator converts back without loss."""
    return value if value.dtype.kind in "iub" else float(value)


def poisoned(part: Part) -> Any:
    """An output before the kernel writes it. A number is an array of one element."""
    shape = part.shape or (1,)
    if part.dtype.kind in "iub":
        return np.full(shape, 1 if part.dtype.kind == "b" else 0x55, part.dtype)
    return np.full(shape, np.nan).astype(part.dtype)


def result_of(call: HostCall, outputs: Sequence[Any]) -> Any:
    """The result in the program's terms: numbers, tuples for pairs, indices as int64."""
    given = (_given(part, array) for part, array in zip(results(call), outputs, strict=True))
    return together(call.output, given)


def _given(part: Part, array: Any) -> Any:
    wide = array.astype(np.int64) if part.indices else array
    return wide if part.shape else wide[0]


# --- checking ---------------------------------------------------------------------------------------


def checked_inputs(call: HostCall, inputs: Sequence[Any]) -> Iterator[Part]:
    """Checks and yields every array and number, in the order of the parameters."""
    for (name, type_), value in zip(call.inputs, inputs, strict=True):
        for part, leaf in zip(stored(name, type_), leaves(name, type_, value), strict=True):
            checked = _checked(part, leaf) if part.shape else as_number(part, leaf)
            yield replace(part, value=checked)


def _checked(part: Part, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise LaunchError(
            "R0806",
            f"`{part.name}` must be a NumPy array of shape {part.shape}; found a {type(value).__name__}",
            hint="numpy.asarray converts a sequence to an array",
        )
    value = as_indices(part, value)
    if value.dtype != part.dtype:
        raise wrong_type(part, value.dtype)
    if value.shape != part.shape:
        raise wrong_shape(part, value.shape)
    if not value.flags.c_contiguous:
        raise LaunchError(
            "R0805",
            f"`{part.name}` is not stored row by row (C-contiguous)",
            hint=f"numpy.ascontiguousarray({part.name}) copies it",
        )
    return without_loss(part, value)


__all__ = ["BACKENDS", "Part", "available_backend", "checked_inputs", "execute", "stored"]
