"""Buffers in shared memory that are runs: they start as far behind a chunk of 16 bytes as in global memory.

The copying unit moves whole chunks, from and to the same place in each. `lower.bulk` says what a run is.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from rise.errors import TranslationError
from rise.nat import Facts, Nat, constant, divides, remainder
from rise.types import Array, Data, Scalar

CHUNK = 16  # bytes


def starts(command: i.Command) -> dict[str, tuple[Nat, int]]:
    """Of each buffer that is a run: the number of its first element in its array, and those of a chunk.

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
                f"`{shown(tile.buffer)}` is a run of two arrays, which may start at different places",
                part.origin,
                "store what is copied back in a buffer of its own",
            )
    return found


def chunk_of(run: Data) -> int:
    """How many elements of a run are a chunk."""
    while isinstance(run, Array):
        run = run.element
    return CHUNK // run.bytes if isinstance(run, Scalar) else 1


def shift(start: Nat, chunk: int, facts: Facts = Facts()) -> Nat:
    """By how many elements a run starts behind a chunk."""
    return constant(0) if divides(chunk, start, facts) else remainder(start, constant(chunk))


def granularity(start: Nat, chunk: int, facts: Facts = Facts()) -> int:
    """The greatest number of elements, up to those of a chunk, of which each shift is a multiple."""
    size = chunk
    while size > 1 and not divides(size, start, facts):
        size //= 2
    return size
