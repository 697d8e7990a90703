"""How many matrices a block takes, and how many threads it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, lcm

from rise.expr import Expr, Lambda, call
from rise.types import Array, Data, Pair, Scalar, Type, shape

VECTOR = 16  # bytes that a thread moves at once
TILE = 16 * 1024  # bytes of shared memory of a block: several blocks then have enough loads under way
WARP = 32
THREADS = (128, 256)  # of a block, at least and at most


@dataclass(frozen=True)
class Sizes:
    """What one element of a batch reads and writes, in bytes, an array each; and the rows of its result."""

    batch: int
    read: tuple[int, ...]
    written: int
    rows: int

    @classmethod
    def of(cls, term: Expr) -> Sizes | None:
        """Of a map over arrays of known sizes; None for other programs."""
        sizes, element = shape(term.type)
        applied = call(term)
        if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
            return None
        known = [size.value for size in sizes]
        read = list(_bytes(applied[2][0].parameter.type))
        if len(known) < 2 or None in known or None in read or not isinstance(element, Scalar):
            return None
        batch, rows, *rest = (size or 1 for size in known)
        written = rows * element.bytes
        for size in rest:
            written *= size
        return cls(batch, tuple(size or 1 for size in read), written, rows)

    @property
    def bytes(self) -> int:
        return sum(self.read) + self.written

    def count(self) -> int:
        """So many that each run is whole vectors, and all of them are about TILE bytes."""
        whole = lcm(*(VECTOR // gcd(VECTOR, part) for part in (*self.read, self.written)))
        most = max(1, TILE // (whole * self.bytes))
        needed = -(-self.batch // whole)
        return whole * min(most, needed)

    def threads(self, count: int) -> int:
        """Multiples of warps; the fewest that leave as few threads as possible idle in the last turn."""
        rows = count * self.rows
        least, most = THREADS
        if rows <= least:
            return -(-rows // WARP) * WARP

        def idle(threads: int) -> float:
            return -(-rows // threads) * threads / rows

        return min(range(least, most + 1, WARP), key=lambda threads: (idle(threads), threads))


def _bytes(type_: Type) -> Iterator[int | None]:
    match type_:
        case Pair(first, second):
            yield from (*_bytes(first), *_bytes(second))
        case Array():
            sizes, element = shape(type_)
            total: int | None = _width(element)
            for size in sizes:
                total = total * size.value if total is not None and size.value is not None else None
            yield total
        case _:
            yield _width(type_)


def _width(type_: Data | Type) -> int | None:
    return type_.bytes if isinstance(type_, Scalar) else None
