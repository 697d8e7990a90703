"""pycuda's driver, as far as the benchmark uses it, on host memory and a clock that counts calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

MICROSECONDS = 5.0  # that everything put on a stream takes


class Allocation:
    def __init__(self, size: int) -> None:
        self.memory = np.full(max(size, 1) + 256, 0xCD, np.uint8)
        self.freed = False

    def __int__(self) -> int:
        assert not self.freed, "used after it was freed"
        return int(self.memory.ctypes.data + 255) // 256 * 256

    def free(self) -> None:
        assert not self.freed, "freed twice"
        self.freed = True


def view(pointer: Any, count: int, dtype: Any) -> Any:
    """An array over memory at an address."""
    memory = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(int(pointer))
    return np.frombuffer(memory, dtype)


class HostCuda:
    """The module."""

    class device_attribute:  # noqa: N801  # as pycuda calls it
        L2_CACHE_SIZE, MULTIPROCESSOR_COUNT, CLOCK_RATE = "l2", "multiprocessors", "clock"

    def __init__(self, l2_bytes: int = 4096) -> None:
        self.now = 0.0
        self.l2_bytes = l2_bytes
        self.broken = False
        self.hangs = False
        self.allocations: list[Allocation] = []
        cuda = self

        class Stream:
            handle = 4711

            def synchronize(self) -> None:
                cuda.check()

        class Event:
            def __init__(self) -> None:
                self.at = 0.0

            def record(self, stream: Any) -> None:
                self.at = cuda.now

            def query(self) -> bool:
                return not cuda.hangs

            def synchronize(self) -> None:
                cuda.check()

            def time_till(self, other: Event) -> float:
                return (other.at - self.at) / 1000

        class Context:
            @staticmethod
            def get_device() -> Any:
                return cuda

            @staticmethod
            def synchronize() -> None:
                cuda.check()

        self.Stream, self.Event, self.Context = Stream, Event, Context

    def tick(self) -> None:
        self.now += MICROSECONDS

    def check(self) -> None:
        if self.broken:
            raise RuntimeError("cuCtxSynchronize failed: an illegal memory access was encountered")

    # the device

    def name(self) -> str:
        return "a GPU on the host"

    def pci_bus_id(self) -> str:
        return "0000:00:00.0"

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0

    def get_attribute(self, attribute: str) -> int:
        return {"l2": self.l2_bytes, "multiprocessors": 132, "clock": 1_980_000}[attribute]

    def get_driver_version(self) -> int:
        return 13000

    # memory

    def mem_alloc(self, size: int) -> Allocation:
        made = Allocation(min(size, 2**24))  # the copy that measures bandwidth is larger, and never looked at
        self.allocations.append(made)
        return made

    def to_device(self, array: Any) -> Allocation:
        made = self.mem_alloc(array.nbytes)
        view(made, array.nbytes, np.uint8)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return made

    def from_device(self, pointer: Any, shape: Any, dtype: Any) -> Any:
        return view(pointer, int(np.prod(shape)), dtype).reshape(shape).copy()

    def memcpy_dtoh(self, target: Any, source: Any) -> None:
        target[:] = view(source, target.nbytes, np.uint8)

    def memcpy_dtod_async(self, target: Any, source: Any, size: int, stream: Any) -> None:
        self.tick()
        if size <= 2**24:
            view(target, size, np.uint8)[:] = view(source, size, np.uint8)

    def memset_d8_async(self, pointer: int, value: int, size: int, stream: Any) -> None:
        view(pointer, size, np.uint8)[:] = value

    # kernels

    def module_from_buffer(self, cubin: bytes) -> HostCuda:
        return self

    def get_function(self, name: str) -> Any:
        return HostFunction(self, KERNELS[name])


class HostFunction:
    def __init__(self, cuda: HostCuda, kernel: Callable[..., None]) -> None:
        self.cuda, self.kernel = cuda, kernel

    def __call__(self, *arguments: Any, block: Any, grid: Any, stream: Any) -> None:
        assert all(isinstance(a, np.uintp | np.uint64) for a in arguments)
        self.cuda.tick()
        self.kernel(*(int(a) for a in arguments))

    def prepare(self, types: str) -> HostFunction:
        return self

    def prepared_async_call(self, grid: Any, block: Any, stream: Any, *arguments: Any) -> None:
        self.cuda.tick()


# the kernels of probe.cu, with the parameters that they have there
def _fill(dtype: Any) -> Callable[..., None]:
    def run(array: int, numbers: int, period: int, size: int) -> None:
        view(array, size, dtype)[:] = view(numbers, period, dtype)[np.arange(size) % period]

    return run


def _gather(dtype: Any) -> Callable[..., None]:
    def run(result: int, array: int, places: int, size: int) -> None:
        indices = view(places, size, np.uint64)
        view(result, size, dtype)[:] = view(array, int(indices.max()) + 1, dtype)[indices]

    return run


def _differing(dtype: Any) -> Callable[..., None]:
    def run(a: int, b: int, size: int, count: int) -> None:
        view(count, 1, np.uint64)[0] += np.sum(~(view(a, size, dtype) == view(b, size, dtype)))

    return run


def _add_bias(matrix: int, bias: int, columns: int, size: int) -> None:
    rows = view(matrix, 4 * size, np.float32).reshape(-1, 4 * columns)
    rows += view(bias, 4 * columns, np.float32)


def _relu_f32(array: int, size: int) -> None:
    numbers = view(array, 4 * size, np.float32)
    numbers[:] = np.maximum(numbers, 0)


def _relu_f16(result: int, array: int, size: int) -> None:
    view(result, 8 * size, np.float16)[:] = np.maximum(view(array, 8 * size, np.float16), 0)


def _add_f16(matrix: int, added: int, size: int) -> None:
    view(matrix, 8 * size, np.float16)[:] += view(added, 8 * size, np.float16)


KERNELS: dict[str, Callable[..., None]] = {
    "fill_1": _fill(np.uint8), "gather_1": _gather(np.uint8), "differing_1": _differing(np.int8),
    "fill_2": _fill(np.uint16), "fill_4": _fill(np.uint32),
    "gather_2": _gather(np.uint16), "gather_4": _gather(np.uint32),
    "differing_2": _differing(np.float16), "differing_4": _differing(np.float32),
    "add_bias": _add_bias, "relu_f32": _relu_f32, "relu_f16": _relu_f16, "add_f16": _add_f16,
    "nothing": lambda: None,
}  # fmt: skip


class HostGraph:
    """Graphs by calling everything again."""

    def __init__(self, cuda: HostCuda, work: Callable[[Any], None], times: int) -> None:
        self.stream, self.times, self.work = cuda.Stream(), times, work
        self.closed = False
        work(self.stream)

    def replay(self) -> None:
        assert not self.closed
        for _ in range(self.times):
            self.work(self.stream)

    def close(self) -> None:
        self.closed = True
