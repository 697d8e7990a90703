"""The test of an exported program: inputs, the results that the interpreter expects, and a main function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from codegen.execute import checked_inputs
from codegen.export.launcher import Exported, c_type
from codegen.host.parameters import leaves, results
from codegen.runtime.arguments import Parameter
from rise.check.compare import Tolerance

# how `check.h` calls the types that it compares with a tolerance
LETTERS = {"float16": "e", "bfloat16": "b", "float32": "f", "float64": "d"}


@dataclass(frozen=True)
class Example:
    """Inputs of a program, and its result.

    allowed: how far a result may be off
    """

    inputs: tuple[Any, ...]
    expected: Any
    allowed: Tolerance


def data(of: Exported, example: Example) -> dict[str, bytes]:
    """The files that the test reads: each parameter's bytes, under its name."""
    given = [part.value for part in checked_inputs(of.call, list(example.inputs))]
    wanted = [
        np.asarray(leaf).astype(part.dtype)
        for part, leaf in zip(results(of.call), leaves("out", of.call.output, example.expected), strict=True)
    ]
    named = zip(of.parameters, [*wanted, *given], strict=True)
    return {f"{name}.bin": np.asarray(value).tobytes() for (name, _), value in named}


def test_program(of: Exported, example: Example) -> str:
    """A main function that returns 0 if all results agree, 1 if one differs, 2 if the driver refuses."""
    return "\n".join(_lines(of, example)) + "\n"


def _lines(of: Exported, example: Example) -> Iterator[str]:
    yield f"// Runs `{of.name}` on the inputs in a folder, `data` by default, and compares the results."
    yield f'#include "{of.name}.h"'
    yield from ('#include "driver/check.h"', "")
    yield "int main(int count, char **arguments) {"
    yield '  const char *data = count > 1 ? arguments[1] : "data";'
    yield from ("  CUdevice device;", "  CUcontext context;", "  CUstream stream;")
    yield '  check(cuInit(0), "cuInit");'
    yield '  check(cuDeviceGet(&device, 0), "cuDeviceGet");'
    yield '  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");'
    yield '  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");'
    yield '  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");'
    yield ""
    for name, parameter in of.parameters:
        if parameter.array:
            source = "NULL" if parameter.written else f'"{name}"'
            yield f"  CUdeviceptr {name} = array(data, {source}, {parameter.part.bytes}u);"
        else:
            yield f"  {c_type(parameter)} {name};"
            yield f'  read_file(data, "{name}", &{name}, sizeof {name});'
    # copies from ordinary memory may still be under way when their calls return
    yield '  check(cuCtxSynchronize(), "copying");'
    yield ""
    names = ", ".join(name for name, _ in of.parameters)
    yield f"  {of.name}_program *program;"
    yield f'  check({of.name}_load(&program), "{of.name}_load");'
    yield f'  check({of.name}_launch(program, stream, {names}), "{of.name}_launch");'
    yield '  check(cuStreamSynchronize(stream), "running");'
    yield ""
    yield "  int wrong = 0;"
    for name, parameter in of.parameters:
        if parameter.written:
            yield f"  wrong |= {_compared(name, parameter, example.allowed)};"
    yield f"  {of.name}_unload(program);"
    yield from (f"  cuMemFree({name});" for name, parameter in of.parameters if parameter.array)
    yield "  cuStreamDestroy(stream);"
    yield "  cuDevicePrimaryCtxRelease(device);"
    yield "  return wrong;"
    yield "}"


def _compared(name: str, parameter: Parameter, allowed: Tolerance) -> str:
    part = parameter.part
    letter = LETTERS.get(part.dtype.name, "x")
    count = part.bytes // part.dtype.itemsize
    figures = f"{count}u, {part.dtype.itemsize}, '{letter}', {allowed.relative!r}, {allowed.sums!r}"
    return f'compare(data, "{name}", {name}, {figures})'
