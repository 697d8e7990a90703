"""From a high-level product of matrices to tensor cores, for any program whose core is one.

Each phase is a strategy: outline the product, tile the result, block the reduction and bring its loop
out, tile for warps and for fragments, tensorise, keep accumulators fragments, finish on fragments,
choose levels. The phases look for structure (`reduce` under two maps), not for GEMM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import movement as m
from rewrites import tensor as t
from rewrites.result import Failure, Result, Success
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, call
from strategies.core import (
    Rewrite,
    Strategy,
    all_,
    argument,
    at_child,
    bottom_up,
    check,
    choice,
    everywhere,
    id_,
    normalize,
    recursive,
    repeat,
    seq,
    top_down,
    try_,
)
from strategies.normal_forms import form_outward, fuse_components, view_inward
from strategies.places import arguments, computes, hiding, in_inputs, mapped, outermost_part


@dataclass(frozen=True)
class Parameters:
    """Sizes of the tiles: of a block (m, n, k), of a warp (m, n), of an instruction (m, n, k)."""

    block: tuple[int, int, int] = (128, 128, 32)
    warp: tuple[int, int] = (64, 64)
    fragment: tuple[int, int, int] = (16, 16, 16)
    load_once: bool = True


# --- predicates -------------------------------------------------------------------------------------------


def is_product(term: Expr) -> bool:
    """A map of maps of reductions: the matrix of all dot products."""
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return False
    function = applied[2][0]
    return isinstance(function, Lambda) and a.is_map_of_reductions(function.body)


def contains(predicate: Callable[[Expr], bool]) -> Callable[[Expr], bool]:
    return lambda term: outermost_part(term, predicate) is not None


def is_fold(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "reduceSeq" and len(applied[2]) == 3


# --- phases -----------------------------------------------------------------------------------------------

# 1: the product is a matrix of its own, everything else a map over it
outline = seq(
    normalize(choice(a.SEPARATE_REDUCTION, m.DROP_UNUSED)),
    normalize(choice(a.SEPARATE_PRODUCT, m.DROP_UNUSED)),
)


def tile_output(rows: int, columns: int) -> Strategy:
    """2: the result by tiles; the two maps over tiles contain all there is to do for one."""
    return seq(
        m.TILE.with_sizes(bm=rows, bn=columns),
        arguments(
            3,
            seq(
                view_inward,
                fuse_components,
                try_(mapped(seq(view_inward, fuse_components))),
                view_inward,
            ),
        ),
    )


def block_reduction(size: int) -> Strategy:
    """3: the sums in blocks of `size`, and the loop over blocks outside of the maps over elements."""
    return seq(
        top_down(a.BLOCK_REDUCE.with_sizes(n=size)),
        view_inward,
        normalize(a.REDUCE_FROM),
        bottom_up(a.LIFT_REDUCE),
        view_inward,
        bottom_up(a.LIFT_REDUCE),
        view_inward,
    )


def at_step(s: Rewrite) -> Strategy:
    """s in the body of the outermost fold's step function."""

    def run(term: Expr) -> Result:
        if not is_fold(term):
            return Failure("at_step", term, "expected a reduction")
        # reduceSeq(step)(initial)(xs): step is an argument two applications in
        return at_child(0, lambda f: at_child(0, lambda g: at_child(1, two_bodies, g), f), term)

    def two_bodies(term: Expr) -> Result:
        return at_child(0, lambda inner: at_child(0, s, inner), term)

    return Strategy("at_step", run)


NO_PRODUCT = (
    "there is no product of two matrices: a sum (reduce) of products under two maps, whose inner array "
    "does not depend on the outer element"
)


def tensor_core(
    block: tuple[int, int, int] = (128, 128, 32),
    warp: tuple[int, int] = (64, 64),
    fragment: tuple[int, int, int] = (16, 16, 16),
    load_once: bool = True,
) -> Strategy:
    """The schedule: block tiles, a loop over k, warp tiles, fragments. A strategy for whole definitions."""
    p = Parameters(block, warp, fragment, load_once)
    validate(p)
    return Strategy("tensor_core", in_inputs(schedule(p)))


def validate(p: Parameters) -> None:
    """A tile that does not divide the one around it is refused here, by name."""
    for name, outer, inner in (
        ("block m by warp m", p.block[0], p.warp[0]),
        ("block n by warp n", p.block[1], p.warp[1]),
        ("warp m by fragment m", p.warp[0], p.fragment[0]),
        ("warp n by fragment n", p.warp[1], p.fragment[1]),
        ("block k by fragment k", p.block[2], p.fragment[2]),
    ):
        if inner < 1 or outer < 1 or outer % inner:
            raise StrategyError("R0604", f"tensor_core: {name}: {inner} does not divide {outer}")
    if p.fragment not in t.WMMA_SHAPES:
        known = ", ".join("×".join(map(str, s)) for s in sorted(t.WMMA_SHAPES))
        shape = "×".join(map(str, p.fragment))
        raise StrategyError("R0605", f"tensor_core: there is no fragment {shape}; there are {known}")


def schedule(p: Parameters) -> Strategy:
    with_epilogue = seq(
        check(lambda e: not is_product(e), "epilogue"),
        epilogue_tiles(p),
        at_product(product(p)),
        finish_epilogue,
    )
    in_block = choice(seq(check(is_product, "the result is the product"), product(p)), with_epilogue)
    return seq(
        view_inward,
        outline,
        check(contains(is_product), "tensor_core", NO_PRODUCT),
        tile_output(p.block[0], p.block[1]),
        arguments(3, mapped(mapped(in_block))),
        everywhere(t.LOAD_ONCE) if p.load_once else id_,
        arguments(3, lower),
    )


def computing(s: Rewrite) -> Strategy:
    return seq(check(computes, "a map that computes"), s)


# 9: who executes the maps: blocks, then warps, then each warp one after the other, unrolled
in_warp = seq(everywhere(computing(low.MAP_SEQ_UNROLL)), everywhere(low.REDUCE_SEQ_UNROLL))
# the outermost maps that compute become maps over warps; what they are applied to is looked at as well
to_warps = recursive(
    "to_warps",
    lambda itself: choice(
        seq(computing(low.MAP_WARP), mapped(in_warp), argument(try_(itself))), all_(try_(itself))
    ),
)
lower = seq(
    low.MAP_BLOCK.with_sizes(d=1),
    mapped(low.MAP_BLOCK.with_sizes(d=0)),
    mapped(mapped(to_warps)),
)


def at_product(s: Rewrite) -> Strategy:
    """s at the outermost product."""
    return top_down(
        seq(
            Strategy(
                "is_product",
                lambda e: Success(e) if is_product(e) else Failure("is_product", e, "no product of matrices"),
            ),
            s,
        )
    )


# two maps over tiles as one, whatever else happens to the tiles
flatten = seq(normalize(choice(a.FLATTEN_INNER, a.FLATTEN_PART, a.FLATTEN)), view_inward)


def warp_tiles(p: Parameters) -> Strategy:
    """TILE_FLAT in tiles of a warp, views moved inward in the part that is tiled."""
    wm, wn = p.warp
    tile = m.TILE_FLAT.with_sizes(bm=wm, bn=wn, c=p.block[1] // wn)
    return seq(tile, arguments(4, seq(view_inward, flatten)))


def fragment_tiles(p: Parameters) -> Strategy:
    return seq(m.TILE.with_sizes(bm=p.fragment[0], bn=p.fragment[1]), arguments(3, view_inward))


def epilogue_tiles(p: Parameters) -> Strategy:
    """The tile of a block by warps and by fragments, the product being left as it is."""
    tiled = seq(warp_tiles(p), arguments(4, mapped(fragment_tiles(p))))
    return hiding(is_product, tiled)


def product(p: Parameters) -> Strategy:
    """4 and 5: the product of a block: loop over k, warps, loop over fragments' k, instructions."""
    in_warp = seq(
        block_reduction(p.fragment[2]),
        at_step(fragment_tiles(p)),
        at_step(top_down(choice(t.TENSORISE, t.TENSORISE_SAME))),
    )
    return seq(
        block_reduction(p.block[2]),
        at_step(seq(warp_tiles(p), arguments(4, mapped(in_warp)))),
        form_outward,
        top_down(seq(check(is_fold, "a reduction"), view_inward, flatten)),
    )


# 6: what is done with the result: on fragments where the types allow it, through shared memory elsewhere
on_fragments = normalize(
    choice(
        t.ZIP_FRAGMENT,
        t.MAP_FRAGMENT,
        t.ZIP_NEST,
        t.ZIP_THROUGH_SHARED,
        t.MAP_THROUGH_SHARED,
        t.ROW_THROUGH_SHARED,
    )
)
finish_epilogue = arguments(
    4,
    seq(
        argument(seq(view_inward, flatten)),
        repeat(a.MAP_FUSION),
        mapped(arguments(3, seq(view_inward, on_fragments))),
    ),
)
