"""Refuses illegal low-level programs, with a place in the source and a reason.

Levels nest as in the hardware; a warp uses its fragments as a whole; no two threads write the same location
(see `analysis.race_check`); a reduction step reads only the element of its accumulator that it replaces.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.lower.accumulators import check_update
from codegen.passes.analysis.race_check import check_races
from rise.errors import TranslationError

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


def check_accumulators(command: i.Command) -> None:
    """A loop that updates a buffer reads only the element that it writes (see `fold`)."""
    if isinstance(command, i.For) and command.role is i.Role.REDUCTION:
        check_update(command.body)
    for part in i.inner(command):
        check_accumulators(part)
