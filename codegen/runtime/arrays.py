"""Arrays of other libraries: where they are, what they hold, how new ones are allocated.

A *family* is the arrays of one library, or those that implement one protocol. It has two ways to inspect an
array: `look` is fast and returns what every launch needs, `view` returns everything, for checks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rise.errors import LaunchError


@dataclass(frozen=True)
class View:
    """An array as a kernel sees it.

    dtype:   NumPy's name of the element type; `void16` if only the size is known
    strides: in bytes; None if the array is stored row by row
    device:  the number of a GPU, None for host memory, UNKNOWN if only the driver knows
    reason:  why its memory must not be used, if there is a reason
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None
    device: int | None
    read_only: bool = False
    reason: str = ""


UNKNOWN = -1  # a device


class Family(Protocol):
    """The arrays of a library.

    knows_device: whether the result of `look` includes the GPU
    """

    name: str
    knows_device: bool

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        """Everything that `view` depends on, and the address; the array is ready for use on the stream."""
        ...

    def view(self, array: Any) -> View: ...

    def stream(self, array: Any) -> int:
        """The current stream of its library."""
        ...

    def produced_on(self, array: Any) -> int | None:
        """The stream whose work must be waited for, if any."""
        ...

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        """A new array on the GPU of `like`. LaunchError R0838 if the family cannot allocate any."""
        ...


class HostArrays:
    """NumPy arrays, which are copied to a GPU and back."""

    name = "NumPy"
    knows_device = True

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        return (array.shape, array.strides, array.dtype, array.flags.writeable), 0

    def view(self, array: Any) -> View:
        strides = None if array.flags.c_contiguous else array.strides
        return View(array.shape, array.dtype.name, strides, None, not array.flags.writeable)

    def stream(self, array: Any) -> int:
        return 0

    def produced_on(self, array: Any) -> int | None:
        return None

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        return np.empty(shape, dtype)


class PyCudaArrays:
    """pycuda's GPUArray."""

    name = "pycuda"
    knows_device = False

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        return (array.shape, array.strides, array.dtype), int(array.gpudata)

    def view(self, array: Any) -> View:
        return View(array.shape, array.dtype.name, array.strides, UNKNOWN)

    def stream(self, array: Any) -> int:
        return 0

    def produced_on(self, array: Any) -> int | None:
        return None

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        return type(like)(shape, dtype)


class TorchTensors:
    """torch tensors. Their `__cuda_array_interface__` takes longer than a launch, so attributes are read."""

    name = "torch"
    knows_device = True

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        seen = (array.shape, array.stride(), array.dtype, array.get_device(), array.requires_grad)
        return seen, array.data_ptr()

    def view(self, array: Any) -> View:
        element = array.element_size()
        strides = tuple(step * element for step in array.stride())
        device = array.get_device()
        reason = "it requires a gradient, which kernels do not provide" if array.requires_grad else ""
        on_gpu = array.is_cuda
        name = str(array.dtype).removeprefix("torch.")
        return View(tuple(array.shape), name, strides, device if on_gpu else None, reason=reason)

    def stream(self, array: Any) -> int:
        if not array.is_cuda:
            return 0
        return _torch_stream(array.get_device())

    def produced_on(self, array: Any) -> int | None:
        return None

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        torch = sys.modules["torch"]
        kind = getattr(torch, dtype.name)
        if stream is None:
            return torch.empty(shape, dtype=kind, device=like.device)
        # memory belongs to the stream on which it is used; otherwise torch may reuse it too early
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device)):
            return torch.empty(shape, dtype=kind, device=like.device)


def _torch_stream(device: int) -> int:
    """torch's current stream as an int, by the fast private API, an order of magnitude faster."""
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(raw(device) if raw else torch.cuda.current_stream(device).cuda_stream)


class CuPyArrays:
    """CuPy's."""

    name = "CuPy"
    knows_device = True

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        data = array.data
        return (array.shape, array.strides, array.dtype, data.device_id), data.ptr

    def view(self, array: Any) -> View:
        return View(array.shape, array.dtype.name, array.strides, array.data.device_id)

    def stream(self, array: Any) -> int:
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)

    def produced_on(self, array: Any) -> int | None:
        return None

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        cupy = sys.modules["cupy"]
        if stream is None:
            return cupy.empty(shape, dtype)
        with cupy.cuda.ExternalStream(stream):
            return cupy.empty(shape, dtype)


class InterfaceArrays:
    """Objects with `__cuda_array_interface__`, versions 2 and 3."""

    name = "__cuda_array_interface__"
    knows_device = False

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        given = array.__cuda_array_interface__
        address, read_only = given["data"]
        seen = (given["shape"], given.get("strides"), given["typestr"], read_only, given.get("stream"))
        return (*seen, given.get("mask") is not None), address

    def view(self, array: Any) -> View:
        given = array.__cuda_array_interface__
        dtype = np.dtype(given["typestr"])
        name = dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"
        reason = "it has a mask" if given.get("mask") is not None else ""
        return View(
            tuple(given["shape"]), name, given.get("strides"), UNKNOWN, bool(given["data"][1]), reason
        )

    def stream(self, array: Any) -> int:
        return self.produced_on(array) or 0

    def produced_on(self, array: Any) -> int | None:
        stream = array.__cuda_array_interface__.get("stream")
        if stream == 0:
            raise LaunchError("R0837", "the stream 0 in `__cuda_array_interface__` is ambiguous: 1 or 2")
        return None if stream is None else int(stream)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        raise no_output(like)


def no_output(like: Any) -> LaunchError:
    return LaunchError(
        "R0838",
        f"no result array of class {type(like).__qualname__} can be allocated",
        hint="pass one with `out=`",
    )


def family_of(array: Any) -> Family | None:
    """The family of an array; None for anything else."""
    return _FAMILIES[type(array)] or (_INTERFACE if hasattr(array, "__cuda_array_interface__") else None)


class _Families(dict[type, Family | None]):
    """Families by class, cached."""

    def __missing__(self, class_: type) -> Family | None:
        found = next((make() for fits, make in _KNOWN if fits(class_)), None)
        self[class_] = found
        return found


class _Looks(dict[type, Callable[[Any, int], tuple[Hashable, Any]]]):
    """By class, the function to call for `family.look`; a value that is not an array stands for itself."""

    def __missing__(self, class_: type) -> Callable[[Any, int], tuple[Hashable, Any]]:
        family = _FAMILIES[class_]
        self[class_] = family.look if family is not None else _look_at_unknown
        return self[class_]


def _look_at_unknown(value: Any, stream: int) -> tuple[Hashable, Any]:
    """A number; or an array that has a protocol on the object only, not on its class."""
    return _INTERFACE.look(value, stream) if hasattr(value, "__cuda_array_interface__") else ((), value)


def _from(*names: str) -> Callable[[type], bool]:
    """Whether a class, or one of its bases, is `library.Class`."""
    return lambda class_: any(
        f"{c.__module__.partition('.')[0]}.{c.__name__}" in names for c in class_.__mro__
    )


def _dlpack() -> Family:
    from codegen.runtime.dlpack import DLPackArrays

    return DLPackArrays()


# the first match counts: a library's own arrays before protocols
_KNOWN: tuple[tuple[Callable[[type], bool], Callable[[], Family]], ...] = (
    (lambda class_: issubclass(class_, np.ndarray), HostArrays),
    (_from("torch.Tensor", "torch.Parameter"), TorchTensors),
    (_from("cupy.ndarray"), CuPyArrays),
    (_from("pycuda.GPUArray"), PyCudaArrays),
    (lambda class_: hasattr(class_, "__cuda_array_interface__"), InterfaceArrays),
    (lambda class_: hasattr(class_, "__dlpack__") and not issubclass(class_, np.generic), _dlpack),
)
_INTERFACE = InterfaceArrays()
_FAMILIES = _Families()
LOOKS = _Looks()
