"""The inputs and results of a kernel: one parameter per array, or number, that stores data.

An array of pairs is a pair of arrays, so it has two parameters, `xs.0` and `xs.1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codegen.host.program import HostCall, HostProgram
from rise.errors import LaunchError
from rise.interpret import dtype_of, shape_of, tf32
from rise.types import TF32, Array, Data, Fragment, Index, Pair, Scalar, Type, Vector


@dataclass(frozen=True)
class Part:
    """The type of one parameter of the kernel: an array, or a number.

    indices: it holds values of `Idx[n]`: int in a kernel, int64 for the interpreter and its users
    below:   the n of these
    tf32:    its numbers have 10 bits of fraction
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    indices: bool = False
    below: int | None = None
    tf32: bool = False
    value: Any = None

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}" if self.shape else str(self.dtype)


def stored(name: str, type_: Type) -> Iterator[Part]:
    """The parts that store data of a type, first members first, in the order of the kernel's parameters."""
    first, second = members(type_)
    if first is not None and second is not None:
        yield from stored(f"{name}.0", first)
        yield from stored(f"{name}.1", second)
    else:
        element = element_of(type_)
        indices = isinstance(element, Index)
        below = element.size.value if isinstance(element, Index) else None
        yield Part(name, shape_of(type_), _dtype(element), indices, below, element == TF32)


def members(type_: Type) -> tuple[Data | None, Data | None]:
    """The types of the two arrays that store an array of pairs; None if the elements are not pairs."""
    match type_:
        case Pair(first, second):
            return first, second
        case Array(size, element):
            left, right = members(element)
            if left is None or right is None:
                return None, None
            return Array(size, left), Array(size, right)
        case _:
            return None, None


def results(call: HostCall) -> list[Part]:
    """The parts of the result."""
    return list(stored("out", call.output))


def shapes_of(program: HostProgram, inputs: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """The shape of each input that is an array, or arrays of pairs. R0808 for the wrong number of inputs."""
    if len(inputs) != len(program.inputs):
        names = ", ".join(f"`{n}`" for n, _ in program.inputs) or "none"
        raise LaunchError("R0808", f"expected {len(program.inputs)} inputs ({names}), found {len(inputs)}")
    firsts = {n: next(leaves(n, t, v)) for (n, t), v in zip(program.inputs, inputs, strict=True)}
    return {name: tuple(first.shape) for name, first in firsts.items() if hasattr(first, "shape")}


def leaves(name: str, type_: Type, value: Any) -> Iterator[Any]:
    """The arrays and numbers of a value, in the order of the parameters; tuples are taken apart."""
    first, second = members(type_)
    if first is None or second is None:
        yield value
        return
    if not isinstance(value, tuple) or len(value) != 2:
        raise LaunchError(
            "R0806",
            f"`{name}` holds pairs; found a {type(value).__name__}",
            hint="an array of pairs is passed as a tuple of two arrays",
        )
    yield from leaves(f"{name}.0", first, value[0])
    yield from leaves(f"{name}.1", second, value[1])


def together(type_: Type, values: Iterator[Any]) -> Any:
    """The inverse of `leaves`: groups arrays into tuples according to the type."""
    first, second = members(type_)
    if first is not None and second is not None:
        return together(first, values), together(second, values)
    return next(values)


def element_of(type_: Type) -> Type:
    while isinstance(type_, Array | Vector | Fragment):
        type_ = type_.element
    return type_


def _dtype(element: Type) -> np.dtype[Any]:
    if isinstance(element, Index):
        return np.dtype(np.int32)
    if isinstance(element, Scalar):
        return dtype_of(element)
    raise LaunchError("R0807", f"data of type {element} cannot be passed to a kernel")


def as_number(part: Part, value: Any) -> Any:
    """A NumPy number of the parameter's type; nothing is truncated or wrapped."""
    if type(value) in (int, float, bool):
        return without_loss(part, _from_python(part, value))
    if not isinstance(value, np.ndarray | np.generic) or value.shape:
        raise LaunchError("R0806", f"`{part.name}` must be a number; found a {type(value).__name__}")
    value = as_indices(part, value)
    if value.dtype != part.dtype:
        raise wrong_type(part, value.dtype)
    return without_loss(part, value[()])


def _from_python(part: Part, value: bool | int | float) -> Any:
    whole = part.dtype.kind in "iu"
    if (whole and isinstance(value, float)) or (part.dtype.kind == "b") != isinstance(value, bool):
        raise LaunchError("R0803", f"`{part.name}` is a {type(value).__name__}, not {part.dtype}")
    try:
        return part.dtype.type(as_indices(part, np.int64(value)) if part.indices else value)
    except OverflowError:
        raise LaunchError("R0803", f"`{part.name}` = {value} is beyond {part.dtype}") from None


def as_indices(part: Part, value: Any) -> Any:
    """NumPy indices in the kernel's type; other values unchanged. R0843 if one is out of range."""
    if part.below is None or value.dtype not in (np.int64, part.dtype):
        return value
    given = np.atleast_1d(value)
    wrong = given[(given < 0) | (given >= part.below)]
    if wrong.size:
        raise LaunchError("R0843", f"`{part.name}` holds {wrong[0]}, not an index below {part.below}")
    return value.astype(part.dtype, copy=False)


def without_loss(part: Part, value: Any) -> Any:
    """The NumPy value. R0842 if it would lose bits as tf32."""
    refusal = tf32.refusal(part.name, value) if part.tf32 else None
    if refusal is not None:
        raise LaunchError("R0842", refusal, hint=tf32.HINT)
    return value


def wrong_type(part: Part, found: Any) -> LaunchError:
    return LaunchError(
        "R0803",
        f"`{part.name}` has elements of type {found}; the kernel takes {part.dtype}",
        hint=f"{part.name}.astype({str(part.dtype)!r}) converts it",
    )


def wrong_shape(part: Part, found: tuple[int, ...]) -> LaunchError:
    return LaunchError("R0804", f"`{part.name}` has the shape {found}; the kernel is for {part.shape}")
