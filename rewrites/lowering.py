"""Rules that choose how a map or a reduction is executed."""

from __future__ import annotations

from rewrites.rule import rule

MAP_BLOCK = rule(
    "map → mapBlock",
    "xs |> map(f)",
    "xs |> mapBlock(d)(f)",
    sizes=("d",),
    meaning="Over the blocks of dimension d.",
)
MAP_WARP = rule("map → mapWarp", "xs |> map(f)", "xs |> mapWarp(f)", meaning="Over the warps of a block.")
MAP_LANE = rule("map → mapLane", "xs |> map(f)", "xs |> mapLane(f)")
MAP_THREADS = rule("map → mapThreads", "xs |> map(f)", "xs |> mapThreads(d)(f)", sizes=("d",))
MAP_GLOBAL = rule("map → mapGlobal", "xs |> map(f)", "xs |> mapGlobal(d)(f)", sizes=("d",))
MAP_SEQ = rule("map → mapSeq", "xs |> map(f)", "xs |> mapSeq(f)", meaning="As a loop.")
MAP_SEQ_UNROLL = rule(
    "map → mapSeqUnroll", "xs |> map(f)", "xs |> mapSeqUnroll(f)", meaning="As an unrolled loop."
)
REDUCE_SEQ = rule(
    "reduce → reduceSeq",
    "xs |> reduce(op, z)",
    "xs |> reduceSeq(Local)(op, z)",
    meaning="A left fold.",
)
REDUCE_SEQ_UNROLL = rule(
    "reduceSeq → reduceSeqUnroll",
    "xs |> reduceSeq(Local)(f, z)",
    "xs |> reduceSeqUnroll(Local)(f, z)",
)
