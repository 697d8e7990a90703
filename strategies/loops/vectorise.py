"""The innermost map on vectors: its result in vectors and back, the vectors moved in to the arithmetic."""

from __future__ import annotations

from rewrites import lowering as low
from rewrites import vectors as vec
from rewrites.loops import VIEW_INTO_FOLD
from rewrites.result import Failure
from rise.errors import StrategyError
from rise.expr import Expr
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    choice,
    depending,
    everywhere,
    normalize,
    prints_as_call,
)
from strategies.loops.nests import MAP, kinds, loop_sizes, missing, reform
from strategies.normal_forms import CANCEL, CONSTANTS, FUSE, MOVE

# asVector through folds, maps and zips to what is read; where it meets asScalar, both vanish
vectors_inward: Strategy = normalize(
    choice(
        vec.AS_SCALAR_AS_VECTOR,
        vec.VECTOR_OF_CONSTANT,
        vec.BEFORE_ZIP_MAP,
        vec.BEFORE_MAP,
        *CANCEL,
        *CONSTANTS,
        *FUSE,
        *MOVE,
        VIEW_INTO_FOLD,
    )
)


@prints_as_call
def vectorize(width: int) -> Strategy:
    """The innermost map, in vectors of `width` neighbours: asVector, arithmetic on vectors, asScalar.

    The map has to be the last loop of the nest, on numbers; accumulators around it become vectors, too. Fails
    by name where the width does not divide, and where the innermost loop is a fold.
    """
    if width < 1:
        raise StrategyError("R0609", f"vectorize: the width {width} must be at least 1")

    def chosen(term: Expr) -> Rewrite:
        found = kinds(term)
        if not found:
            return missing("vectorize", 1, 0)
        if found[-1] != MAP:
            return _refuse("the innermost loop is a reduction, bring it out of a map first")
        size = loop_sizes(term)[-1]
        if size.value is not None and size.value % width:
            return _refuse(f"{width} does not divide {size}, the size of the innermost map")
        depth = found.count(MAP) - 1
        return reform(depth, vec.AS_VECTOR_AFTER.with_sizes(n=width), vectors_inward)

    return depending(chosen)


def _refuse(reason: str) -> Strategy:
    return FunctionStrategy("vectorize", lambda term: Failure("vectorize", term, reason))


# vectors are loaded as one where arrays start at multiples of a vector's size, as they do on a GPU
aligned: Strategy = everywhere(low.AS_VECTOR_ALIGNED)
