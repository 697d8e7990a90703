"""What is known of one matrix of a batch before a block takes any: its bytes, its rows, and its product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, lcm, prod

from rewrites.result import Success
from rise.expr import Expr, Lambda, Primitive, call, subterms
from rise.types import SCALARS, TF32, Scalar, shape
from strategies.abstraction import outermost_parts
from strategies.batches.adjacent import adjacent
from strategies.batches.banks import Matrices, Run
from strategies.batches.fragments import FRAGMENTS, ROWS, in_runs
from strategies.batches.rows import Rows
from strategies.batches.runs import (
    PADDING,
    added_by_padding,
    arrays_of,
    matrices_read,
    row_bytes,
    stored_part,
    width_of,
)
from strategies.core import seq, try_
from strategies.evaluation import bytes_of
from strategies.matmul.products import Product, is_product, outline_matrix, separate_prologue
from strategies.memory_bound.blocks import MATRIX, WARP, WIDEST, reduced_length
from strategies.nests import SHORT

ROOM, RESERVED = 227 * 1024, 1024  # bytes of a multiprocessor, and of each of its blocks besides its own
INSTRUCTIONS = 340  # multiplications of a product, from which on tensor cores take fewer instructions
WIDEST_ROW = 128  # sums that a thread has in its registers at most
OPERANDS = 2  # of a product
CHUNK = 16  # bytes
PATTERNS, SWIZZLED_ROWS = (128, 64), 8  # bytes of a row within which chunks are swizzled; rows of a pattern
MOST_PANELS = 3  # of a row: more boxes take longer than bank conflicts (measured)
LARGEST_SIDE = 128  # rows, columns and depth of a product, up to which no tiles of it are faster
LONGEST_SIDE = 1024  # the same, up to which a block takes all of a product at all
LEAST_IN_PARTS = 2000  # multiplications of a product, from which on threads compute parts of it (measured)
LEAST_TERMS_IN_PARTS = 8  # terms of its sums, from which on they do so (measured)
MANY = 1 << 20  # matrices of a batch, where their number is known at launch only
ALIGNMENTS = (WIDEST, 8, 4)  # bytes: of the runs of a block, the best first


def multiplied_type(product: Expr) -> str:
    """The type of the numbers that a product multiplies, when what is done with operands is done before it.

    tf32 where it rounds those of 32 bits to it; where more is done than a conversion, that of the products.
    """
    apart = seq(try_(outline_matrix), try_(separate_prologue))(product)
    term = apart.term if isinstance(apart, Success) else product
    found = Product.of(next(iter(outermost_parts(term, is_product)), product))
    if any(part.type == TF32 for part in subterms(found.products)):
        return "tf32"
    return str(shape((found.rows if _are_converted(found.products) else found.products).type)[1])


def _are_converted(products: Expr) -> bool:
    """Whether products are of numbers as they are in operands, but for their types."""
    match call(products):
        case "map", _, [Lambda(_, body), _]:
            used = {part.declaration.name for part in subterms(body) if isinstance(part, Primitive)}
            return used <= {"mul", "cast", "fst", "snd"}
        case _:
            return False


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
    adjacent: of each array, what divides the places where adjacent elements begin; 0 if matrices are adjacent
    runs: where the elements of the only product's matrices are, as they are in memory
    common: the bytes of matrices that all elements of the batch read, and each block copies
    by_rows: what is known of its rows, if nothing is multiplied
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
    adjacent: tuple[int, ...] = ()
    runs: Matrices | None = None
    common: int = 0
    by_rows: Rows | None = None

    @classmethod
    def of(cls, term: Expr) -> Sizes | None:
        """Of a map over arrays of known sizes; None for other programs."""
        sizes, element = shape(term.type)
        applied = call(term)
        if applied is None or applied[0] != "map":
            return None
        function, xs = applied[2]
        if not isinstance(function, Lambda):
            return None
        known = [size.value for size in sizes]
        runs = arrays_of(xs.type)
        arrays = any(len(shape(run)[0]) > 1 for run in runs)
        if not known or None in known[1:] or not arrays or (width := bytes_of(element)) is None:
            return None
        if not all(isinstance(shape(run)[1], Scalar) for run in runs):
            return None
        batch, rows, *rest = (known[0] or MANY, *(size or 1 for size in known[1:]), 1)
        parts = list(outermost_parts(function, is_product))
        found = [Product.of(part) for part in parts]
        depths = [product.length.value or 1 for product in found]
        read = [prod(n.value or 1 for n in shape(run)[0][1:]) * width_of(run) for run in runs]
        operand = multiplied_type(parts[0]) if parts else ""
        reductions = [length.value or 1 for part in subterms(function) if (length := reduced_length(part))]
        written = rows * prod(rest) * width
        by_rows = None if parts else Rows.of(function.body, runs, term.type)
        rows = by_rows.count if by_rows is not None else rows
        sides, terms = (rows, prod(rest), max(depths, default=1)), FRAGMENTS.get(operand, (0, 0, 0))[-1]
        return cls(
            batch,
            tuple(read),
            written,
            *sides,
            operand,
            any(len(shape(run)[0]) > MATRIX for run in runs),
            (added_by_padding(runs), added_by_padding([term.type], stored_part(term.type))),
            tuple(map(row_bytes, runs)),
            max(reductions, default=1),
            adjacent(xs),
            in_runs(found[0], term.type, sides, terms) if len(found) == 1 else None,
            sum(bytes_of(matrix.type) or 0 for matrix in matrices_read(function)),
            by_rows,
        )

    @property
    def bytes(self) -> int:
        return sum(self.read) + self.written

    @property
    def bytes_of_two(self) -> int:
        """The same where a product reads two matrices: one that is multiplied by itself counts twice."""
        alone = len(self.read) == 1 and self.operand and not self.common
        return self.bytes + (sum(self.read) if alone else 0)

    def joined(self, count: int) -> Sizes:
        """Of so many matrices as one, whose rows are those of all.

        Rows that are adjacent in each matrix are taken to be apart.
        """
        runs = self.runs
        if runs is not None:
            runs = replace(runs, left=Run.of(count * self.rows, self.depth, self.width))
        return replace(
            self, batch=-(-self.batch // count), read=tuple(count * each for each in self.read),
            written=count * self.written, rows=count * self.rows, runs=runs, adjacent=(),
        )  # fmt: skip

    @property
    def width(self) -> int:
        """The bytes of a number that the product multiplies."""
        return SCALARS[self.operand].bytes

    @property
    def width_of_result(self) -> int:
        """The bytes of an element of the result."""
        return self.written // (self.rows * self.columns)

    @property
    def product(self) -> tuple[int, int, int]:
        return self.rows, self.columns, self.depth

    @property
    def are_small(self) -> bool:
        """Whether a block can take one of them as a whole; of arrays that are not multiplied, if two can."""
        taken = sum(self.read) + self.common + RESERVED
        if self.by_rows is not None:
            rows = self.by_rows
            two = 2 * (taken + rows.between + self.written * rows.results) <= ROOM
            return (rows.in_matrices or self.reduced > 1) and self.reduced <= SHORT and two
        wide = self.operand in FRAGMENTS or self.columns <= WIDEST_ROW or self.suit_parts
        return self.matrices and wide and self.longest_side <= LONGEST_SIDE and taken <= ROOM

    @property
    def longest_side(self) -> int:
        """Of a product, or how many elements a reduction has, if there are more."""
        return max(*self.product, self.reduced)

    @property
    def is_large(self) -> bool:
        """Whether a product has a side of more than LARGEST_SIDE elements."""
        return self.by_rows is None and self.longest_side > LARGEST_SIDE

    @property
    def suit_parts(self) -> bool:
        """Whether threads are faster with parts of several rows each, or rows are too long for one."""
        long = self.depth >= LEAST_TERMS_IN_PARTS or self.columns > WIDEST_ROW
        large = prod(self.product) >= LEAST_IN_PARTS and long
        return self.runs is not None and self.operand not in FRAGMENTS and large

    @property
    def by_fragments(self) -> bool:
        """Whether tensor cores multiply them: threads are faster at tiny ones."""
        return self.operand in FRAGMENTS and prod(self.product) >= INSTRUCTIONS

    # --- rows

    @property
    def are_chunks(self) -> bool:
        """Whether rows are multiples of 16 bytes."""
        return all(row % CHUNK == 0 for row in self.row_bytes)

    @property
    def copied_at_once(self) -> int:
        """The bytes of which all rows are multiples, at most 8: other rows are whole chunks."""
        return gcd(CHUNK // 2, *self.row_bytes)

    @property
    def is_odd(self) -> bool:
        """Whether no asynchronous copy divides a matrix."""
        return any(size % ALIGNMENTS[-1] for size in self.read)

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

    # --- shared memory

    @property
    def padded(self) -> tuple[int, int]:
        """The bytes of both operands in padded rows, with zeros up to whole fragments."""
        m, n, k = (-(-size // ROWS) * ROWS for size in self.product)
        return m * (k + PADDING) * self.width, k * (n + PADDING) * self.width

    def shared(self, count: int, stored: bool) -> int:
        """The bytes of shared memory of a block that takes so many, and stores their results there or not.

        Results of one matrix are where its operands were, if nothing else is read beside these.
        """
        read, written = (sum(self.read) + self.longer[0], stored * (self.written + self.longer[1]))
        again = count == 1 and len(self.read) <= OPERANDS
        return self.common + (max(read, written) if again else count * (read + written))

    # --- runs

    @property
    def vectors(self) -> tuple[int, ...]:
        """How many elements of each array a thread moves at once, at most; 0: as many as divide a run."""
        return tuple(gcd(each, WIDEST) if each else 0 for each in self.adjacent)

    @property
    def are_apart(self) -> bool:
        """Whether some matrices are not adjacent, and threads move their elements one by one: a warp each."""
        return 1 in self.vectors and min(self.read) >= WARP * SCALARS[self.operand or "f16"].bytes

    def whole(self, alignment: int) -> int:
        """How many matrices are runs of such multiples, all of them."""
        return lcm(*(alignment // gcd(alignment, part) for part in (*self.read, self.written)))

    @property
    def bytes_in_block(self) -> int:
        """What a block keeps of each."""
        return self.bytes + (self.by_rows.between if self.by_rows is not None else 0)

    def counts(self, most: int) -> list[int]:
        """How many matrices are at most so many bytes, and at least half of that; the most first."""
        each = self.bytes_in_block
        wholes = [self.whole(alignment) for alignment in ALIGNMENTS]
        whole = next((n for n in wholes if n * each <= 2 * most), wholes[-1])
        times = min(max(1, most // (whole * each)), -(-self.batch // whole))
        return list(reversed(range(whole * -(-times // 2), whole * times + 1, whole)))
