"""The launcher of a program in C, on the CUDA driver's interface, as `codegen.runtime.loading` is in Python.

It checks that arrays are aligned as the kernels need, and does not know their shapes or where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from codegen.host.parameters import stored
from codegen.host.program import HostCall, HostProgram, Launching
from codegen.ir import imperative as i
from codegen.ir.identifiers import of_user, shown
from codegen.ir.tensor_maps import (
    ELEMENTS,
    FILL_ZERO,
    INTERLEAVE_NONE,
    MOVED_AS,
    PROMOTIONS,
    SWIZZLE_NUMBERS,
    TensorMap,
)
from codegen.runtime.arguments import CODES, Parameter, parameters_of
from codegen.runtime.libcuda import ALL_SHARED
from codegen.runtime.loading import STATIC_SHARED_LIMIT
from rise.errors import UsageError

# what `struct` packs, in C; 16-bit floats are passed as their bits
C_TYPES = {
    "?": "bool", "b": "int8_t", "h": "int16_t", "i": "int32_t", "q": "int64_t", "B": "uint8_t",
    "H": "uint16_t", "I": "uint32_t", "Q": "uint64_t", "f": "float", "d": "double",
}  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """A program that is exported.

    name:   that its C functions begin with
    target: the architecture that its kernels are compiled for
    """

    program: HostProgram
    name: str
    target: str

    @cached_property
    def call(self) -> HostCall:
        """UsageError R0405 for a program with sizes that are known at launch."""
        if self.program.sizes:
            names = ", ".join(f"`{size.name}`" for size in self.program.sizes)
            raise UsageError(
                "R0405", f"a program is exported at fixed sizes; {names} would be known at launch"
            )
        return self.program.at({})

    @cached_property
    def parameters(self) -> tuple[tuple[str, Parameter], ...]:
        """The results, then the inputs, under their names in C."""
        variables = (*self.call.outputs, *self.call.parameters)
        found = parameters_of(self.program, self.call)
        return tuple((v.name, parameter) for v, parameter in zip(variables, found, strict=True))

    @property
    def launches(self) -> list[Launching]:
        """The kernels that have something to do."""
        return [launching for launching in self.call.launches if not launching.is_empty]


def c_name(name: str) -> str:
    """The name of a definition, as C functions begin with it."""
    return of_user(name).strip("_")


def c_type(parameter: Parameter) -> str:
    """CUdeviceptr for an array; a number by value."""
    return "CUdeviceptr" if parameter.array else C_TYPES[CODES[parameter.part.dtype.name]]


def header(of: Exported) -> str:
    """How a program in C calls it."""
    return "\n".join(_header(of)) + "\n"


def launcher(of: Exported) -> str:
    """Loading the kernels, encoding tensor maps, launching."""
    return "\n".join(_launcher(of)) + "\n"


def _header(of: Exported) -> Iterator[str]:
    yield f"// How `{of.name}` is called on a GPU of architecture {of.target}. `rise export` wrote this file."
    yield from ("#pragma once", "", "#include <cuda.h>", "#include <stdbool.h>", "#include <stdint.h>", "")
    yield from ("#ifdef __cplusplus", 'extern "C" {', "#endif", "")
    workspace = of.call.workspace
    yield "// The kernels in one context, and the memory of their temporaries."
    yield f"typedef struct {of.name}_program {of.name}_program;"
    yield ""
    yield "// Loads the kernels into the current context, which has to be current at all further calls"
    yield f"// as well; allocates {workspace} bytes for temporaries."
    yield f"CUresult {of.name}_load({of.name}_program **program);"
    yield f"void {of.name}_unload({of.name}_program *program);"
    yield ""
    yield "// Puts the kernels on a stream, and does not wait for them. Arrays are in memory of the GPU, row"
    yield "// by row; results overlap no other array."
    if workspace:
        yield "// Calls on different streams share temporaries: load the program once for each stream."
    yield "//"
    for name, parameter in of.parameters:
        yield f"//   {name}: {_described(parameter)}"
    yield f"{_signature(of)};"
    yield from ("", "#ifdef __cplusplus", "}", "#endif")


def _described(parameter: Parameter) -> str:
    part = parameter.part
    shape = "".join(f"[{n}]" for n in part.shape)
    if not parameter.array:
        return f"{part.dtype}{', its bits' if parameter.field.code == 'H' else ''}"
    what = "the result" if parameter.written else "is read"
    return f"{part.dtype}{shape or '[1]'}, {what}; its address is a multiple of {parameter.alignment} bytes"


def _signature(of: Exported) -> str:
    given = ", ".join(f"{c_type(parameter)} {name}" for name, parameter in of.parameters)
    return f"CUresult {of.name}_launch({of.name}_program *program, CUstream stream, {given})"


def _launcher(of: Exported) -> Iterator[str]:
    kernels = of.launches
    yield f'#include "{of.name}.h"'
    yield from ("", "#include <stdlib.h>", "")
    yield f"extern const unsigned char {of.name}_code[];  // the kernels as machine code"
    yield ""
    yield f"struct {of.name}_program {{"
    yield "  CUmodule module;"
    yield f"  CUfunction functions[{max(1, len(kernels))}];"
    yield "  CUdeviceptr workspace;"
    yield "};"
    yield ""
    yield f"CUresult {of.name}_load({of.name}_program **made) {{"
    yield f"  {of.name}_program *program = calloc(1, sizeof *program);"
    yield "  CUresult status = program ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;"
    yield from _checked(f"cuModuleLoadData(&program->module, {of.name}_code)")
    for number, launching in enumerate(kernels):
        place = f"program->functions[{number}]"
        yield from _checked(f'cuModuleGetFunction(&{place}, program->module, "{launching.kernel.name}")')
        if (shared := launching.launch.shared_bytes) > STATIC_SHARED_LIMIT:
            attribute = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
            yield from _checked(f"cuFuncSetAttribute({place}, {attribute}, {shared})")
        if launching.kernel.name in of.call.beside:
            attribute = "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT"
            yield from _checked(f"cuFuncSetAttribute({place}, {attribute}, {ALL_SHARED})")
    if of.call.workspace:
        yield from _checked(f"cuMemAlloc(&program->workspace, {of.call.workspace}u)")
    yield "  if (status) {"
    yield f"    {of.name}_unload(program);"
    yield "    program = NULL;"
    yield "  }"
    yield "  *made = program;"
    yield "  return status;"
    yield "}"
    yield ""
    yield f"void {of.name}_unload({of.name}_program *program) {{"
    yield "  if (!program) return;"
    yield "  if (program->workspace) cuMemFree(program->workspace);"
    yield "  if (program->module) cuModuleUnload(program->module);"
    yield "  free(program);"
    yield "}"
    yield ""
    yield f"{_signature(of)} {{"
    for name, parameter in of.parameters:
        if parameter.array and parameter.alignment > 1:
            yield f"  if ({name} % {parameter.alignment}) return CUDA_ERROR_MISALIGNED_ADDRESS;"
    for placed in of.call.temporaries:
        yield f"  CUdeviceptr {placed.name} = program->workspace + {placed.bytes.start}u;"
    yield "  CUresult status = CUDA_SUCCESS;"
    for number, launching in enumerate(kernels):
        yield from _launch(number, launching)
    yield "  return status;"
    yield "}"


def _checked(call: str, depth: int = 1) -> Iterator[str]:
    yield f"{'  ' * depth}if (!status) status = {call};"


def _launch(number: int, launching: Launching) -> Iterator[str]:
    """One kernel: its tensor maps at the arrays' addresses, its arguments, its launch.

    The text of a kernel says how large its clusters are.
    """
    kernel, launch = launching.kernel, launching.launch
    yield f"  {{  // {kernel.name}: {launch}"
    for map_ in kernel.function.maps:
        yield f"    CUtensorMap {map_.name};"
        yield from _encoded(map_.name, map_.buffer, map_.map.at({}))
    names = [*(v.name for v in launching.arguments), *(m.name for m in kernel.function.maps)]
    yield f"    void *arguments[] = {{{', '.join(f'&{name}' for name in names)}}};"
    grid, block = (", ".join(map(str, extents)) for extents in (launching.grid, launch.block))
    function = f"program->functions[{number}]"
    if any(isinstance(c, i.AwaitPreviousGrid) for c in i.commands(kernel.function.body)):
        yield "    // the kernel may start before the one in front of it ends, and waits for it itself"
        yield "    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};"
        yield "    early.value.programmaticStreamSerializationAllowed = 1;"
        yield f"    CUlaunchConfig config = {{{grid}, {block}, {launch.shared_bytes}, stream, &early, 1}};"
        yield from _checked(f"cuLaunchKernelEx(&config, {function}, arguments, NULL)", 2)
    else:
        given = f"{grid}, {block}, {launch.shared_bytes}, stream, arguments, NULL"
        yield from _checked(f"cuLaunchKernel({function}, {given})", 2)
    yield "  }"


def _encoded(name: str, buffer: str, described: TensorMap) -> Iterator[str]:
    """As `tensor_maps.encoding_arguments`."""
    number, _ = ELEMENTS[MOVED_AS.get(described.element, described.element)]
    rank = len(described.sizes)
    strides = described.strides or (0,)
    yield f"    static const cuuint64_t {name}_sizes[] = {{{_listed(described.sizes)}}};"
    yield f"    static const cuuint64_t {name}_strides[] = {{{_listed(strides)}}};"
    yield f"    static const cuuint32_t {name}_box[] = {{{_listed(described.box)}}};"
    yield f"    static const cuuint32_t {name}_steps[] = {{{_listed([1] * rank)}}};"
    arrays = ", ".join(f"{name}_{what}" for what in ("sizes", "strides", "box", "steps"))
    further = f"{INTERLEAVE_NONE}, {SWIZZLE_NUMBERS[described.swizzle]}, {PROMOTIONS[described.promoted]}"
    call = (
        f"cuTensorMapEncodeTiled(&{name}, {number}, {rank}, (void *)(uintptr_t){buffer}, {arrays}, {further},"
        f" {FILL_ZERO})"
    )
    yield from _checked(call, 2)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


# --- in the emulator ------------------------------------------------------------------------------------


def emulated(of: Exported) -> str:
    """The kernels and their parameters, for the substitute of the driver; compiled as C++."""
    return "\n".join(_emulated(of)) + "\n"


def _emulated(of: Exported) -> Iterator[str]:
    yield "// The kernels for the emulator, which runs them on the CPU and checks every access."
    yield "#define RISE_RUNTIME"
    yield from ('#include "places.hpp"', f'#include "../{of.name}.cu"', '#include "kernels.hpp"', "")
    lengths = {name: _count(parameter) for name, parameter in of.parameters}
    unwritten = {v.name for v in of.call.outputs} | {p.name for p in of.call.temporaries}
    for placed in of.call.temporaries:
        (part,) = stored(placed.name, placed.temporary.variable.type)
        lengths[placed.name] = _elements(part.shape)
    for launching in of.launches:
        kernel = launching.kernel
        formals = [(v.name, v.name) for v in launching.arguments]
        formals += [(m.name, m.buffer) for m in kernel.function.maps]
        yield f"static const rise_emulation::Formal {kernel.name}_parameters[] = {{"
        for name, buffer in formals:
            known = (buffer in unwritten, buffer in kernel.function.ready)
            flags = ", ".join("true" if each else "false" for each in known)
            yield f'    {{"{shown(name)}", {lengths[buffer]}, {flags}}},'
        yield "};"
        unwritten -= {v.name for v in kernel.function.outputs}
    yield ""
    yield f'extern "C" const unsigned char {of.name}_code[] = {{0}};'
    yield 'extern "C" const RiseKernel rise_kernels[] = {'
    for launching in of.launches:
        kernel = launching.kernel
        yield f"    RISE_EXPORTED({kernel.name}, {launching.launch.cluster}, {kernel.name}_parameters),"
    yield "    {nullptr, nullptr}};"


def _count(parameter: Parameter) -> int:
    return _elements(parameter.part.shape) if parameter.array else 1


def _elements(shape: tuple[int, ...]) -> int:
    return prod(shape)
