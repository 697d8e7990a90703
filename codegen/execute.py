"""Runs a kernel on NumPy arrays, on a GPU or in the emulator: inputs checked, the output allocated.

An array of pairs is a pair of arrays. The output starts poisoned: NaN where the type has one, and the
emulator refuses to read it; so an element that a kernel forgets shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codegen.pipeline import Kernel
from rise.errors import LaunchError, UsageError
from rise.interpret import dtype_of, shape_of
from rise.types import Array, Data, Fragment, Index, Pair, Scalar, Type, Vector

BACKENDS = ("cuda", "emulate")


@dataclass(frozen=True)
class Part:
    """One array, or one number, that data is stored in: what a parameter of the kernel takes.

    indices: it holds values of `Idx[n]`: int in a kernel, int64 for the interpreter and its users
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    indices: bool = False
    value: Any = None


def available_backend() -> str | None:
    """`cuda` where there is a GPU, else `emulate` where there is a C++ compiler, else None."""
    from codegen import emulator, runtime  # late: looking for a GPU imports its libraries

    if runtime.available():
        return "cuda"
    return "emulate" if emulator.compiler() is not None else None


def execute(
    kernel: Kernel, inputs: Sequence[Any], backend: str, target: str | None = None, seed: int = 0
) -> Any:
    """The kernel's result: an array, a NumPy number, or a pair of these.

    inputs:  in the order of the program's parameters: C-contiguous arrays, numbers, tuples for pairs
    backend: `cuda` or `emulate`
    target:  what to compile for, by default the GPU that is there
    seed:    the order in which the emulator runs blocks and threads
    """
    if backend not in BACKENDS:
        raise UsageError("R0013", f"kernels run on {' or '.join(BACKENDS)}, not on `{backend}`")
    given = list(checked_inputs(kernel, inputs))
    outputs = [poisoned(part) for part in stored("output", kernel.output)]
    if backend == "cuda":
        _run_on_gpu(kernel, outputs, given, target)
    else:
        _run_emulated(kernel, outputs, given, seed)
    return _together(kernel.output, iter(outputs))


def _run_on_gpu(kernel: Kernel, outputs: list[Any], inputs: list[Part], target: str | None) -> None:
    from codegen import runtime  # late: needs a driver

    runtime.load(kernel, target)(*outputs, *(part.value for part in inputs))
    runtime.driver().Context.synchronize()


def _run_emulated(kernel: Kernel, outputs: list[Any], inputs: list[Part], seed: int) -> None:
    from codegen import emulator

    arguments: list[emulator.Argument] = []
    for variable, array in zip(kernel.function.outputs, outputs, strict=True):
        arguments.append(emulator.Buffer(variable.name, array, initialised=False))
    for variable, part in zip(kernel.function.inputs, inputs, strict=True):
        if part.shape:
            arguments.append(emulator.Buffer(variable.name, part.value))
        else:
            arguments.append(emulator.Scalar(variable.name, _number(part.value)))
    launch = kernel.launch
    emulator.emulate(
        kernel.source, kernel.name, launch.grid, launch.block, arguments, launch.shared_bytes, seed
    )


def _number(value: Any) -> Any:
    """A 16-bit float as a Python number: the emulator converts it back without loss."""
    return value if value.dtype.kind in "iub" else float(value)


# --- how data is stored -----------------------------------------------------------------------------


def stored(name: str, type_: Type) -> Iterator[Part]:
    """The parts of data of a type, first members first, as the kernel's parameters have them."""
    first, second = _members(type_)
    if first is not None and second is not None:
        yield from stored(f"{name}.0", first)
        yield from stored(f"{name}.1", second)
    else:
        element = _element(type_)
        yield Part(name, shape_of(type_), _dtype(element), isinstance(element, Index))


def _members(type_: Type) -> tuple[Data | None, Data | None]:
    """The types of the two arrays that an array of pairs is; None where the elements are no pairs."""
    match type_:
        case Pair(first, second):
            return first, second
        case Array(size, element):
            first, second = _members(element)  # type: ignore[assignment]
            if first is None or second is None:
                return None, None
            return Array(size, first), Array(size, second)
        case _:
            return None, None


def _element(type_: Type) -> Type:
    while isinstance(type_, Array | Vector | Fragment):
        type_ = type_.element
    return type_


def _dtype(element: Type) -> np.dtype[Any]:
    if isinstance(element, Index):
        return np.dtype(np.int32)
    if isinstance(element, Scalar):
        return dtype_of(element)
    raise LaunchError("R0807", f"data of type {element} cannot be passed to a kernel")


def poisoned(part: Part) -> Any:
    """An output before the kernel writes it. A number is an array of one element."""
    shape = part.shape or (1,)
    if part.dtype.kind in "iub":
        return np.full(shape, 1 if part.dtype.kind == "b" else 0x55, part.dtype)
    return np.full(shape, np.nan).astype(part.dtype)


def _together(type_: Type, parts: Iterator[Any]) -> Any:
    first, second = _members(type_)
    if first is not None and second is not None:
        return _together(first, parts), _together(second, parts)
    array = next(parts)
    if isinstance(_element(type_), Index):
        array = array.astype(np.int64)
    return array if shape_of(type_) else array[0]


# --- checking ---------------------------------------------------------------------------------------


def checked_inputs(kernel: Kernel, inputs: Sequence[Any]) -> Iterator[Part]:
    """Every array and number for the kernel, in the order of its parameters."""
    if len(inputs) != len(kernel.inputs):
        names = ", ".join(f"`{n}`" for n, _ in kernel.inputs) or "none"
        raise LaunchError("R0808", f"expected {len(kernel.inputs)} inputs ({names}), found {len(inputs)}")
    for (name, type_), value in zip(kernel.inputs, inputs, strict=True):
        yield from _checked(name, type_, value)


def _checked(name: str, type_: Type, value: Any) -> Iterator[Part]:
    first, second = _members(type_)
    if first is None or second is None:
        (part,) = stored(name, type_)
        yield _checked_part(part, value)
        return
    if not isinstance(value, tuple) or len(value) != 2:
        raise LaunchError(
            "R0806",
            f"`{name}` holds pairs; found a {type(value).__name__}",
            hint="an array of pairs is given as a tuple of two arrays",
        )
    yield from _checked(f"{name}.0", first, value[0])
    yield from _checked(f"{name}.1", second, value[1])


def _checked_part(part: Part, value: Any) -> Part:
    if not part.shape and type(value) in (int, float, bool):
        value = _from_python(part, value)
    if not isinstance(value, np.ndarray | np.generic):
        wanted = f"a NumPy array of shape {part.shape}" if part.shape else "a number"
        raise LaunchError(
            "R0806",
            f"`{part.name}` is to be {wanted}; found a {type(value).__name__}",
            hint="numpy.asarray makes an array of a sequence" if part.shape else None,
        )
    if part.indices and value.dtype == np.int64:
        value = value.astype(part.dtype)
    if value.dtype != part.dtype:
        raise LaunchError(
            "R0803",
            f"`{part.name}` has elements of type {value.dtype}; the kernel takes {part.dtype}",
            hint=f"{part.name}.astype({str(part.dtype)!r}) converts it",
        )
    if value.shape != part.shape:
        raise LaunchError(
            "R0804", f"`{part.name}` has the shape {value.shape}; the kernel is for {part.shape}"
        )
    if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
        raise LaunchError(
            "R0805",
            f"`{part.name}` is not stored row by row (C-contiguous)",
            hint=f"numpy.ascontiguousarray({part.name}) copies it",
        )
    return replace(part, value=value if part.shape else value[()])


def _from_python(part: Part, value: bool | int | float) -> Any:
    """A Python number as the scalar wanted, where it is one: no fraction is cut off, no range left."""
    whole = part.dtype.kind in "iu"
    if (whole and isinstance(value, float)) or (part.dtype.kind == "b") != isinstance(value, bool):
        raise LaunchError("R0803", f"`{part.name}` is a {type(value).__name__}, not {part.dtype}")
    try:
        return part.dtype.type(value)
    except OverflowError:
        raise LaunchError("R0803", f"`{part.name}` = {value} is beyond {part.dtype}") from None


__all__ = ["BACKENDS", "Part", "available_backend", "checked_inputs", "execute", "stored"]
