"""The CUDA driver through ctypes, in pycuda's primary context: what pycuda lacks, or does slowly.

pycuda packs the parameters at each launch, and does not expose function handles; so this module loads and
launches kernels. Memory, streams and events come from pycuda or from any other library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from rise.errors import LaunchError

# names and numbers as in cuda.h
CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE = 1, 2
CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
CU_FUNC_ATTRIBUTE_NUM_REGS = 4
CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9
ALL_SHARED = 100  # percent of what may be shared memory or cache
CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 2, 9
CU_MEMORYTYPE_HOST = 1
CU_EVENT_DISABLE_TIMING = 2
CUDA_ERROR_INVALID_CONTEXT = 201

CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_SERIALIZATION = 6
CU_STREAM_CAPTURE_STATUS_ACTIVE = 1
CU_STREAM_CAPTURE_MODE_RELAXED = 2


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute; its value is a union of 64 bytes."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_int * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: grid, block, bytes of shared memory, stream, attributes and their number."""

    _fields_ = (
        *((f"{which}_{axis}", ctypes.c_uint) for which in ("grid", "block") for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


Triple = tuple[int, int, int]


class Driver:
    """The functions of libcuda, or of a substitute for it. Handles and addresses are ints."""

    def __init__(self, library: Any, context: int = 0, device: int = 0) -> None:
        self.library, self.context, self.device = library, context, device
        self._launch = library.cuLaunchKernel
        pointer, number = ctypes.c_void_p, ctypes.c_uint
        self._launch.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
        self._launch.restype = ctypes.c_int

    # --- modules and functions ------------------------------------------------------------------------

    def load(self, cubin: bytes) -> int:
        module = ctypes.c_void_p()
        self._do("cuModuleLoadData", ctypes.byref(module), cubin)
        return module.value or 0

    def unload(self, module: int) -> None:
        """Does nothing if the context is gone, as at the end of the process."""
        self.library.cuModuleUnload(ctypes.c_void_p(module))

    def function(self, module: int, name: str) -> int:
        found = ctypes.c_void_p()
        self._do("cuModuleGetFunction", ctypes.byref(found), ctypes.c_void_p(module), name.encode())
        return found.value or 0

    def parameter_offsets(self, function: int, count: int) -> list[int] | None:
        """The offsets of a kernel's parameters; None if the driver (before 12.4) does not report them."""
        if not hasattr(self.library, "cuFuncGetParamInfo"):
            return None
        offsets: list[int] = []
        for index in range(count):
            offset, size = ctypes.c_size_t(), ctypes.c_size_t()
            place = ctypes.byref(offset), ctypes.byref(size)
            self._do("cuFuncGetParamInfo", ctypes.c_void_p(function), ctypes.c_size_t(index), *place)
            offsets.append(offset.value)
        return offsets

    def attribute(self, function: int, attribute: int) -> int:
        value = ctypes.c_int()
        self._do("cuFuncGetAttribute", ctypes.byref(value), attribute, ctypes.c_void_p(function))
        return value.value

    def allow_shared(self, function: int, size: int) -> None:
        """Allows that many bytes of dynamic shared memory; more than 48 KiB must be requested."""
        attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._do("cuFuncSetAttribute", ctypes.c_void_p(function), attribute, size)

    def share_all(self, function: int) -> None:
        """Lets a kernel run where as much is shared memory as can be, beside one that needs that."""
        attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        self._do("cuFuncSetAttribute", ctypes.c_void_p(function), attribute, ALL_SHARED)

    # --- memory and streams ---------------------------------------------------------------------------

    def device_of(self, address: int) -> int | None:
        """The number of the GPU that an address belongs to; None for memory that no GPU can access."""
        value = ctypes.c_int()
        for attribute in (CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL):
            place = ctypes.c_uint64(address)
            if self.library.cuPointerGetAttribute(ctypes.byref(value), attribute, place):
                return None
            if attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE and value.value == CU_MEMORYTYPE_HOST:
                return None
        return value.value

    def order(self, first: int, then: int) -> None:
        """Makes later work on the stream `then` wait for the work that is on `first` now."""
        event = ctypes.c_void_p()
        self._do("cuEventCreate", ctypes.byref(event), CU_EVENT_DISABLE_TIMING)
        try:
            self._do("cuEventRecord", event, ctypes.c_void_p(first))
            self._do("cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
        finally:
            self._do("cuEventDestroy_v2", event)

    def recording(self, stream: int) -> int:
        """The id of the graph capture that a launch on the stream would join; 0 without one."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        asked = ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number)
        if self.library.cuStreamGetCaptureInfo_v2(*asked, None, None, None):
            return 0  # an invalid stream is reported by name at the next launch on it
        return number.value if status.value == CU_STREAM_CAPTURE_STATUS_ACTIVE else 0

    @contextmanager
    def beside_recordings(self) -> Iterator[None]:
        """Allows allocations while another thread captures a graph.

        Work inside the context does not become part of the graph.
        """
        mode = ctypes.c_int(CU_STREAM_CAPTURE_MODE_RELAXED)
        self._do("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))  # returns the previous mode
        try:
            yield
        finally:
            self._do("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    # --- launching ------------------------------------------------------------------------------------

    def launcher(
        self, function: int, shared: int, buffer: Any, *, early: bool = False
    ) -> Callable[[Triple, Triple, int], None]:
        """A function that launches with the buffer's contents at that moment, given grid, block and stream.

        early: the kernel may start before preceding kernels complete, and waits for them itself
        """
        launch = self._launch
        size = ctypes.c_size_t(len(buffer))
        extra = (ctypes.c_void_p * 5)(
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            ctypes.addressof(buffer),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            ctypes.addressof(size),
            None,
        )

        overlapping = (LaunchAttribute * 1)(LaunchAttribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_SERIALIZATION))
        overlapping[0].value[0] = 1

        def go_early(grid: Triple, block: Triple, stream: int) -> None:
            config = LaunchConfig(*grid, *block, shared, stream, overlapping, 1)
            self._do("cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), None, extra)

        go_early.keeps = buffer, size  # type: ignore[attr-defined]  # `extra` has their addresses only
        if early:
            return go_early

        def go(grid: Triple, block: Triple, stream: int) -> None:
            status = launch(function, *grid, *block, shared, stream, None, extra)
            if status:
                self._again("cuLaunchKernel", status, function, *grid, *block, shared, stream, None, extra)

        go.keeps = buffer, size  # type: ignore[attr-defined]  # `extra` has their addresses only
        return go

    def _do(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            self._again(name, status, *arguments)

    def _again(self, name: str, status: int, *arguments: Any) -> None:
        """Retries: a new thread has no context until one is set."""
        if status == CUDA_ERROR_INVALID_CONTEXT:
            self.library.cuCtxSetCurrent(ctypes.c_void_p(self.context))
            status = getattr(self.library, name)(*arguments)
        if status:
            raise self._error(name, status)

    def _error(self, name: str, status: int) -> LaunchError:
        text = ctypes.c_char_p()
        known = not self.library.cuGetErrorName(status, ctypes.byref(text)) and text.value
        reason = known.decode() if known else f"status {status}"
        return LaunchError("R0833", f"the driver refuses {name}: {reason}")


@cache
def primary() -> Driver:
    """The driver, in the primary context of the GPU that kernels run on."""
    from codegen.runtime.device import driver

    cuda = driver()  # makes the context, and reports what is missing
    library = ctypes.CDLL("libcuda.so.1")
    found = _current(library)
    if found is None:  # another thread made the context
        import pycuda.autoprimaryctx as made

        made.context.push()
        found = _current(library)
        cuda.Context.pop()
    if found is None:
        raise LaunchError("R0833", "the driver returns no context")
    return Driver(library, *found)


def _current(library: Any) -> tuple[int, int] | None:
    """The current context and its GPU."""
    context, device = ctypes.c_void_p(), ctypes.c_int()
    if library.cuCtxGetCurrent(ctypes.byref(context)) or not context.value:
        return None
    return None if library.cuCtxGetDevice(ctypes.byref(device)) else (context.value, device.value)
