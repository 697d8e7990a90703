"""Which part of a matrix each thread of a batch computes: the one with the least time by a model.

The time of a multiprocessor for a matrix is a soft maximum of the times of memory, of multiplications, of
shared memory, of the unit that copies runs, of stores, and of the blocks that wait for these. Its constants
were fitted to 773 kernels of 108 shapes, measured on an H200 (benchmarks/results/parts-f32-h200.csv).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from rise.instructions import number_registers
from strategies.batches.banks import BANK, Run, turns
from strategies.batches.costs import BYTES, CACHED, fitting
from strategies.batches.parts import Parts
from strategies.batches.sizes import CHUNK, Sizes
from strategies.memory_bound.blocks import WARP

LEAST_WARPS, MOST_WARPS = 3, 16  # of a block
FEW_WARPS = {1: 1.7, 2: 1.35}  # how many times as long blocks of fewer take: some schedulers are idle
MOST_ROWS, MOST_SUMS = 8, 64  # of a thread: rows or columns, and sums
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # matrices of a block
LEAST_BLOCKS = 264  # two for each of the 132 multiprocessors of an H200
MOST_SHARED = 64 * 1024  # bytes of several matrices
SCHEDULERS = 4  # of a multiprocessor, each of which starts an instruction in a cycle
LINE = 128  # bytes of global memory that one access of a warp reaches at once
MEMORY, MULTIPLY, ACCESS = 0.99, 1.33, 0.98  # factors of times, which were measured
STORE, DIRECT = 3.2, 3.0  # cycles of a store of a warp: for each turn, and for each line of global memory
COPY = 197  # cycles that the copying unit takes for a run, besides its bytes
BLOCK = 1150  # cycles that a block waits, whatever it computes
ARRIVE, LEAVE = 1.43, 1.77  # of a block: factors of the times in which its bytes come, and its results leave
TOGETHER = 4.15  # the power in the soft maximum of times
MOSTLY_WRITTEN = 0.45  # of all bytes, from which on results go through shared memory


@dataclass(frozen=True)
class Split:
    """How a block multiplies so many matrices.

    parts:   what each thread computes
    stored:  whether results leave as a run
    padding: elements that rows are padded by: then threads bring them, and else the copying unit
    """

    parts: Parts
    count: int
    stored: bool
    padding: int = 0

    def threads(self, sizes: Sizes) -> int:
        return min(MOST_WARPS, -(-self.count * self.parts.of_matrix(sizes) // WARP)) * WARP

    def turns(self, sizes: Sizes) -> int:
        """How many parts each thread computes."""
        return -(-self.count * self.parts.of_matrix(sizes) // self.threads(sizes))

    def shared(self, sizes: Sizes) -> int:
        """Bytes of shared memory; those of one matrix become those of its results."""
        read = self.count * (sum(sizes.read) + (sizes.longer[0] if self.padding else 0))
        written = self.count * sizes.written if self.stored else 0
        return sizes.common + (max(read, written) if self.count == 1 else read + written)


def best_split(
    sizes: Sizes, part: tuple[int, int] = (0, 0), count: int = 0, padding: int = 0, stored: bool = False
) -> Split | None:
    """The fastest; None where a block has too few threads for all parts of a matrix.

    part, count: the rows and columns of a thread, and the matrices of a block; 0: any
    padding:     elements that rows are padded by
    stored:      whether only those count whose results leave as a run
    """
    known = ranked(sizes, part, count, padding)
    return next((split for split in known if split.stored or not stored), None)


def best_parts(sizes: Sizes, number: int) -> list[tuple[int, int]]:
    """The rows and columns of a thread for the fastest of them, which differ in these."""
    known = ((split.parts.rows, split.parts.columns) for split in ranked(sizes))
    return list(dict.fromkeys(known))[:number]


@lru_cache(maxsize=1 << 8)
def ranked(
    sizes: Sizes, part: tuple[int, int] = (0, 0), count: int = 0, padding: int = 0
) -> tuple[Split, ...]:
    """All candidates, the fastest first."""
    known = candidates(sizes, part, count, padding)
    return tuple(sorted(known, key=lambda split: cycles(sizes, split)))


def candidates(
    sizes: Sizes, part: tuple[int, int] = (0, 0), count: int = 0, padding: int = 0
) -> Iterator[Split]:
    heights, widths = (
        (each,) if each else range(1, min(MOST_ROWS, size) + 1)
        for each, size in zip(part, (sizes.rows, sizes.columns), strict=True)
    )
    given = any(part)
    for parts in (Parts.of(sizes, (rows, columns)) for rows in heights for columns in widths):
        if parts.sums <= MOST_SUMS or given:
            for number in (count,) if count else _counts(sizes, parts) or [1] * given:
                for stored in (False, True):
                    yield Split(parts, number, stored, padding)


def _counts(sizes: Sizes, parts: Parts) -> list[int]:
    """How many matrices keep enough warps busy, and few enough; the most, where none are enough.

    None if a matrix has more parts than a block has threads.
    """

    def warps(count: int) -> int:
        return -(-count * parts.of_matrix(sizes) // WARP)

    # matrices that are apart are a run each
    room = max(0, MOST_SHARED - sizes.common)
    most = 1 if any(sizes.adjacent) else min(sizes.batch // LEAST_BLOCKS, room // sizes.bytes)
    fit = [count for count in COUNTS if count <= max(1, most) and warps(count) <= MOST_WARPS]
    return [count for count in fit if warps(count) >= LEAST_WARPS] or fit[-1:]


def cycles(sizes: Sizes, split: Split) -> float:
    """Of a multiprocessor for each matrix."""
    parts, count, depth = split.parts, split.count, sizes.depth
    warps = split.threads(sizes) // WARP
    each = split.turns(sizes) * warps / count  # parts of a matrix, by warps
    loads, reads = accesses(sizes, parts, split.padding)
    instructions = depth * (parts.sums + loads)
    memory = sizes.bytes / BYTES
    stores = each * parts.sums
    if split.stored:
        stores *= STORE * store_turns(sizes, parts)
    else:
        stores *= DIRECT * lines(sizes, parts) / parts.stored_at_once(sizes)
    leave = LEAVE * count * sizes.written / BYTES if split.stored else 0
    common = sizes.common / CACHED
    life = BLOCK + common + ARRIVE * count * memory + leave
    written_alone = not split.stored and sizes.written > MOSTLY_WRITTEN * sizes.bytes
    times = (
        MEMORY * memory * (2 if written_alone else 1),
        common / count,
        MULTIPLY * FEW_WARPS.get(warps, 1) * each * instructions / SCHEDULERS,
        ACCESS * each * depth * reads,
        stores,
        0 if split.padding else COPY * (len(sizes.read) + split.stored) / count,
        life / (count * blocks(sizes, split)),
    )
    return float(sum(time**TOGETHER for time in times) ** (1 / TOGETHER))


def blocks(sizes: Sizes, split: Split) -> int:
    """How many a multiprocessor has room for."""
    return fitting(number_registers(split.parts.sums), split.threads(sizes) // WARP, split.shared(sizes))


def accesses(sizes: Sizes, parts: Parts, padding: int = 0) -> tuple[float, float]:
    """Loads of a warp for a term of its sums, and how many turns they take, in which 32 words are read."""
    if sizes.runs is None:
        return parts.rows + parts.columns, parts.rows + parts.columns
    left, right = sizes.runs.left.longer(padding), sizes.runs.right.longer(padding)
    lanes = (parts.of_matrix(sizes), parts.across(sizes))
    of_rows = _loads(left, left.bytes(sizes.rows, sizes.depth), True, parts.rows, parts.group[0], lanes)
    of_columns = _loads(
        right, right.bytes(sizes.depth, sizes.columns), False, parts.columns, parts.group[1], lanes
    )
    return of_rows[0] + of_columns[0], of_rows[1] + of_columns[1]


@lru_cache(maxsize=1 << 14)
def _loads(
    run: Run, bytes_: int, of_rows: bool, each: int, group: int, parts: tuple[int, int]
) -> tuple[float, float]:
    """Of an operand whose rows are those of the result, or whose columns are; a thread has so many `each`.

    bytes_: from one matrix to the next, as a warp may have parts of several
    parts:  how many a matrix has, and how many of them are along its columns
    Numbers of 16 bits are loaded one by one, and each is converted.
    """
    lanes = {(matrix, row if of_rows else column) for matrix, row, column in _lanes(*parts)}
    step, term = (run.row, run.column) if of_rows else (run.column, run.row)
    along, whole = term == run.width, run.width >= BANK
    vector = (gcd(run.line, CHUNK) // run.width if along else group) if whole else 1
    apart = step if along else group * step
    words = max(1, vector * run.width // BANK)
    taken = max(words, turns((matrix * bytes_ + lane * apart for matrix, lane in lanes), words * BANK))
    return each / vector * (1 if whole else 2), each / vector * taken


def store_turns(sizes: Sizes, parts: Parts) -> int:
    """Turns in which a warp stores an element of each of its parts to shared memory."""
    return turns(_stored(sizes, parts), BANK)


def lines(sizes: Sizes, parts: Parts) -> int:
    """Lines of global memory in which a warp stores an element of each of its parts."""
    return len({place // LINE for place in _stored(sizes, parts)})


def _stored(sizes: Sizes, parts: Parts) -> list[int]:
    """Where the first elements of the parts of a warp are stored, in bytes, of several matrices or one."""
    (down, wide), rows, columns = parts.group, sizes.rows, sizes.columns
    return [
        ((matrix * rows + row * down) * columns + column * wide) * sizes.width_of_result
        for matrix, row, column in _lanes(parts.of_matrix(sizes), parts.across(sizes))
    ]


def _lanes(of_matrix: int, across: int) -> list[tuple[int, int, int]]:
    """For each lane of a warp the matrix of its part, and the row and the column of parts."""
    return [(lane // of_matrix, *divmod(lane % of_matrix, across)) for lane in range(WARP)]
