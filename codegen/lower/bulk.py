"""Bulk copies and stores of boxes of an array, or else of runs: adjacent elements of an array.

A box may start anywhere in an array whose rows are multiples of 16 bytes (see `lower.box`). A run may be part
of any array, and start at any of its elements. Its offset from a 16-byte boundary is the same in shared and
in global memory, so the copy engine moves whole chunks of 16 bytes. A run is therefore a whole buffer. It may
reach beyond the end of the array: only its elements that exist are moved.

The copy engine moves a box row by row. A box of short rows is therefore moved as a run where it is one.

Where data say how many rows of a tile are defined (`prefixes`), and at most half are, half a box is moved:

    expect b ; copy t   =   when (h < n) (expect b ; copy t) ; when (n ≤ h) (leave t[h …] undefined ;
                                                                             expect b' ; copy t[… h])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import bytes_of, dimensions, flatten, swizzle
from codegen.lower import box
from codegen.lower.paths import Limits, Resolver
from codegen.lower.views import Path
from rise.errors import TranslationError
from rise.nat import Atom, Facts, Nat, NatVariable, at_least, constant, less_than, simplify, variable
from rise.types import Scalar, shape

SHORT = 64  # bytes: the rows of a box that are shorter than this


def is_copy(command: i.Command) -> bool:
    return isinstance(command, i.BulkCopy)


def only_copies(commands: Sequence[i.Command]) -> TypeGuard[Sequence[i.BulkCopy]]:
    return all(map(is_copy, commands))


def copied(r: Resolver, expected: i.Expect, copies: Sequence[i.BulkCopy], facts: Facts) -> i.Command:
    """The copies that an mbarrier waits for, and the announcement of their bytes. Runs announce their own.

    Raises TranslationError R0731 for what is neither a box nor a run.
    """
    barrier, (commands, are_boxes) = r.write(expected.barrier, (), facts), _moved(r, copies, facts)
    if are_boxes:
        return i.sequence(i.Expect(barrier, expected.bytes), *commands)
    return i.sequence(*commands, i.Expect(barrier, 0))


def of_boxes(r: Resolver, expected: i.Expect, copies: Sequence[i.BulkCopy], facts: Facts) -> i.Command:
    """The same where all of them are of boxes. Raises TranslationError R0731 for what is none.

    Of a tile of which data say how many rows are defined, half is copied where no more are.
    """

    def make() -> i.Command:
        barrier = r.write(expected.barrier, (), facts)
        commands = [box.copied(r, copy, facts) for copy in copies]
        whole = i.sequence(i.Expect(barrier, expected.bytes), *commands)
        for number, copy in enumerate(copies):
            half = box.half_that_may_be_enough(r, copy, facts)
            if half is not None and isinstance(commands[number], i.BulkCopy):
                commands[number] = moved = box.copied(r, copy, facts, half.rows)
                less = bytes_of(copy.value.type) // 2
                fewer = i.Expect(barrier, expected.bytes - less)
                part = i.sequence(*_left_out(moved), fewer, *commands)
                row, rows = half.next_row_is_defined
                return i.sequence(i.When(row, rows, whole), i.When(rows, row + 1, part))
        return whole

    return r.scalars.enclose(make) if any(map(box.may_be_short, copies)) else make()


def _left_out(half: i.Command) -> Iterator[i.Command]:
    """What says that the other half of a tile is undefined, behind the one that is copied."""
    if isinstance(half, i.BulkCopy) and isinstance(tile := half.target, i.Tile):
        elements = prod((extent for _, extent in tile.extents), start=constant(1))
        behind = replace(tile, offset=tile.offset + elements)
        yield i.LeaveUndefined(behind, half.barrier)


def stored(r: Resolver, command: i.BulkStore, facts: Facts) -> i.Command:
    """The store of a box, or else of a run. Raises TranslationError R0731 for what is neither."""
    commands, _ = _moved(r, [command], facts)
    return i.sequence(*commands)


def _moved(
    r: Resolver, commands: Sequence[i.BulkCopy | i.BulkStore], facts: Facts
) -> tuple[list[i.Command], bool]:
    """Copies or stores of boxes, or else of runs, and which. Runs come first where rows are short."""
    if any(map(_has_short_rows, commands)) and (runs := _runs(r, commands, facts)) is not None:
        return runs, False
    known = dict(r.maps)
    try:
        return [box.copied(r, command, facts) for command in commands], True
    except TranslationError:
        r.maps = known  # without those of the boxes before the one that is refused
        if (runs := _runs(r, commands, facts)) is None:
            raise
        return runs, False


def _has_short_rows(command: i.BulkCopy | i.BulkStore) -> bool:
    sizes, element = shape(command.value.type)
    width = element.bytes if isinstance(element, Scalar) else 0
    return len(sizes) > 1 and sizes[-1].value is not None and sizes[-1].value * width < SHORT


class _NoRun(Exception):
    """Elements that are not adjacent, or in another order in shared memory."""


def _runs(r: Resolver, commands: Sequence[i.BulkCopy | i.BulkStore], facts: Facts) -> list[i.Command] | None:
    """Copies or stores, each of a run; None if one of them moves anything but a run."""
    try:
        return [r.scalars.enclose(partial(_resolved, r, command, facts)) for command in commands]
    except _NoRun:
        return None


def _resolved(r: Resolver, command: i.BulkCopy | i.BulkStore, facts: Facts) -> i.BulkCopy | i.BulkStore:
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
        raise _NoRun
    start = simplify(r.linear(array) - in_order, inside)
    if not start.variables.isdisjoint(extents):
        raise _NoRun
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
