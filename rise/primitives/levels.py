"""How a pattern is executed: on a level of the GPU, or by a loop. It denotes the plain pattern."""

from __future__ import annotations

from rise.interpret import patterns
from rise.nat import constant
from rise.primitives.declare import declare
from rise.types import Space

MAP = "{n: Nat, s: DataType, t: DataType} -> (s -> t) -> n.s -> n.t"
REDUCE = "{n: Nat, s: DataType, t: DataType} -> (t -> s -> t) -> t -> n.s -> t"
DIMENSION = "(d: Nat) -> "
ACCUMULATOR = "(a: AddressSpace) -> "

declare("mapSeq", MAP, "A loop.", patterns.map_, lowers="map")
declare("mapSeqUnroll", MAP, "A loop, unrolled.", patterns.map_, lowers="map")
declare(
    "mapGlobal",
    DIMENSION + MAP,
    "Over all threads of the grid, in dimension d (0 is x).",
    patterns.map_,
    lowers="map",
    d=constant(0),
)
declare(
    "mapBlock",
    DIMENSION + MAP,
    "Over the blocks of the grid, in dimension d.",
    patterns.map_,
    lowers="map",
    d=constant(0),
)
declare(
    "mapThreads",
    DIMENSION + MAP,
    "Over the threads of a block, in dimension d.",
    patterns.map_,
    lowers="map",
    d=constant(0),
)
declare("mapWarp", MAP, "Over the warps of a block.", patterns.map_, lowers="map")
declare("mapLane", MAP, "Over the lanes of a warp.", patterns.map_, lowers="map")

declare(
    "reduceSeq",
    ACCUMULATOR + REDUCE,
    "A left fold as a loop; its accumulator lives in space a.",
    patterns.fold,
    lowers="reduce",
    a=Space.LOCAL,
)
declare(
    "reduceSeqUnroll",
    ACCUMULATOR + REDUCE,
    "A left fold as an unrolled loop; its accumulator lives in space a.",
    patterns.fold,
    lowers="reduce",
    a=Space.LOCAL,
)
