"""A GPU of Python: its memory is the host's, its driver a few functions, its launches run in the emulator."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.emulation import emulator
from codegen.host.program import HostProgram, alone
from codegen.ir.kernel import Kernel
from codegen.runtime.libcuda import CUDA_ERROR_INVALID_CONTEXT, Driver
from codegen.runtime.loading import Loaded, field_of
from codegen.runtime.packing import natural_offsets
from rise.interpret import dtype_of
from rise.types import Array, Scalar, Type

OWN, OTHER = 0, 1  # devices


class Function:
    """A function of the library: ctypes lets one say its types."""

    argtypes: Any = None
    restype: Any = None

    def __init__(self, does: Callable[..., int | None]) -> None:
        self.does = does

    def __call__(self, *arguments: Any) -> int:
        return self.does(*arguments) or 0


def number(argument: Any) -> int:
    return argument if isinstance(argument, int) else int(argument.value or 0)


class Gpu:
    """What libcuda is to the runtime. `log` has what was asked of it, `memory` the bytes by their address."""

    def __init__(self, program: HostProgram | Kernel, offsets: Sequence[int] | None = None) -> None:
        self.program = program if isinstance(program, HostProgram) else alone(program)
        self.memory: dict[int, np.ndarray[Any, Any]] = {}
        self.devices: dict[int, int] = {}
        self.log: list[tuple[Any, ...]] = []
        self.context = True
        self.offsets = offsets
        self.recordings: dict[int, int] = {}  # of a stream, the number of what it records now
        self.relaxed = False
        for name in ("cuModuleUnload", "cuEventDestroy_v2", "cuFuncSetAttribute"):
            setattr(self, name, Function(lambda *_: 0))
        for name in ("cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuPointerGetAttribute",
                     "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuGetErrorName",
                     "cuCtxSetCurrent", "cuFuncGetAttribute",
                     "cuStreamGetCaptureInfo_v2", "cuThreadExchangeStreamCaptureMode"):  # fmt: skip
            setattr(self, name, Function(getattr(self, f"_{name}")))
        if offsets is not None:
            self.cuFuncGetParamInfo = Function(self._cuFuncGetParamInfo)

    def array(self, values: Any, device: int = OWN, shift: int = 0) -> np.ndarray[Any, Any]:
        """Memory of the GPU that holds these values, from so many bytes after an aligned address on."""
        values = np.asarray(values)
        raw = np.zeros(values.nbytes + 512, np.uint8)
        start = -raw.ctypes.data % 256 + shift
        made: np.ndarray[Any, Any] = raw[start : start + values.nbytes].view(values.dtype)
        made = made.reshape(values.shape)
        made[...] = values
        self.memory[made.ctypes.data], self.devices[made.ctypes.data] = made, device
        return made

    def load(self) -> Loaded:
        driver = Driver(self, 1, OWN)
        return Loaded(self.program, driver, [k.name.encode() for k in self.program.kernels])

    @property
    def allocates(self) -> bool:
        """While a graph is recorded, only for a thread that has said that it may."""
        return not self.recordings or self.relaxed

    @property
    def streams(self) -> list[int]:
        """On which kernels were launched."""
        return [entry[2] for entry in self.log if entry[0] == "launch"]

    # --- the driver's functions -----------------------------------------------------------------------

    def _cuModuleLoadData(self, module: Any, cubin: bytes) -> None:  # noqa: N802
        names = [k.name for k in self.program.kernels]
        module._obj.value = names.index(cubin.decode()) + 1

    def _cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:  # noqa: N802
        function._obj.value = number(module) + 100

    def _cuFuncGetParamInfo(self, function: Any, index: Any, offset: Any, size: Any) -> None:  # noqa: N802
        assert self.offsets is not None
        offset._obj.value = self.offsets[index.value]

    def _cuFuncGetAttribute(self, value: Any, attribute: int, function: Any) -> None:  # noqa: N802
        value._obj.value = attribute

    def _cuPointerGetAttribute(self, value: Any, attribute: int, address: Any) -> int:  # noqa: N802
        self.log.append(("ask", address.value))
        if address.value not in self.devices:
            return 1
        value._obj.value = 2 if attribute == 2 else self.devices[address.value]
        return 0

    def _cuEventCreate(self, event: Any, flags: int) -> None:  # noqa: N802
        event._obj.value = 77

    def _cuEventRecord(self, event: Any, stream: Any) -> None:  # noqa: N802
        self.log.append(("record", number(stream)))

    def _cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> None:  # noqa: N802
        self.log.append(("wait", number(stream)))

    def _cuGetErrorName(self, status: int, text: Any) -> None:  # noqa: N802
        text._obj.value = f"CUDA_ERROR_{status}".encode()

    def _cuCtxSetCurrent(self, context: Any) -> None:  # noqa: N802
        self.context = True

    def _cuStreamGetCaptureInfo_v2(self, stream: Any, status: Any, which: Any, *_: Any) -> None:  # noqa: N802
        status._obj.value = number(stream) in self.recordings
        which._obj.value = self.recordings.get(number(stream), 0)

    def _cuThreadExchangeStreamCaptureMode(self, mode: Any) -> None:  # noqa: N802
        before, self.relaxed = self.relaxed, mode._obj.value == 2
        mode._obj.value = 2 if before else 0

    def _cuLaunchKernel(self, function: int, *rest: Any) -> int:  # noqa: N802
        if not self.context:
            return CUDA_ERROR_INVALID_CONTEXT
        grid, block, shared, stream, extra = rest[:3], rest[3:6], rest[6], rest[7], rest[9]
        kernel = self.program.kernels[function - 101]
        size = ctypes.c_size_t.from_address(extra[3]).value
        packed = ctypes.string_at(extra[1], size)
        variables = (*kernel.function.outputs, *kernel.function.inputs)
        fields = [field_of(v.type) for v in variables]
        offsets = self.offsets or natural_offsets(fields)
        places = zip(variables, fields, offsets, strict=True)
        values = [(v, struct.unpack_from(f"<{field.code}", packed, offset)[0]) for v, field, offset in places]
        self.log.append(("launch", kernel.name, stream, grid, [value for _, value in values]))
        results = {v.name for v in kernel.function.outputs}
        arguments = [self._argument(v.name, v.type, value, v.name not in results) for v, value in values]
        emulator.emulate(kernel.source, kernel.name, grid, block, arguments, shared)
        return 0

    def _argument(self, name: str, type_: Any, value: Any, initialised: bool) -> emulator.Argument:
        if isinstance(type_, Array):
            dtype = dtype_of(element(type_)) if isinstance(element(type_), Scalar) else np.dtype(np.int32)
            array = self.memory[value].reshape(-1)
            return emulator.Buffer(name, array if array.dtype == dtype else array.view(dtype), initialised)
        if isinstance(type_, Scalar) and type_.bytes == 2 and type_.is_float:
            value = float(np.array(value, np.uint16).view(dtype_of(type_)))
        return emulator.Scalar(name, value)


def element(type_: Type) -> Any:
    while isinstance(type_, Array):
        type_ = type_.element
    return type_
