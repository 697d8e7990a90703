"""Refuses illegal low-level programs, with a place in the source and a reason.

Levels nest as in the hardware; a warp uses its fragments as a whole; no two threads write the same location
(see `analysis.race_check`); a reduction step reads only the element of its accumulator that it replaces; a
block writes only its own element of a distributed array.
"""

from __future__ import annotations

from typing import NoReturn

from codegen.ir import imperative as i
from codegen.ir.buffers import swizzle
from codegen.ir.identifiers import shown
from codegen.ir.launch import Launch
from codegen.lower.accumulators import check_update
from codegen.passes.analysis.race_check import check_races
from rise.errors import TranslationError
from rise.nat import constant, variable
from rise.source import Origin
from rise.types import Array, Space

# the commands that a warp or warpgroup executes collectively
COLLECTIVE = (
    i.LoadFragment, i.StoreFragment, i.FillFragment, i.ForFragment, i.MmaFragment, i.Wgmma,
)  # fmt: skip
BLOCKS = frozenset({i.Level.CLUSTER, i.Level.BLOCK})
ABOVE: dict[i.Level, frozenset[i.Level]] = {
    i.Level.GRID: frozenset({i.Level.GRID}),
    i.Level.CLUSTER: frozenset({i.Level.CLUSTER}),
    i.Level.BLOCK: BLOCKS,
    i.Level.THREAD: BLOCKS | {i.Level.THREAD},
    i.Level.WARP: BLOCKS,
    i.Level.LANE: BLOCKS | {i.Level.WARP},
    i.Level.WARPGROUP: BLOCKS,
    i.Level.WARPGROUP_THREAD: BLOCKS | {i.Level.WARPGROUP},
}


def check(function: i.Function, launch: Launch) -> None:
    """Raises TranslationError for the first violation."""
    check_levels(function.body, fragments=True)
    check_distributed(function.body, launch)
    check_races(function.body, launch)


def check_levels(command: i.Command, around: tuple[i.ParallelFor, ...] = (), fragments: bool = False) -> None:
    """Levels nest as in the hardware; if `fragments`, warps also use their fragments as a whole."""
    if isinstance(command, i.ParallelFor):
        _nesting(command, around)
        around = (*around, command)
    elif fragments and isinstance(command, COLLECTIVE):
        _in_warp(command, around)
    for part in i.inner(command):
        check_levels(part, around, fragments)


def _nesting(loop: i.ParallelFor, around: tuple[i.ParallelFor, ...]) -> None:
    for outer in around:
        same = outer.level is loop.level and outer.dimension == loop.dimension
        if outer.level not in ABOVE[loop.level] or same:
            raise TranslationError(
                "R0719",
                f"a map over {loop.level.value}s cannot be inside one over {outer.level.value}s",
                loop.origin,
                "blocks contain warps or threads, warps contain lanes",
            )


def _in_warp(command: i.Command, around: tuple[i.ParallelFor, ...]) -> None:
    levels = {loop.level for loop in around}
    if i.Level.WARPGROUP in levels and i.Level.WARPGROUP_THREAD not in levels:
        return
    if i.Level.WARP not in levels or i.Level.LANE in levels:
        raise TranslationError(
            "R0706",
            "a fragment belongs to a whole warp: use it inside mapWarp and outside mapLane",
            getattr(command, "origin", None),
        )


def check_distributed(
    command: i.Command,
    launch: Launch,
    around: tuple[i.ParallelFor, ...] = (),
    arrays: frozenset[str] = frozenset(),
) -> None:
    """A distributed array has an element for each block of a cluster: that block writes it, and all read it.

    around: the maps over clusters and blocks; arrays: the distributed arrays that are visible
    """
    if isinstance(command, i.ParallelFor) and command.level in BLOCKS:
        around = (*around, command)
    if isinstance(command, i.New) and command.space is Space.DISTRIBUTED:
        _check_elements(command, launch, [loop.level for loop in around])
        arrays |= {command.name}
    for access in i.accesses(command):
        if access.buffer in arrays:
            _check_access(command, access, around)
    for part in i.inner(command):
        check_distributed(part, launch, around, arrays)


def _check_elements(new: i.New, launch: Launch, around: list[i.Level]) -> None:
    if i.Level.CLUSTER not in around or i.Level.BLOCK in around:
        _refuse_distributed("is not stored by a cluster", new.name, new.origin)
    if not isinstance(new.type, Array) or new.type.size != constant(launch.cluster):
        elements = f"is `{new.type}`, and a cluster has {launch.cluster} blocks"
        _refuse_distributed(elements, new.name, new.origin)
    if swizzle(new.layout):
        _refuse_distributed("is swizzled", new.name, new.origin, "use `padded` rows")


def _check_access(command: i.Command, access: i.Access | i.Tile, around: tuple[i.ParallelFor, ...]) -> None:
    origin = getattr(command, "origin", None)
    written = access is i.target_of(command)
    if not isinstance(command, (i.Assign, i.StoreMatrices) if written else i.Assign):
        whole = "is moved as a whole, and threads write and read elements of it"
        _refuse_distributed(whole, access.buffer, origin, "use `toMem(Shared)`, or fragments of `mma.sync`")
    own = [variable(loop.index) for loop in around if loop.level is i.Level.BLOCK]
    if written and access.indices[:1] != tuple(own):
        _refuse_distributed(
            "has an element for each block, and another block writes it", access.buffer, origin
        )


def _refuse_distributed(
    reason: str,
    name: str,
    origin: Origin,
    hint: str = "store what a `mapBlock(0)` inside of a `mapCluster(0)` computes, an element for each block",
) -> NoReturn:
    raise TranslationError("R0743", f"`{shown(name)}` in distributed memory {reason}", origin, hint)


def check_accumulators(command: i.Command) -> None:
    """A loop that updates a buffer reads only the element that it writes (see `fold`)."""
    if isinstance(command, i.For) and command.role is i.Role.REDUCTION:
        check_update(command.body)
    for part in i.inner(command):
        check_accumulators(part)
