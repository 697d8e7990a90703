"""Bulk copies and stores of what is a box of an array, or else a run: adjacent elements of an array.

A box may start anywhere in an array whose rows are whole chunks of 16 bytes (see `lower.box`). A run may be
part of any array, and start at any of its elements. It lies in shared memory as far behind the start of a
chunk as in global memory, so the copying unit moves whole chunks. A run is therefore a whole buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import flatten, swizzle
from codegen.lower import box
from codegen.lower.paths import Resolver
from rise.errors import TranslationError
from rise.nat import Atom, Facts, Nat, NatVariable, constant, simplify, variable
from rise.types import Scalar, shape


def only_copies(commands: Sequence[i.Command]) -> TypeGuard[Sequence[i.BulkCopy]]:
    return all(isinstance(command, i.BulkCopy) for command in commands)


def copied(r: Resolver, expected: i.Expect, copies: Sequence[i.BulkCopy], facts: Facts) -> i.Command:
    """The copies that an mbarrier waits for, and the announcement of their bytes. Runs announce their own.

    Raises TranslationError R0731 for what is neither a box nor a run.
    """
    barrier, known = r.write(expected.barrier, (), facts), dict(r.maps)
    try:
        boxes = [box.copied(r, copy, facts) for copy in copies]
        return i.sequence(i.Expect(barrier, expected.bytes), *boxes)
    except TranslationError as refused:
        r.maps = known
        runs = [_run(r, copy, facts, refused) for copy in copies]
        return i.sequence(*runs, i.Expect(barrier, 0))


def stored(r: Resolver, command: i.BulkStore, facts: Facts) -> i.Command:
    """The store as one of a box, or else of a run. Raises TranslationError R0731 for what is neither."""
    known = dict(r.maps)
    try:
        return box.copied(r, command, facts)
    except TranslationError as refused:
        r.maps = known
        return _run(r, command, facts, refused)


def _run(
    r: Resolver, command: i.BulkCopy | i.BulkStore, facts: Facts, refused: TranslationError
) -> i.Command:
    """The copy or store of a run. refused: why it is no box, for what is no run either"""
    return r.scalars.enclose(lambda: _resolved(r, command, facts, refused))


def _resolved(
    r: Resolver, command: i.BulkCopy | i.BulkStore, facts: Facts, refused: TranslationError
) -> i.BulkCopy | i.BulkStore:
    sizes, _ = shape(command.value.type)
    extents = {f"run_{d}": size for d, size in enumerate(sizes)}
    inside = facts
    for name, size in extents.items():
        inside = inside.with_range(name, 0, size)
    path = tuple(map(variable, extents))
    value, target = r.read(command.value, path, inside), r.write(command.target, path, inside)
    shared, array = (target, value) if isinstance(command, i.BulkCopy) else (value, target)
    alone: dict[Atom, Nat] = {
        NatVariable(n): constant(0) for n, size in extents.items() if size == constant(1)
    }
    in_order = flatten(path, sizes).substitute(alone)
    if not (
        isinstance(shared, i.Access)
        and isinstance(array, i.Access)
        and isinstance(array.type, Scalar)
        and shared.buffer in r.shared
        and not swizzle(r.shared[shared.buffer])
        and array.buffer not in r.shared
        and not r.scalars.write_guards
        and simplify(r.linear(shared).substitute(alone) - in_order, inside) == constant(0)
    ):
        raise refused
    start = simplify(r.linear(array).substitute(alone) - in_order, inside)
    if not start.variables.isdisjoint(extents):
        raise refused
    places = tuple(extents.items())
    tile = i.Tile(shared.buffer, constant(0), constant(0), True, command.value.type, shared.indices, places)
    if isinstance(command, i.BulkCopy):
        zero: dict[Atom, Nat] = {NatVariable(name): constant(0) for name in extents}
        corner = tuple(simplify(n.substitute(zero), inside) for n in array.indices)
        first = i.Access(array.buffer, corner, array.type)
        barrier = r.write(command.barrier, (), inside)
        return i.BulkCopy(tile, first, barrier, corner=(start,), origin=command.origin)
    written = i.Tile(array.buffer, start, constant(0), True, command.value.type, array.indices, places)
    return i.BulkStore(written, tile, corner=(start,), origin=command.origin)
