"""Runs: buffers in shared memory that have the same offset from a 16-byte boundary as in global memory.

The copy engine moves whole chunks of 16 bytes, which are aligned in both. `lower.bulk` says what a run is.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from rise.errors import TranslationError
from rise.nat import Nat, constant, divides, remainder
from rise.types import Array, Data, Scalar

CHUNK = 16  # bytes


def starts(command: i.Command) -> dict[str, tuple[Nat, int]]:
    """For each buffer that is a run: the number of its first element, and how many elements a chunk has.

    Raises TranslationError R0745 for a buffer that is a run of several arrays.
    """
    found: dict[str, tuple[Nat, int]] = {}
    for part in i.commands(command):
        match part:
            case i.BulkCopy(target=i.Tile() as tile, map="", corner=(start,)):
                pass
            case i.BulkStore(value=i.Tile() as tile, map="", corner=(start,)):
                pass
            case _:
                continue
        here = (start, chunk_of(tile.type))
        if found.setdefault(tile.buffer, here) != here:
            raise TranslationError(
                "R0745",
                f"`{shown(tile.buffer)}` is a run of two arrays, whose offsets from 16 bytes may differ",
                part.origin,
                "store what is copied back in a buffer of its own",
            )
    return found


def chunk_of(run: Data) -> int:
    """How many elements of a run are a chunk."""
    while isinstance(run, Array):
        run = run.element
    return CHUNK // run.bytes if isinstance(run, Scalar) else 1


def shift(start: Nat, chunk: int) -> Nat:
    """The offset of a run from a 16-byte boundary, in elements."""
    return constant(0) if divides(chunk, start) else remainder(start, constant(chunk))


def granularity(start: Nat, chunk: int) -> int:
    """The greatest number of elements, at most a chunk, of which the offset is certainly a multiple."""
    size = chunk
    while size > 1 and not divides(size, start):
        size //= 2
    return size
