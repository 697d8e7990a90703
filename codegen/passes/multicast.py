"""Multicast: each block of a cluster loads a part of what all of them need, and sends it to all of them.

A load can be multicast if its box does not depend on the block's rank in the cluster. Multicast requires that
the blocks wait for each other, as warp-specialised pipelines do.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from codegen.ir import imperative as i
from codegen.ir.launch import derive
from rise.nat import variable

ROWS = 8  # in a swizzle atom: parts start at its boundaries


def multicast(function: i.Function) -> i.Function:
    """The pass."""
    blocks = derive(function.body).cluster
    if blocks == 1:
        return function
    made: dict[str, i.MapParameter] = {}
    maps = {parameter.name: parameter for parameter in function.maps}

    def in_block(loop: i.ParallelFor) -> i.Command:
        def load(copy: i.BulkCopy) -> i.BulkCopy:
            parts = _in_parts(copy, maps[copy.map], loop.index, blocks)
            if parts is None:
                return copy
            new, parameter = parts
            made[parameter.name] = parameter
            return new

        def produce(roles: i.WarpSpecialise) -> i.WarpSpecialise:
            return replace(roles, produce=i.rebuild(roles.produce, i.BulkCopy, load))

        return i.rebuild(loop, i.WarpSpecialise, produce)

    def go(command: i.Command) -> i.Command:
        if isinstance(command, i.ParallelFor) and command.level is i.Level.BLOCK:
            return in_block(command)
        return i.with_inner(command, tuple(go(part) for part in i.inner(command)))

    body = go(function.body)
    used = {c.map for c in i.commands(body) if isinstance(c, i.BulkCopy | i.BulkStore)}
    kept = (p for p in (*function.maps, *made.values()) if p.name in used)
    return replace(function, body=body, maps=tuple(kept))


def _in_parts(
    copy: i.BulkCopy, parameter: i.MapParameter, block: str, blocks: int
) -> tuple[i.BulkCopy, i.MapParameter] | None:
    """This block's part of the copy, sent to all blocks, and its map; None if it cannot be multicast."""
    box, target = parameter.map.box, copy.target  # innermost first, like the corner
    long = [d for d, size in enumerate(box) if size > 1]
    if not isinstance(target, i.Tile) or not long or any(block in n.variables for n in copy.corner):
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
