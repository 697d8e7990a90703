"""The time that a multiprocessor takes for a matrix of a batch that the copying unit brings.

It is a soft maximum of times: of memory, of tensor cores, of shared memory, and of the blocks. A block
waits for its operands, multiplies, and waits until its results have left. Other blocks run meanwhile, as many
as there are registers and shared memory for. So the best tiles are not those with the fewest loads, but those
whose warps need few registers besides their sums.

The constants were fitted to the 424 kernels of benchmarks/results/batch-tiles-h200.csv, measured on an H200.
93 % of them are within a quarter of the model. For 34 products several tiles were measured: the one with the
least cost takes 1.0 % longer than the fastest on average, and 12 % at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from rise.instructions import GRANULE, thread_registers
from strategies.batches.banks import INSTRUCTION, Matrices
from strategies.batches.fragments import COLUMNS, FRAGMENTS, ROWS
from strategies.batches.sizes import RESERVED, ROOM, Sizes
from strategies.memory_bound.blocks import WARP

BYTES = 17.3  # that memory moves in a cycle of a multiprocessor
CACHED = 1.5 * BYTES  # that the L2 cache does, of what all blocks read
BLOCK = 2500  # cycles that a block waits, whatever it computes
EACH, AT_ONCE = 8, 3  # cycles of an instruction: until a warp starts the next, and of the tensor cores
ACCESS = 0.5  # cycles of an access of a warp to shared memory
TOGETHER = 2.25  # the power in the soft maximum of times: the higher it is, the more the longest one hides
PART = 1.05  # how much longer tiles of some of the columns take, and tiles of a single warp
MOST_OF_THREAD, UNSPILLED = 256, 132  # registers; those of sums, with which none are spilled
FREE, LEAST_WARPS = 64, 4  # registers besides sums, and warps, with which no registers are spilled then
QUARTERS, REGISTERS = 4, 1 << 14  # of a multiprocessor; registers of each
MOST_WARPS, MOST_PARTS, MOST_BLOCKS = 8, 4, 32  # of a block; of the columns; of a multiprocessor


@dataclass(frozen=True)
class Tile:
    """The rows and columns of a matrix that a warp computes, and how many matrices a block has."""

    rows: int
    columns: int
    count: int = 1

    def warps(self, sizes: Sizes) -> int:
        return self.height(sizes) // self.rows * -(-sizes.columns // self.columns)

    def height(self, sizes: Sizes) -> int:
        """The rows of all tiles."""
        return -(-sizes.rows // self.rows) * self.rows

    @property
    def sums(self) -> int:
        """The registers of a thread for sums."""
        return self.rows * self.columns // WARP

    @property
    def operands(self) -> int:
        """The registers of a thread for fragments: all of one operand, and one of the other one."""
        return min(self.rows // ROWS * 4 + 2, self.columns // COLUMNS * 2 + 4)


def best_tile(sizes: Sizes, counts: Iterable[int]) -> Tile | None:
    """The tile with the least cost, for a block that has one of these numbers of matrices.

    None where all tiles take too many registers or warps.
    """
    known = [tile for count in counts for tile in candidates(sizes, count)]
    return min(known, key=lambda tile: cost(sizes, tile), default=None)


def cost(sizes: Sizes, tile: Tile) -> float:
    """Cycles of a multiprocessor for each matrix, more for one warp and for several columns of tiles."""
    return cycles(sizes, tile) * (PART if tile.columns < sizes.columns or tile.warps(sizes) == 1 else 1)


def candidates(sizes: Sizes, count: int) -> Iterator[Tile]:
    """Tiles of any number of rows, and of all columns or an equal part, that registers and warps allow."""
    octets = -(-sizes.columns // COLUMNS)
    for parts in range(1, min(octets, MOST_PARTS) + 1):
        for rows in range(ROWS, -(-sizes.rows // ROWS) * ROWS + 1, ROWS):
            tile = Tile(rows, -(-octets // parts) * COLUMNS, count)
            if tile.sums <= UNSPILLED and tile.warps(sizes) <= MOST_WARPS:
                yield tile


def cycles(sizes: Sizes, tile: Tile) -> float:
    """Of a multiprocessor for each matrix."""
    warps, terms = tile.warps(sizes), FRAGMENTS[sizes.operand][-1]
    steps = -(-sizes.depth // terms)
    instructions = steps * (tile.rows // INSTRUCTION[0]) * -(-tile.columns // INSTRUCTION[1])
    memory = sizes.bytes / BYTES
    common = sizes.common / CACHED
    life = BLOCK + common + tile.count * (EACH * instructions + memory)
    times = (
        memory,
        common / tile.count,
        ACCESS * warps * accesses(sizes.runs, tile.rows, tile.columns),
        AT_ONCE * warps * instructions,
        life / (tile.count * blocks(sizes, tile)),
    )
    return float(sum(time**TOGETHER for time in times) ** (1 / TOGETHER))


@lru_cache(maxsize=1 << 10)
def accesses(runs: Matrices | None, rows: int, columns: int) -> int:
    """Of a warp to shared memory; those to one bank take turns. 0 if it is not known where matrices are."""
    tile = (rows, columns)
    return runs.turns(tile, runs.best_order(tile)) if runs is not None else 0


def is_unrolled(sizes: Sizes, tile: Tile) -> bool:
    """Whether a thread has registers for the operands of all steps of a sum, beside its sums: measured.

    Where threads load pairs of elements at once, the compiler moves too many loads ahead.
    """
    if not sizes.is_odd or tile.warps(sizes) < LEAST_WARPS:
        return False
    share = QUARTERS * REGISTERS // (WARP * tile.warps(sizes) * blocks(sizes, tile))
    return share // GRANULE * GRANULE - tile.sums >= FREE


def blocks(sizes: Sizes, tile: Tile) -> int:
    """How many a multiprocessor has room for. The copying unit pads no rows in shared memory."""
    registers = min(MOST_OF_THREAD, thread_registers(tile.sums, tile.operands))
    read, written = sum(sizes.read), sizes.written
    shared = max(read, written) if tile.count == 1 else tile.count * (read + written)
    return fitting(registers, tile.warps(sizes), sizes.common + shared)


def fitting(registers: int, warps: int, shared: int) -> int:
    """How many blocks of so many warps a multiprocessor has room for, at least one.

    registers: of a thread
    shared:    bytes of shared memory of a block
    """
    in_registers = QUARTERS * (REGISTERS // (WARP * registers)) // warps
    return max(1, min(in_registers, ROOM // (shared + RESERVED), MOST_BLOCKS))
