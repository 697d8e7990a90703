"""Where values are stored. Denotes the identity: memory is not part of what a program means."""

from __future__ import annotations

from rise.interpret import patterns
from rise.primitives.declare import declare

declare(
    "toMem",
    "(a: AddressSpace) -> {t: DataType} -> t -> t",
    "Stores a value in an address space, and continues with what is stored.",
    patterns.identity,
)
