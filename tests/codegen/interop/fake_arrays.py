"""Arrays as other libraries have them, over memory of the GPU of Python: their protocols, nothing more."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

DLPACK = {"f": 2, "i": 0, "u": 1, "b": 6, "V": 4}


class Interface:
    """`__cuda_array_interface__`; what `changes` says differs from what the memory is."""

    def __init__(self, memory: np.ndarray[Any, Any], **changes: Any) -> None:
        self.memory = memory
        self.described = {
            "shape": memory.shape,
            "typestr": memory.dtype.str,
            "data": (memory.ctypes.data, False),
            "strides": None,
            "version": 3,
        } | changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.described


class _Tensor(ctypes.Structure):
    """DLTensor as dlpack.h has it, written down once more: the runtime has its own."""

    _fields_ = [
        ("data", ctypes.c_uint64), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
        ("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
# what capsules point to, until they are dropped
EXPORTS: dict[int, tuple[Any, ...]] = {}


def _drop(capsule: int) -> None:
    del EXPORTS[_pointer_of(capsule, _name_of(capsule))]


_give_back = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop)


class DLPack:
    """`__dlpack__`, of version 1 or of before.

    device:   its type and number
    strides:  in elements
    exported: how many capsules there are
    streams:  on which the array was asked to be ready
    """

    def __init__(
        self,
        memory: np.ndarray[Any, Any],
        device: tuple[int, int] = (2, 0),
        version: int | None = 1,
        read_only: bool = False,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> None:
        self.memory, self.device, self.version, self.read_only = memory, device, version, read_only
        self.strides, self.offset = strides, offset
        self.streams: list[Any] = []

    @property
    def exported(self) -> int:
        return sum(owner is self for owner, *_ in EXPORTS.values())

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, **version: Any) -> Any:
        if version and self.version is None:
            raise TypeError("an unexpected keyword")
        self.streams.append(stream)
        managed = _Managed() if self.version is None else _Versioned()
        if isinstance(managed, _Versioned):
            managed.version[0], managed.flags = self.version or 0, int(self.read_only)
        memory, tensor = self.memory, managed.tensor
        shape = (ctypes.c_int64 * memory.ndim)(*memory.shape)
        tensor.data, tensor.byte_offset = memory.ctypes.data - self.offset, self.offset
        tensor.device[0], tensor.device[1] = self.device
        tensor.ndim, tensor.lanes = memory.ndim, 1
        tensor.kind, tensor.bits = DLPACK[memory.dtype.kind], memory.dtype.itemsize * 8
        tensor.shape = ctypes.addressof(shape)
        strides = (ctypes.c_int64 * memory.ndim)(*(self.strides or ()))
        tensor.strides = ctypes.addressof(strides) if self.strides else None
        EXPORTS[ctypes.addressof(managed)] = self, managed, shape, strides
        name = b"dltensor" if self.version is None else b"dltensor_versioned"
        return _new(ctypes.addressof(managed), name, ctypes.cast(_give_back, ctypes.c_void_p))


def torch_like(gpu: Any, stream: int = 0) -> Any:
    """A module that has of torch what the runtime uses; `module.on(memory)` is a tensor."""

    class Type:
        def __init__(self, name: str) -> None:
            self.name = name

        def __str__(self) -> str:
            return f"torch.{self.name}"

    types = {n: Type(n) for n in ("float16", "bfloat16", "float32", "float64", "int32", "int64", "bool")}

    @dataclass(frozen=True)
    class Device:
        index: int

    class Tensor:
        def __init__(
            self, memory: Any, device: int = 0, requires_grad: bool = False, stride: Any = None
        ) -> None:
            self.memory, self.device_index, self.requires_grad = memory, device, requires_grad
            self.shape, self.dtype = memory.shape, types[memory.dtype.name]
            self.steps = stride or tuple(s // memory.itemsize for s in memory.strides)
            self.is_cuda, self.device = device >= 0, Device(device)
            self.address = int(memory.ctypes.data)

        def stride(self) -> Any:
            return self.steps

        def get_device(self) -> int:
            return self.device_index

        def data_ptr(self) -> int:
            return self.address

        def element_size(self) -> int:
            return int(self.memory.itemsize)

    Tensor.__module__ = "torch"
    module = SimpleNamespace(**types, Tensor=Tensor, on=Tensor, current=stream, entered=[])

    def empty(shape: Any, dtype: Any, device: Device) -> Any:
        import ml_dtypes

        kind = ml_dtypes.bfloat16 if dtype.name == "bfloat16" else np.dtype(dtype.name)
        return Tensor(gpu.array(np.zeros(shape, kind)), device.index)

    class Entered:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __enter__(self) -> None:
            module.entered.append(self.stream)

        def __exit__(self, *_: Any) -> None:
            return None

    module.empty = empty
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: module.current)
    module.cuda = SimpleNamespace(stream=Entered, ExternalStream=lambda handle, device: handle)
    return module


def cupy_like(gpu: Any, stream: int = 0) -> Any:
    """The same for CuPy."""

    class ndarray:  # noqa: N801  # CuPy's name
        def __init__(self, memory: Any, device: int = 0) -> None:
            self.memory, self.shape, self.strides, self.dtype = (
                memory, memory.shape, memory.strides, memory.dtype
            )  # fmt: skip
            self.data = SimpleNamespace(ptr=memory.ctypes.data, device_id=device)

    ndarray.__module__ = "cupy"
    current = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=stream))
    return SimpleNamespace(
        on=ndarray, empty=lambda shape, dtype: ndarray(gpu.array(np.zeros(shape, dtype))), cuda=current
    )


def pycuda_like(gpu: Any) -> type:
    """The same for pycuda's class; memory in place of a shape makes an array of what is there."""

    class GPUArray:
        def __init__(self, shape: Any, dtype: Any = None) -> None:
            self.memory = shape if isinstance(shape, np.ndarray) else gpu.array(np.zeros(shape, dtype))
            self.gpudata = self.memory.ctypes.data
            self.shape, self.strides, self.dtype = self.memory.shape, self.memory.strides, self.memory.dtype

    GPUArray.__module__ = "pycuda.gpuarray"
    return GPUArray
