"""The seven schedules of TVM's tutorial on products of matrices, as compositions of what loops can do.

Loops of the product have numbers: 1 and 2 are over rows and columns, 3 is the sum. The schedules are for
`A · B` as it is written, a sum of products under two maps; sizes of tiles are parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rewrites import algorithmic as a
from rewrites import loops as rules
from rewrites import lowering as low
from rewrites import memory
from rewrites import vectors as vec
from rewrites import views as v
from rise.errors import StrategyError
from rise.expr import Apply, Expr, Identifier, Primitive
from strategies.complete import complete
from strategies.core import FunctionStrategy, Rewrite, Strategy, argument, id_, outermost, prints_as_call, seq
from strategies.loops.nests import at_innermost_fold, fused, in_elements, parallel, reorder, to_loops, unroll
from strategies.loops.tiling import block, tile
from strategies.loops.vectorise import aligned, vectorize
from strategies.places import in_inputs, mapped

GLOBAL = low.MAP_GLOBAL.with_sizes(d=0)


# --- the schedules ----------------------------------------------------------------------------------------


@prints_as_call
def baseline() -> Strategy:
    """Three loops."""
    return fused


@prints_as_call
def blocked(x: int, y: int, k: int) -> Strategy:
    """Tiles of x × y, the sum in blocks of k: loops 1, 2 over tiles, 3, 4 in tiles, 5, 6 of the sum."""
    return seq(baseline(), tile(x, y), block(5, k))


@prints_as_call
def blocking(x: int, y: int, k: int) -> Strategy:
    """A tile stays in the cache while the sum runs over it."""
    return seq(blocked(x, y, k), reorder(1, 2, 5, 6, 3, 4))


@prints_as_call
def vectorization(x: int, y: int, k: int, vector: int) -> Strategy:
    """The columns of a tile in vectors."""
    return seq(blocking(x, y, k), vectorize(vector))


@prints_as_call
def loop_perm(x: int, y: int, k: int, vector: int) -> Strategy:
    """Along the rows of A within a block of the sum."""
    return seq(blocked(x, y, k), reorder(1, 2, 5, 3, 6, 4), vectorize(vector))


@prints_as_call
def array_packing(x: int, y: int, k: int, vector: int, level: Rewrite = low.MAP_SEQ) -> Strategy:
    """B is packed first, by a kernel of its own, so that a tile reads it contiguously."""
    return seq(pack(y, vector, level), loop_perm(x, y, k, vector))


@prints_as_call
def cache_blocks(x: int, y: int, k: int, vector: int) -> Strategy:
    """The inner loop of the sum unrolled; accumulators of a tile are kept, as in all from `blocking` on."""
    return seq(array_packing(x, y, k, vector), at_innermost_fold(unroll))


@prints_as_call
def par(x: int, y: int, k: int, vector: int) -> Strategy:
    """Rows of tiles, and the copies, in parallel."""
    return seq(array_packing(x, y, k, vector, GLOBAL), at_innermost_fold(unroll), parallel(GLOBAL))


# --- packing ----------------------------------------------------------------------------------------------


@prints_as_call
def pack(width: int, vector: int, level: Rewrite = low.MAP_SEQ) -> Strategy:
    """transpose(B), where it is read: `width` columns beside each other, row by row, in memory."""
    form = (v.SPLIT_JOIN_PAIR.with_sizes(n=width), in_elements(1, v.TRANSPOSE_PAIR), _vectors(2, vector))
    return seq(outermost(transposed_input, in_form(store(level), *form)), rules.HOIST_STORED)


def _vectors(depth: int, width: int) -> Strategy:
    return in_elements(depth, vec.AS_VECTOR_AFTER.with_sizes(n=width))


@prints_as_call
def in_form(s: Rewrite, *pairs: Rewrite) -> Strategy:
    """s on a value in another form, and back: each pair brings it one view further."""
    if not pairs:
        return seq(s)
    return seq(pairs[0], argument(in_form(s, *pairs[1:])))


@prints_as_call
def store(level: Rewrite) -> Strategy:
    """A copy, its outermost loop at a level, into global memory."""
    return seq(copy(level, low.MAP_SEQ, low.MAP_SEQ), memory.IN_GLOBAL)


@prints_as_call
def copy(*levels: Rewrite) -> Strategy:
    """An array copied element by element, a loop for each level."""
    return seq(a.MAP_NOTHING, levels[0], mapped(copy(*levels[1:]))) if levels else id_


def transposed_input(term: Expr) -> bool:
    """transpose(b), for a variable."""
    match term:
        case Apply(Primitive(declaration, _), Identifier()):
            return declaration.name == "transpose"
        case _:
            return False


# --- by name ----------------------------------------------------------------------------------------------


VERSIONS: Mapping[str, Callable[[int, int, int, int], Strategy]] = {
    "baseline": lambda x, y, k, vector: baseline(),
    "blocking": lambda x, y, k, vector: blocking(x, y, k),
    "vectorization": vectorization,
    "loop_perm": loop_perm,
    "array_packing": array_packing,
    "cache_blocks": cache_blocks,
    "par": par,
}


@prints_as_call
def tvm_gemm(version: str = "loop_perm", x: int = 32, y: int = 32, k: int = 4, vector: int = 4) -> Strategy:
    """One of the seven schedules of TVM's GEMM tutorial: tiles of x × y, blocks of k, vectors.

    version: `baseline`, `blocking`, `vectorization`, `loop_perm`, `array_packing`, `cache_blocks` or `par`
    x:       rows of a tile
    y:       columns of a tile
    k:       how much of the sum at a time
    vector:  elements that are computed at once
    """
    if version not in VERSIONS:
        raise StrategyError(
            "R0609", f"tvm_gemm: there is no version `{version}`", None, f"there are {known()}"
        )
    chosen = VERSIONS[version](x, y, k, vector)
    return FunctionStrategy("tvm_gemm", complete(in_inputs(seq(chosen, aligned, to_loops))))


def known() -> str:
    return ", ".join(f"`{name}`" for name in VERSIONS)
