"""Which rows, and which terms of a sum, each lane takes, so that few lanes access the same bank at once.

Lane 4·r + c has row r of eight rows of a fragment, and pairs c and 4 + c of the eight pairs of terms of an
instruction. A strategy is free to choose which rows and which terms these are: rows may be any distance
apart, and the pairs of a lane may be adjacent, even those of two instructions. Rows of an odd length start at
any bank, and only some of these orders have no conflicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

BANKS, BANK = 32, 4  # of shared memory; their width in bytes
ROWS_AT_ONCE, LANES_OF_ROW = 8, 4  # of a warp
PAIR = 2  # adjacent elements of a lane
PAIRS = range(0, PAIR * LANES_OF_ROW, PAIR)  # where the pairs of the lanes of a row start
ADJACENT = (1, 2, 4)  # pairs of terms of a lane: of one instruction, or of two
INSTRUCTION = (16, 8)  # rows and columns of an instruction's result
STRIDED = 1.25  # how many turns one of strided columns counts, for conditions on columns at an edge: measured
TIMES = INSTRUCTION[0] // ROWS_AT_ONCE  # that a warp has so many rows of it


@dataclass(frozen=True)
class Order:
    """How far apart the rows are, and the pairs of columns, that lanes have at once.

    adjacent: how many pairs of terms of a lane are beside each other
    """

    apart: int = 1
    adjacent: int = 1
    columns: int = 1

    @property
    def instructions(self) -> int:
        """How many instructions these adjacent terms belong to."""
        return max(1, self.adjacent // PAIR)

    @property
    def rows(self) -> list[int]:
        """The rows that lanes have at once."""
        return [self.apart * row for row in range(ROWS_AT_ONCE)]

    @property
    def pairs(self) -> list[int]:
        """The first columns of the pairs that the lanes of a row have at once."""
        return [self.columns * pair for pair in PAIRS]

    @property
    def stored(self) -> Iterator[tuple[int, int]]:
        """Which elements of a result the lanes of a warp store at once."""
        return product(self.rows, self.pairs)


@dataclass(frozen=True)
class Run:
    """A matrix in shared memory, in bytes: the width of an element, and the distances of rows and columns."""

    width: int
    row: int
    column: int

    @classmethod
    def of(cls, rows: int, columns: int, width: int, by_rows: bool = True) -> Run:
        return cls(width, columns * width, width) if by_rows else cls(width, width, rows * width)

    def at(self, row: int, column: int) -> int:
        return row * self.row + column * self.column

    def longer(self, elements: int) -> Run:
        """The same with lines that are padded by so many elements."""
        more = elements * self.width
        in_rows = self.column == self.width
        return Run(self.width, self.row + in_rows * more, self.column + (not in_rows) * more)

    def bytes(self, rows: int, columns: int) -> int:
        """Of a matrix of so many rows and columns."""
        return self.line * (rows if self.column == self.width else columns)

    @property
    def line(self) -> int:
        """From the first of adjacent elements to the first of the next ones: a row, or a column."""
        return max(self.row, self.column)

    @property
    def pairs(self) -> int:
        """How many elements of a pair one access moves."""
        return PAIR if self.column == self.width and self.row % (PAIR * self.width) == 0 else 1

    @property
    def accesses(self) -> int:
        """How many accesses move a pair."""
        return PAIR // self.pairs


@dataclass(frozen=True)
class Matrices:
    """The operands of a product and its result in shared memory.

    depth: the number of terms of a sum, of which an instruction adds up so many `terms`
    """

    left: Run
    right: Run
    result: Run
    depth: int
    terms: int

    def best_order(self, tile: tuple[int, int]) -> Order:
        """The order in which a warp takes the least time for a tile of so many rows and columns."""
        in_pairs = self.terms == PAIR * PAIR * LANES_OF_ROW
        rows, columns = (distances(size // ROWS_AT_ONCE) for size in tile)
        orders = product(columns, rows, ADJACENT if in_pairs else ADJACENT[:1])
        known = (Order(apart, adjacent, between) for between, apart, adjacent in orders)
        return min(known, key=lambda order: self.turns(tile, order) * (STRIDED if order.columns > 1 else 1))

    def best_rows(self, tile: tuple[int, int], height: int) -> Order:
        """The same where lanes take columns and terms as they are.

        height: the rows of all tiles, of any of which a warp may have some
        """
        known = [Order(apart) for apart in distances(height // ROWS_AT_ONCE)]
        return min(known, key=lambda order: self.turns(tile, order))

    def turns(self, tile: tuple[int, int], order: Order) -> int:
        """How long a warp loads and stores for a tile: accesses to one bank take one turn each."""
        columns = [first + one for first in order.pairs for one in range(PAIR)]
        right = sum(conflicts(self.right, product(here, columns)) for here in self._terms(order))
        # the two terms of a pair are in two rows of the right operand
        loads = tile[1] // INSTRUCTION[1] * right * PAIR
        return self.of_rows(tile, order) + self.steps(order) * loads

    def of_rows(self, tile: tuple[int, int], order: Order) -> int:
        """The same for the left operand and the result only."""
        high, wide = tile[0] // INSTRUCTION[0], tile[1] // INSTRUCTION[1]
        left = sum(conflicts(self.left, product(order.rows, here)) for here in self._terms(order))
        loads = high * TIMES * left * self.left.accesses
        stores = high * wide * TIMES * conflicts(self.result, order.stored) * self.result.accesses
        return self.steps(order) * loads + stores

    def steps(self, order: Order) -> int:
        """How many instructions add up the terms of a sum, or pairs of them, in that order."""
        return -(-self.depth // (self.terms * order.instructions))

    def _terms(self, order: Order) -> Iterator[list[int]]:
        """For each group of pairs that lanes load at once, the first term of each lane's pair."""
        each = self.terms // (PAIR * LANES_OF_ROW)
        for group in range(PAIR * order.instructions):
            if order.adjacent > 1:
                yield [PAIR * (order.adjacent * lane + group) for lane in range(LANES_OF_ROW)]
            else:
                yield [each * (LANES_OF_ROW * group + lane) for lane in range(LANES_OF_ROW)]


def distances(octets: int) -> list[int]:
    """How far apart the eight rows or columns of a fragment may be in a tile of so many times eight."""
    return [apart for apart in range(1, octets + 1) if octets % apart == 0]


def conflicts(run: Run, places: Iterable[tuple[int, int]]) -> int:
    """How many of the accesses are to different words of the same bank, at most."""
    return turns((run.at(row, column) for row, column in places), BANK)


def turns(places: Iterable[int], bytes_: int) -> int:
    """How many accesses to so many bytes each, at these places in bytes, are in the same banks, at most."""
    apart = {place // bytes_ for place in places}
    return max(Counter(each % (BANKS * BANK // bytes_) for each in apart).values())
