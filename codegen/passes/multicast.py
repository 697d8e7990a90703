"""Multicast: each block of a cluster loads a part of what all of them need, and sends it to all of them.

A load can be multicast if neither its box nor how often it is executed depends on the block's rank in the
cluster. Multicast requires that the blocks wait for each other, as warp-specialised pipelines do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from codegen.ir import imperative as i
from codegen.ir.launch import derive
from rise.nat import Nat, variable

ROWS = 8  # in a swizzle atom: parts start at its boundaries


def multicast(function: i.Function) -> i.Function:
    """The pass."""
    blocks = derive(function.body).cluster
    if blocks == 1:
        return function
    made: dict[str, i.MapParameter] = {}
    maps = {parameter.name: parameter for parameter in function.maps}

    def in_block(loop: i.ParallelFor) -> i.Command:
        own = _differing(loop)

        def load(copy: i.BulkCopy) -> i.BulkCopy:
            whole = maps.get(copy.map)  # a run has no map
            parts = _in_parts(copy, whole, loop.index, own, blocks) if whole is not None else None
            if parts is None:
                return copy
            new, parameter = parts
            made[parameter.name] = parameter
            return new

        def within(command: i.Command, loads: bool) -> i.Command:
            match command:
                case i.WarpSpecialise(_, produce, consume):
                    return replace(command, produce=within(produce, True), consume=within(consume, False))
                case i.BulkCopy() if loads:
                    return load(command)
                case i.When(value, bound) if _depend((value, bound), own):
                    return command
                case i.For(_, count) if _depend((count,), own):
                    return command
                case _:
                    return i.with_inner(command, tuple(within(part, loads) for part in i.inner(command)))

        return within(loop, False)

    def go(command: i.Command) -> i.Command:
        if isinstance(command, i.ParallelFor) and command.level is i.Level.BLOCK:
            return in_block(command)
        return i.with_inner(command, tuple(go(part) for part in i.inner(command)))

    body = go(function.body)
    used = {c.map for c in i.commands(body) if isinstance(c, i.BulkCopy | i.BulkStore)}
    kept = (p for p in (*function.maps, *made.values()) if p.name in used)
    return replace(function, body=body, maps=tuple(kept))


def _differing(loop: i.ParallelFor) -> set[str]:
    """A block's rank in its cluster, and the names of what is computed from it, or under conditions on it."""
    found = {loop.index}
    given: dict[str, set[str]] = {}

    def see(command: i.Command, around: frozenset[str]) -> None:
        match command:
            case i.When(value, bound):
                around |= value.variables | bound.variables
            case i.For(_, count):
                around |= count.variables
            case i.Define(name, value):
                given.setdefault(name, set()).update(value.variables | around)
        target = i.target_of(command)
        if isinstance(target, i.Access | i.Tile):
            used = {name for n in i.own(command, Nat) for name in n.variables}
            used |= {access.buffer for access in i.accesses(command)}
            given.setdefault(target.buffer, set()).update(used | around)
        for part in i.inner(command):
            see(part, around)

    see(loop.body, frozenset())
    while more := {name for name, of in given.items() if name not in found and not of.isdisjoint(found)}:
        found |= more
    return found


def _depend(values: Iterable[Nat], names: set[str]) -> bool:
    return any(not value.variables.isdisjoint(names) for value in values)


def _in_parts(
    copy: i.BulkCopy, parameter: i.MapParameter, block: str, own: set[str], blocks: int
) -> tuple[i.BulkCopy, i.MapParameter] | None:
    """This block's part of the copy, sent to all blocks, and its map; None if it cannot be multicast."""
    box, target = parameter.map.box, copy.target  # innermost first, like the corner
    long = [d for d, size in enumerate(box) if size > 1]
    if not isinstance(target, i.Tile) or not long or _depend(copy.corner, own):
        return None
    outer = long[-1]
    part = box[outer] // blocks
    if outer == 0 or part * blocks != box[outer] or part % ROWS:
        return None
    corner = list(copy.corner)
    corner[outer] += part * variable(block)
    offset = target.offset + part * prod(box[:outer]) * variable(block)
    smaller = replace(parameter.map, box=(*box[:outer], part, *box[outer + 1 :]))
    name = f"{parameter.name}_part"
    new = replace(copy, target=replace(target, offset=offset), corner=tuple(corner), map=name, blocks=blocks)
    return new, i.MapParameter(name, parameter.buffer, smaller)
