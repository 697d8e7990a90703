"""How threads divide a tile of all pairs of rows, and how they load operands and store results.

A thread has some rows and some columns of a warp's part. It loads their elements from shared memory into
registers, and applies the operator to each pair. Elements of 4 bytes are stored there by columns, so that a
vector has elements of adjacent rows, all for the same step: then a thread has rows in groups as long as a
vector, far from each other. Elements of 2 bytes lie as in memory. Where that is along the rows, a vector has
elements for several steps, and all rows of a thread are apart, so that lanes read different banks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import reductions as r
from rewrites import threads as t
from rewrites.members import arrays_of
from rewrites.result import Result, Success
from rewrites.tupling import is_fold
from rise.expr import Expr, Identifier, call, subterms
from rise.types import shape
from strategies.abstraction import outermost_parts, with_parts_abstracted
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    function,
    id_,
    normalize,
    prints_as_call,
    repeat,
    seq,
    top_down,
)
from strategies.matmul.grid import in_warp
from strategies.matmul.instructions import accumulate_fragments, warp_tiles
from strategies.matmul.products import Product, at_products, is_product, rank
from strategies.matmul.rounding import Row, row_of
from strategies.matmul.staging import ASYNCHRONOUS, WIDEST, TileCopy, is_copied_alone
from strategies.matmul.tiling import at_folds, at_step, flatten, in_tile, parts
from strategies.normal_forms import view_inward
from strategies.places import arguments, computes, mapped

STEPS = 2  # for which a thread loads its parts of operands at once, at least
PART = 4  # dimensions of a thread's part: groups of rows and rows, groups of columns and columns

# folds with the maps before them inside
as_folds: Strategy = normalize(choice(a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP))
# views next to what they rearrange, and one map over a list of parts
_one_map: Strategy = seq(argument(seq(view_inward, flatten)), repeat(a.MAP_FUSION))


# --- operands ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """What is paired: a matrix, or several of them beside each other, each with what is known of its rows."""

    matrices: tuple[Row | None, ...]

    @classmethod
    def of(cls, matrix: Expr) -> Operand:
        return cls(tuple(map(row_of, arrays_of(matrix))))

    @property
    def in_steps(self) -> list[int]:
        """The elements in a vector, of each matrix whose elements of successive steps are adjacent."""
        return [WIDEST // row.width for row in self.matrices if row and _is_along(row)]

    def group(self, most: int) -> int:
        """How many rows of a thread are adjacent: as many as it loads at once."""
        apart = (1 if row is None or _is_along(row) else WIDEST // row.width for row in self.matrices)
        return gcd(most, *apart)

    def loaded(self, group: int, steps: int) -> Rewrite:
        """Loads what a thread uses in so many steps into registers; a mask along k is read where it is."""
        rows = iter(self.matrices)

        def run(term: Expr) -> Result:
            if (applied := call(term)) is not None and applied[0] == "zip":
                return seq(function(argument(run)), argument(run))(term)
            if rank(term) == 1:
                return Success(term)
            return choice(_load(next(rows, None), group, steps), t.LOAD_PART)(term)

        return run


def is_turned(row: Row) -> bool:
    """Whether threads copy the elements of a row one by one, to store them by columns."""
    return row.contiguity.dimensions[-1] and is_copied_alone(row.element)


def _is_along(row: Row) -> bool:
    """Whether the elements of a row that are adjacent in shared memory are those of successive steps."""
    return row.contiguity.dimensions[-1] and not is_turned(row)


def _load(row: Row | None, group: int, steps: int) -> Rewrite:
    if row is not None and _is_along(row):
        return t.LOAD_PART_STEPS.with_sizes(v=gcd(WIDEST // row.width, steps))
    return t.LOAD_PART_VECTORS.with_sizes(v=group) if group > 1 else t.LOAD_PART


def copies_of(term: Expr, block: tuple[int, int, int], threads: int, padding: int, most: int) -> TileCopy:
    """How tiles of all operands are copied, to rows that are so many bytes longer.

    most: elements that a thread may copy at once
    """
    products = [Product.of(part).operands for part in outermost_parts(term, is_product)]
    rows = [
        (row_of(matrix), (block[2], across))
        for operands in products
        for operand, across in zip(operands, block[:2], strict=True)
        for matrix in arrays_of(operand)
    ]
    known = [(row, extents) for row, extents in rows if row is not None]
    width = min((row.width for row, _ in known), default=WIDEST)
    vector = gcd(most, *(_at_once(*each) for each in known)) if len(known) == len(rows) else 1
    return TileCopy(threads, vector, padding // width, vector * width >= ASYNCHRONOUS, turned=True)


def _at_once(row: Row, extents: tuple[int, int]) -> int:
    """The elements of a row that a thread may copy at once; any number where it copies them one by one.

    extents: of a tile, along k and across
    """
    along, across = extents
    if is_turned(row):
        return WIDEST
    return gcd(WIDEST // row.width, row.factor, along if _is_along(row) else across)


def most_at_once(kernel: Expr) -> int:
    """The elements that a thread may copy at once, in whatever part of an array that a kernel reads."""
    read = (x for x in subterms(kernel) if isinstance(x, Identifier) and x.name in kernel.free)
    return gcd(WIDEST, *(sizes[-1].factor for x in read if (sizes := shape(x.type)[0])))


# --- tiles ------------------------------------------------------------------------------------------------


@prints_as_call
def lifted(depth: int) -> Strategy:
    """A fold out of so many maps, whose results become its accumulator.

    before: xs |> map(x => ys |> map(y => h(x, y) |> reduceSeq((a, e) => f(a, e), z)))
    after:  … |> reduceSeq((as, es) => zip(as)(es) |> map(… map(f)), …)
    """
    inside = mapped(lifted(depth - 1)) if depth > 1 else id_
    return seq(inside, a.LIFT_REDUCE, view_inward)


@prints_as_call
def in_steps(size: int) -> Strategy:
    """The reductions of a matrix in steps of so many elements, in the order of the program.

    before: A |> map(row => B |> map(column => zip(row)(column) |> map(f) |> reduce(op, z)))
    after:  zip(…)(…) |> reduceSeq((acc, (a, b)) => zip(acc)(a) |> map((cs, row) => zip(cs)(b) |> map(
              (c, column) => zip(row)(column) |> reduceSeq((c, xy) => op(c, f(xy)), c))), z)
    """
    return seq(as_folds, top_down(r.FOLD_IN_BLOCKS.with_sizes(n=size)), view_inward, lifted(2))


@prints_as_call
def at_parts_of_list(s: Rewrite) -> Strategy:
    """s at the list of parts that the views around it rearrange: at a map that computes them, or a fold."""

    def run(term: Expr) -> Result:
        return s(term) if is_fold(term) or computes(term) else argument(run)(term)

    return FunctionStrategy("at_parts_of_list", run)


@dataclass(frozen=True)
class Layout:
    """A block's tile by warps and lanes, for operands as they are stored.

    depth:  of a step: how much of k a block has in shared memory at a time
    warp:   rows and columns of a warp
    thread: of a thread
    """

    depth: int
    warp: tuple[int, int]
    thread: tuple[int, int]
    rows: Operand
    columns: Operand

    @property
    def groups(self) -> tuple[int, int]:
        """How many rows and columns of a thread are adjacent."""
        return self.rows.group(self.thread[0]), self.columns.group(self.thread[1])

    @property
    def loads(self) -> int:
        """For how many steps of k a thread loads its parts of operands at once."""
        return gcd(max((*self.rows.in_steps, *self.columns.in_steps), default=STEPS), self.depth)

    @property
    def finished(self) -> Strategy:
        """A block's tile: products by threads, each of which finishes the elements that it has."""
        tiled = seq(parts(*self.warp), arguments(4, mapped(self._by_lanes)))
        beside = with_parts_abstracted(is_product, lambda _: tiled)
        one_map = arguments(4, seq(_one_map, mapped(arguments(5, _one_map))))
        with_epilogue = seq(
            check(lambda e: not is_product(e), "epilogue"), beside, at_products(self._folds), one_map
        )
        only_product = seq(check(is_product, "the result is the product"), self._folds)
        return seq(choice(only_product, with_epilogue), self._stored, self._levels)

    @property
    def _by_lanes(self) -> Strategy:
        """The part of a warp by its lanes."""
        p, q = (whole // part for whole, part in zip(self.warp, self.thread, strict=True))
        v, w = self.groups
        return seq(t.PARTS_OF_THREADS.with_sizes(p=p, q=q, v=v, w=w), arguments(5, seq(view_inward, flatten)))

    @property
    def _folds(self) -> Strategy:
        """A product as a fold over steps, whose accumulators are the parts of threads."""
        return seq(
            at_products(in_steps(self.depth)),
            warp_tiles(*self.warp),
            at_folds(at_step(in_tile(self._by_lanes))),
            at_folds(at_step(in_tile(in_tile(lifted(PART), PART)))),
            accumulate_fragments,
            at_folds(at_step(mapped(mapped(self._loaded)))),
        )

    @property
    def _loaded(self) -> Strategy:
        """The fold of a thread, with the parts of operands for several steps in registers."""
        (v, w), u = self.groups, self.loads
        both = seq(function(argument(self.rows.loaded(v, u))), argument(self.columns.loaded(w, u)))
        return seq(r.FOLD_IN_BLOCKS.with_sizes(n=u), view_inward, at_step(argument(both)))

    @property
    def _stored(self) -> Strategy:
        """Each element is written once; as vectors where a thread has adjacent columns."""
        columns = self.groups[1]
        vectors = [t.STORE_PART_VECTORS.with_sizes(v=columns)] if columns > 1 else []
        store = mapped(choice(*vectors, t.STORE_PART))
        copied = seq(check(is_fold, "the result is the product"), t.PARTS_COPIED, mapped(store))
        return at_parts_of_list(choice(copied, mapped(at_parts_of_list(store))))

    @property
    def _levels(self) -> Strategy:
        """Parts by warps, their parts by lanes, all that a thread does unrolled."""
        by_lanes = seq(low.MAP_LANE, mapped(in_warp))
        results = at_parts_of_list(seq(low.MAP_WARP, mapped(at_parts_of_list(low.MAP_LANE))))
        return seq(results, at_folds(at_step(seq(low.MAP_WARP, mapped(by_lanes)))))
