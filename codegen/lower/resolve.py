"""The pass that resolves every view of a program to accesses to buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from codegen.ir import imperative as i
from codegen.ir.buffers import laid_out, members
from codegen.ir.fragments import distribution
from codegen.ir.identifiers import RESERVED, shown
from codegen.ir.scalar_temporaries import ScalarTemporaries
from codegen.lower import box, bulk, distributed
from codegen.lower.paths import Resolver
from rise.errors import TranslationError
from rise.nat import Facts, at_least, constant, simplify
from rise.source import Note, Origin
from rise.types import ROW_MAJOR, Fragment, Space


def resolve(function: i.Function, facts: Facts = Facts()) -> i.Function:
    """The pass: no view remains, and every array of pairs is a pair of arrays. `facts` are about sizes."""
    resolver = Resolver(scalars=ScalarTemporaries(set(_names(function))))
    outputs = tuple(i.Variable(n, t) for v in function.outputs for n, t in members(v.name, v.type))
    inputs = tuple(i.Variable(n, t) for v in function.inputs for n, t in members(v.name, v.type))
    resolver.buffers.update({v.name: v.type for v in outputs + inputs})
    resolver.parameters |= resolver.buffers.keys()
    body = _command(resolver, function.body, facts)
    return i.Function(function.name, outputs, inputs, body, tuple(resolver.maps.values()))


def several_kernels(
    what: str,
    origin: Origin,
    hint: str = "store it with `toMem(Global)` outside all maps",
    notes: tuple[Note, ...] = (),
) -> TranslationError:
    """The refusal of a program that needs several kernels, because blocks cannot wait for each other."""
    return TranslationError(
        "R0726",
        f"{what}: a result for the whole grid that others read needs a kernel of its own",
        origin,
        hint,
        notes=notes,
    )


def _names(function: i.Function) -> Iterator[str]:
    """The names of the kernel's variables, and the reserved names."""
    yield from RESERVED
    for variable in (*function.outputs, *function.inputs):
        yield from (name for name, _ in members(variable.name, variable.type))
    for command in i.commands(function.body):
        match command:
            case i.New(_, name, type_):
                yield from (part for part, _ in members(name, type_))
            case i.For(index) | i.ParallelFor(_, _, index) | i.ForFragment(_, index):
                yield index


def resolved(command: i.Command) -> i.Command:
    """Resolves a part of a program on its own."""
    return _command(Resolver(), command, Facts())


def _command(r: Resolver, command: i.Command, facts: Facts) -> i.Command:
    match command:
        case i.When(value, bound) if at_least(value, bound, facts):
            return i.Skip()
        case i.When(value, bound, body):
            return i.When(simplify(value, facts), simplify(bound, facts), _command(r, body, facts))
        case i.For(index, size) | i.ParallelFor(_, _, index, size):
            if isinstance(command, i.For) and command.role in (i.Role.VECTOR, i.Role.ALIGNED_VECTOR):
                r.scalars.lanes.add(index)
            body = _command(r, command.body, facts.with_range(index, 0, size))
            return replace(command, body=body)
        case i.New(space, name, type_, body, origin, layout):
            parts = [(n, laid_out(t, layout, origin)) for n, t in members(name, type_)]
            r.buffers.update(parts)
            # padding makes rows longer; swizzling does not change the type
            kept = layout if layout.name in ("swizzled", "barriers") else ROW_MAJOR
            if space is Space.SHARED:
                r.shared.update((n, kept) for n, _ in parts)
            if space is Space.GLOBAL:
                r.temporaries.update(n for n, _ in parts)
            r.results.update(command.results)
            new = _command(r, body, facts)
            kept = r.operands.get(name, kept)
            for part, part_type in reversed(parts):
                new = i.New(space, part, part_type, new, origin, kept)
            return new
        case i.Elected(i.Sequence((i.Expect() as expected, *copies))) if bulk.only_copies(copies):
            return replace(command, body=bulk.copied(r, expected, copies, facts))
        case i.ForFragment() | i.Elected():
            body = _command(r, command.body, facts)
            return body if body == i.Skip() else replace(command, body=body)
        case i.WarpSpecialise() | i.Ring():
            return i.with_inner(command, tuple(_command(r, part, facts) for part in i.inner(command)))
        case i.BulkCopy():
            return box.copied(r, command, facts)
        case i.BulkStore():
            return bulk.stored(r, command, facts)
        case i.LoadFragment(fragment) if distribution(fragment) is not None:
            return distributed.load(r, command, facts)
        case i.StoreFragment(fragment) if (places := distribution(fragment)) is not None:
            return distributed.store(r, command, places, facts)
        case i.Sequence():
            return i.sequence(*_in_turn(r, command.commands, facts))
        case _:
            return r.scalars.enclose(lambda: _statement(r, command, facts))


def _in_turn(r: Resolver, commands: tuple[i.Command, ...], facts: Facts) -> Iterator[i.Command]:
    """The commands of a sequence, and as one the announcement of bytes and the copies behind it."""
    rest = list(commands)
    while rest:
        first = rest.pop(0)
        copies = list(takewhile(bulk.is_copy, rest)) if isinstance(first, i.Expect) else []
        if isinstance(first, i.Expect) and bulk.only_copies(copies):
            del rest[: len(copies)]
            yield bulk.of_boxes(r, first, copies, facts)
        else:
            yield _command(r, first, facts)


def _statement(r: Resolver, command: i.Command, facts: Facts) -> i.Command:
    match command:
        case i.Assign(target, value, origin) | i.CopyAsync(target, value, origin):
            place, found = r.write(target, (), facts), r.read(value, (), facts)
            # single numbers are not copied: only padding would be here
            how = i.Assign if isinstance(found, i.Number) else type(command)
            return how(place, found, origin)
        case i.LoadFragment(fragment, target, loaded, origin):
            found = r.tile(lambda p, f: r.read(loaded, p, f), fragment, facts, origin)
            _check_rows(r, found, origin)
            return i.LoadFragment(fragment, r.write(target, (), facts), found, origin)
        case i.StoreFragment(fragment, tile, value, origin):
            found = r.tile(lambda p, f: r.write(tile, p, f), fragment, facts, origin)
            _check_rows(r, found, origin)
            return i.StoreFragment(fragment, found, r.read(value, (), facts), origin)
        case i.FillFragment(_, target, value):
            return replace(command, target=r.write(target, (), facts), value=r.read(value, (), facts))
        case i.MmaFragment():
            return _product(r, command, facts)
        case i.InitBarriers(barriers):
            return replace(command, barriers=r.write(barriers, (constant(0),), facts))
        case i.Arrive(barrier):
            return replace(command, barrier=r.write(barrier, (), facts))
        case i.Expect(barrier, size):
            return i.Expect(r.write(barrier, (), facts), size)
        case i.WaitBarrier(barrier, parity):
            return i.WaitBarrier(r.write(barrier, (), facts), simplify(parity, facts))
        case _:
            return command


def _check_rows(r: Resolver, tile: i.Tile, origin: Origin) -> None:
    """WMMA addresses the rows of a tile by a leading dimension, which a swizzled array does not have."""
    if r.shared.get(tile.buffer, ROW_MAJOR) != ROW_MAJOR:
        raise TranslationError(
            "R0730",
            f"`{shown(tile.buffer)}` is swizzled: its rows are not equidistant",
            origin,
            "use padded rows, or fragments of `mma.sync` (16×8×16)",
        )


def _product(r: Resolver, product: i.MmaFragment, facts: Facts) -> i.MmaFragment | i.Wgmma:
    """A product whose second operand stays in shared memory is a wgmma."""
    target, added = r.write(product.target, (), facts), r.read(product.c, (), facts)
    left, right = (_operand(r, x, facts) for x in (product.a, product.b))
    if not isinstance(right, i.Tile):
        return i.MmaFragment(target, left, right, added, product.origin)
    if added != target:
        raise TranslationError(
            "R0732",
            "a wgmma adds its product to the accumulator that holds the sum",
            product.origin,
            "use the accumulator of the reduction as the third operand",
        )
    for tile in (left, right):
        if isinstance(tile, i.Tile) and tile.buffer in r.parameters:
            raise TranslationError(
                "R0732",
                f"warpgroups read operands from shared memory, and `{shown(tile.buffer)}` is not there",
                product.origin,
                "copy the tile with `bulkCopy`",
            )
    return i.Wgmma(target, left, right, product.origin)


def _operand(r: Resolver, operand: i.Expression, facts: Facts) -> i.Expression:
    """An operand in registers; or, if the operand is a view as a fragment, its tile in shared memory."""
    match operand:
        case i.View("asFragment", _, (tile,), Fragment() as fragment, origin):
            return box.operand(r, tile, fragment, facts, origin)
        case _:
            return r.read(operand, (), facts)
