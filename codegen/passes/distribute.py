"""Distributes register arrays over the threads that own their elements: warps, lanes or threads.

If a dimension of a `Local` buffer is only ever indexed by the index of one parallel loop, each thread holds
just its share of that dimension. The writes determine who owns an element: loops marked `owner` (initial
values, copies) become parallel loops of the same level. A thread must not touch an element that another owns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from rise.errors import TranslationError
from rise.nat import Nat, variable
from rise.types import Array, Space

Workers = tuple[i.Level, int]


@dataclass(frozen=True)
class Loop:
    """A loop around an access: parallel at a level, or sequential."""

    workers: Workers | None
    owner: bool


def distribute(function: i.Function) -> i.Function:
    """The pass: handles every Local buffer, outermost first."""
    return replace(function, body=_command(function.body))


def _command(command: i.Command) -> i.Command:
    if isinstance(command, i.New) and command.space is Space.LOCAL and isinstance(command.type, Array):
        command = _distribute(command)
    return i.with_inner(command, tuple(_command(c) for c in i.inner(command)))


def _distribute(new: i.New) -> i.New:
    type_, body, dimension = new.type, new.body, 0
    all_owners: list[Workers | None] = []
    indexed = _indices(body, new.name, {})
    while isinstance(type_, Array):
        level: Workers | None = None
        owners = {w for indices, loops in indexed if (w := _workers(indices, dimension, loops)) is not None}
        if owners:
            level = _single(owners, new)
            for indices, loops in indexed:
                _check_owner(indices, dimension, loops, level, new)
            body = _own(body, new.name, dimension, level)
        all_owners.append(level)
        type_, dimension = type_.element, dimension + 1
    return replace(new, body=body, owners=tuple(all_owners))


def _workers(indices: tuple[Nat, ...], dimension: int, loops: Mapping[str, Loop]) -> Workers | None:
    """The workers over which an access distributes a dimension; None if it does not."""
    if dimension >= len(indices):
        return None
    loop = _loop(indices[dimension], loops)
    return loop.workers if loop is not None else None


def _loop(index: Nat, loops: Mapping[str, Loop]) -> Loop | None:
    """The loop whose index is exactly this index."""
    names = index.variables
    if len(names) != 1:
        return None
    (name,) = names
    return loops.get(name) if index == variable(name) else None


def _single(owners: set[Workers], new: i.New) -> Workers:
    if len(owners) > 1:
        raise TranslationError(
            "R0705",
            f"`{shown(new.name)}` is distributed over two different levels",
            new.origin,
            "write and read it at one level",
        )
    return next(iter(owners))


def _check_owner(
    indices: tuple[Nat, ...], dimension: int, loops: Mapping[str, Loop], level: Workers, new: i.New
) -> None:
    loop = _loop(indices[dimension], loops) if dimension < len(indices) else None
    if loop is None or (loop.workers != level and not loop.owner):
        raise TranslationError(
            "R0705",
            f"`{shown(new.name)}` is in the registers of each {level[0].value}, but another one uses it",
            new.origin,
            "store it in Shared memory",
        )


def _indices(
    command: i.Command, name: str, loops: Mapping[str, Loop]
) -> list[tuple[tuple[Nat, ...], Mapping[str, Loop]]]:
    """Every access to a buffer, with the loops between its declaration and the access."""
    found: list[tuple[tuple[Nat, ...], Mapping[str, Loop]]] = []
    for access in i.accesses(command):
        if isinstance(access, i.Access) and access.buffer == name:
            found.append((access.indices, loops))
    match command:
        case i.For():
            loops = {**loops, command.index: Loop(None, command.owner)}
        case i.ParallelFor():
            loops = {**loops, command.index: Loop((command.level, command.dimension), False)}
        case _:
            pass
    for part in i.inner(command):
        found += _indices(part, name, loops)
    return found


def _own(command: i.Command, name: str, dimension: int, level: Workers) -> i.Command:
    """Turns owner loops over the dimension into parallel loops of the level that owns it."""
    if isinstance(command, i.For) and command.owner and _ranges_over(command, name, dimension):
        body = _own(command.body, name, dimension, level)
        return i.ParallelFor(level[0], level[1], command.index, command.count, body)
    return i.with_inner(command, tuple(_own(c, name, dimension, level) for c in i.inner(command)))


def _ranges_over(loop: i.For, name: str, dimension: int) -> bool:
    index = variable(loop.index)
    for command in i.commands(loop.body):
        for access in i.accesses(command):
            if isinstance(access, i.Access) and access.buffer == name:
                selected = access.indices[dimension : dimension + 1]
                if selected == (index,):
                    return True
    return False
