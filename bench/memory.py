"""Arrays on the GPU, and the small kernels that fill and compare them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Pattern, linear

SOURCE = Path(__file__).with_name("probe.cu")
THREADS, BLOCKS = 256, 2048


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """An array on the GPU that runtime and torch take without a copy."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allocation: Any

    @classmethod
    def empty(cls, cuda: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        return cls(shape, dtype, cuda.mem_alloc(max(16, prod(shape) * dtype.itemsize)))

    @classmethod
    def copied(cls, cuda: Any, array: Any) -> DeviceArray:
        """A NumPy array, copied to the GPU."""
        return cls(array.shape, array.dtype, cuda.to_device(as_bytes(array)))

    @property
    def pointer(self) -> int:
        return int(self.allocation)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }


class Probe:
    """The kernels of probe.cu. Elements have 2 or 4 bytes; everything is put on a stream."""

    def __init__(self, cuda: Any, cubin: bytes) -> None:
        self.cuda = cuda
        self._module = cuda.module_from_buffer(cubin)
        self._functions: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        if name not in self._functions:
            self._functions[name] = self._module.get_function(name)
        return self._functions[name]

    def call(self, name: str, size: int, stream: Any, *arguments: Any) -> None:
        """A kernel over so many elements, the last of its arguments."""
        blocks = max(1, min(BLOCKS, -(-size // THREADS)))
        given = [np.uintp(a.pointer) if isinstance(a, DeviceArray) else a for a in arguments]
        self.function(name)(*given, block=(THREADS, 1, 1), grid=(blocks, 1, 1), stream=stream)

    def fill(self, array: DeviceArray, pattern: Pattern, stream: Any) -> None:
        numbers = self.cuda.to_device(as_bytes(pattern.numbers))
        name = f"fill_{array.dtype.itemsize}"
        period, size = np.uint64(len(pattern.numbers)), np.uint64(array.size)
        self.call(name, array.size, stream, array, np.uintp(int(numbers)), period, size)
        stream.synchronize()  # before the numbers are freed

    def poison(self, array: DeviceArray, stream: Any) -> None:
        """NaN everywhere."""
        self.cuda.memset_d8_async(array.pointer, 0xFF, array.bytes, stream)

    def elements(self, array: DeviceArray, indices: tuple[Any, ...], stream: Any) -> Any:
        """The elements at an open mesh of indices, on the host."""
        mesh = np.broadcast_shapes(*(np.shape(index) for index in indices))
        places = np.broadcast_to(linear(array.shape, indices), mesh)
        on_gpu = self.cuda.to_device(np.ascontiguousarray(places, np.uint64).reshape(-1))
        found = DeviceArray.empty(self.cuda, places.shape, array.dtype)
        name, size = f"gather_{array.dtype.itemsize}", np.uint64(places.size)
        self.call(name, places.size, stream, found, array, np.uintp(int(on_gpu)), size)
        stream.synchronize()
        return self.host(found)

    def host(self, array: DeviceArray) -> Any:
        result = np.empty(array.shape, array.dtype)
        self.cuda.memcpy_dtoh(as_bytes(result), array.allocation)
        return result

    def differing(self, a: DeviceArray, b: DeviceArray, stream: Any) -> int:
        """How many elements are not equal; NaN is not equal to itself."""
        count = self.cuda.to_device(np.zeros(1, np.uint64))
        name = f"differing_{a.dtype.itemsize}"
        self.call(name, a.size, stream, a, b, np.uint64(a.size), np.uintp(int(count)))
        stream.synchronize()
        return int(self.cuda.from_device(count, (1,), np.uint64)[0])


def as_bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
