"""The alignment that a kernel requires of its arrays, because it moves vectors and tiles at once."""

from __future__ import annotations

from codegen.ir import imperative as i
from rise.types import Data, Scalar, Vector

WIDEST = 16  # bytes that one instruction moves at most
TILE = 32  # bytes, the alignment of a WMMA tile


def alignments(function: i.Function) -> dict[str, int]:
    """The alignment in bytes of each array parameter that must be aligned to more than its elements."""
    found: dict[str, int] = {}
    names = {v.name for v in (*function.outputs, *function.inputs)}
    for command in i.commands(function.body):
        for access in i.accesses(command):
            if access.buffer in names:
                # whatever a bulk copy starts at, the copy engine moves chunks that are aligned
                asked = WIDEST if isinstance(command, i.BulkCopy) else _asked(access)
                found[access.buffer] = max(found.get(access.buffer, 1), asked)
    return found


def _asked(access: i.Access | i.Tile) -> int:
    match access:
        case i.Tile():
            return TILE
        case i.Access(type=Vector(size, element)):
            return min(WIDEST, (size.value or 1) * _bytes(element))
        case _:
            return 1


def _bytes(element: Data) -> int:
    return element.bytes if isinstance(element, Scalar) else 4
