"""Bulk copies and stores: proves from the index path that a tile is a box of an array in global memory.

A box extends in some of the array's dimensions and has extent 1 in the others. Its rows are contiguous in the
innermost dimension, and start there at multiples of 16 bytes. The copy engine gets the array and the box as a
tensor map, where the array may have other dimensions (`lower.seen`). It fills elements outside the array with
zeros, so a box of an array that is zero-padded at the ends of its dimensions qualifies, too. So does a box of
any part of an array with undefined elements behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.buffers import SWIZZLES, swizzle
from codegen.ir.identifiers import derived
from codegen.ir.launch import number
from codegen.ir.scalar_temporaries import or_zero, whole_blocks
from codegen.ir.tensor_maps import PROMOTED, AnyMap, OpenTensorMap, map_of
from codegen.lower.paths import Limits, Resolver
from codegen.lower.seen import is_below, seen_by_boxes
from codegen.lower.views import Path
from rise.errors import LaunchError, TranslationError
from rise.nat import (
    Atom,
    Facts,
    Nat,
    NatVariable,
    constant,
    divides,
    quotient,
    simplify,
    variable,
)
from rise.source import Origin
from rise.types import Array, Data, Fragment, Scalar, shape


def copied(
    r: Resolver, command: i.BulkCopy | i.BulkStore, facts: Facts, rows: Nat | None = None
) -> i.Command:
    """The copy with its map and the corner of its box; a tile in panels needs a copy per panel.

    rows: how many of the tile's rows are copied, the first ones; all if it is None
    """
    sizes, _ = shape(command.value.type)
    label = "bulkCopy" if isinstance(command, i.BulkCopy) else "bulkStore"
    for outer in range(len(sizes)):
        panels = [r.scalars.fresh("panel") for _ in range(outer)]
        try:
            body = r.scalars.enclose(lambda panels=panels: _box(r, command, panels, facts, rows))  # type: ignore[misc]  # by value
        except TranslationError:
            if outer == len(sizes) - 1 or len(sizes) == 2:
                raise
            continue
        for panel, size in zip(reversed(panels), reversed(sizes[:outer]), strict=True):
            body = i.For(panel, size, body, unroll=True, label=label, origin=command.origin)
        return body
    raise _refused("it has no dimensions", command.origin)


def _box(
    r: Resolver, command: i.BulkCopy | i.BulkStore, panels: list[str], facts: Facts, rows: Nat | None
) -> i.Command:
    """The copy of one box: the part of the tile at the given indices of its panels."""
    sizes, _ = shape(command.value.type)
    if rows is not None:
        sizes = (*sizes[:-2], rows, sizes[-1])
    names = [f"box_{d}" for d in range(len(sizes) - len(panels))]
    inside = facts
    for name, size in zip([*panels, *names], sizes, strict=True):
        inside = inside.with_range(name, 0, size)
    path = tuple(variable(name) for name in [*panels, *names])
    extents = dict(zip(names, sizes[len(panels) :], strict=True))
    with r.beyond_ends() as ends:  # undefined elements may be those behind the end, or the zeros there
        value = r.read(command.value, path, inside)
    target = _clipped(r, r.write(command.target, path, inside), names, inside, command.origin, ends)
    copies = []
    for guards, source in _sources(value, set(names), command.origin):
        copy: i.Command = _copy(r, command, source, target, extents, inside, ends)
        for guarded, bound in reversed(guards):
            copy = i.When(guarded, bound, copy, command.origin)
        copies.append(copy)
    return i.sequence(*copies)


@dataclass(frozen=True)
class Half:
    """The first rows of a tile, and where the one behind them is defined: where index < number."""

    rows: Nat
    next_row_is_defined: tuple[Nat, Nat]


def may_be_short(command: i.BulkCopy) -> bool:
    """Whether data say how many elements are defined of something that a copy is a part of."""
    return any(view.name == "prefixes" for view in _views(command.value))


def half_that_may_be_enough(r: Resolver, command: i.BulkCopy, facts: Facts) -> Half | None:
    """Half of a tile, if data say how many of its rows are defined.

    It has as many rows as a warpgroup multiplies at once, or a multiple of them: the copying unit takes as
    long for fewer.
    """
    sizes, _ = shape(command.value.type)
    rows = sizes[-2].value if len(sizes) > 1 else None
    if rows is None or rows % (2 * LEAST_HALF) or not may_be_short(command):
        return None
    names = [f"box_{d}" for d in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        facts = facts.with_range(name, 0, size)
    defined = Limits()
    replace(r, defined=defined).read(command.value, tuple(variable(name) for name in names), facts)
    for index, number_ in defined:
        first = simplify(index - variable(names[-2]), facts)
        if first.variables.isdisjoint(names) and not r.scalars.depends_on(set(names)):
            return Half(constant(rows // 2), (first + rows // 2, number_))
    return None


def _sources(value: i.Expression, names: set[str], origin: Origin) -> list[tuple[Limits, i.Expression]]:
    """The arrays of which a box may be a part, as where one is behind the other: each with its conditions.

    The conditions, that a value is below a bound, hold for the whole box or for none of it.
    """
    match value:
        case i.Operator("select", (condition, first, i.Number(other)), type_) if other == 0:
            inner = _sources(first, names, origin)
            zero = i.Number(other, type_)
            return [(g, i.Operator("select", (condition, v, zero), type_)) for g, v in inner]
        case i.Operator("select", (i.Operator("lt", (i.Natural(at), i.Natural(end))), first, second)) if (
            not isinstance(first, i.Number) and not isinstance(second, i.Number)
        ):
            if not names.isdisjoint((at - end).variables):
                raise _refused("it reaches from one array into another", origin)
            here = [([(at, end), *guards], v) for guards, v in _sources(first, names, origin)]
            return here + [([(end, at + 1), *guards], v) for guards, v in _sources(second, names, origin)]
        case _:
            return [([], value)]


def _copy(
    r: Resolver,
    command: i.BulkCopy | i.BulkStore,
    source: i.Expression,
    target: i.Access,
    extents: dict[str, Nat],
    inside: Facts,
    ends: Limits,
) -> i.BulkCopy | i.BulkStore:
    """The copy of a box of one array, from or to it. ends: where elements are undefined or not written"""
    names = list(extents)
    ends = [*ends, *_limits(source)]
    value = _without_zeros(r, source, names, inside, command.origin, ends)
    shared, array = (target, value) if isinstance(command, i.BulkCopy) else (value, target)
    if not isinstance(array, i.Access) or array.buffer in r.shared or r.scalars.depends_on(set(names)):
        raise _refused("it is computed, or not in global memory", command.origin)
    if not isinstance(shared, i.Access) or shared.buffer not in r.shared:
        raise _refused("it is copied from or to a buffer that is not in shared memory", command.origin)
    zero: dict[Atom, Nat] = {NatVariable(name): constant(0) for name in names}
    tile = _dense(r, shared, extents, inside, command.origin)
    indices, sizes = seen_by_boxes(r, array, names, inside, ends)
    corner = tuple(simplify(n.substitute(zero), inside) for n in indices)
    box = _extents(array.buffer, indices, corner, extents, inside, command.origin)
    if isinstance(array.type, Scalar) and not divides(CHUNK // array.type.bytes, corner[-1], inside):
        at = f"element {corner[-1]} of a row of `{array.buffer}`"
        raise _refused(f"it starts at {at}, not at a multiple of {CHUNK} bytes", command.origin)
    patterns = swizzle(r.shared[shared.buffer]), _promoted(command.value)
    name = _map(r, array.buffer, sizes, box, patterns, array.type, command.origin)
    if isinstance(command, i.BulkCopy):
        first = tuple(simplify(n.substitute(zero), inside) for n in array.indices)
        at_corner = i.Access(array.buffer, first, array.type)
        barrier = r.write(command.barrier, (), inside)
        return i.BulkCopy(tile, at_corner, barrier, name, corner[::-1], origin=command.origin)
    start = simplify(r.linear(array).substitute(zero), inside)
    written = i.Tile(array.buffer, start, constant(0), True, tile.type, array.indices, tuple(extents.items()))
    return i.BulkStore(written, tile, name, corner[::-1], command.origin)


def _dense(r: Resolver, access: i.Access, extents: dict[str, Nat], facts: Facts, origin: Origin) -> i.Tile:
    """The box in shared memory, where its elements must be contiguous."""
    linear = simplify(r.linear(access), facts)
    start = simplify(linear.substitute({NatVariable(name): constant(0) for name in extents}), facts)
    expected, size = start, constant(1)
    for name, extent in reversed(extents.items()):
        expected, size = expected + size * variable(name), size * extent
    if simplify(linear - expected, facts) != constant(0):
        raise _refused("its elements are not contiguous in shared memory", origin)
    aligned = max(8 * swizzle(r.shared[access.buffer]), ALIGNED)  # to whole swizzle atoms
    element = access.type.bytes if isinstance(access.type, Scalar) else 1
    if not divides(aligned // element, start, facts):
        raise _refused(f"in shared memory it does not start at a multiple of {aligned} bytes", origin)
    type_: Data = access.type
    for extent in reversed(extents.values()):
        type_ = Array(extent, type_)
    return i.Tile(access.buffer, start, constant(0), True, type_, access.indices, tuple(extents.items()))


def _clipped(
    r: Resolver, target: i.Access, names: list[str], facts: Facts, origin: Origin, ends: Limits
) -> i.Access:
    """The target of a bulk store without its bounds checks, which are ends: the copy engine clips there."""
    guards, clipped = list(r.scalars.write_guards), Limits()
    r.scalars.write_guards.clear()
    ends += guards
    if guards:
        there = zip(*seen_by_boxes(r, target, names, facts, ends), strict=True)
        clipped = [(whole_blocks(index, size, facts), size) for index, size in there]
    if any(guard not in clipped for guard in guards):
        raise _refused(f"some elements inside `{target.buffer}` are not written", origin)
    return target


def _without_zeros(
    r: Resolver, value: i.Expression, names: list[str], facts: Facts, origin: Origin, ends: Limits
) -> i.Expression:
    """The source of a bulk copy without its bounds checks, since the copy engine zero-fills."""
    conditions, source = or_zero(value)
    if not conditions or not isinstance(source, i.Access):
        return value
    there = zip(*seen_by_boxes(r, source, names, facts, ends), strict=True)
    inside = [(end, size) for index, size in there for end in (index, whole_blocks(index, size, facts))]
    limits = _limits(value)
    if len(limits) < len(conditions) or not all(is_below(*limit, inside, facts) for limit in limits):
        raise _refused(f"zeros are read for some elements inside `{source.buffer}`", origin)
    return source


def _limits(value: i.Expression) -> Limits:
    """Pairs (index, size): a value is zero unless each index is below its size."""
    found = Limits()
    for condition in or_zero(value)[0]:
        match condition:
            case i.Operator("lt", (i.Natural(index), i.Natural(size))):
                found.append((index, size))
    return found


def operand(r: Resolver, tile: i.Expression, fragment: Fragment, facts: Facts, origin: Origin) -> i.Tile:
    """The operand of a wgmma in shared memory: a tile, or equidistant panels as wide as the swizzle."""
    size = fragment.element.bytes if isinstance(fragment.element, Scalar) else 1
    columns = fragment.columns.value or 0
    widths = [pattern // size for pattern in reversed(SWIZZLES) if pattern // size < columns]
    for width in (columns, *widths):
        try:
            return _in_panels(r, tile, fragment, width, facts, origin)
        except TranslationError:
            if width == (columns, *widths)[-1]:
                raise
    raise _refused("it has no columns", origin)


def _in_panels(
    r: Resolver, tile: i.Expression, fragment: Fragment, width: int, facts: Facts, origin: Origin
) -> i.Tile:
    """The operand in panels of that many columns; a single tile if that is all of them."""

    def read(path: Path, inside: Facts) -> i.Expression:
        return r.read(tile, path, inside)

    first = r.tile(read, replace(fragment, columns=constant(width)), facts, origin)
    if width == fragment.columns.value:
        return first
    row, panel, column = "panel_row", "panel_number", "panel_column"
    inside = facts.with_range(row, 0, fragment.rows).with_range(column, 0, width)
    inside = inside.with_range(panel, 0, quotient(fragment.columns, constant(width)))
    access = read((variable(row), width * variable(panel) + variable(column)), inside)
    linear = simplify(r.linear(access), inside) if isinstance(access, i.Access) else constant(-1)
    ones: dict[Atom, Nat] = {NatVariable(n): constant(0) for n in (row, column)}

    def at_panel(number_: int) -> Nat:
        return linear.substitute({**ones, NatVariable(panel): constant(number_)})

    distance = at_panel(1) - at_panel(0)
    expected = first.offset + first.leading * variable(row) + variable(column) + distance * variable(panel)
    if not first.row_major or simplify(linear - expected, inside) != constant(0):
        raise _refused("its panels are not equidistant", origin)
    whole = r.read(tile, (variable(row), variable(column)), inside)
    extents = ((row, fragment.rows), (column, fragment.columns))
    indices = whole.indices if isinstance(whole, i.Access) else first.indices
    return replace(first, panel=distance, indices=indices, extents=extents)


def _extents(
    buffer: str,
    indices: tuple[Nat, ...],
    corner: tuple[Nat, ...],
    sizes: dict[str, Nat],
    facts: Facts,
    origin: Origin,
) -> tuple[int, ...]:
    """The extents of the box in the dimensions of the array, in their order."""
    found: list[int] = []
    left = list(sizes)
    for index, start in zip(indices, corner, strict=True):
        rest = simplify(index - start, facts)
        if rest == constant(0):
            found.append(1)
        elif left and rest == variable(left[0]):
            found.append(number(sizes[left.pop(0)], "the size of a tile", origin))
        else:
            raise _refused(f"along a dimension of `{buffer}` its index is {index}", origin)
    if left:
        raise _refused("its elements are not in the order of the array", origin)
    return tuple(found)


def _views(value: i.Expression) -> list[i.View]:
    """All views in an expression."""
    found: list[i.View] = []

    def see(view: i.View) -> i.View:
        found.append(view)
        for operand in view.operands:
            i.rebuild(operand, i.View, see)
        return view

    i.rebuild(value, i.View, see)
    return found


def _promoted(value: i.Expression) -> int:
    """How many bytes of what is copied are brought into the L2 cache at once."""
    found = [
        number(bytes_, "the bytes of `promoted`", view.origin)
        for view in _views(value)
        if view.name == "promoted" and isinstance(bytes_ := view.arguments[0], Nat)
    ]
    return max(found, default=PROMOTED)


def _map(
    r: Resolver,
    buffer: str,
    sizes: tuple[Nat, ...],
    box: tuple[int, ...],
    patterns: tuple[int, int],
    element: object,
    origin: Origin,
) -> str:
    key = (buffer, sizes, box, patterns)
    if key not in r.maps:
        if not isinstance(element, Scalar):
            raise _refused(f"its elements are of type `{element}`", origin)
        try:
            made = map_over(sizes, element, box, *patterns)
        except LaunchError as error:
            raise TranslationError(
                "R0731", f"this tile cannot be bulk-copied: {error.message}", origin
            ) from None
        name = derived(buffer, "map")
        r.maps[key] = i.MapParameter(r.scalars.fresh(name) if name in r.scalars.taken else name, buffer, made)
        r.scalars.taken.add(name)
    return r.maps[key].name


def map_over(
    sizes: tuple[Nat, ...], element: Scalar, box: tuple[int, ...], swizzle: int, promoted: int = PROMOTED
) -> AnyMap:
    """The map of an array; where sizes are known at launch, so is it, and rows are certainly whole chunks.

    Raises LaunchError R0880, R0881.
    """
    name = NUMPY.get(element.name, element.name)
    known = [size.value for size in sizes]
    numbers = [size for size in known if size is not None]
    if len(numbers) == len(known):
        return map_of(tuple(numbers), name, box, swizzle, promoted=promoted)
    # with the least sizes that the open ones may be, what is wrong whatever they are is found here
    least = tuple(size or CHUNK // element.bytes for size in known)
    map_of(least, name, box, swizzle, promoted=promoted)
    if len(sizes) > 1 and not divides(CHUNK // element.bytes, sizes[-1]):
        rows = f"rows of {sizes[-1]} elements of {element.bytes} bytes"
        raise LaunchError("R0880", f"{rows} are not known to be a multiple of {CHUNK} bytes")
    return OpenTensorMap(name, sizes, box[::-1], swizzle, promoted)


LEAST_HALF = 64  # rows
CHUNK = 16  # bytes, of which strides are multiples, and where boxes start in a row
ALIGNED = 128  # bytes, a multiple of which a box in shared memory starts at
NUMPY = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "tf32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i32": "int32",
}


def _refused(why: str, origin: Origin) -> TranslationError:
    return TranslationError(
        "R0731",
        f"this tile is not a box of an array in global memory: {why}",
        origin,
        "copy it with `copyAsync`, or store it without `bulkStore`",
    )
