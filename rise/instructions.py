"""Which tensor-core instructions there are: the shapes and types of fragments that one product takes.

The shape (m, n, k) and the types of its fragments choose the family of instructions of a product; which
of them a GPU has is the target's business (DESIGN §3.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import isqrt

Shape = tuple[int, int, int]


class Family(Enum):
    """Who computes a product, and with which instruction."""

    WMMA = "wmma"  # a warp, through CUDA's opaque fragments
    MMA = "mma.sync"  # a warp, by as many instructions as the fragments have tiles
    WGMMA = "wgmma"  # a warpgroup, four warps, with operands in shared memory
    VOLTA = "mma.sync.m8n8k4"  # the four quad-pairs of a warp, each a quarter of a 16×16 tile (paper 000)


@dataclass(frozen=True)
class Instruction:
    """Products of a family for operands and accumulators of some types.

    exists:     whether there are fragments of a shape
    shapes:     what messages say about these
    target:     the compute capability, times ten, from which on GPUs have it
    """

    family: Family
    operands: frozenset[str]
    accumulators: frozenset[str]
    exists: Callable[[Shape], bool]
    shapes: str
    target: int


WMMA_SHAPES: frozenset[Shape] = frozenset({(16, 16, 16), (32, 8, 16), (8, 32, 16)})
VOLTA_SHAPES: frozenset[Shape] = frozenset({(16, 16, 8), (32, 32, 8)})


def _tiled(*depths: int) -> Callable[[Shape], bool]:
    """Tiles of 16×8, one or two high, up to 32 wide, of one of the depths; other families keep theirs."""

    def exists(shape: Shape) -> bool:
        m, n, k = shape
        taken = shape in WMMA_SHAPES or shape in VOLTA_SHAPES
        return not taken and m in (16, 32) and n in range(8, 257, 8) and k in depths

    return exists


def _of_warpgroup(depth: int, *columns: range) -> Callable[[Shape], bool]:
    """64 rows, and 32 bytes of k."""

    def exists(shape: Shape) -> bool:
        m, n, k = shape
        return m == 64 and any(n in some for some in columns) and k == depth

    return exists


def _named(*names: str) -> frozenset[str]:
    return frozenset(names)


_WMMA = (WMMA_SHAPES.__contains__, "16×16×16, 32×8×16, 8×32×16")
_MMA = "m = 16 or 32, n = 8, 16, …, 256, k = {}"
_COLUMNS = range(8, 257, 8)
_WGMMA = (_of_warpgroup(16, _COLUMNS), "m = 64, n = 8, 16, …, 256, k = 16")
_WGMMA_TF32 = (_of_warpgroup(8, _COLUMNS), "m = 64, n = 8, 16, …, 256, k = 8")
_WGMMA_BYTES = (
    _of_warpgroup(32, range(8, 33, 8), range(48, 257, 16)),
    "m = 64, n = 8, 16, 24, 32, 48, 64, …, 256, k = 32",
)
INSTRUCTIONS = (
    Instruction(Family.WMMA, _named("f16"), _named("f16", "f32"), *_WMMA, 70),
    Instruction(
        Family.VOLTA,
        _named("f16"),
        _named("f16", "f32"),
        VOLTA_SHAPES.__contains__,
        "16×16×8, 32×32×8",
        70,
    ),
    Instruction(Family.WGMMA, _named("f16"), _named("f16", "f32"), *_WGMMA, 90),
    Instruction(Family.WGMMA, _named("bf16"), _named("f32"), *_WGMMA, 90),
    Instruction(Family.WGMMA, _named("tf32"), _named("f32"), *_WGMMA_TF32, 90),
    Instruction(Family.WGMMA, _named("i8"), _named("i32"), *_WGMMA_BYTES, 90),
    Instruction(Family.WMMA, _named("bf16"), _named("f32"), *_WMMA, 80),
    Instruction(
        Family.MMA, _named("f16"), _named("f16", "f32"), _tiled(8, 16), _MMA.format("8 or 16"), 80
    ),
    Instruction(Family.MMA, _named("bf16"), _named("f32"), _tiled(8, 16), _MMA.format("8 or 16"), 80),
    Instruction(Family.MMA, _named("tf32"), _named("f32"), _tiled(8), _MMA.format("8"), 80),
    Instruction(Family.MMA, _named("i8"), _named("i32"), _tiled(32), _MMA.format("32"), 80),
)  # fmt: skip


# the types of what they multiply
OPERANDS = frozenset(name for each in INSTRUCTIONS for name in each.operands)
# registers that a thread may have for the sums of products, so that a small kernel runs beside it: measured
MOST_SUMS = 192
# Measured: the registers that a thread needs besides those for sums and fragments of operands, so that CUDA's
# compiler spills none. A thread that loads fragments one by one, and so has few, needs fewer.
OTHERS, FEW_FRAGMENTS, BESIDE_FEW = 39, 10, 34
GRANULE = 8  # registers that are allocated at once


def thread_registers(sums: int, fragments: int) -> int:
    """The registers that a thread needs to multiply fragments.

    sums, fragments: the registers that its sums and the fragments of its operands take. A thread loads some
    fragments while it multiplies others, so only about half of them are in registers at a time.
    """
    used = sums + fragments // 2 + (BESIDE_FEW if fragments <= FEW_FRAGMENTS else OTHERS)
    return -(-used // GRANULE) * GRANULE


def number_registers(sums: int) -> int:
    """The same for products of numbers: a thread has so many sums, of some rows and some columns."""
    return -(-(sums + 2 * isqrt(sums) + BESIDE_FEW) // GRANULE) * GRANULE


def instruction(shape: Shape, operand: str, accumulator: str) -> Instruction | None:
    """The instruction for a product of that shape and those types, or None."""
    for candidate in INSTRUCTIONS:
        if (
            operand in candidate.operands
            and accumulator in candidate.accumulators
            and candidate.exists(shape)
        ):
            return candidate
    return None


@cache
def family(shape: Shape) -> Family | None:
    """The family that fragments of a shape belong to: it is the same for all types."""
    return next((i.family for i in INSTRUCTIONS if i.exists(shape)), None)


@cache
def takes(shape: Shape, operand: str) -> bool:
    """Whether some product of that shape has operands of that type."""
    return any(i.exists(shape) and operand in i.operands for i in INSTRUCTIONS)


def shapes() -> str:
    """All shapes there are, as a message gives them."""
    return "; ".join(dict.fromkeys(f"{i.shapes} ({i.family.value})" for i in INSTRUCTIONS))
