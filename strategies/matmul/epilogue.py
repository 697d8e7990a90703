"""What is done with a block's sums before they are stored: on fragments, or by all threads in whole rows.

An epilogue is any function of elements: of one product or of several, and of matrices, rows, columns and
numbers beside them, in any nesting. `outline` brings it into one form; of a tile of that, a fragment's tile
becomes one function of the elements that a lane holds.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import staging as s
from rewrites.elements import NotPointwise
from rewrites.epilogue import ON_FRAGMENTS, THROUGH_SHARED
from rewrites.pointwise import Pointwise, pointwise
from rewrites.tensor import STORED_FRAGMENT
from rise.expr import Expr
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import (
    Rewrite,
    Strategy,
    alltd,
    argument,
    check,
    choice,
    depending,
    normalize,
    prints_as_call,
    repeat,
    seq,
    try_,
)
from strategies.matmul.bulk import stored_in_bulk
from strategies.matmul.products import at_products, is_product
from strategies.matmul.staging import TileCopy
from strategies.normal_forms import view_inward
from strategies.places import arguments, mapped

# two maps over tiles as one, whatever else happens to the tiles
flatten = seq(normalize(choice(a.FLATTEN_INNER, a.FLATTEN_PART, a.FLATTEN)), view_inward)
# a tile's function on fragments where lanes know what they hold, through shared memory elsewhere
on_fragments = seq(
    try_(normalize(STORED_FRAGMENT)),
    alltd(choice(ON_FRAGMENTS, THROUGH_SHARED)),
)
# of the tiles of a warp, all that is done with one fragment's
finish_epilogue = arguments(
    4,
    seq(
        argument(seq(view_inward, flatten)),
        repeat(a.MAP_FUSION),
        mapped(arguments(3, seq(view_inward, on_fragments))),
    ),
)
# rows are padded so that the lanes of a warp store an accumulator to different banks
kept_shared = s.KEEP_SHARED.with_sizes(p=8)


@prints_as_call
def direct_epilogue(tiles: Rewrite, product: Rewrite, workers: Rewrite, bulk: bool = False) -> Strategy:
    """A block's tile: what is done with the product is done on its fragments, and stored from there.

    before: zip(P)(C) |> map(fun((p, c) => zip(p)(c) |> map(g))), P a product
    after:  P by warps and fragments f |> map(zipFragment(f)(c) |> mapFragment(g) |> asMatrix)

    tiles:   the tile of a block by warps and fragments, products left as they are
    product: a product's sums as fragments
    workers: the levels of the maps over tiles
    bulk:    stored through shared memory by bulk copies, not by each lane
    """
    with_epilogue = seq(
        check(lambda e: not is_product(e), "epilogue"), tiles, at_products(product), finish_epilogue
    )
    only_product = seq(check(is_product, "the result is the product"), product)
    return seq(choice(only_product, with_epilogue), workers, *([stored_in_bulk] if bulk else []))


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
def shared_epilogue(product: Rewrite, copies: TileCopy, aligned: bool = True) -> Strategy:
    """A block's tile: products go through shared memory, from where all threads finish whole rows.

    before: zip(P)(C) |> map(fun((p, c) => zip(p)(c) |> map(g))), P a product
    after:  zip(P |> toMem(Shared))(C) |> map(…) |> join |> … mapThreads … |> split(n)

    product: a product's sums, in shared memory
    copies:  how threads finish rows: how many threads, and how many elements at once
    aligned: all that is read for adjacent elements is adjacent, as are matrices in rows
    """
    by_threads = s.BY_THREADS if aligned else s.BY_THREADS_UNALIGNED
    return seq(at_products(product), depending(lambda term: by_threads.with_sizes(**copies.of(term.type))))
