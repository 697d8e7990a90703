"""Tensor maps: how bulk copies address a global array, and the layout of a box of it in shared memory.

A `TensorMap` is a description that is always legal. `encode` makes the object that a GPU takes, with the
driver's cuTensorMapEncodeTiled; `TensorBuffer` is an array with its map as an argument of
`codegen.emulation.emulator.emulate`. Dimensions are innermost first, as in the driver.

    R0880  a dimension or a stride of the tensor that maps do not support
    R0881  a box that maps do not support
    R0882  an array whose layout differs from its map
    R0883  the driver refuses a map
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rise.errors import LaunchError
from rise.nat import Nat, evaluate

MOST_DIMENSIONS = 5
SWIZZLES = (0, 32, 64, 128)  # the width in bytes within which 16-byte chunks are permuted; 0: none
ENCODED_BYTES = 128
ALIGNMENT = 64  # bytes, of an encoded map

# element types: the driver's number (CUtensorMapDataType), and bytes
ELEMENTS = {
    "uint8": (0, 1),
    "uint16": (1, 2),
    "uint32": (2, 4),
    "int32": (3, 4),
    "float16": (6, 2),
    "float32": (7, 4),
    "bfloat16": (9, 2),
}
# types that are moved as integers of their size: int8 and the 8-bit floating-point types
MOVED_AS = {"int8": "uint8", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
SWIZZLE_NUMBERS = {0: 0, 32: 1, 64: 2, 128: 3}
INTERLEAVE_NONE, FILL_ZERO = 0, 0
PROMOTED = 128  # bytes that are brought into the L2 cache at once, if nothing else is said
PROMOTIONS = {64: 1, 128: 2, 256: 3}  # as the driver numbers them


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory, and the box of it that one copy moves.

    element: the name of a NumPy type
    sizes:   of the tensor, innermost dimension first; elements outside are read as zero
    strides: of the dimensions after the first, in bytes
    box:     elements in each dimension
    swizzle: the width in bytes within which 16-byte chunks are permuted by row; it is a box's row length
    promoted: how many bytes are brought into the L2 cache at once

    Raises LaunchError R0880, R0881.
    """

    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    promoted: int = PROMOTED

    def __post_init__(self) -> None:
        check_tensor(self)
        check_box(self)

    def at(self, sizes: Mapping[str, int]) -> TensorMap:
        """The same at any sizes that are known at launch: it depends on none."""
        return self

    @property
    def element_bytes(self) -> int:
        return ELEMENTS[MOVED_AS.get(self.element, self.element)][1]

    @property
    def box_bytes(self) -> int:
        """The bytes that a load signals to its mbarrier, even if the box is partly outside the tensor."""
        return prod(self.box) * self.element_bytes

    @property
    def extent_bytes(self) -> int:
        """The distance from the first byte of the tensor to the end of its last element."""
        steps = (self.element_bytes, *self.strides)
        return (
            sum((size - 1) * step for size, step in zip(self.sizes, steps, strict=True)) + self.element_bytes
        )


def check_tensor(described: TensorMap) -> None:
    """Checks rank, sizes and strides."""
    if described.element not in ELEMENTS and described.element not in MOVED_AS:
        raise LaunchError("R0880", f"a tensor map cannot have elements of type {described.element}")
    rank = len(described.sizes)
    if not 1 <= rank <= MOST_DIMENSIONS:
        raise LaunchError("R0880", f"a tensor map has 1 to {MOST_DIMENSIONS} dimensions, not {rank}")
    if len(described.strides) != rank - 1 or len(described.box) != rank:
        raise LaunchError(
            "R0880",
            f"{rank} sizes need {rank - 1} strides and {rank} numbers for the box",
            hint=str(described),
        )
    for size in described.sizes:
        if not 1 <= size <= 2**32:
            raise LaunchError("R0880", f"a size of a tensor map is 1 to 2³², not {size}")
    for stride in described.strides:
        if stride % 16 or not 0 < stride < 2**40:
            raise LaunchError(
                "R0880",
                f"a stride of a tensor map is a multiple of 16 bytes below 2⁴⁰, not {stride}",
                hint="make rows of 16-bit elements a multiple of 8 long, or pad them",
            )


def check_box(described: TensorMap) -> None:
    """Checks the box, its swizzle, and what is brought into the L2 cache with it."""
    if described.promoted not in PROMOTIONS:
        there = ", ".join(map(str, PROMOTIONS))
        raise LaunchError(
            "R0881", f"{there} bytes can be brought into the L2 cache at once, not {described.promoted}"
        )
    if described.swizzle not in SWIZZLES:
        raise LaunchError("R0881", f"a swizzle is one of {SWIZZLES} bytes, not {described.swizzle}")
    for size in described.box:
        if not 1 <= size <= 256:
            raise LaunchError("R0881", f"a box has 1 to 256 elements in a dimension, not {size}")
    row = described.box[0] * described.element_bytes
    if row % 16:
        raise LaunchError("R0881", f"a row of a box has a multiple of 16 bytes, not {row}")
    if described.swizzle and row > described.swizzle:
        raise LaunchError(
            "R0881", f"a box's row of {row} bytes is longer than its swizzle, {described.swizzle}"
        )
    if described.swizzle and row < described.swizzle:
        raise LaunchError(
            "R0881",
            f"a box's row of {row} bytes is shorter than its swizzle, {described.swizzle}",
            hint="the layout of such rows in shared memory is not documented; use a smaller swizzle",
        )


def map_of(
    shape: tuple[int, ...], element: str, box: tuple[int, ...], swizzle: int = 0,
    row_bytes: int | None = None, promoted: int = PROMOTED,
) -> TensorMap:  # fmt: skip
    """The map of a row-major array. `shape` and `box` are outermost first, as in NumPy.

    row_bytes: the leading dimension in bytes, if rows are padded
    """
    size = ELEMENTS.get(MOVED_AS.get(element, element), (0, 1))[1]
    strides = [row_bytes or shape[-1] * size]
    for length in reversed(shape[1:-1]):
        strides.append(strides[-1] * length)
    return TensorMap(element, shape[::-1], tuple(strides[: len(shape) - 1]), box[::-1], swizzle, promoted)


@dataclass(frozen=True)
class OpenTensorMap:
    """The map of a row-major array with sizes that are known at launch.

    shape: outermost first, as in NumPy
    box:   innermost first, as in a `TensorMap`
    """

    element: str
    shape: tuple[Nat, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    promoted: int = PROMOTED

    def at(self, sizes: Mapping[str, int]) -> TensorMap:
        """The map at these sizes. Raises LaunchError R0880, R0881 as a `TensorMap` does."""
        shape = self._numbers(sizes)
        return map_of(shape, self.element, self.box[::-1], self.swizzle, promoted=self.promoted)

    def is_empty_at(self, sizes: Mapping[str, int]) -> bool:
        """Whether the array then has no elements, and no map."""
        return 0 in self._numbers(sizes)

    def _numbers(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(int(evaluate(size, sizes)) for size in self.shape)


AnyMap = TensorMap | OpenTensorMap


# --- for a GPU ------------------------------------------------------------------------------------------

Encode = Callable[..., int]


def encode(described: TensorMap, address: int, encode_tiled: Encode) -> ctypes.Array[ctypes.c_char]:
    """The 128 bytes, aligned to 64, that a kernel takes as its parameter.

    address:      of the tensor on the GPU
    encode_tiled: cuTensorMapEncodeTiled of the driver library, through ctypes
    """
    if address % 16:
        raise LaunchError(
            "R0882", f"a tensor under a map starts at a multiple of 16 bytes, not at {address:#x}"
        )
    encoded = aligned_bytes(ENCODED_BYTES, ALIGNMENT)
    status = encode_tiled(ctypes.byref(encoded), *encoding_arguments(described, address))
    if status:
        raise LaunchError("R0883", f"cuTensorMapEncodeTiled refuses {described}: error {status}")
    return encoded


def encoding_arguments(described: TensorMap, address: int) -> tuple[Any, ...]:
    """The arguments of cuTensorMapEncodeTiled after the pointer to its result."""
    rank = len(described.sizes)
    number, _ = ELEMENTS[MOVED_AS.get(described.element, described.element)]
    return (
        ctypes.c_int(number),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*described.sizes),
        (ctypes.c_uint64 * max(1, rank - 1))(*described.strides),
        (ctypes.c_uint32 * rank)(*described.box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(INTERLEAVE_NONE),
        ctypes.c_int(SWIZZLE_NUMBERS[described.swizzle]),
        ctypes.c_int(PROMOTIONS[described.promoted]),
        ctypes.c_int(FILL_ZERO),
    )


def aligned_bytes(count: int, alignment: int) -> ctypes.Array[ctypes.c_char]:
    """Memory whose address is a multiple of the alignment."""
    storage = ctypes.create_string_buffer(count + alignment)
    offset = -ctypes.addressof(storage) % alignment
    return (ctypes.c_char * count).from_buffer(storage, offset)


# --- for the emulator -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorBuffer:
    """An array with its map, as an argument of the emulator. Stores write it in place.

    name:        its name in messages
    initialised: False if the kernel has to write an element before it reads it
    ready:       whether the kernel may read it before the kernel in front of it has ended
    """

    name: str
    array: NDArray[np.generic]
    map: TensorMap
    initialised: bool = True
    ready: bool = False

    def __post_init__(self) -> None:
        if self.array.dtype.name != self.map.element:
            raise LaunchError(
                "R0882", f"{self.name} has elements of {self.array.dtype}, its map of {self.map.element}"
            )
        if not self.array.flags.c_contiguous or self.array.nbytes < self.map.extent_bytes:
            raise LaunchError(
                "R0882",
                f"{self.name} has {self.array.nbytes} bytes, its map describes {self.map.extent_bytes}",
            )


class Description(ctypes.Structure):
    """`MapDescription` in `emulation/hopper/tensor_map.hpp`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * MOST_DIMENSIONS),
        ("strides", ctypes.c_int64 * MOST_DIMENSIONS),
        ("box", ctypes.c_int32 * MOST_DIMENSIONS),
        ("rank", ctypes.c_int32),
        ("swizzle", ctypes.c_int32),
        ("element_bytes", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


def describe(buffer: TensorBuffer, flags: int) -> Description:
    """A map as the emulator sees it; the flags are those of its array."""
    of = buffer.map
    strides = (of.element_bytes, *of.strides)
    return Description(
        buffer.array.ctypes.data,
        buffer.array.nbytes,
        (ctypes.c_int64 * MOST_DIMENSIONS)(*of.sizes),
        (ctypes.c_int64 * MOST_DIMENSIONS)(*strides),
        (ctypes.c_int32 * MOST_DIMENSIONS)(*of.box),
        len(of.sizes),
        of.swizzle,
        of.element_bytes,
        flags,
        0,
    )
