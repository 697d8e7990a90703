"""Matrices in shared memory, multiplied by tensor cores: each by one warp, or by several warps in turn."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from rewrites import lowering as low
from rewrites.algorithmic import MAP_FUSION
from rewrites.maps import BETA
from rewrites.movement import TRANSPOSE_TWICE
from rewrites.orders import (
    COLUMNS_STRIDED,
    MAP_REORDER,
    ORDER_ROWS,
    REORDER_TRANSPOSE,
    STRIDED_IN_PARTS,
    SUMS_BY_LANES,
)
from rewrites.views import LOOP_INTERCHANGE_ZIPPED
from rewrites.zips import ZIP_REORDER
from rise.expr import Expr
from rise.types import Scalar, Type, shape
from strategies.abstraction import outermost_parts, with_parts_abstracted
from strategies.batches.banks import (
    LANES_OF_ROW,
    PAIR,
    ROWS_AT_ONCE,
    Matrices,
    Order,
    Run,
    conflicts,
    distances,
)
from strategies.batches.runs import PADDING, PART
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    bottom_up,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
    top_down,
)
from strategies.matmul.epilogue import direct_epilogue
from strategies.matmul.grid import by_itself, to_warps, to_warps_in_steps
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.products import Product, at_products, bring_prologue, is_product, separate_prologue
from strategies.matmul.rounding import ANYTHING, ZEROS, rounded_up, row_of
from strategies.matmul.schedules import operands_named, products
from strategies.matmul.staging import ASYNCHRONOUS, TileCopy, stage
from strategies.matmul.tiling import tile_reduction
from strategies.memory_bound.blocks import WIDEST, in_groups
from strategies.normal_forms import INWARD
from strategies.places import mapped

Block = tuple[int, int, int]
FRAGMENTS: Mapping[str, Block] = {"f16": (16, 8, 16), "bf16": (16, 8, 16), "tf32": (16, 8, 8)}
ROWS, COLUMNS = 16, 8  # of each of them
LOADS = 112  # of a thread that are under way before it stores the first
# an order of rows as an order of those of operands
_order_inward: Strategy = normalize(choice(MAP_REORDER, ZIP_REORDER, *INWARD))
# the same of columns: to products, also past a row that is beside each of their rows
_to_products: Strategy = seq(_order_inward, normalize(MAP_FUSION))
# and then to the columns that these multiply
_columns_inward: Strategy = seq(
    with_parts_abstracted(is_product, lambda _: _to_products),
    normalize(choice(REORDER_TRANSPOSE, TRANSPOSE_TWICE, ORDER_ROWS, BETA, MAP_REORDER)),
)

# all fragments of rows are loaded first, then those of columns one by one: fewer are held at a time
_columns_outside: Strategy = bottom_up(LOOP_INTERCHANGE_ZIPPED)


@prints_as_call
def each_by_a_warp(warps: int, s: Rewrite) -> Strategy:
    """s for what a map computes of one element, each by a warp, in turns.

    before: xs |> map(f)
    after:  xs |> split(warps) |> mapSeq(mapWarp(s(f))) |> join
    """
    return in_groups(warps, seq(mapped(seq(mapped(s), low.MAP_WARP)), low.MAP_SEQ))


@prints_as_call
def each_by_all(s: Rewrite) -> Strategy:
    """s for what a map computes of one element, by all warps of a block.

    before: xs |> map(f)
    after:  xs |> mapSeq(s(f))
    """
    return seq(mapped(s), low.MAP_SEQ)


@prints_as_call
def on_fragments_of(
    sizes: Block,
    tile: tuple[int, int],
    workers: Rewrite,
    operand: str = "f16",
    threads: int = 0,
    vector: int = 0,
    in_memory: bool = True,
    in_run: bool = False,
) -> Strategy:
    """A matrix around products by instructions, with zeros up to whole fragments.

    sizes:   of the product, m, n and k
    tile:    rows and columns that a warp computes
    workers: the level of the maps over these parts
    operand: the type of the numbers that are multiplied
    threads: that first copy operands to padded rows: both, or only the second one if `in_run`; 0: none
    vector:  elements that one of them brings at once; 0: chosen
    in_memory: whether operands are in memory, from where asynchronous copies bring them
    in_run:  whether they are runs: lanes then take rows and terms in the order with the fewest bank conflicts
    """
    fragment = FRAGMENTS[operand]
    rows, columns = tile
    if threads and not in_run and columns >= sizes[1]:
        columns = -(-columns // (2 * COLUMNS)) * 2 * COLUMNS  # padded rows then start in different banks
    parts = (rows, columns, fragment[2])
    m, n, k = (-(-size // part) * part for size, part in zip(sizes, parts, strict=True))

    def whole(term: Expr) -> Rewrite:
        copies = row_copy(term, threads, vector, in_memory and operand != "tf32", in_run)
        again = stage(copies, bool(threads))
        if in_run:
            order = order_of(term, sizes, tile, fragment[2], bool(threads))
        else:
            in_pairs, apart = copies.vector <= PAIR, _rows_are_apart(term)
            order = stored_order(term.type, (rows, columns), in_pairs, apart) if threads else Order()
        step = fragment[2] * order.instructions
        depth = -(-k // step) * step
        sums = seq(
            tile_reduction(step if in_run and not threads else k),
            warp_tiles(rows, columns),
            tensorise(fragment),
            accumulate_fragments,
            _columns_outside if in_run and rows < columns else id_,
            load_once,
            again,
        )
        computed = direct_epilogue(sums, (rows, columns), fragment, workers)
        if order.columns > 1:
            strided = COLUMNS_STRIDED.with_sizes(
                p=n // (ROWS_AT_ONCE * order.columns), j=order.columns, q=LANES_OF_ROW
            )
            computed = seq(strided, argument(seq(_columns_inward, computed)))
        if order.apart > 1:
            strided = STRIDED_IN_PARTS.with_sizes(
                p=m // (ROWS_AT_ONCE * order.apart), q=ROWS_AT_ONCE, s=order.apart
            )
            computed = seq(strided, argument(seq(_order_inward, computed)))
        computed = operands_named(computed)
        if order.adjacent > 1:
            parts = depth // (2 * order.adjacent * LANES_OF_ROW)
            adjacent = SUMS_BY_LANES.with_sizes(p=parts, j=order.adjacent, q=LANES_OF_ROW)
            computed = seq(at_products(top_down(adjacent)), computed)
        return rounded_up((m, n, depth), None, computed, ANYTHING if in_run else ZEROS)

    return seq(products, separate_prologue, depending(whole), bring_prologue)


def stored_order(result: Type, tile: tuple[int, int], in_pairs: bool = True, apart: bool = True) -> Order:
    """In which order lanes store a result with the fewest bank conflicts, if it is a run of odd rows.

    tile: rows and columns that a warp computes
    in_pairs: whether pairs of columns may be in any order, as threads bring no more of them at once
    apart: whether rows may, else, as threads bring each by itself
    """
    sizes, element = shape(result)
    width = element.bytes if isinstance(element, Scalar) else 1
    if (sizes[-1].value or 1) * width % WIDEST == 0:
        return Order()
    rows, columns = (distances(size // ROWS_AT_ONCE) for size in tile)
    orders = [Order(columns=n) for n in columns] if in_pairs else [Order(n) for n in rows if apart or n == 1]
    stored = Run.of(tile[0], sizes[-1].value or 1, width)
    return min(orders, key=lambda order: conflicts(stored, order.stored))


def _rows_are_apart(term: Expr) -> bool:
    """Whether no rows of the first operand of a product are adjacent in memory."""
    known = (row_of(Product.of(part).operands[0]) for part in outermost_parts(term, is_product))
    return all(row is not None and row.contiguity.dimensions[-1] for row in known)


def order_of(term: Expr, sizes: Block, tile: tuple[int, int], terms: int, of_rows: bool = False) -> Order:
    """The best order of the lanes of a warp for matrices in runs. terms: how many an instruction adds up

    of_rows: columns and terms stay as they are, as only the first operand is read from its run
    """
    product = Product.of(next(iter(outermost_parts(term, is_product))))
    runs, height = in_runs(product, term.type, sizes, terms), -(-sizes[0] // tile[0]) * tile[0]
    return runs.best_rows(tile, height) if of_rows else runs.best_order(tile)


def in_runs(product: Product, result: Type, sizes: Block, terms: int) -> Matrices:
    """Where the elements of a product's matrices are in runs. terms: how many an instruction adds up"""
    m, n, k = sizes
    left, right = product.operands
    of_rows, of_columns = row_of(left), row_of(right)
    element = shape(result)[1]
    by_rows = of_rows is None or of_rows.contiguity.dimensions[-1]
    by_columns = of_columns is not None and of_columns.contiguity.dimensions[-1]
    wide = shape(left.type)[1]
    width = wide.bytes if isinstance(wide, Scalar) else PART
    a, b = Run.of(m, k, width, by_rows), Run.of(k, n, width, not by_columns)
    stored = Run.of(m, n, element.bytes if isinstance(element, Scalar) else PART)
    return Matrices(a, b, stored, k, terms)


def row_copy(
    term: Expr, threads: int, vector: int = 0, in_memory: bool = True, second: bool = False
) -> TileCopy:
    """How threads copy rows of the operands of products: by the widest vectors that divide all of them.

    Where these are too narrow for asynchronous copies, several elements are loaded one by one and stored at
    once.
    vector:    how many elements at once instead; 0: as many as that
    in_memory: whether operands are as they are in memory. Others, such as those that are rounded on their way
               (tf32), go through registers, too
    second:    only of the second operand, all of whose elements are read before the first is stored, so that
               its padded rows may be where its run was
    """
    rows = [
        row_of(matrix) for part in outermost_parts(term, is_product) for matrix in Product.of(part).operands
    ]
    known = [row for row in rows if row is not None and row.size.value is not None]
    width = max((row.width for row in known), default=ASYNCHRONOUS)
    divided = gcd(WIDEST // width, vector, *(row.factor for row in known))
    wide = len(known) == len(rows) and divided * min(row.width for row in known) >= ASYNCHRONOUS
    asynchronous = wide and in_memory and divided >= vector
    at_once = divided if wide and divided >= vector else vector or max(1, ASYNCHRONOUS // width)
    loads = LOADS // at_once
    return TileCopy(threads, at_once, PADDING, asynchronous, in_columns=True, loads=loads, second=second)


@prints_as_call
def matrix_by_a_warp(sizes: Block, operand: str = "f16") -> Strategy:
    """A matrix around products, of these sizes, by the instructions of one warp."""
    tile = (-(-sizes[0] // ROWS) * ROWS, -(-sizes[1] // COLUMNS) * COLUMNS)
    return on_fragments_of(sizes, tile, by_itself, operand)


@prints_as_call
def matrix_by_warps(
    sizes: Block,
    tile: tuple[int, int],
    operand: str = "f16",
    threads: int = 0,
    vector: int = 0,
    in_memory: bool = True,
    in_run: bool = False,
    in_steps: bool = False,
) -> Strategy:
    """A matrix around products, of these sizes, a warp for every so many rows and columns of it.

    threads: that first copy operands to padded rows: both, or only the second one if `in_run`; 0: none
    vector:  elements that one of them brings at once; 0: chosen
    in_memory: whether operands are in memory, from where asynchronous copies bring them
    in_run:  whether they are runs: lanes then take rows and terms in the order with the fewest bank conflicts
    in_steps: whether the loop over the terms of sums is not unrolled
    """
    workers = to_warps_in_steps if in_steps else to_warps
    return on_fragments_of(sizes, tile, workers, operand, threads, vector, in_memory, in_run)
