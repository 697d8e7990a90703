"""Matrices that only an epilogue reads, loaded to shared memory while a tile's products are computed."""

from __future__ import annotations

from rewrites import staging as s
from rewrites.elements import NotPointwise  # noqa: F401
from rewrites.result import Failure, Result, Success
from rise.expr import Expr, Lambda, Primitive, call, children, subterms
from rise.types import Scalar, shape
from strategies.contiguity import Context, contiguity_of, in_context
from strategies.core import (
    FunctionStrategy,
    Strategy,
    at_child,
    fail,
    id_,
    prints_as_call,
    seq,
    top_down,
)
from strategies.matmul.products import contains, is_product
from strategies.matmul.staging import TileCopy, in_bulk
from strategies.places import computes

NOTHING = "no matrix is read beside the products: `ahead` changes nothing"


def is_beside(term: Expr) -> bool:
    """Whether a term is a matrix of numbers in memory, read as it is."""
    sizes, element = shape(term.type)
    names = {part.name for part in subterms(term) if isinstance(part, Primitive)}
    in_memory = names.isdisjoint(("generate", "zip", "pair")) and not any(map(computes, subterms(term)))
    return len(sizes) == 2 and isinstance(element, Scalar) and in_memory


def _in_shared(term: Expr) -> Result:
    """Every matrix beside the products of a tile."""
    if is_product(term) or isinstance(term, Lambda | Primitive):
        return Success(term)
    if is_beside(term):
        return s.BESIDE_IN_BULK(term)
    result = Success(term)
    for index, child in enumerate(children(term)):
        below = at_child(index, _in_shared, result.term)
        if isinstance(below, Failure):
            return below
        result = Success(below.term, result.steps + below.steps)
    return result


def _beside_in_shared(term: Expr) -> Result:
    result = _in_shared(term)
    if isinstance(result, Success) and not result.steps:
        return Failure("beside_in_shared", term, NOTHING)
    return result


# of a tile, the matrices beside its products are copied to shared memory by the copying unit
beside_in_shared: Strategy = FunctionStrategy("beside_in_shared", _beside_in_shared)


@prints_as_call
def brought_ahead(copies: TileCopy, slots: int, consumers: int) -> Strategy:
    """The copies by the warpgroup that loads, into a ring of so many slots over tiles.

    before: x |> bulkCopy
    after:  x |> … |> bulkCopyRoleSplit(slots, 1, consumers, swizzled(128)) |> …
    """

    def make(term: Expr, context: Context) -> Strategy:
        match call(term):
            case _, _, [matrix]:
                along = contiguity_of(matrix, context)
                copied = in_bulk(copies, along, term.type)
                return seq(copied, top_down(s.COPY_AHEAD.with_sizes(s=slots, p=1, c=consumers)))
            case _:
                return fail

    return in_context(_is_bulk_copy, make, {}) if slots else id_


def _is_bulk_copy(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "bulkCopy" and len(applied[2]) == 1
