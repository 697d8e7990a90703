"""What a block takes of a batch: how many matrices, with how many threads, and who multiplies them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm, prod

from rise.expr import Expr, Lambda, call, subterms
from rise.types import SCALARS, TF32, Scalar, shape
from strategies.abstraction import outermost_parts
from strategies.batches.fragments import COLUMNS, FRAGMENTS, ROWS
from strategies.batches.runs import PADDING, added_by_padding, arrays_of, row_bytes, stored_part, width_of
from strategies.matmul.products import Product, is_product
from strategies.memory_bound.blocks import WARP, WIDEST, reduced_length

THREADS, WARPS, BLOCKS = "threads", "warps", "blocks"
SHARED, DIRECT = "shared", "direct"
RUNS, PADDED, ELEMENTS = "runs", "padded", "elements"
BULK, BULK_PADDED = "bulk", "bulk_padded"
TILE = 16 * 1024  # bytes of shared memory of a block: several blocks then have enough loads under way
LARGEST = 48 * 1024  # of a block that also keeps its results there
ROOM, RESERVED = 227 * 1024, 1024  # bytes of a multiprocessor, and of each of its blocks besides its own
RESIDENT = 2048  # threads of a multiprocessor
IN_FLIGHT = 64 * 1024  # bytes that hide the latency of memory, twice: not all blocks are loading
LEAST, MOST = 128, 256  # threads of a block
INSTRUCTIONS = 500  # multiplications of a product, from which on tensor cores take fewer instructions
ONE_WARP = 32 * 32  # elements of a matrix that one warp computes at most
WIDEST_ROW = 128  # sums that a thread has in its registers at most
UNROLLED = 32 * 32  # multiplications of a row, whose loops are all unrolled
ODD_FROM = 33  # rows, from which on threads bring matrices of odd sizes to padded rows
PARTIAL_FROM = 73  # rows, from which on they bring others there that are no whole fragments
NARROW_FROM = 49  # the same where of the last fragment of a sum at most a quarter is not zeros
OPERANDS = 2  # of a product
TALL = (3 * ROWS, 2 * ROWS)  # rows of a matrix in a run that a warp computes
CHUNK = 16  # bytes
PATTERNS, SWIZZLED_ROWS = (128, 64), 8  # bytes of a row within which chunks are swizzled; rows of a pattern
MOST_PANELS = 3  # of a row: more boxes take longer than bank conflicts (measured)
ALL_BANKS = 128  # bytes of shared memory, after which the next are in the same banks
MOST_SUMS = 64 * 64  # elements of a matrix that are in the registers of a warp
LARGEST_SIDE = 128  # rows, columns and depth of a product: with larger ones a block has enough to do
MANY = 1 << 20  # matrices of a batch, where their number is known at launch only
LEAST_ODD, LEAST_BULK = 4 * 1024, 6 * 1024  # bytes of a product that the copying unit brings and takes
LEAST_PADDED = {4: 105, 2: 113}  # rows and columns, by the bytes of results
ALIGNMENTS = (WIDEST, 8, 4)  # bytes: of the runs of a block, the best first


def multiplied_type(product: Product) -> str:
    """The type of the numbers that a product multiplies: tf32 where it rounds those of 32 bits to it."""
    rounds = any(part.type == TF32 for part in subterms(product.products))
    return "tf32" if rounds else str(shape(product.rows.type)[1])


@dataclass(frozen=True)
class Plan:
    """by: who multiplies a matrix: threads, a warp, or all warps of a block.

    stored: whether results go through shared memory
    rows: of a matrix, for each of all warps
    operands: where fragments are read from: runs as they came, by threads or the copying unit, or rows with
              zeros up to whole fragments, from runs or, element by element, from memory
    vector: elements that a thread brings at once; 0: as many as divide runs, or rows that are padded
    columns: of a matrix, for each of all warps; 0: all
    """

    by: str
    count: int
    threads: int
    stored: bool = True
    rows: int = ROWS
    operands: str = RUNS
    vector: int = 0
    columns: int = 0


@dataclass(frozen=True)
class Sizes:
    """What one element of a batch reads and writes, in bytes, an array each; and its product.

    batch: how many elements there are; MANY where that is known at launch only
    rows, columns, depth: of the product
    operand: the type of the numbers that it multiplies
    matrices: whether an element of the batch has a matrix, and not only rows
    longer: the bytes that padded rows add in shared memory: of what is read, of what is written
    row_bytes: of the matrices that are read
    reduced: how many elements the longest reduction has
    """

    batch: int
    read: tuple[int, ...]
    written: int
    rows: int
    columns: int
    depth: int
    operand: str
    matrices: bool = True
    longer: tuple[int, int] = (0, 0)
    row_bytes: tuple[int, ...] = ()
    reduced: int = 1

    @classmethod
    def of(cls, term: Expr) -> Sizes | None:
        """Of a map over arrays of known sizes; None for other programs."""
        sizes, element = shape(term.type)
        applied = call(term)
        if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
            return None
        function, xs = applied[2]
        known = [size.value for size in sizes]
        known[:1] = [MANY] if known[:1] == [None] else known[:1]
        runs = arrays_of(xs.type)
        if len(known) < 2 or None in known or not runs or not isinstance(element, Scalar):
            return None
        if not all(isinstance(shape(run)[1], Scalar) for run in runs):
            return None
        batch, rows, *rest = (size or 1 for size in known)
        found = [Product.of(part) for part in outermost_parts(function, is_product)]
        depths = [product.length.value or 1 for product in found]
        read = [prod(n.value or 1 for n in shape(run)[0][1:]) * width_of(run) for run in runs]
        operand = multiplied_type(found[0]) if found else ""
        reductions = [length.value or 1 for part in subterms(function) if (length := reduced_length(part))]
        return cls(
            batch,
            tuple(read),
            rows * prod(rest) * element.bytes,
            rows,
            prod(rest),
            max(depths, default=1),
            operand,
            any(len(shape(run)[0]) > 2 for run in runs),
            (added_by_padding(runs), added_by_padding([term.type], stored_part(term.type))),
            tuple(map(row_bytes, runs)),
            max(reductions, default=1),
        )

    @property
    def bytes(self) -> int:
        return sum(self.read) + self.written

    @property
    def product(self) -> tuple[int, int, int]:
        return self.rows, self.columns, self.depth

    @property
    def are_small(self) -> bool:
        """Whether a block can take one of them as a whole."""
        wide = self.operand in FRAGMENTS or self.columns <= WIDEST_ROW
        fits = max(*self.product, self.reduced) <= LARGEST_SIDE and sum(self.read) + RESERVED <= ROOM
        return self.matrices and wide and fits

    @property
    def are_chunks(self) -> bool:
        """Whether rows are multiples of 16 bytes."""
        return all(row % CHUNK == 0 for row in self.row_bytes)

    @property
    def copied_at_once(self) -> int:
        """The bytes of which all rows are multiples, at most 8: other rows are whole chunks."""
        return gcd(CHUNK // 2, *self.row_bytes)

    def plan(self, part: int = 0, wide: int = 0) -> Plan:
        """Threads multiply tiny matrices, and those whose elements tensor cores do not take.

        part: of a matrix, the rows for each of all warps; 0: those of a fragment
        wide: the columns for each; 0: all
        """
        if self.operand not in FRAGMENTS or prod(self.product) < INSTRUCTIONS:
            return self._by_threads()
        rows, columns = -(-self.rows // ROWS) * ROWS, -(-self.columns // COLUMNS) * COLUMNS
        fits = self._whole(ALIGNMENTS[-1]) * self.bytes <= 2 * TILE
        return self._by_warps() if rows * columns <= ONE_WARP and fits else self._by_blocks(part, wide)

    # --- by the copying unit

    @property
    def suit_bulk(self) -> bool:
        """Whether the copying unit is faster than threads: measured.

        It cannot pad rows, so rows as long as all banks start in the same bank, unless they are swizzled.
        """
        fragments = self.operand in FRAGMENTS and prod(self.product) >= INSTRUCTIONS
        large = self.bytes >= (LEAST_ODD if self._is_odd else LEAST_BULK)
        return fragments and large and not (self._crowded and self._read_again)

    @property
    def suit_padded(self) -> bool:
        """Whether fragments are faster from padded rows, in spite of the copy: measured.

        Each tile of rows reads the second operand again. Of whole chunks, `ldmatrix` reads runs as they are.
        Two blocks have to fit, even if one operand's padded rows lie behind all that is read.
        """
        width = self.written // (self.rows * self.columns)
        large = min(self.rows, self.columns) >= LEAST_PADDED.get(width, LARGEST_SIDE)
        room = sum(self.read) + max(self._padded) + RESERVED <= ROOM // 2
        return large and room and not self.are_chunks

    @property
    def _crowded(self) -> set[int]:
        """The bytes of rows that all start in the same bank."""
        return set() if self.pattern else {row for row in self.row_bytes if row % ALL_BANKS == 0}

    @property
    def _read_again(self) -> bool:
        """Whether each tile of rows reads the crowded operand again, as it does the second operand.

        Of whole chunks, one instruction would load eight rows from the same banks.
        """
        if len(self.row_bytes) != OPERANDS or self.are_chunks:
            return True
        width = SCALARS[self.operand].bytes
        first = self._crowded == {self.depth * width} and self.columns * width in self.row_bytes
        return not first and self.rows > TALL[0]

    @property
    def pattern(self) -> int:
        """The bytes of a row that the copying unit swizzles, in panels if rows are longer; else 0.

        Each panel starts where the pattern starts again.
        """
        if len(self.row_bytes) != OPERANDS:
            return 0
        numbers = [size // row for size, row in zip(self.read, self.row_bytes, strict=True)]
        panels = all(number % SWIZZLED_ROWS == 0 for number in numbers)
        rows = set(self.row_bytes)

        def is_one(pattern: int) -> bool:
            some = panels and max(rows) <= MOST_PANELS * pattern
            return rows == {pattern} or (some and all(row % pattern == 0 for row in rows))

        return next((pattern for pattern in PATTERNS if is_one(pattern)), 0)

    def in_bulk(self, rows: int = 0, columns: int = 0) -> Plan:
        """One matrix for each block, a tile of so many rows and columns for each warp; 0: chosen (measured).

        A tile has all columns, and the number of rows that pads the matrix least. A matrix that would be one
        tile is halved, and so are tiles of swizzled rows.
        """
        wide = -(-self.columns // COLUMNS) * COLUMNS
        half = -(-wide // (2 * COLUMNS)) * COLUMNS
        fit = [part for part in TALL if part * (half if self.pattern else wide) <= MOST_SUMS] or TALL[-1:]
        rows = rows or min(fit, key=lambda part: (-(-self.rows // part) * part, -part))
        halved = self.pattern or (rows >= self.rows and rows * wide > ONE_WARP)
        columns = columns or (half if halved else wide)
        return Plan(BLOCKS, 1, WARP * self._parts(rows, columns), True, rows, BULK, 0, columns)

    def in_bulk_padded(self, rows: int = 0, columns: int = 0) -> Plan:
        """The same for padded rows, to which all threads copy runs: small tiles leave room for many warps."""
        wide = -(-self.columns // ROWS) * ROWS
        tall = rows or (ROWS if wide < LARGEST_SIDE else 2 * ROWS)
        rows, columns = tall, columns or (wide if tall == ROWS else wide // 2)
        return Plan(BLOCKS, 1, WARP * self._parts(rows, columns), True, rows, BULK_PADDED, 0, columns)

    # --- by threads: a row each

    def _by_threads(self) -> Plan:
        """As few threads as possible have no row in the last turn, and IN_FLIGHT bytes are under way."""
        pairs = [(count, threads) for count in self._counts(TILE) for threads in self._threads(count)]

        def cost(pair: tuple[int, int]) -> float:
            return round(self.idle(*pair) * max(1, IN_FLIGHT / self.loading(*pair)), 2)

        return Plan(THREADS, *min(pairs, key=cost))

    def idle(self, count: int, threads: int) -> float:
        """Turns of all threads over those that the rows need."""
        rows = count * self.rows
        return -(-rows // threads) * threads / rows

    def loading(self, count: int, threads: int) -> int:
        """The bytes that the blocks of a multiprocessor load."""
        blocks = min(ROOM // (count * self.bytes + RESERVED), RESIDENT // threads)
        return max(1, blocks) * count * sum(self.read)

    def _threads(self, count: int) -> range:
        rows = -(-count * self.rows // WARP) * WARP
        return range(min(LEAST, rows), min(MOST, rows) + 1, WARP)

    # --- by tensor cores

    def _by_warps(self) -> Plan:
        """About TILE bytes of matrices, and a number of warps that divides them."""
        pairs = (
            (count, warps) for count in self._counts(TILE) for warps in (4, 5, 3, 2, 1) if count % warps == 0
        )
        count, warps = max(pairs, key=lambda pair: (min(pair[1], 4), pair[0]))
        return Plan(WARPS, count, WARP * warps)

    def _by_blocks(self, part: int, wide: int) -> Plan:
        """As few matrices as are whole vectors, which take the room of several blocks of a multiprocessor."""
        if self.rows >= self._elements_from:
            return self._by_elements(part, wide)
        counts = [self._whole(alignment) for alignment in ALIGNMENTS]
        limits = [
            (2 * TILE, True),
            (LARGEST, True),
            (ROOM // 3, True),
            (ROOM // 2, True),
            (ROOM, False),
        ]
        choices = [
            (count, stored)
            for limit, stored in limits
            for count in counts
            if self._shared(count, stored) + RESERVED <= limit
        ]
        count, stored = choices[0] if choices else (1, False)
        part = part or ROWS
        threads = WARP * self._parts(part, wide)
        return Plan(BLOCKS, min(count, self.batch), threads, stored, part, columns=wide)

    def _parts(self, rows: int, columns: int) -> int:
        """How many tiles of so many rows and columns a matrix has; columns: 0 for all"""
        return -(-self.rows // rows) * (-(-self.columns // columns) if columns else 1)

    @property
    def _is_odd(self) -> bool:
        """Whether no asynchronous copy divides a matrix."""
        return any(size % ALIGNMENTS[-1] for size in self.read)

    @property
    def _elements_from(self) -> int:
        """How many rows matrices have at least that threads bring to padded rows: measured.

        Where fragments are whole there is nothing to pad.
        """
        if self._is_odd:
            return ODD_FROM
        if all(size % ROWS == 0 for size in (self.rows, self.depth)) and self.columns % COLUMNS == 0:
            return LARGEST_SIDE + 1
        return NARROW_FROM if 0 < self.depth % ROWS <= ROWS // 4 else PARTIAL_FROM

    def _by_elements(self, part: int, wide: int) -> Plan:
        """One matrix, in padded rows. Results leave as one run if there is room: measured."""
        part = part or (2 * ROWS if self.rows > 3 * ROWS else ROWS)
        stored = max(sum(self._padded), self.written) + RESERVED <= ROOM
        alone = self._is_odd and part > ROWS
        return Plan(BLOCKS, 1, WARP * self._parts(part, wide), stored, part, ELEMENTS, int(alone), wide)

    @property
    def _padded(self) -> tuple[int, int]:
        """The bytes of both operands in padded rows, with zeros up to whole fragments."""
        m, n, k = (-(-size // ROWS) * ROWS for size in self.product)
        width = SCALARS[self.operand].bytes
        return m * (k + PADDING) * width, k * (n + PADDING) * width

    def _shared(self, count: int, stored: bool) -> int:
        """The bytes of shared memory of a block.

        Results of one matrix are where its operands were, if nothing else is read beside these.
        """
        read, written = (sum(self.read) + self.longer[0], stored * (self.written + self.longer[1]))
        again = count == 1 and len(self.read) <= OPERANDS
        return max(read, written) if again else count * (read + written)

    # --- runs

    def _whole(self, alignment: int) -> int:
        """How many matrices are runs of such multiples, all of them."""
        return lcm(*(alignment // gcd(alignment, part) for part in (*self.read, self.written)))

    def _counts(self, most: int) -> list[int]:
        """How many matrices are at most so many bytes, and at least half of that; the most first."""
        wholes = [self._whole(alignment) for alignment in ALIGNMENTS]
        whole = next((n for n in wholes if n * self.bytes <= 2 * most), wholes[-1])
        times = min(max(1, most // (whole * self.bytes)), -(-self.batch // whole))
        return list(reversed(range(whole * -(-times // 2), whole * times + 1, whole)))
