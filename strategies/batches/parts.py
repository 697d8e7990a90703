"""Matrices in shared memory, multiplied by threads: each has some rows and columns of a result in registers.

A thread that has a whole row loads an element of the second operand for each multiplication. One that has
r rows and c columns loads r + c elements for r·c multiplications. Its rows are far from each other, and so
are its columns: adjacent threads then read adjacent columns, which are in different banks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from rewrites import algorithmic as a
from rewrites import reductions as r
from rewrites import threads as t
from rewrites import views
from rewrites.lowering import REDUCE_SEQ_UNROLL
from rewrites.maps import MAP_LAST_FISSION
from rewrites.result import Failure, Result, Success
from rewrites.views import JOIN_MAP
from rewrites.zips import JOIN_OF_ZIPS
from rise.expr import Expr, Lambda, call
from rise.types import shape
from strategies.abstraction import with_parts_abstracted
from strategies.batches.banks import Run
from strategies.batches.sizes import CHUNK, Sizes
from strategies.batches.threads import by_threads, one_map
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    function,
    normalize,
    prints_as_call,
    seq,
)
from strategies.matmul.grid import maps_in_warp
from strategies.matmul.products import (
    at_products,
    bring_prologue,
    is_product,
    separate_prologue,
)
from strategies.matmul.rounding import ANY_REDUCTION, ANYTHING, rounded_up
from strategies.matmul.schedules import operands_named, products
from strategies.matmul.thread_tiles import PART, as_folds, at_parts_of_list, lifted
from strategies.matmul.tiling import at_folds, at_step, flatten
from strategies.normal_forms import INWARD, view_inward
from strategies.places import arguments, computes, mapped

UNROLLED = 512  # multiplications of a thread that are unrolled: with more, too many loads are moved ahead
VECTOR = 4  # terms that one access loads at most
VIEWS = 5  # around the list of parts that `PARTS_OF_THREADS` makes of a matrix


@dataclass(frozen=True)
class Parts:
    """What a thread computes of a matrix: so many rows and columns.

    group: how many of them are adjacent, as many as one access of 16 bytes loads; the others are far apart
    step:  how many terms of a sum are unrolled
    """

    rows: int
    columns: int
    group: tuple[int, int] = (1, 1)
    step: int = 1

    @classmethod
    def of(cls, sizes: Sizes, part: tuple[int, int]) -> Parts:
        """Of matrices of these sizes, each of which is a run in shared memory."""
        step = terms_at_once(sizes.depth, prod(part))
        if sizes.runs is None:
            return cls(*part, step=step)
        left, right = sizes.runs.left, sizes.runs.right
        rows = _adjacent(left, part[0]) if left.row == left.width else 1
        columns = _adjacent(right, part[1]) if right.column == right.width else 1
        return cls(*part, (rows, columns), step)

    @property
    def sums(self) -> int:
        return self.rows * self.columns

    def stored_at_once(self, sizes: Sizes) -> int:
        """How many adjacent columns a thread stores at once, each time aligned."""
        return gcd(self.group[1], sizes.columns, CHUNK // sizes.width_of_result)

    def across(self, sizes: Sizes) -> int:
        """How many parts are beside each other."""
        return -(-sizes.columns // self.columns)

    def of_matrix(self, sizes: Sizes) -> int:
        """How many parts a matrix has."""
        return -(-sizes.rows // self.rows) * self.across(sizes)


def _adjacent(run: Run, part: int) -> int:
    """How many of so many adjacent elements one access loads, each time aligned."""
    return gcd(part, gcd(run.line, CHUNK) // run.width)


def terms_at_once(depth: int, sums: int) -> int:
    """How many terms of a sum are unrolled, of a thread with so many sums: all of few, or whole vectors."""
    if depth * sums <= UNROLLED:
        return depth
    most = max(1, min(depth, UNROLLED // sums))
    return most // VECTOR * VECTOR or most


# products and what is read beside them as lists of the same parts, and one map over all of them
fused_over_parts: Strategy = seq(
    argument(seq(normalize(choice(JOIN_OF_ZIPS, JOIN_MAP, *INWARD)), flatten)), one_map
)


@prints_as_call
def as_parts(parts: tuple[int, int], group: tuple[int, int] = (1, 1)) -> Strategy:
    """A matrix around products as a list of parts, so many by so many, each of which one thread computes.

    group: how many rows and columns of a thread are adjacent

    before: A |> map(row => B |> map(column => zip(row)(column) |> map(f) |> reduce(op, z)))
    after:  … |> map((rows, columns) => zip(rows |> transpose)(columns |> transpose) |> reduceSeq(
              (acc, (a, b)) => zip(acc)(a) |> map((cs, x) => zip(cs)(b) |> map((c, y) => op(c, f(x, y)))), …))
              |> …
    """
    tile = t.PARTS_OF_THREADS.with_sizes(p=parts[0], q=parts[1], v=group[0], w=group[1])
    tiled = seq(tile, arguments(VIEWS, seq(view_inward, flatten)))
    product = seq(as_folds, tiled, arguments(VIEWS, mapped(lifted(PART))))
    with_epilogue = seq(
        check(lambda e: not is_product(e), "epilogue"),
        with_parts_abstracted(is_product, lambda _: tiled),
        at_products(product),
        arguments(VIEWS, fused_over_parts),
    )
    return choice(seq(check(is_product, "the result is the product"), product), with_epilogue)


@prints_as_call
def matrix_in_parts(sizes: tuple[int, int, int], parts: Parts) -> Strategy:
    """The same of a matrix of any sizes m, n and k, which is made larger up to whole parts."""
    rows, columns = (-(-size // each) for size, each in zip(sizes, (parts.rows, parts.columns), strict=False))
    whole = (rows * parts.rows, columns * parts.columns, 1)
    tiles = operands_named(as_parts((rows, columns), parts.group))
    return seq(products, separate_prologue, rounded_up(whole, None, tiles, ANYTHING, ANY_REDUCTION))


def _views_behind(term: Expr) -> Result:
    match call(term):
        case "map", _, [Lambda(_, body), _] if computes(body):
            return Success(term)
        case "map", _, [Lambda(), _]:
            return seq(MAP_LAST_FISSION, argument(_views_behind))(term)
        case _:
            return Failure("views_behind", term, "expected a map")


@prints_as_call
def parts_of_matrices(s: Rewrite) -> Strategy:
    """s for the map over the parts of several matrices, each a list of parts with views around it.

    before: xs |> map(x => g(x) |> map(f(x)) |> view)
    after:  s(xs |> map(x => g(x) |> map(part => (x, part))) |> join |> map((x, part) => f(x)(part)))
              |> split(n) |> map(view)
    """

    def chosen(term: Expr) -> Rewrite:
        return seq(views.JOIN_SPLIT_PAIR.with_sizes(n=shape(term.type)[0][1]), argument(seq(a.FLATTEN, s)))

    return seq(FunctionStrategy("views_behind", _views_behind), at_parts_of_list(depending(chosen)))


@prints_as_call
def in_steps_and_rest(step: int) -> Strategy:
    """A fold in unrolled steps of so many elements, and the elements that are left, unrolled, too.

    before: xs |> reduceSeq(f, z)
    after:  xs |> drop(n) |> reduceSeqUnroll(f, xs |> take(n) |> split(step) |> reduceSeq((a, x) =>
              x |> reduceSeqUnroll(f, a), z))
    """
    steps = seq(r.FOLD_IN_BLOCKS.with_sizes(n=step), at_step(REDUCE_SEQ_UNROLL))

    def chosen(fold: Expr) -> Rewrite:
        applied = call(fold)
        length = shape(applied[2][-1].type)[0][0].value or 1 if applied is not None else 1
        whole = length // step * step
        if whole == length:
            return steps if step < length else seq(REDUCE_SEQ_UNROLL)
        first = function(argument(steps if step < whole else REDUCE_SEQ_UNROLL))
        return seq(r.FOLD_AND_REST.with_sizes(n=whole), first, REDUCE_SEQ_UNROLL)

    return depending(chosen)


@prints_as_call
def one_part(step: int, vector: int = 1) -> Strategy:
    """A part of a result by one thread, so many terms of its sums unrolled at a time.

    vector: how many adjacent columns are stored at once
    """
    store = t.STORE_PART_VECTORS.with_sizes(v=vector) if vector > 1 else t.STORE_PART
    folded = seq(at_step(maps_in_warp), in_steps_and_rest(step), view_inward)
    return seq(store, at_folds(folded))


@prints_as_call
def matrices_by_threads(threads: int, sizes: tuple[int, int, int], parts: Parts, vector: int = 1) -> Strategy:
    """A map over matrices, each of which several threads multiply, a part for each, in turns.

    vector: how many adjacent columns a thread stores at once
    """
    by_parts = parts_of_matrices(by_threads(threads, one_part(parts.step, vector)))
    return seq(mapped(matrix_in_parts(sizes, parts)), by_parts, bring_prologue)
