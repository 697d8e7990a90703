"""Arrays with DLPack, read from the capsule through ctypes.

The capsule is read and dropped, not consumed: dropping it releases the export, and the caller keeps the
array alive during the launch, as with the other protocols.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from typing import Any

import numpy as np

from codegen.runtime.arrays import View, no_output
from rise.errors import LaunchError

# names and numbers as in dlpack.h
DL_CUDA, DL_CUDA_MANAGED = 2, 13
DL_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
DL_READ_ONLY = 1
LEGACY_STREAM = 1


class _Tensor(ctypes.Structure):
    """DLTensor; strides count elements."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned; DLManagedTensor starts with its tensor."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]

# shape, strides in elements or None, (code, bits, lanes), (device type, number), read-only
Seen = tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, int, int], tuple[int, int], bool]


class DLPackArrays:
    """Objects with `__dlpack__` and `__dlpack_device__`."""

    name = "DLPack"
    knows_device = True

    def look(self, array: Any, stream: int) -> tuple[Hashable, int]:
        return _exported(array, stream)

    def view(self, array: Any) -> View:
        (shape, strides, (code, bits, lanes), (kind, number), read_only), _ = _exported(array, LEGACY_STREAM)
        name = "bool" if (code, bits) == (6, 8) else f"{DL_KINDS.get(code, f'kind {code} of ')}{bits}"
        if lanes != 1:
            name += f" in vectors of {lanes}"
        step = bits // 8
        given = None if strides is None else tuple(s * step for s in strides)
        return View(shape, name, given, number if kind in (DL_CUDA, DL_CUDA_MANAGED) else None, read_only)

    def stream(self, array: Any) -> int:
        return 0

    def produced_on(self, array: Any) -> int | None:
        return None  # the array itself makes the given stream wait

    def empty(self, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int | None) -> Any:
        raise no_output(like)


def _exported(array: Any, stream: int) -> tuple[Seen, int]:
    kind, number = array.__dlpack_device__()
    device = int(kind), int(number)
    if device[0] not in (DL_CUDA, DL_CUDA_MANAGED):
        return ((), None, (0, 0, 1), device, False), 0
    return _read(_capsule(array, stream or LEGACY_STREAM))


def _capsule(array: Any, stream: int) -> Any:
    try:
        return array.__dlpack__(stream=stream, max_version=(1, 0), copy=False)
    except TypeError:  # before version 1.0
        return array.__dlpack__(stream=stream)


def _read(capsule: Any) -> tuple[Seen, int]:
    """The contents of a capsule. LaunchError R0837 if it is not a capsule, or has been consumed."""
    read_only = False
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise LaunchError("R0837", f"DLPack {versioned.major}.{versioned.minor} is not supported")
        tensor, read_only = versioned.tensor, bool(versioned.flags & DL_READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    else:
        raise LaunchError("R0837", "`__dlpack__` does not return an unused tensor capsule")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    types = tensor.code, tensor.bits, tensor.lanes
    seen = shape, strides, types, (tensor.device_type, tensor.device_id), read_only
    return seen, (tensor.data or 0) + tensor.byte_offset
