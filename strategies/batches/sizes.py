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
from strategies.batches.runs import (
    PADDING,
    added_by_padding,
    are_read_at_once,
    arrays_of,
    matrices_read,
    row_bytes,
    stored_part,
    width_of,
)
from strategies.batches.stages import bytes_between, most_rows
from strategies.batches.threads import one_map
from strategies.core import seq, try_
from strategies.evaluation import bytes_of
from strategies.matmul.products import Product, is_product, outline_matrix, separate_prologue
from strategies.memory_bound.blocks import WARP, WIDEST, reduced_length

ROOM, RESERVED = 227 * 1024, 1024  # bytes of a multiprocessor, and of each of its blocks besides its own
INSTRUCTIONS = 340  # multiplications of a product, from which on tensor cores take fewer instructions
WIDEST_ROW = 128  # sums that a thread has in its registers at most
OPERANDS = 2  # of a product
CHUNK = 16  # bytes
PATTERNS, SWIZZLED_ROWS = (128, 64), 8  # bytes of a row within which chunks are swizzled; rows of a pattern
MOST_PANELS = 3  # of a row: more boxes take longer than bank conflicts (measured)
MATRIX = 2  # dimensions
# functions that take more instructions than it takes to read a number
COSTLY = frozenset({"exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "pow", "sqrt", "rsqrt", "div"})
LARGEST_SIDE = 128  # rows, columns and depth of a product: with larger ones a block has enough to do
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


def _in_one_map(function: Expr) -> Expr:
    """All that is done with the rows of an element as one map over them."""
    fused = one_map(function)
    return fused.term if isinstance(fused, Success) else function


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
    between: the bytes of what takes loops and is read as a whole by others, which a block keeps, too
    at_once: whether threads that each have a row use the same few banks, unless rows are padded
    length: the elements of a row of the result
    has_rows: whether an element of the batch, or of the result, is a matrix, and not only a row
    gives_rows: whether rows are computed of rows that are reduced, or of each of their elements
    costly: whether functions are computed that take many instructions
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
    between: int = 0
    at_once: bool = False
    length: int = 1
    has_rows: bool = True
    gives_rows: bool = False
    costly: bool = False

    @classmethod
    def of(cls, term: Expr) -> Sizes | None:
        """Of a map over arrays of known sizes; None for other programs."""
        sizes, element = shape(term.type)
        applied = call(term)
        if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
            return None
        function, xs = applied[2]
        known = [size.value for size in sizes]
        runs = arrays_of(xs.type)
        if not known or None in known[1:] or not runs or not isinstance(element, Scalar):
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
        written = rows * prod(rest) * element.bytes
        done = function.body if parts else _in_one_map(function.body)
        matrices = any(len(shape(run)[0]) > 2 for run in runs)
        has_rows = matrices or len(known) > MATRIX
        gives_rows = not parts and len(known) > (MATRIX if has_rows else 1)
        if not parts:
            rows = most_rows(done) if has_rows else 1
        sides, terms = (rows, prod(rest), max(depths, default=1)), FRAGMENTS.get(operand, (0, 0, 0))[-1]
        return cls(
            batch,
            tuple(read),
            written,
            *sides,
            operand,
            matrices,
            (added_by_padding(runs), added_by_padding([term.type], stored_part(term.type))),
            tuple(map(row_bytes, runs)),
            max(reductions, default=1),
            adjacent(xs),
            in_runs(found[0], term.type, sides, terms) if len(found) == 1 else None,
            sum(bytes_of(matrix.type) or 0 for matrix in matrices_read(function)),
            0 if parts else bytes_between(done),
            any(map(are_read_at_once, (*runs, *[term.type] * gives_rows))),
            known[-1] or 1,
            has_rows,
            gives_rows,
            any(part.declaration.name in COSTLY for part in subterms(function) if isinstance(part, Primitive)),
        )

    @property
    def bytes(self) -> int:
        return sum(self.read) + self.written

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
        """Whether a block can take one of them as a whole."""
        wide = self.operand in FRAGMENTS or self.columns <= WIDEST_ROW
        small = max(*self.product, self.reduced) <= LARGEST_SIDE
        taken = sum(self.read) + self.common + self.between + RESERVED
        return (self.matrices or self.reduced > 1) and wide and small and taken <= ROOM

    @property
    def has_stages(self) -> bool:
        """Whether something that takes loops is read as a whole by what comes after it."""
        return self.between > 0 and not self.operand

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

    def counts(self, most: int) -> list[int]:
        """How many matrices are at most so many bytes, and at least half of that; the most first."""
        wholes = [self.whole(alignment) for alignment in ALIGNMENTS]
        each = self.bytes + self.between
        whole = next((n for n in wholes if n * each <= 2 * most), wholes[-1])
        times = min(max(1, most // (whole * each)), -(-self.batch // whole))
        return list(reversed(range(whole * -(-times // 2), whole * times + 1, whole)))
