"""What a block takes of a batch: how many matrices, with how many threads, and who multiplies them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from strategies.batches.banks import BANK, PAIR
from strategies.batches.costs import BYTES, UNSPILLED, Tile, best_tile, cost, cycles
from strategies.batches.fragments import COLUMNS, FRAGMENTS, ROWS
from strategies.batches.part_costs import LEAST_WARPS, Split, best_split
from strategies.batches.part_costs import cycles as cycles_of_parts
from strategies.batches.parts import Parts
from strategies.batches.rows import EACH_OF_ROW
from strategies.batches.runs import PADDING
from strategies.batches.sizes import ALIGNMENTS, CHUNK, LARGEST_SIDE, OPERANDS, RESERVED, ROOM, Sizes
from strategies.matmul.staging import evenly_divided
from strategies.memory_bound.blocks import WARP

THREADS, WARPS, BLOCKS = "threads", "warps", "blocks"
SHARED, DIRECT = "shared", "direct"
RUNS, PADDED, ELEMENTS = "runs", "padded", "elements"
BULK, BULK_PADDED, BULK_SECOND, JOINED = "bulk", "bulk_padded", "bulk_second", "joined"
TILE = 16 * 1024  # bytes of shared memory of a block: several blocks then have enough loads under way
LARGEST = 48 * 1024  # of a block that also keeps its results there
RESIDENT = 2048  # threads of a multiprocessor
IN_FLIGHT = 64 * 1024  # bytes that hide the latency of memory, twice: not all blocks are loading
LEAST, MOST = 128, 256  # threads of a block
ONE_WARP = 32 * 32  # elements of a matrix that one warp computes at most
UNROLLED = 32 * 32  # multiplications of a row, whose loops are all unrolled
ODD_FROM = 33  # rows, from which on threads bring matrices of odd sizes to padded rows
PARTIAL_FROM = 73  # rows, from which on they bring others there that are no whole fragments
NARROW_FROM = 49  # the same where of the last fragment of a sum at most a quarter is not zeros
TALL = (3 * ROWS, 2 * ROWS)  # rows of a matrix in a run that a warp computes
TALLEST, WIDE = 4 * ROWS, 96  # rows of a tile with half of the columns, if there are more columns than that
TRANSPOSED = 2  # bytes of numbers of which `ldmatrix` transposes a matrix
ALL_BANKS = 128  # bytes of shared memory, after which the next are in the same banks
MOST_SUMS = UNSPILLED * WARP  # elements of a matrix that are in the registers of a warp
LEAST_ODD, LEAST_BULK = 4 * 1024, 6 * 1024  # bytes of a product that the copying unit brings and takes
LEAST_OF_MANY = 5 * 512  # the same of several odd matrices, of those that are apart, or of several warps
LARGEST_OF_MANY = 20 * 1024  # bytes of a product of which it brings several
CROWDED, CROWDED_CHUNKS = 1.3, 1.5  # the cost, over the time of memory, up to which it brings crowded rows
WORTH = 0.965  # the cost, over that of the usual tile, below which another tile replaces it
MOST_AT_ONCE, MANY_RUNS = 8, 4096  # matrices of a run, of which there are at least so many
LEAST_PADDED = 113  # rows and columns, from which on both operands are copied to padded rows
LEAST_SECOND, LEAST_TERMS = 81, 41  # the same of the second operand only, and terms of sums
LEAST_CROWDED = 24  # terms of sums where its rows are crowded
MOST_LONGER = 1.6  # how many times as long its rows may be copied, so that threads divide them evenly
MOST_CROWDED = 32 * 40  # elements of a result, up to which crowded rows of its operands are padded
SMALL_PRODUCTS = range(160, 9001)  # multiplications of products of 16 bits of which they may do so
LITTLE_USED = 0.16  # the part of fragments that such a product uses, up to which they do so (measured)
LIMITED = 0.9  # the time of memory, over the cost, from which on they do so (measured)
LITTLE_USED_OF_ONE, LEAST_WARPS_OF_ONE = 0.2, 2  # the same, and the warps of a block, of a matrix by itself
FEW_ODD = 16  # matrices of a block where their bytes are odd, however much of fragments they use (measured)
HARDLY_USED, HARDLY_LIMITED = 0.1, 0.78  # the same where a smaller part of fragments is used
LITTLE = 1 / 8  # bytes that are read, for each that is written, where rows are swizzled or tf32
RESULTS = range(12 * 1024, 48 * 1024 + 1)  # bytes of these results
LITTLE_OF_FEW, LEAST_OF_FEW = 0.4, 9600  # the same of other rows, if sums have few terms; bytes of results
LEAST_UNEVEN = 15000  # bytes of such results that have an odd number of columns


@dataclass(frozen=True)
class Plan:
    """by: who multiplies a matrix: threads, a warp, or all warps of a block.

    stored: whether results go through shared memory
    rows: of a matrix, for each of all warps
    operands: where fragments are read from: runs as they came, by threads or the copying unit, or rows with
              zeros up to whole fragments, from runs or, element by element, from memory
    vector: elements that a thread brings at once; 0: as many as divide runs, or rows that are padded
    columns: of a matrix, for each of all warps; 0: all
    parts: of matrices, what each thread computes; None: whole rows
    split: into how many parts a row is divided that is reduced
    dealt: to how many threads the elements of a row are dealt that are computed by themselves
    """

    by: str
    count: int
    threads: int
    stored: bool = True
    rows: int = ROWS
    operands: str = RUNS
    vector: int = 0
    columns: int = 0
    parts: Parts | None = None
    split: int = 1
    dealt: int = 1


def plan_of(sizes: Sizes, part: int = 0, wide: int = 0) -> Plan:
    """Threads multiply tiny matrices, and those whose elements tensor cores do not take.

    part: of a matrix, the rows for each of all warps; 0: those of a fragment
    wide: the columns for each; 0: all
    """
    if not sizes.by_fragments:
        return by_threads(sizes)
    return by_warps(sizes) if _fits_warp(sizes) else by_blocks(sizes, part, wide)


# --- by the copying unit ----------------------------------------------------------------------------------


def suit_bulk(sizes: Sizes) -> bool:
    """Whether the copying unit is faster than threads: measured.

    It cannot pad rows, so rows as long as all banks start in the same bank, unless they are swizzled. A warp
    brings small matrices itself; of those that several warps multiply, a block has many, or large ones.
    """
    if not sizes.by_fragments or _writes_most(sizes):
        return False
    several = max(numbers_at_once(sizes)) == MOST_AT_ONCE
    odd = LEAST_OF_MANY if sizes.are_apart or at_once(sizes) > 1 else LEAST_ODD
    least = odd if sizes.is_odd else LEAST_BULK
    large = sizes.bytes_of_two >= (least if _fits_warp(sizes) else 0 if several else LEAST_OF_MANY)
    return large and not (are_crowded(sizes) and _read_again(sizes))


def suit_padded(sizes: Sizes) -> bool:
    """Whether fragments of both operands are faster from padded rows, in spite of the copy: measured.

    Of large matrices, each tile of rows reads the second operand again; of whole chunks, `ldmatrix` reads
    runs as they are. Of small ones, rows that all start in the same bank take longer than the copy does, even
    where the unit could swizzle them. Two blocks have to fit, even if padded rows of one operand lie behind
    all that is read.
    """
    if not sizes.by_fragments:
        return False
    large = min(sizes.rows, sizes.columns) >= LEAST_PADDED and not sizes.are_chunks and suit_bulk(sizes)
    small = _elements(sizes) <= MOST_CROWDED and sizes.bytes >= LEAST_BULK
    crowded = small and sizes.width == TRANSPOSED and are_crowded(sizes)
    return (large or crowded) and two_fit(sizes, max(sizes.padded))


def suit_second(sizes: Sizes) -> bool:
    """Whether fragments of the second operand are faster from padded rows, in spite of the copy: measured.

    All warps read it, but each only its part of the first operand, whose rows may start in different banks.
    Few terms of sums are multiplied sooner than they are copied. Two blocks have to fit.
    """
    runs = sizes.runs
    if runs is None or sizes.width != TRANSPOSED or sizes.are_chunks or runs.left.line % ALL_BANKS == 0:
        return False
    large = min(sizes.rows, sizes.columns) >= LEAST_SECOND and sizes.depth >= LEAST_TERMS
    crowded = runs.right.line % ALL_BANKS == 0 and sizes.rows > TALL[-1] and sizes.depth >= LEAST_CROWDED
    pairs = -(-runs.right.line // (PAIR * sizes.width))  # of elements of a row of the second operand
    even = evenly_divided(pairs, in_bulk_second(sizes).threads) <= MOST_LONGER * pairs
    fit = even and two_fit(sizes, sizes.padded[1])
    return sizes.by_fragments and (large or crowded) and fit and not _writes_most(sizes)


def two_fit(sizes: Sizes, padded: int = 0) -> bool:
    """Whether a multiprocessor has room for two blocks, with so many bytes of padded rows beside runs."""
    return sum(sizes.read) + sizes.common + padded + RESERVED <= ROOM // 2


def _writes_most(sizes: Sizes) -> bool:
    """Whether little is read for many results: threads then bring it to padded rows sooner (measured).

    They also store results, and lose where these are aligned to less than a word.
    """
    read, written = sum(sizes.read), sizes.written
    if sizes.pattern or sizes.width != TRANSPOSED:
        return read <= LITTLE * written and written in RESULTS
    even = sizes.columns % 2 == 0 or written >= LEAST_UNEVEN
    few = sizes.depth * len(sizes.read) <= OPERANDS * ROWS and read <= LITTLE_OF_FEW * written
    return few and even and written >= LEAST_OF_FEW and written % BANK == 0


def are_crowded(sizes: Sizes) -> bool:
    """Whether rows all start in the same bank, even if the unit may swizzle them."""
    return any(row % ALL_BANKS == 0 for row in sizes.row_bytes)


def _read_again(sizes: Sizes) -> bool:
    """Whether each tile of rows reads crowded rows again, as it does the second operand, and loses by that.

    Of whole chunks, one instruction would load eight rows from the same banks, unless they are swizzled; such
    rows lose only where results are no whole chunks. Of tf32, rows that threads pad take longer.
    """
    if len(sizes.row_bytes) != OPERANDS or sizes.runs is None:
        return not sizes.pattern
    if sizes.width != TRANSPOSED:
        return False
    if sizes.are_chunks and not sizes.pattern:
        return True
    if sizes.runs.right.line % ALL_BANKS or sizes.rows <= TALL[0]:
        return False
    if sizes.pattern and sizes.written // sizes.rows % CHUNK == 0:
        return False
    best = best_tile(sizes, (at_once(sizes),))
    most = CROWDED_CHUNKS if sizes.pattern else CROWDED
    return best is None or cost(sizes, best) > most * sizes.bytes / BYTES


def _fits_warp(sizes: Sizes) -> bool:
    """Whether one warp multiplies a matrix, of which a block has as many as are whole words."""
    fits = sizes.whole(ALIGNMENTS[-1]) * sizes.bytes <= 2 * TILE
    return fits and _elements(sizes) <= ONE_WARP


def _elements(sizes: Sizes) -> int:
    """Of a result, up to whole fragments."""
    return -(-sizes.rows // ROWS) * ROWS * -(-sizes.columns // COLUMNS) * COLUMNS


def in_bulk(sizes: Sizes, rows: int = 0, columns: int = 0) -> Plan:
    """A block for each matrix, or for several, a tile of so many rows and columns for each warp; 0: chosen.

    The tile is the usual one, unless another one costs less. Costs do not cover loads by `ldmatrix`.
    """
    tile = usual_tile(sizes, rows, columns)
    if not (rows or columns or sizes.pattern or sizes.are_chunks or sizes.runs is None):
        best = best_tile(sizes, numbers_at_once(sizes))
        if best is not None and cost(sizes, best) < WORTH * cycles(sizes, tile):
            tile = best
    return Plan(BLOCKS, tile.count, WARP * tile.warps(sizes), True, tile.rows, BULK, 0, tile.columns)


def usual_tile(sizes: Sizes, rows: int = 0, columns: int = 0) -> Tile:
    """A tile of so many rows and columns; 0: chosen (measured).

    It has all columns, and the number of rows that pads the matrix least. A matrix that would be one
    tile is halved, and so are tiles of swizzled rows. Two of the tallest tiles have half of the columns each,
    if nothing more is padded.
    """
    wide = -(-sizes.columns // COLUMNS) * COLUMNS
    half = -(-wide // (2 * COLUMNS)) * COLUMNS
    fit = [part for part in TALL if part * (half if sizes.pattern else wide) <= MOST_SUMS] or TALL[-1:]

    def padded(part: int) -> int:
        return -(-sizes.rows // part) * part

    best = min(fit, key=lambda part: (padded(part), -part))
    tallest = sizes.rows > TALLEST and padded(TALLEST) == padded(best) and 2 * half == wide > WIDE
    if tallest and not sizes.pattern:
        rows, columns = rows or TALLEST, columns or half
    rows = rows or best
    fits = ONE_WARP if sizes.is_odd or 2 * half == wide else 2 * ONE_WARP
    halved = sizes.pattern or (rows >= sizes.rows and rows * wide > fits)
    return Tile(rows, columns or (half if halved else wide), at_once(sizes))


def numbers_at_once(sizes: Sizes) -> range:
    """How many matrices a block may bring as one run; many blocks have to be left."""
    apart = any(sizes.adjacent) or sizes.pattern or sizes.bytes > LARGEST_OF_MANY
    return range(1, 2 if apart else min(MOST_AT_ONCE, max(1, sizes.batch // MANY_RUNS)) + 1)


def at_once(sizes: Sizes) -> int:
    """How many it usually brings: several small ones (measured)."""
    count = min(MOST_AT_ONCE, max(2, TILE // sizes.bytes))
    return count if sizes.bytes <= TILE and count in numbers_at_once(sizes) else 1


def in_bulk_padded(sizes: Sizes, rows: int = 0, columns: int = 0) -> Plan:
    """The same for padded rows, to which all threads copy runs: small tiles leave room for many warps."""
    wide = -(-sizes.columns // ROWS) * ROWS
    tall = rows or (ROWS if wide < LARGEST_SIDE else 2 * ROWS)
    columns = columns or (wide if tall == ROWS else wide // 2)
    return Plan(BLOCKS, 1, WARP * Tile(tall, columns).warps(sizes), True, tall, BULK_PADDED, 0, columns)


def in_bulk_second(sizes: Sizes, rows: int = 0, columns: int = 0) -> Plan:
    """The same where only the second operand is copied again, and the first is read from its run."""
    wide = -(-sizes.columns // COLUMNS) * COLUMNS
    rows, columns = rows or 2 * ROWS, columns or wide
    return Plan(BLOCKS, 1, WARP * Tile(rows, columns).warps(sizes), True, rows, BULK_SECOND, 0, columns)


# --- by threads: a part or a row each ---------------------------------------------------------------------


def by_threads(sizes: Sizes, part: tuple[int, int] = (0, 0), count: int = 0, in_bulk: bool = False) -> Plan:
    """A part of a result for each thread, where that is faster or given; else a row.

    part, count: the rows and columns of a thread, and the matrices of a block; 0: chosen
    in_bulk:     whether the copying unit brings matrices, and not threads
    """
    if sizes.by_rows is not None or (not any(part) and not sizes.suit_parts):
        return in_rows(sizes, in_bulk)
    split = best_split(sizes, part, count, 0 if in_bulk else padding(sizes))
    if split is None:
        return in_rows(sizes, in_bulk)
    return Plan(THREADS, split.count, split.threads(sizes), split.stored, parts=split.parts)


def padding(sizes: Sizes) -> int:
    """Elements that threads pad rows by, too many of which would start in the same bank."""
    return PADDING if sizes.longer[0] else 0


def suit_padded_parts(sizes: Sizes) -> bool:
    """Whether threads that pad rows are faster than the copying unit, which cannot."""
    longer = padding(sizes)
    if not longer:
        return False
    padded, as_they_are = (best_split(sizes, padding=more) for more in (longer, 0))
    if padded is None or as_they_are is None:
        return False
    return cycles_of_parts(sizes, padded) < cycles_of_parts(sizes, as_they_are)


def small_split(sizes: Sizes) -> Split | None:
    """Parts of small matrices of 16-bit numbers, where memory limits them: fragments would be mostly zeros.

    None where fragments, or whole rows, are faster. Results leave as runs: stores of few bytes take long.
    """
    if sizes.runs is None or sizes.width != TRANSPOSED or prod(sizes.product) not in SMALL_PRODUCTS:
        return None
    if _writes_most(sizes):
        return None
    padded = (-(-size // part) * part for size, part in zip(sizes.product, FRAGMENTS["f16"], strict=True))
    used, alone = prod(sizes.product) / prod(padded), len(sizes.read) < OPERANDS
    split = best_split(sizes, stored=True)
    if split is None:
        return None
    few = sizes.is_odd and sizes.bytes <= LEAST_OF_MANY and split.count >= FEW_ODD
    if used > (LITTLE_USED_OF_ONE if alone else LITTLE_USED) and not few:
        return None
    least = HARDLY_LIMITED if used <= HARDLY_USED else LIMITED
    limited = sizes.bytes_of_two / BYTES >= least * cycles_of_parts(sizes, split)
    if few and limited:
        return replace(split, count=FEW_ODD)
    warps = LEAST_WARPS_OF_ONE if alone else LEAST_WARPS
    return split if limited and split.threads(sizes) >= warps * WARP else None


def in_rows(sizes: Sizes, run: bool = False) -> Plan:
    """A row for each thread, or a part of a row.

    As few threads as possible have no row in the last turn, and IN_FLIGHT bytes are under way.
    run: whether a run of matrices need not be aligned, since the copying unit brings it
    """
    known, each = sizes.by_rows, sizes.bytes // sizes.rows
    split, dealt = (known.split(each), known.dealt(each)) if known is not None else (1, 1)
    rows = sizes.rows * max(split, dealt)

    def cost(pair: tuple[int, int]) -> float:
        return round(idle(rows, *pair) * max(1, IN_FLIGHT / loading(sizes, *pair)), 2)

    counts = sizes.counts(TILE) if known is None or not run else range(*_counts(sizes, rows))
    pairs = [(count, threads) for count in counts for threads in _threads(count * rows, count * sizes.bytes)]
    return Plan(THREADS, *min(pairs, key=cost), split=split, dealt=dealt)


def _counts(sizes: Sizes, rows: int) -> tuple[int, int]:
    """How many a block may have in a run that need not be aligned: enough for a warp, if they fit.

    rows: of each, or parts of rows
    """
    each = sizes.bytes_in_block
    most = max(1, TILE // each, min(LARGEST // each, -(-2 * WARP // rows)))
    most = min(most, sizes.batch)
    return min(most, max(1, TILE // each // 2)), most + 1


def idle(rows: int, count: int, threads: int) -> float:
    """Turns of all threads over those that so many rows of each of the arrays need."""
    rows *= count
    return -(-rows // threads) * threads / rows


def loading(sizes: Sizes, count: int, threads: int) -> int:
    """The bytes that the blocks of a multiprocessor load."""
    blocks = min(ROOM // (count * sizes.bytes + RESERVED), RESIDENT // threads)
    return max(1, blocks) * count * sum(sizes.read)


def _threads(rows: int, bytes_: int) -> range:
    """How many threads may compute so many rows, or parts of them, of so many bytes."""
    whole = -(-rows // WARP) * WARP
    least = max(LEAST, min(2 * MOST, -(-bytes_ // (EACH_OF_ROW * WARP)) * WARP))
    return range(min(least, whole), min(max(MOST, least), whole) + 1, WARP)


# --- by tensor cores --------------------------------------------------------------------------------------


def by_warps(sizes: Sizes) -> Plan:
    """About TILE bytes of matrices, and a number of warps that divides them; more if a warp brings each."""
    best, *others = (8, 6, 4, 5, 3, 2, 1) if sizes.are_apart else (4, 5, 3, 2, 1)
    counts = sizes.counts(TILE)
    pairs = [(count, warps) for count in counts for warps in (best, *others) if count % warps == 0]
    count, warps = max(pairs, key=lambda pair: (min(pair[1], best), pair[0]))
    return Plan(WARPS, count, WARP * warps)


def by_blocks(sizes: Sizes, part: int, wide: int) -> Plan:
    """As few matrices as are whole vectors, which take the room of several blocks of a multiprocessor."""
    if sizes.rows >= _elements_from(sizes) or _writes_most(sizes):
        return by_elements(sizes, part, wide)
    counts = [sizes.whole(alignment) for alignment in ALIGNMENTS]
    limits = [(2 * TILE, True), (LARGEST, True), (ROOM // 3, True), (ROOM // 2, True), (ROOM, False)]
    choices = [
        (count, stored)
        for limit, stored in limits
        for count in counts
        if sizes.shared(count, stored) + RESERVED <= limit
    ]
    count, stored = choices[0] if choices else (1, False)
    part = part or ROWS
    threads = WARP * Tile(part, wide or sizes.columns).warps(sizes)
    return Plan(BLOCKS, min(count, sizes.batch), threads, stored, part, columns=wide)


def _elements_from(sizes: Sizes) -> int:
    """How many rows matrices have at least that threads bring to padded rows: measured.

    Where fragments are whole there is nothing to pad.
    """
    if sizes.is_odd:
        return ODD_FROM
    if all(size % ROWS == 0 for size in (sizes.rows, sizes.depth)) and sizes.columns % COLUMNS == 0:
        return LARGEST_SIDE + 1
    return NARROW_FROM if 0 < sizes.depth % ROWS <= ROWS // 4 else PARTIAL_FROM


def by_elements(sizes: Sizes, part: int, wide: int) -> Plan:
    """One matrix, in padded rows. Results leave as one run if there is room: measured."""
    part = part or (2 * ROWS if sizes.rows > 3 * ROWS or _writes_most(sizes) else ROWS)
    stored = max(sum(sizes.padded), sizes.written) + RESERVED <= ROOM
    alone = sizes.is_odd and part > ROWS
    return Plan(
        BLOCKS,
        1,
        WARP * Tile(part, wide or sizes.columns).warps(sizes),
        stored,
        part,
        ELEMENTS,
        int(alone),
        wide,
    )
