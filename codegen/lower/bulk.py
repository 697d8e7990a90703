"""Bulk copies and stores of boxes of an array, or else of runs: adjacent elements of an array.

A box may start anywhere in an array whose rows are multiples of 16 bytes (see `lower.box`). A run may be part
of any array, and start at any of its elements. Its offset from a 16-byte boundary is the same in shared and
in global memory, so the copy engine moves whole chunks of 16 bytes. A run is therefore a whole buffer. It may
reach beyond the end of the array: only its elements that exist are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, flatten, swizzle
from codegen.lower import box
from codegen.lower.paths import Limits, Resolver
from codegen.lower.views import Path
from rise.errors import TranslationError
from rise.nat import Atom, Facts, Nat, NatVariable, at_least, constant, less_than, simplify, variable
from rise.types import Scalar, shape


def only_copies(commands: Sequence[i.Command]) -> TypeGuard[Sequence[i.BulkCopy]]:
    return all(isinstance(command, i.BulkCopy) for command in commands)


def copied(r: Resolver, expected: i.Expect, copies: Sequence[i.BulkCopy], facts: Facts) -> i.Command:
    """The copies that an mbarrier waits for, and the announcement of their bytes. Runs announce their own.

    Raises TranslationError R0731 for what is neither a box nor a run.
    """
    barrier, boxes = r.write(expected.barrier, (), facts), _boxes(r, copies, facts)
    if isinstance(boxes, list):
        return i.sequence(i.Expect(barrier, expected.bytes), *boxes)
    return i.sequence(*(_run(r, copy, facts, boxes) for copy in copies), i.Expect(barrier, 0))


def stored(r: Resolver, command: i.BulkStore, facts: Facts) -> i.Command:
    """The store of a box, or else of a run. Raises TranslationError R0731 for what is neither."""
    boxes = _boxes(r, [command], facts)
    return i.sequence(*boxes) if isinstance(boxes, list) else _run(r, command, facts, boxes)


def _boxes(
    r: Resolver, commands: Sequence[i.BulkCopy | i.BulkStore], facts: Facts
) -> list[i.Command] | TranslationError:
    """The copies or stores of boxes, or why one of them is none: then there are no maps for the others."""
    known = dict(r.maps)
    try:
        return [box.copied(r, command, facts) for command in commands]
    except TranslationError as refused:
        r.maps = known
        return refused


def _run(
    r: Resolver, command: i.BulkCopy | i.BulkStore, facts: Facts, refused: TranslationError
) -> i.Command:
    """The copy or store of a run. refused: the error to raise if it is not a run either"""
    return r.scalars.enclose(lambda: _resolved(r, command, facts, refused))


def _resolved(
    r: Resolver, command: i.BulkCopy | i.BulkStore, facts: Facts, refused: TranslationError
) -> i.BulkCopy | i.BulkStore:
    sizes, _ = shape(command.value.type)
    extents = {f"run_{d}": size for d, size in enumerate(sizes)}
    inside = facts
    for name, size in extents.items():
        inside = inside.with_range(name, 0, size)
    path = tuple(constant(0) if n == constant(1) else variable(name) for name, n in extents.items())
    value, target, ends = _parts(r, command, path, inside)
    shared, array = (target, value) if isinstance(command, i.BulkCopy) else (value, target)
    in_order = flatten(path, sizes)
    if not (
        isinstance(shared, i.Access)
        and isinstance(array, i.Access)
        and isinstance(array.type, Scalar)
        and shared.buffer in r.shared
        and not swizzle(r.shared[shared.buffer])
        and array.buffer not in r.shared
        and all(_is_end(r, array, end, inside) for end in ends)
        and simplify(r.linear(shared) - in_order, inside) == constant(0)
    ):
        raise refused
    start = simplify(r.linear(array) - in_order, inside)
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


def _parts(
    r: Resolver, command: i.BulkCopy | i.BulkStore, path: Path, facts: Facts
) -> tuple[i.Expression, i.Acceptor, Limits]:
    """What a run is read from and written to, and the conditions, index < size, for its elements to exist."""
    with r.beyond_ends() as ends:
        value, target = r.read(command.value, path, facts), r.write(command.target, path, facts)
    ends += r.scalars.write_guards
    r.scalars.write_guards.clear()
    return value, target, ends


def _is_end(r: Resolver, access: i.Access, end: tuple[Nat, Nat], facts: Facts) -> bool:
    """Whether index < size says that an element of an array is not behind the last one."""
    index, size = end
    elements = prod(dimensions(r.buffers[access.buffer]), start=constant(1))
    part = elements.exact_quotient(size)
    if part is None or not part.is_whole:
        return False
    rest = simplify(r.linear(access) - index * part, facts)
    return at_least(rest, 0, facts) and less_than(rest, part, facts)
