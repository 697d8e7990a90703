"""The parameter buffer of a launch: every value at the offset from which the kernel reads it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A parameter passed by value.

    code:      its format for `struct`: `Q` a pointer, `f` a float, `H` the bits of a 16-bit one,
               `128s` the bytes of a tensor map
    size:      in bytes
    alignment: in bytes; 64 for a tensor map
    """

    code: str
    size: int
    alignment: int

    @staticmethod
    def of(code: str, alignment: int | None = None) -> Field:
        """Numbers are aligned to their size."""
        size = struct.calcsize(f"<{code}")
        return Field(code, size, alignment or size)


POINTER = Field.of("Q")


def natural_offsets(fields: Sequence[Field]) -> list[int]:
    """Offsets in order, each the next one that is aligned for its field."""
    offsets: list[int] = []
    end = 0
    for field in fields:
        offsets.append(-(-end // field.alignment) * field.alignment)
        end = offsets[-1] + field.size
    return offsets


def packer(fields: Sequence[Field], offsets: Sequence[int]) -> struct.Struct:
    """Packs one value per field; `offsets` ascend, with room for each field before the next."""
    text, end = "<", 0
    for field, offset in zip(fields, offsets, strict=True):
        if offset < end:
            raise ValueError(f"a parameter at {offset} overlaps the one before, which ends at {end}")
        text += f"{offset - end}x{field.code}" if offset > end else field.code
        end = offset + field.size
    return struct.Struct(text)
