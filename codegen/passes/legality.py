"""Refuses illegal low-level programs, with a place in the source and a reason.

Levels nest as in the hardware; a warp uses its fragments as a whole; no two threads write the same location
(see `analysis.race_check`); a reduction step reads only the element of its accumulator that it replaces.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from codegen.ir.launch import Launch
from codegen.passes.analysis.dependences import target_of
from codegen.passes.analysis.race_check import check_races
from rise.errors import TranslationError
from rise.nat import Nat
from rise.source import Origin

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
        for name in _updated(command.body):
            _elementwise(command.body, name)
    for part in i.inner(command):
        check_accumulators(part)


def _updated(command: i.Command) -> set[str]:
    inside = {c.name for c in i.commands(command) if isinstance(c, i.New)}
    written = {t.buffer for c in i.commands(command) if isinstance(t := target_of(c), i.Access)}
    return written - inside


def _elementwise(command: i.Command, name: str) -> None:
    """No command reads what an earlier command of the step replaced, or what its loop replaces elsewhere."""
    written: set[tuple[Nat, ...]] = set()
    for part in _parts(command):
        writes = [t for c in i.commands(part) if isinstance(t := target_of(c), i.Access) and t.buffer == name]
        places = written | {t.indices for t in writes}
        for inner in i.commands(part):
            for indices in _reads(inner, name):
                if written or (writes and any(indices != place for place in places)):
                    raise TranslationError(
                        "R0720",
                        f"the step of a reduction reads an element of `{shown(name)}` that it does not write",
                        _origin(part, name),
                        "store the new value elsewhere before it replaces the accumulator",
                    )
        written |= {t.indices for t in writes}


def _parts(command: i.Command) -> tuple[i.Command, ...]:
    """The commands of a step, in order."""
    if isinstance(command, i.New):
        return _parts(command.body)
    return command.commands if isinstance(command, i.Sequence) else (command,)


def _reads(command: i.Command, name: str) -> list[tuple[Nat, ...]]:
    """The indices at which a command reads a buffer."""
    target = target_of(command)
    found = [a for a in i.accesses(command) if isinstance(a, i.Access) and a.buffer == name]
    if isinstance(target, i.Access) and target.buffer == name:
        found.remove(target)
    return [access.indices for access in found]


def _origin(command: i.Command, name: str) -> Origin:
    """Where the source has the value that replaces the buffer."""
    for part in i.commands(command):
        target = target_of(part)
        if isinstance(target, i.Access) and target.buffer == name:
            return getattr(part, "origin", None)
    return getattr(command, "origin", None)
