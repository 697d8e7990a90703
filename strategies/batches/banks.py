"""Which rows, and which terms of a sum, lanes have, so that what they load and store is in many banks.

Lane 4·r + c has row r of eight rows of a fragment, and pairs c and 4 + c of the eight pairs of terms of an
instruction. Which rows these are, and which terms, is free: rows may be any number apart, and the pairs of a
lane adjacent, also those of two instructions. In a run, rows of odd lengths start everywhere, and only some
of these orders are without conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

BANKS, BANK = 32, 4  # of shared memory; their width in bytes
ROWS_AT_ONCE, LANES_OF_ROW = 8, 4  # of a warp
PAIR = 2  # elements that a lane has beside each other
ADJACENT = (1, 2, 4)  # pairs of terms of a lane: of one instruction, or of two
INSTRUCTION = (16, 8)  # rows and columns of an instruction's result


@dataclass(frozen=True)
class Order:
    """apart: how far the rows are that lanes have at once; adjacent: how many pairs of a lane's terms are."""

    apart: int = 1
    adjacent: int = 1

    @property
    def instructions(self) -> int:
        """Among whose terms those of a lane are adjacent."""
        return max(1, self.adjacent // PAIR)


@dataclass(frozen=True)
class Run:
    """A matrix in shared memory, as it came: the bytes of an element, between rows, and between columns."""

    width: int
    row: int
    column: int

    @classmethod
    def of(cls, rows: int, columns: int, width: int, by_rows: bool = True) -> Run:
        return cls(width, columns * width, width) if by_rows else cls(width, width, rows * width)

    def at(self, row: int, column: int) -> int:
        return row * self.row + column * self.column

    @property
    def pairs(self) -> int:
        """How many elements beside each other one access moves."""
        return PAIR if self.column == self.width and self.row % (PAIR * self.width) == 0 else 1


@dataclass(frozen=True)
class Matrices:
    """The operands of a product and its result in shared memory.

    depth: of its sums, of which an instruction has so many `terms`
    """

    left: Run
    right: Run
    result: Run
    depth: int
    terms: int

    def best_order(self, tile: tuple[int, int]) -> Order:
        """The order in which a warp takes the least time for a tile of so many rows and columns."""
        octets = tile[0] // ROWS_AT_ONCE
        possible = (apart for apart in range(1, octets + 1) if octets % apart == 0)
        in_pairs = self.terms == PAIR * PAIR * LANES_OF_ROW
        orders = product(possible, ADJACENT if in_pairs else ADJACENT[:1])
        return min((Order(*order) for order in orders), key=lambda order: self.turns(tile, order))

    def turns(self, tile: tuple[int, int], order: Order) -> float:
        """How often a warp loads and stores for a tile; accesses to one bank are one after the other."""
        rows = [order.apart * row for row in range(ROWS_AT_ONCE)]
        high, wide = tile[0] // INSTRUCTION[0], tile[1] // INSTRUCTION[1]
        starts = list(self._terms(order))
        left = sum(conflicts(self.left, product(rows, here)) for here in starts)
        right = sum(conflicts(self.right, product(here, range(ROWS_AT_ONCE))) for here in starts)
        stored = conflicts(self.result, product(rows, range(0, PAIR * LANES_OF_ROW, PAIR)))
        loads = high * PAIR * left * PAIR / self.left.pairs + wide * right * PAIR
        steps = -(-self.depth // (self.terms * order.instructions))
        return steps * loads + high * wide * PAIR * stored * PAIR / self.result.pairs

    def _terms(self, order: Order) -> Iterator[list[int]]:
        """The first terms of each lane of a row that are loaded at once."""
        each = self.terms // (PAIR * LANES_OF_ROW)
        for group in range(PAIR * order.instructions):
            if order.adjacent > 1:
                yield [PAIR * (order.adjacent * lane + group) for lane in range(LANES_OF_ROW)]
            else:
                yield [each * (LANES_OF_ROW * group + lane) for lane in range(LANES_OF_ROW)]


def conflicts(run: Run, places: Iterable[tuple[int, int]]) -> int:
    """How many accesses at once are to different words of one bank."""
    words: dict[int, set[int]] = {}
    for row, column in places:
        word = run.at(row, column) // BANK
        words.setdefault(word % BANKS, set()).add(word)
    return max(map(len, words.values()))
