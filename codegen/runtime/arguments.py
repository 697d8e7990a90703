"""Arguments against parameters: checked once per signature; later calls check only what can change.

A signature is everything about the arguments except their addresses and the values of numbers. Each call
still checks that addresses are aligned and on the right GPU, and that results do not overlap other arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from codegen.host.parameters import Part, as_number, results, stored, wrong_shape, wrong_type
from codegen.host.program import HostCall, HostProgram
from codegen.ir.buffers import members
from codegen.ir.identifiers import shown
from codegen.runtime.alignment import alignments
from codegen.runtime.arrays import UNKNOWN, Family, View, family_of
from codegen.runtime.packing import POINTER, Field
from rise.errors import LaunchError

# the formats of numbers for `struct`; 16-bit floats are packed as their bits
CODES = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
    "uint32": "I", "uint64": "Q", "float16": "H", "bfloat16": "H", "float32": "f", "float64": "d",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    written:   it is a result
    array:     a pointer is passed; otherwise a number. A result that is a number is an array of one element
    alignment: of the address, in bytes
    """

    part: Part
    written: bool
    array: bool
    alignment: int

    @property
    def field(self) -> Field:
        return POINTER if self.array else Field.of(CODES[self.part.dtype.name])

    @cached_property
    def number(self) -> Callable[[Any], Any]:
        """Converts a number to the form that `struct` packs."""
        part = self.part
        if self.field.code == "H" and part.dtype.kind != "u":
            return lambda value: as_number(part, value).view(np.uint16).item()
        return lambda value: as_number(part, value).item()


def parameters_of(program: HostProgram, call: HostCall) -> tuple[Parameter, ...]:
    """In the order of the arguments: the results, then the inputs."""
    asked: dict[str, int] = {}
    for launching in call.launches:
        for name, bytes_ in alignments(launching.kernel.function).items():
            asked[name] = max(bytes_, asked.get(name, 1))
    inputs = [part for name, type_ in call.inputs for part in stored(name, type_)]
    variables = (*call.outputs, *call.parameters)
    found = []
    for position, (part, variable) in enumerate(zip([*results(call), *inputs], variables, strict=True)):
        written = position < len(call.outputs)
        alignment = max(part.dtype.itemsize, asked.get(variable.name, 1))
        found.append(Parameter(part, written, written or bool(part.shape), alignment))
    return tuple(found)


def sizes_of(program: HostProgram, arguments: Sequence[Any], given: Mapping[str, int]) -> dict[str, int]:
    """The run-time sizes: those given, and those determined by the shapes of inputs. R0808, R0405 …"""
    wanted = len(program.outputs) + len(program.parameters)
    if len(arguments) != wanted:
        names = ", ".join(f"`{shown(v.name)}`" for v in (*program.outputs, *program.parameters))
        raise LaunchError("R0808", f"expected {wanted} arguments ({names}), found {len(arguments)}")
    shapes: dict[str, tuple[int, ...]] = {}
    position = len(program.outputs)
    for name, type_ in program.inputs:
        family = family_of(arguments[position])
        if family is not None:
            shapes[name] = family.view(arguments[position]).shape
        position += len(members(name, type_))
    return {**program.sizes_from(shapes), **given}


@dataclass(frozen=True)
class Plan:
    """The checks and conversions at each call with arguments of one signature; numbers are positions.

    parameters: with the sizes that the signature determines
    aligned:  arrays, with their alignment in bytes
    apart:    results with their bytes, and the arrays that they must not overlap, with theirs
    unplaced: arrays of which only the driver knows the GPU
    produced: arrays on which another stream may still be working
    numbers:  numbers, with the conversion before packing
    host:     NumPy arrays, which are copied
    """

    parameters: tuple[Parameter, ...]
    aligned: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
    unplaced: tuple[int, ...]
    produced: tuple[tuple[int, Family], ...]
    numbers: tuple[tuple[int, Callable[[Any], Any]], ...]
    host: tuple[int, ...]


def plan(parameters: Sequence[Parameter], arguments: Sequence[Any], device: int) -> Plan:
    """Makes the checks that a signature determines. LaunchError R0803 … R0806, R0834, R0837, by name."""
    families = [_checked(p, a, device) for p, a in zip(parameters, arguments, strict=True)]
    arrays = [(i, family) for i, family in enumerate(families) if family is not None]
    host = tuple(i for i, family in arrays if family.name == "NumPy")
    if host and len(host) < len(arrays):
        there = next(i for i, _ in arrays if i not in host)
        here, other = parameters[host[0]].part.name, parameters[there].part.name
        raise LaunchError(
            "R0834",
            f"`{here}` is a NumPy array, `{other}` is on the GPU",
            hint="pass either NumPy arrays only, or arrays on the GPU only",
        )
    on_gpu = [] if host else arrays
    return Plan(
        tuple(parameters),
        tuple((i, parameters[i].alignment) for i, _ in on_gpu),
        tuple(_apart(parameters, i) for i, _ in on_gpu if parameters[i].written),
        tuple(i for i, family in on_gpu if not family.knows_device),
        tuple((i, f) for i, f in on_gpu if f.produced_on(arguments[i]) is not None),
        tuple((i, p.number) for i, p in enumerate(parameters) if not p.array),
        host,
    )


def _apart(parameters: Sequence[Parameter], result: int) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """A result's position and bytes, and the arrays that it must not overlap: inputs and later results."""
    others = tuple(
        (i, p.part.bytes)
        for i, p in enumerate(parameters)
        if p.array and i != result and not (p.written and i < result)
    )
    return result, parameters[result].part.bytes, others


def _checked(parameter: Parameter, argument: Any, device: int) -> Family | None:
    """The family of an array that fits the parameter; None for a number."""
    part = parameter.part
    family = family_of(argument)
    if not parameter.array:
        parameter.number(argument)
        return None
    if family is None:
        raise LaunchError(
            "R0806",
            f"`{part.name}` must be an array, {part}; found a {type(argument).__name__}",
            hint="numpy.asarray converts a sequence to an array",
        )
    view = family.view(argument)
    if family.name != "NumPy":
        _check_memory(part, view, device)
    _check_elements(parameter, view)
    return family


def check_host_result(part: Part, array: Any) -> None:
    """Checks a NumPy array into which a result is copied."""
    if not isinstance(array, np.ndarray):
        raise LaunchError("R0834", f"`{part.name}` is a {type(array).__name__}, the inputs are NumPy arrays")
    _checked(Parameter(part, True, True, 1), array, UNKNOWN)


def _check_memory(part: Part, view: View, device: int) -> None:
    if view.device is None:
        raise LaunchError("R0834", f"`{part.name}` is in host memory, not on GPU {device}")
    if view.device not in (device, UNKNOWN):
        raise wrong_device(part, view.device, device)
    if view.reason:
        raise LaunchError("R0837", f"`{part.name}` cannot be used: {view.reason}")


def _check_elements(parameter: Parameter, view: View) -> None:
    part = parameter.part
    # protocols that have no name for a type give its size
    if view.dtype not in (
        part.dtype.name,
        f"void{part.dtype.itemsize * 8}" if part.dtype.kind == "V" else "",
    ):
        raise wrong_type(part, view.dtype)
    shapes = {part.shape, part.shape or (1,)} if parameter.written else {part.shape}
    if view.shape not in shapes:
        raise wrong_shape(part, view.shape)
    if not _dense(view, part.dtype.itemsize):
        raise LaunchError(
            "R0805",
            f"`{part.name}` is not stored row by row (C-contiguous): its strides are {view.strides} bytes",
            hint="pass a contiguous copy",
        )
    if parameter.written and view.read_only:
        raise LaunchError("R0837", f"`{part.name}` would be written, but is read-only")


def _dense(view: View, itemsize: int) -> bool:
    """Whether elements are stored in row-major order; strides of dimensions of extent 1 do not matter."""
    if view.strides is None:
        return True
    step = itemsize
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def wrong_device(part: Part, found: int | None, device: int) -> LaunchError:
    where = "not in memory that a GPU can access" if found is None else f"on GPU {found}"
    return LaunchError("R0834", f"`{part.name}` is {where}; the kernel runs on GPU {device}")


def misaligned(part: Part, address: int, alignment: int) -> LaunchError:
    return LaunchError(
        "R0835",
        f"`{part.name}` starts at {address:#x}, which is not a multiple of {alignment} bytes",
        hint="the kernel moves several elements at once: pass an aligned array, or a copy",
    )


def overlapping(result: Part, other: Part) -> LaunchError:
    return LaunchError("R0836", f"`{result.name}` overlaps `{other.name}` in memory")
