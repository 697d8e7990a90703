"""What is done with a block's sums before they are stored: on fragments, or by all threads in whole rows.

An epilogue is any function of elements: of one product or of several, and of matrices, rows, columns and
numbers beside them, in any nesting. `outline` brings it into one form; of a tile of that, a fragment's tile
becomes one function of the elements that a lane holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from rewrites import algorithmic as a
from rewrites import staging as s
from rewrites.elements import NotPointwise
from rewrites.epilogue import ON_FRAGMENTS, THROUGH_SHARED, in_memory
from rewrites.pointwise import Pointwise, pointwise
from rewrites.tensor import STORED_FRAGMENT
from rise.expr import Expr
from rise.types import Scalar, shape
from strategies.abstraction import with_parts_abstracted
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import (
    Rewrite,
    Strategy,
    alltd,
    argument,
    check,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    repeat,
    seq,
    try_,
)
from strategies.matmul.products import at_parts, at_products, is_product
from strategies.matmul.staging import TileCopy
from strategies.matmul.tiling import MATRIX, flatten, fragment_tiles, parts
from strategies.normal_forms import view_inward
from strategies.places import arguments, mapped

NOTHING_BESIDE = "no matrix in memory is read beside the products: `ahead` changes nothing"

# a tile's function on fragments where lanes know what they hold, through shared memory elsewhere
on_fragments: Strategy = seq(
    try_(normalize(STORED_FRAGMENT)),
    alltd(choice(ON_FRAGMENTS, THROUGH_SHARED)),
)
# of the tiles of a warp, all that is done with one fragment's
finish_epilogue: Strategy = arguments(
    4,
    seq(
        argument(seq(view_inward, flatten)),
        repeat(a.MAP_FUSION),
        mapped(arguments(3, seq(view_inward, on_fragments))),
    ),
)
# sums in shared memory, in rows that are padded so that the lanes of a warp store to different banks
kept_shared: Rewrite = s.KEEP_SHARED.with_sizes(p=8)


@prints_as_call
def direct_epilogue(
    product: Rewrite,
    warp: tuple[int, int],
    fragment: tuple[int, int, int],
    workers: Rewrite,
    store: Rewrite = id_,
) -> Strategy:
    """A block's tile: what is done with the product is done on its fragments, and stored from there.

    before: zip(P)(C) |> map((p, c) => zip(p)(c) |> map(g)), P a product
    after:  P by warps and fragments f |> map(zipFragment(f)(c) |> mapFragment(g) |> asMatrix)

    product:  a product's sums as fragments
    warp:     the part of the tile that a warp has, or a warpgroup
    fragment: the shape of its instructions
    workers:  the levels of the maps over parts
    store:    how fragments are stored: by each lane, unless this brings them through shared memory
    """
    with_epilogue = seq(
        check(lambda e: not is_product(e), "epilogue"),
        epilogue_tiles(warp, fragment),
        at_products(product),
        finish_epilogue,
    )
    only_product = seq(check(is_product, "the result is the product"), product)
    return seq(choice(only_product, with_epilogue), workers, store)


def _beside_in_bulk(hidden: Mapping[str, Expr]) -> Strategy:
    def is_beside(term: Expr) -> bool:
        sizes, element = shape(term.type)
        of_numbers = len(sizes) == MATRIX and isinstance(element, Scalar)
        return of_numbers and term.free.isdisjoint(hidden) and in_memory(term)

    return at_parts(is_beside, "beside_in_bulk", NOTHING_BESIDE, s.BESIDE_IN_BULK)


# of a block's tile, every matrix beside the products: the copying unit brings it to shared memory
beside_in_bulk: Strategy = with_parts_abstracted(is_product, _beside_in_bulk)


@prints_as_call
def epilogue_tiles(warp: tuple[int, int], fragment: tuple[int, int, int]) -> Strategy:
    """The tile of a block by warps and by fragments; products are left as they are.

    before: zip(P)(C) |> map(f), P a product
    after:  … P … |> map((p, c) => zip(p |> …)(c |> …) |> map(…)) |> …
    """
    tiled = seq(parts(*warp), arguments(4, mapped(fragment_tiles(*fragment[:2]))))
    return with_parts_abstracted(is_product, lambda _: tiled)


@dataclass(frozen=True)
class Stored:
    """A result as it is stored, of which tiles may stick out.

    row:     how long its rows are, or what is known to divide that
    in_rows: all that its elements are computed from is contiguous along rows
    """

    row: int
    in_rows: bool

    @classmethod
    def of(cls, term: Expr) -> Stored:
        """What is known of a matrix around products, outlined."""
        return cls(shape(term.type)[0][1].factor, is_in_rows(term))


def is_in_rows(term: Expr) -> bool:
    """Whether all that a matrix is computed from is contiguous along its rows."""
    try:
        found = pointwise(term)
    except NotPointwise:
        return True
    return all(_along_rows(found, leaf) for leaf in found.leaves)


def _along_rows(p: Pointwise, leaf: Expr) -> bool:
    made = p.leaves[leaf]
    if p.depends(leaf) == (True, False) or is_product(made):
        return True
    known = contiguity_of(made, {})
    return isinstance(known, Contiguity) and known.dimensions[-1:] == (True,)


@prints_as_call
def shared_epilogue(product: Rewrite, copies: TileCopy, result: Stored) -> Strategy:
    """A block's tile: products go through shared memory, from where all threads finish whole rows.

    before: zip(P)(C) |> map((p, c) => zip(p)(c) |> map(g)), P a product
    after:  zip(P |> toMem(Shared))(C) |> map(…) |> join |> … mapThreads … |> split(n)

    product: a product's sums, in shared memory
    copies, result: as of `rows_by_threads`, which finishes rows
    """
    return seq(at_products(product), rows_by_threads(copies, result))


@prints_as_call
def rows_by_threads(copies: TileCopy, result: Stored) -> Strategy:
    """A matrix by all threads of a block, in whole rows.

    before: e
    after:  e |> join |> asVectorAligned(vector) |> split(threads) |> … mapThreads … |> split(n)

    copies: how many threads, and how many elements at once, where that divides the rows
    result: what is known of its rows
    """
    rule = s.BY_THREADS if result.in_rows else s.BY_THREADS_UNALIGNED
    rows = replace(copies, vector=gcd(copies.vector, result.row))
    return depending(lambda term: rule.with_sizes(**rows.of(term.type)))
