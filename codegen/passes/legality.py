"""What a low-level program must not do, refused with a place and a reason.

Levels nest as the hardware does; fragments belong to a warp; no two threads write one place; a
reduction's step reads of its accumulator only what it is about to replace.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from codegen import imperative as i
from codegen.launch import Launch
from codegen.passes.barriers import target_of
from rise.errors import TranslationError
from rise.nat import Nat, NatVariable
from rise.source import Origin
from rise.types import Space

ABOVE: dict[i.Level, frozenset[i.Level]] = {
    i.Level.GRID: frozenset({i.Level.GRID}),
    i.Level.BLOCK: frozenset({i.Level.BLOCK}),
    i.Level.THREAD: frozenset({i.Level.BLOCK, i.Level.THREAD}),
    i.Level.WARP: frozenset({i.Level.BLOCK}),
    i.Level.LANE: frozenset({i.Level.BLOCK, i.Level.WARP}),
}


@dataclass(frozen=True)
class Around:
    """The parallel loops around a command, and the buffers in scope by address space."""

    loops: tuple[i.ParallelFor, ...] = ()
    local: frozenset[str] = frozenset()
    own: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def levels(self) -> set[tuple[i.Level, int]]:
        return {(loop.level, loop.dimension) for loop in self.loops}


def check(function: i.Function, launch: Launch) -> None:
    """Raises for the first thing that is illegal."""
    _check(function.body, Around(), launch)


def _check(command: i.Command, around: Around, launch: Launch) -> None:
    match command:
        case i.ParallelFor(level, dimension, _, _, _, origin):
            _nesting(level, dimension, around, origin)
            around = replace(around, loops=(*around.loops, command))
        case i.New(space, name):
            if space is Space.LOCAL:
                around = replace(around, local=around.local | {name})
            around = replace(around, own={**around.own, name: tuple(loop.index for loop in around.loops)})
        case i.LoadFragment() | i.MmaFragment() | i.FillFragment() | i.ForFragment() | i.StoreFragment():
            _in_warp(command, around)
        case _:
            pass
    target = target_of(command)
    if isinstance(target, i.Access | i.Tile) and target.buffer not in around.local:
        _single_writer(command, target, around, launch)
    for part in i.inner(command):
        _check(part, around, launch)


def _nesting(level: i.Level, dimension: int, around: Around, origin: Origin) -> None:
    for outer in around.loops:
        if outer.level not in ABOVE[level] or (outer.level is level and outer.dimension == dimension):
            raise TranslationError(
                "R0719",
                f"a map over {level.value}s cannot be inside of one over {outer.level.value}s",
                origin,
                "blocks contain warps or threads, warps contain lanes",
            )


def _in_warp(command: i.Command, around: Around) -> None:
    levels = {loop.level for loop in around.loops}
    if i.Level.WARP not in levels or i.Level.LANE in levels:
        raise TranslationError(
            "R0706",
            "a fragment belongs to a warp as a whole: it is used inside of mapWarp and outside of mapLane",
            getattr(command, "origin", None),
        )


def _single_writer(command: i.Command, target: i.Access | i.Tile, around: Around, launch: Launch) -> None:
    """Every level with several workers is a loop around the write, and its index tells the places apart."""
    origin = getattr(command, "origin", None)
    collective = isinstance(command, i.StoreFragment)
    private = around.own.get(target.buffer, ())
    for level, dimension, workers in _launched(launch, around, target.buffer, collective):
        if workers > 1 and (level, dimension) not in around.levels():
            raise TranslationError(
                "R0707",
                f"all {level.value}s write the same place of `{target.buffer}`",
                origin,
                f"distribute the writes with a map over {level.value}s",
            )
    atoms = (
        target.offset.atoms if isinstance(target, i.Tile) else {a for n in target.indices for a in n.atoms}
    )
    for loop in around.loops:
        if loop.index not in private and NatVariable(loop.index) not in atoms and loop.count.value != 1:
            raise TranslationError(
                "R0707",
                f"all {loop.level.value}s write the same place of `{target.buffer}`",
                origin,
            )


def _launched(
    launch: Launch, around: Around, buffer: str, collective: bool
) -> list[tuple[i.Level, int, int]]:
    """The levels whose workers must be told apart by a write."""
    levels = {level for level, _ in around.levels()}
    if i.Level.GRID in levels:
        return [(i.Level.GRID, d, launch.workers(i.Level.GRID, d)) for d in range(3)]
    wanted = [(i.Level.BLOCK, d, launch.grid[d]) for d in range(3)] if buffer not in around.own else []
    if i.Level.WARP in levels or i.Level.LANE in levels:
        if i.Level.WARP not in levels:
            wanted.append((i.Level.WARP, 0, launch.workers(i.Level.WARP, 0)))
        if not collective:
            wanted.append((i.Level.LANE, 0, 32))
        return wanted + [(i.Level.THREAD, d, launch.block[d]) for d in (1, 2)]
    return wanted + [(i.Level.THREAD, d, launch.block[d]) for d in range(3)]


def check_accumulators(command: i.Command) -> None:
    """In a loop that updates a buffer, it is read only where it is written (see `fold`)."""
    if isinstance(command, i.For) and command.pattern.startswith("reduceSeq"):
        for name in _updated(command.body):
            _elementwise(command.body, name)
    for part in i.inner(command):
        check_accumulators(part)


def _updated(command: i.Command) -> set[str]:
    inside = {c.name for c in i.commands(command) if isinstance(c, i.New)}
    written = {t.buffer for c in i.commands(command) if isinstance(t := target_of(c), i.Access)}
    return written - inside


def _elementwise(command: i.Command, name: str) -> None:
    """No command reads what an earlier one of the step replaced, nor what its loop replaces elsewhere."""
    written: set[tuple[Nat, ...]] = set()
    for part in _parts(command):
        writes = [t for c in i.commands(part) if isinstance(t := target_of(c), i.Access) and t.buffer == name]
        places = written | {t.indices for t in writes}
        for inner in i.commands(part):
            for indices in _reads(inner, name):
                if written or (writes and any(indices != place for place in places)):
                    raise TranslationError(
                        "R0720",
                        f"the step of a reduction reads `{name}` in another place than it writes",
                        _origin(part, name),
                        "store the new value elsewhere before it replaces the accumulator",
                    )
        written |= {t.indices for t in writes}


def _parts(command: i.Command) -> tuple[i.Command, ...]:
    """The commands of a step, one after the other."""
    if isinstance(command, i.New):
        return _parts(command.body)
    return command.commands if isinstance(command, i.Sequence) else (command,)


def _reads(command: i.Command, name: str) -> list[tuple[Nat, ...]]:
    """The places of a buffer that a command reads."""
    target = target_of(command)
    found = [a for a in i.accesses(command) if isinstance(a, i.Access) and a.buffer == name]
    if isinstance(target, i.Access) and target.buffer == name:
        found.remove(target)
    return [access.indices for access in found]


def _origin(command: i.Command, name: str) -> Origin:
    """Where the value that replaces a buffer is written in the source."""
    for part in i.commands(command):
        target = target_of(part)
        if isinstance(target, i.Access) and target.buffer == name:
            return getattr(part, "origin", None)
    return getattr(command, "origin", None)
