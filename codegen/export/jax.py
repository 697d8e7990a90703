"""An exported program as a custom call of XLA, which JAX makes through its foreign-function interface.

Arrays are arguments and results in the order of the launcher; numbers are attributes, under their names. The
handler checks types and counts of elements, which the launcher cannot.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.export.launcher import C_TYPES, Exported, c_type
from codegen.ir.identifiers import shown
from codegen.runtime.arguments import CODES, Parameter

# how XLA calls element types
TYPES = {
    "bool": "PRED", "int8": "S8", "int16": "S16", "int32": "S32", "int64": "S64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32",
    "float64": "F64",
}  # fmt: skip


def handler(of: Exported) -> str:
    """The handler `NAME_jax` in C++, for the headers of XLA."""
    return "\n".join(_handler(of)) + "\n"


def _handler(of: Exported) -> Iterator[str]:
    parameters = [*_of_call(of)]
    yield f"// How XLA calls `{of.name}`, and JAX through `jax.ffi`. `rise export` wrote this file."
    yield f'#include "{of.name}.h"'
    yield from ('#include "jax/call.hpp"', "", "namespace ffi = xla::ffi;", "")
    formals = ", ".join(["rise_jax::Where where", *(_formal(*each) for each in parameters)])
    yield f"static ffi::Error run({formals}) {{"
    yield "  ffi::Error wrong = ffi::Error::Success();"
    for name, parameter in parameters:
        if parameter.array:
            given = f"*{name}" if parameter.written else name
            check = f"rise_jax::checked({_described(name, parameter)}, {given})"
            yield f"  if ((wrong = {check}).failure()) return wrong;"
    given = ", ".join(["program", "rise_jax::stream(where)", *(_given(*each) for each in of.parameters)])
    yield f"  auto launch = [&](auto *program) {{ return {of.name}_launch({given}); }};"
    yield f"  return rise_jax::call<{of.name}_program>({of.name}_load, rise_jax::stream(where), launch);"
    yield "}"
    yield ""
    bound = "".join(f"\n        .{_bound(*each)}" for each in parameters)
    yield f"XLA_FFI_DEFINE_HANDLER_SYMBOL({of.name}_jax, run, RISE_BIND{bound});"


def _of_call(of: Exported) -> Iterator[tuple[str, Parameter]]:
    """In the order in which they are bound: arguments, results, attributes."""
    yield from (each for each in of.parameters if each[1].array and not each[1].written)
    yield from (each for each in of.parameters if each[1].written)
    yield from (each for each in of.parameters if not each[1].array)


def _formal(name: str, parameter: Parameter) -> str:
    if not parameter.array:
        return f"{_number(parameter)} {name}"
    return f"ffi::Result<ffi::AnyBuffer> {name}" if parameter.written else f"ffi::AnyBuffer {name}"


def _described(name: str, parameter: Parameter) -> str:
    part = parameter.part
    return (
        f'{{"{shown(name)}", ffi::DataType::{TYPES[part.dtype.name]}, {part.bytes // part.dtype.itemsize}u}}'
    )


def _bound(name: str, parameter: Parameter) -> str:
    if not parameter.array:
        return f'Attr<{_number(parameter)}>("{shown(name)}")'
    return "Ret<ffi::AnyBuffer>()" if parameter.written else "Arg<ffi::AnyBuffer>()"


def _number(parameter: Parameter) -> str:
    """Of 16-bit floats, their bits."""
    return C_TYPES[CODES[parameter.part.dtype.name]]


def _given(name: str, parameter: Parameter) -> str:
    if not parameter.array:
        return name
    data = f"{name}{'->' if parameter.written else '.'}untyped_data()"
    return f"({c_type(parameter)})(uintptr_t){data}"
