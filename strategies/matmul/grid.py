"""Who computes tiles: blocks, clusters, persistent blocks, warpgroups in turn; within a block, its warps."""

from __future__ import annotations

from rewrites import lowering as low
from rewrites.maps import MAP_LAST_FISSION
from rewrites.rasterise import RASTERISE_PERSISTENT
from rewrites.result import Result
from rewrites.rule import Rule
from rise.expr import Expr, Primitive, call, subterms
from rise.nat import Nat
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    all_,
    argument,
    check,
    choice,
    depending,
    everywhere,
    id_,
    prints_as_call,
    recursive,
    seq,
    top_down,
    try_,
)
from strategies.matmul.tiling import if_in_list, in_two_maps
from strategies.places import computes, mapped

ROWS, COLUMNS = 1, 0  # of tiles, as dimensions of the grid
NO_LIST = (
    "clusters are a dimension of the grid, and tiles are in two maps: a row of the result is not whole tiles"
)

# --- the grid ---------------------------------------------------------------------------------------------


@prints_as_call
def outermost_map(s: Rewrite) -> Strategy:
    """Applies s to the map whose result the views around it rearrange."""
    return recursive("outermost_map", lambda itself: choice(computing(s), argument(itself)))


def _blocks(term: Expr) -> Strategy:
    columns = low.MAP_BLOCK.with_sizes(d=COLUMNS)
    if in_two_maps(term):
        return outermost_map(seq(low.MAP_BLOCK.with_sizes(d=ROWS), mapped(outermost_map(columns))))
    return outermost_map(columns)


# a block for each tile: over one dimension of the grid, or over two where tiles are in two maps
blocks: Strategy = depending(_blocks)

# a cluster for each tile of a list
cluster_for_each: Strategy = seq(
    check(lambda term: not in_two_maps(term), "cluster_for_each", NO_LIST),
    depending(lambda _: outermost_map(low.MAP_CLUSTER.with_sizes(d=COLUMNS))),
)


@prints_as_call
def clusters(size: int) -> Strategy:
    """Neighbouring blocks of a list in clusters of so many, which load what they share by multicast.

    before: e |> mapBlock(0)(f)
    after:  e |> split(size) |> mapCluster(0)(xs => xs |> mapBlock(0)(f)) |> join
    """
    if size == 1:
        return id_
    return if_in_list(top_down(low.BLOCKS_IN_CLUSTERS.with_sizes(d=COLUMNS, c=size)))


@prints_as_call
def persistent(count: int) -> Strategy:
    """So many blocks, or clusters where there are some, each of which computes several elements of a list.

    before: e |> mapBlock(0)(f)
    after:  e |> mapBlockPersistent(0, count)(f)
    """

    def make(term: Expr) -> Strategy:
        in_clusters = any(isinstance(p, Primitive) and p.name == "mapCluster" for p in subterms(term))
        persist = low.CLUSTERS_PERSIST if in_clusters else low.BLOCKS_PERSIST
        return top_down(persist.with_sizes(d=COLUMNS, p=count))

    return if_in_list(depending(make)) if count else id_


# the persistent blocks, or clusters, of each array of a list take the elements of all of them
of_several_arrays: Strategy = recursive(
    "of_several_arrays",
    lambda itself: choice(
        low.BLOCKS_OF_ARRAYS, low.CLUSTERS_OF_ARRAYS, seq(MAP_LAST_FISSION, argument(itself))
    ),
)


@prints_as_call
def arrays_in_groups(count: int) -> Strategy:
    """Persistent blocks, or clusters, take the elements of so many arrays at a time, in turn.

    before: xs |> map(f) |> join |> mapBlockPersistent(0, p)(g) |> split(c)
    after:  xs |> map(f) |> join |> reorder(…) |> mapBlockPersistent(0, p)(g) |> reorder(…) |> split(c)
    """

    def run(term: Expr) -> Result:
        applied = call(term)
        if applied is not None and applied[0] == "split" and _is_persistent(applied[2][0]):
            each = applied[1].arguments[0]
            if isinstance(each, Nat):
                rules = (rule.with_sizes(g=count, c=each) for rule in RASTERISE_PERSISTENT)
                return argument(choice(*rules))(term)
        return argument(run)(term)

    return FunctionStrategy("arrays_in_groups", run) if count > 1 else id_


def _is_persistent(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] in ("mapBlockPersistent", "mapClusterPersistent")


@prints_as_call
def in_turn(groups: int) -> Strategy:
    """So many warpgroups of a block compute its tiles in turn: one multiplies, another runs its epilogue.

    before: e |> mapBlock(0)(f)
    after:  e |> mapBlock(0)(x => pingPong(groups)(f(x)))
    """
    if groups == 1:
        return id_
    return if_in_list(top_down(low.WARPGROUPS_PING_PONG.with_sizes(d=COLUMNS, w=groups)))


# --- the workers of a block -------------------------------------------------------------------------------


@prints_as_call
def computing(s: Rewrite) -> Strategy:
    """s at a map that does more than change the form of data."""
    return seq(check(computes, "a map that computes"), s)


# the maps of one warp, unrolled, and all of its loops
maps_in_warp: Strategy = everywhere(computing(low.MAP_SEQ_UNROLL))
in_warp: Strategy = seq(maps_in_warp, everywhere(low.REDUCE_SEQ_UNROLL))


@prints_as_call
def to_level(name: str, rule: Rule, of_one: Rewrite = in_warp) -> Strategy:
    """The outermost maps that compute become maps over a level, and those in what they are applied to.

    before: e |> map(x => g(x) |> map(f))
    after:  e |> mapWarp(x => g(x) |> mapSeqUnroll(f))
    """
    return recursive(
        name,
        lambda itself: choice(
            seq(computing(rule), mapped(of_one), argument(try_(itself))), all_(try_(itself))
        ),
    )


# the parts of a tile by warps
to_warps: Strategy = to_level("to_warps", low.MAP_WARP)
# the same without unrolling the loop over the terms of a sum, which takes fewer registers
to_warps_in_steps: Strategy = to_level("to_warps_in_steps", low.MAP_WARP, maps_in_warp)
# the parts of a tile by warpgroups
to_warpgroups: Strategy = to_level("to_warpgroups", low.MAP_WARP_GROUP)
# the one part of a tile by the warpgroup whose turn it is
by_itself: Strategy = to_level("by_itself", low.MAP_SEQ_UNROLL)
