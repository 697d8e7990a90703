"""Split-K: blocks compute products of slices, and these are added in a fixed order.

For products whose result has fewer tiles than a GPU runs blocks at once. The sums are taken in one order, so
the result is the same at every run, which it is not where blocks add atomically. A second kernel adds them,
or the blocks of a cluster, which read each other's shared memory.
"""

from __future__ import annotations

from rewrites import lowering as low
from rewrites.memory import IN_GLOBAL
from rewrites.result import Failure
from rewrites.split_k import PRODUCT_IN_SLICES, UNROLL_SUM
from rewrites.staging import KEEP_DISTRIBUTED, ROWS_BY_BLOCKS
from rise.expr import Expr, call
from rise.nat import nat
from rise.types import Space, shape
from strategies.abstraction import outermost_parts, with_parts_abstracted
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    normalize,
    prints_as_call,
    seq,
)
from strategies.default import GRID, LOOP, folds, written
from strategies.evaluation import closed_in
from strategies.matmul.grid import COLUMNS
from strategies.matmul.products import Product, at_parts, at_products, outline
from strategies.matmul.rounding import longer_operands, zeros_behind_rows
from strategies.normal_forms import view_inward
from strategies.places import arguments, mapped

NAME = "split_k"
ARRAY = "the sums of an array of products would be in memory one product at a time"


@prints_as_call
def over_blocks(slices: int, depth: int, legal: Rewrite, batched: Rewrite, fuse: Rewrite) -> Strategy:
    """The sums of a product in so many slices; `batched` is for the array of their products.

    depth: a slice is made longer where this does not divide it
    legal: fails on products that cannot be split
    fuse: maps in the components of a zip with the map over it, in rows and in their elements
    """
    in_slices = seq(
        longer_operands(slices * depth), depending(lambda product: _sliced(product, slices, IN_GLOBAL))
    )
    sliced = seq(view_inward, outline, legal, at_products(in_slices))
    products = at_parts(in_global, NAME, "nothing is in global memory", argument(batched))
    return seq(
        sliced,
        products,
        check(closed, NAME, ARRAY),
        with_parts_abstracted(in_global, lambda _: seq(fuse, added)),
    )


@prints_as_call
def over_cluster(slices: int, sums: Rewrite, rows: Rewrite) -> Strategy:
    """A tile by the blocks of a cluster: each sums up a slice of k, then finishes a part of the tile's rows.

    before: A·B |> map(map(f)), where k is a multiple of slices
    after:  zip(A |> …)(B |> …) |> mapBlock(0)((a, b) => sums(a·b)) |> toMem(Distributed) |> …
              |> split(m / slices) |> mapBlock(0)(xs => rows(xs |> map(map(x => f(x[0] + x[1]))))) |> join

    sums: the product of a slice, by the workers of a block
    rows: a part of the tile's rows, by the threads of a block
    """
    kept = seq(mapped(sums), low.MAP_BLOCK.with_sizes(d=COLUMNS), KEEP_DISTRIBUTED.with_sizes(p=8))
    sliced = depending(lambda product: _sliced(product, slices, kept))
    added = seq(choice(sliced, seq(zeros_behind_rows, sliced)), normalize(UNROLL_SUM))

    def by_blocks(tile: Expr) -> Rewrite:
        height = shape(tile.type)[0][0].exact_quotient(nat(slices))
        if height is None:
            return lambda term: Failure("over_cluster", term, f"{slices} does not divide the rows of a tile")
        return seq(ROWS_BY_BLOCKS.with_sizes(r=height, d=COLUMNS), argument(mapped(rows)))

    return seq(at_products(added), depending(by_blocks))


def _sliced(product: Expr, slices: int, kept: Rewrite) -> Rewrite:
    """The products of slices, which are stored, and their sum: two transpositions, then maps."""
    k = Product.of(product).length
    if k is None or k.value is None:
        return lambda term: Failure(NAME, term, f"{k}, the length of the sums, is not known")
    rules = (rule.with_sizes(w=k.value // slices) for rule in PRODUCT_IN_SLICES)
    return seq(choice(*rules), arguments(3, kept))


def closed(term: Expr) -> bool:
    """Whether buffers in global memory belong to the whole program, not to each matrix of an array."""
    return all(map(closed_in(term), outermost_parts(term, in_global)))


def in_global(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "toMem" and Space.GLOBAL in applied[1].arguments


# rows and columns of the result over the grid, the sums of slices in a loop
by_elements = seq(
    low.MAP_GLOBAL.with_sizes(d=1), mapped(seq(low.MAP_GLOBAL.with_sizes(d=0), mapped(written(LOOP))))
)
added = seq(folds, choice(by_elements, written(GRID)))
