"""Split-K: blocks compute products of slices, and a second kernel adds these in a fixed order.

For products whose result has fewer tiles than a GPU runs blocks at once. The sums are taken in one order, so
the result is the same at every run, which it is not where blocks add atomically.
"""

from __future__ import annotations

from rewrites import lowering as low
from rewrites.memory import IN_GLOBAL
from rewrites.result import Failure
from rewrites.split_k import PRODUCT_IN_SLICES
from rise.expr import Expr, call
from rise.types import Space
from strategies.abstraction import outermost_parts, with_parts_abstracted
from strategies.core import Rewrite, Strategy, argument, check, choice, depending, prints_as_call, seq
from strategies.default import GRID, LOOP, folds, written
from strategies.matmul.products import Product, at_parts, at_products, outline
from strategies.matmul.rounding import longer_operands
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
    in_slices = seq(longer_operands(slices * depth), depending(lambda product: _sliced(product, slices)))
    sliced = seq(view_inward, outline, legal, at_products(in_slices))
    products = at_parts(in_global, NAME, "nothing is in global memory", argument(batched))
    return seq(
        sliced,
        products,
        check(closed, NAME, ARRAY),
        with_parts_abstracted(in_global, lambda _: seq(fuse, added)),
    )


def _sliced(product: Expr, slices: int) -> Rewrite:
    """The products of slices, stored for the whole grid, and their sum: two transpositions, then maps."""
    k = Product.of(product).length
    if k is None or k.value is None:
        return lambda term: Failure(NAME, term, f"{k}, the length of the sums, is not known")
    rules = (rule.with_sizes(w=k.value // slices) for rule in PRODUCT_IN_SLICES)
    return seq(choice(*rules), arguments(3, IN_GLOBAL))


def closed(term: Expr) -> bool:
    """Whether what is in global memory is there for the whole program, not for each matrix of an array."""
    return all(part.free <= term.free for part in outermost_parts(term, in_global))


def in_global(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "toMem" and Space.GLOBAL in applied[1].arguments


# rows and columns of the result over the grid, the sums of slices in a loop
by_elements = seq(
    low.MAP_GLOBAL.with_sizes(d=1), mapped(seq(low.MAP_GLOBAL.with_sizes(d=0), mapped(written(LOOP))))
)
added = seq(folds, choice(by_elements, written(GRID)))
