"""How a pattern is executed: on a level of the GPU, or by a loop. It denotes the plain pattern."""

from __future__ import annotations

from functools import partial

from rise.interpret import folds, patterns
from rise.nat import constant
from rise.primitives import declare as declaring
from rise.types import Space

declare = partial(declaring.declare, group="levels")

MAP = "{n: Nat, s: DataType, t: DataType} -> (s -> t) -> n.s -> n.t"
REDUCE = "{n: Nat, s: DataType, t: DataType} -> (t -> s -> t) -> t -> n.s -> t"
PIPELINE = "{n: Nat, r: DataType, s: DataType, t: DataType} -> (r -> s) -> (t -> s -> t) -> t -> n.r -> t"
DIMENSION = "(d: Nat) -> "
ACCUMULATOR = "(a: AddressSpace) -> "

THREE = "makeArray(3)(1, 2, 3)"
NEXT = f"(x => x + 1)({THREE})"
SQUARES = f"(x => x * x, (a, y) => a + y, 0)({THREE})"

# --- maps -----------------------------------------------------------------------------------------

declare_map = partial(declare, denotation=patterns.map_, lowers="map")


def _map(name: str, meaning: str) -> None:
    declare_map(name, MAP, meaning, example=(name + NEXT, "[2, 3, 4]"))


def _map_in_dimension(name: str, meaning: str) -> None:
    """The dimensions are 0, 1, 2 for x, y, z."""
    declare_map(name, DIMENSION + MAP, meaning, example=(f"{name}(1){NEXT}", "[2, 3, 4]"), d=constant(0))


_map("mapSeq", "A loop.")
_map("mapSeqUnroll", "A loop, unrolled.")


def _map_persistent(name: str, meaning: str) -> None:
    scheme = "(d: Nat, p: Nat) -> " + MAP
    declare_map(name, scheme, meaning, example=(f"{name}(0, 2){NEXT}", "[2, 3, 4]"))


_map_in_dimension("mapGlobal", "Over all threads of the grid, in dimension d (0 is x).")
_map_in_dimension("mapCluster", "Over the clusters of blocks of the grid, in dimension d.")
_map_in_dimension("mapBlock", "Over the blocks of the grid, or of a cluster, in dimension d.")
_map_persistent(
    "mapClusterPersistent", "Over at most p clusters in dimension d, several elements each in turn."
)
_map_persistent("mapBlockPersistent", "Over at most p blocks in dimension d, several elements each in turn.")
_map_in_dimension("mapThreads", "Over the threads of a block, in dimension d.")
_map("mapWarpGroup", "Over the warpgroups of a block: four warps each.")
_map("mapWarpGroupThreads", "Over the 128 threads of a warpgroup.")
declare(
    "pingPong",
    "(w: Nat) -> {t: DataType} -> t -> t",
    "By one of w warpgroups, the next one each time: while it finishes, the next one begins.",
    patterns.identity,
    example=("pingPong(2)(makeArray(2)(1, 2))", "[1, 2]"),
    lowers="id",
)
_map("mapWarp", "Over the warps of a block.")
_map("mapLane", "Over the lanes of a warp.")

declare(
    "skewed",
    "{t: DataType} -> t -> t",
    "The step of reduceRoleSplit, whose last products are started behind the first ones of the next step.",
    patterns.identity,
    example=("skewed(makeArray(2)(1, 2))", "[1, 2]"),
    lowers="id",
)

declare(
    "inTurn",
    "{t: DataType} -> t -> t",
    "A step of reduceRoleSplit by several warpgroups, which start its products one after the other.",
    patterns.identity,
    example=("inTurn(makeArray(2)(1, 2))", "[1, 2]"),
    lowers="id",
)

# --- folds ----------------------------------------------------------------------------------------

declare(
    "reduceSeq",
    ACCUMULATOR + REDUCE,
    "A left fold as a loop; its accumulator lives in space a.",
    folds.fold,
    example=(f"reduceSeq((a, x) => 10 * a + x, 0)({THREE})", "123"),
    lowers="reduce",
    a=Space.LOCAL,
)
declare(
    "reduceSeqUnroll",
    ACCUMULATOR + REDUCE,
    "A left fold as an unrolled loop; its accumulator lives in space a.",
    folds.fold,
    example=(f"reduceSeqUnroll(Local)((a, x) => 10 * a + x, 0)({THREE})", "123"),
    lowers="reduce",
    a=Space.LOCAL,
)
declare(
    "scanSeq",
    "{n: Nat, s: DataType, t: DataType} -> (s -> t -> t) -> t -> n.s -> n.t",
    "All accumulators of a left fold, as a loop. Its function has the element first, then the accumulator.",
    folds.scan_sequentially,
    example=(f"scanSeq((x, a) => 10 * a + x, 0)({THREE})", "[1, 12, 123]"),
    lowers="scan",
)
declare(
    "reducePipelined",
    "(stages: Nat) -> " + PIPELINE,
    "reduceSeq after map(load), with the loads of the next elements under way: `stages` of them in memory.",
    folds.fold_loaded,
    example=(f"reducePipelined(4){SQUARES}", "14"),
    lowers="reduceSeq",
)
declare(
    "reduceRoleSplit",
    "(stages: Nat, producers: Nat, consumers: Nat) -> " + PIPELINE,
    "reducePipelined by roles: so many warpgroups of a block only load, so many only compute.",
    folds.fold_loaded,
    example=(f"reduceRoleSplit(4, 1, 2){SQUARES}", "14"),
    lowers="reduceSeq",
)
