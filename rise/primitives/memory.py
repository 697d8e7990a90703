"""Where values are stored, and how they get there.

All denote the identity: memory, and how its rows lie in it, is not part of what a program means.
"""

from __future__ import annotations

from functools import partial

from rise.interpret import patterns
from rise.primitives import declare as declaring
from rise.types import ROW_MAJOR

declare = partial(declaring.declare, group="memory")

COPY = "(l: Layout) -> {t: DataType} -> t -> t"
TWO = "makeArray(2)(1, 2)"

declare(
    "toMem",
    "(a: AddressSpace, l: Layout) -> {t: DataType} -> t -> t",
    "Stores a value in an address space, in rows as the layout says, and continues with what is stored.",
    patterns.identity,
    example=(f"toMem(Shared, padded(8))({TWO})", "[1, 2]"),
    l=ROW_MAJOR,
)
declare(
    "copyThreads",
    COPY,
    "Copies a value into Shared memory by the threads of the block, through their registers.",
    patterns.identity,
    example=(f"copyThreads(padded(4))({TWO})", "[1, 2]"),
    l=ROW_MAJOR,
)
declare(
    "copyAsync",
    COPY,
    "Copies a value into Shared memory by the threads of the block, asynchronously (cp.async).",
    patterns.identity,
    example=(f"copyAsync({TWO})", "[1, 2]"),
    l=ROW_MAJOR,
)
declare(
    "bulkCopy",
    COPY,
    "Copies a tile into Shared memory by one thread, as a bulk tensor copy.",
    patterns.identity,
    example=(f"bulkCopy(swizzled(128))({TWO})", "[1, 2]"),
    l=ROW_MAJOR,
)
declare(
    "bulkCopyRoleSplit",
    "(slots: Nat, producers: Nat, consumers: Nat, l: Layout) -> {t: DataType} -> t -> t",
    "bulkCopy into one of so many slots, by warpgroups that only load, ahead of those that only compute.",
    patterns.identity,
    example=(f"bulkCopyRoleSplit(2, 1, 2, swizzled(128))({TWO})", "[1, 2]"),
    l=ROW_MAJOR,
)
declare(
    "bulkStore",
    "{t: DataType} -> t -> t",
    "Copies a tile from Shared to Global memory by one thread, as a bulk tensor copy.",
    patterns.identity,
    example=(f"bulkStore({TWO})", "[1, 2]"),
)
