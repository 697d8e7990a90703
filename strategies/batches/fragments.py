"""Matrices in shared memory, multiplied by tensor cores: a warp computes a matrix at a time."""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites.padding import ROUND_UP_MAP
from rise.expr import Expr
from rise.types import shape
from strategies.core import Rewrite, Strategy, argument, depending, prints_as_call, seq
from strategies.matmul.epilogue import direct_epilogue
from strategies.matmul.grid import by_itself
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.products import bring_prologue, separate_prologue
from strategies.matmul.rounding import rounded_up
from strategies.matmul.schedules import operands_named, products
from strategies.matmul.tiling import tile_reduction
from strategies.places import mapped

FRAGMENT = (16, 8, 16)


@prints_as_call
def by_warps_each(warps: int, s: Rewrite) -> Strategy:
    """s for what a map computes of one element, each by a warp, in turns.

    before: xs |> map(f)
    after:  xs |> split(warps) |> mapSeq(mapWarp(s f)) |> join
    """

    def chosen(term: Expr) -> Rewrite:
        size = shape(term.type)[0][0].value or 1
        turn = seq(mapped(s), low.MAP_WARP)
        turns = seq(a.SPLIT_JOIN.with_sizes(n=warps), argument(seq(mapped(turn), low.MAP_SEQ)))
        more = -size % warps
        return seq(ROUND_UP_MAP.with_sizes(p=more), argument(turns)) if more else turns

    return depending(chosen)


@prints_as_call
def by_one_warp(sizes: tuple[int, int, int]) -> Strategy:
    """A matrix around products by the instructions of one warp, with zeros up to whole fragments.

    sizes: of the product, m, n and k
    """
    m, n, k = (-(-size // part) * part for size, part in zip(sizes, FRAGMENT, strict=True))
    sums = seq(tile_reduction(k), warp_tiles(m, n), tensorise(FRAGMENT), accumulate_fragments, load_once)
    whole = direct_epilogue(sums, (m, n), FRAGMENT, by_itself)
    return seq(
        products,
        separate_prologue,
        rounded_up((m, n, k), None, operands_named(whole)),
        bring_prologue,
    )
