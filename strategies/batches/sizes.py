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
SHARED, RESERVED = 227 * 1024, 1024  # bytes of a multiprocessor, and of each of its blocks besides its own
RESIDENT = 2048  # threads of a multiprocessor
IN_FLIGHT = 64 * 1024  # bytes that hide the latency of memory, twice: not all blocks are loading
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

    def chosen(self) -> tuple[int, int]:
        """Matrices of a block, and its threads.

        Each run is whole vectors, all of them are at most TILE bytes and at least half as many; as few threads
        as possible have no row in the last turn, and as many bytes as IN_FLIGHT are under way.
        """
        whole = lcm(*(VECTOR // gcd(VECTOR, part) for part in (*self.read, self.written)))
        most = min(max(1, TILE // (whole * self.bytes)), -(-self.batch // whole))
        counts = range(whole * -(-most // 2), whole * most + 1, whole)
        pairs = ((count, threads) for count in reversed(counts) for threads in self._threads(count))
        return min(pairs, key=lambda pair: round(self.idle(*pair) * max(1, IN_FLIGHT / self.loading(*pair)), 2))

    def idle(self, count: int, threads: int) -> float:
        """Turns of all threads over those that the rows need."""
        rows = count * self.rows
        return -(-rows // threads) * threads / rows

    def loading(self, count: int, threads: int) -> int:
        """The bytes that the blocks of a multiprocessor load."""
        blocks = min(SHARED // (count * self.bytes + RESERVED), RESIDENT // threads)
        return max(1, blocks) * count * sum(self.read)

    def _threads(self, count: int) -> range:
        least, most = THREADS
        rows = -(-count * self.rows // WARP) * WARP
        return range(min(least, rows), min(most, rows) + 1, WARP)


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
