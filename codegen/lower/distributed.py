"""Loads and stores of fragments with a known layout: each lane moves the elements that it holds.

From shared memory, `ldmatrix` loads whole 8×8 matrices of 16-bit elements (8×16 bytes) if rows or columns
of the tile are contiguous and aligned. In all other cases, and for computed tiles, lanes load single
elements. So such a fragment can be loaded from any view and stored to any. Warpgroups store whole matrices
with `stmatrix` in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.ir.fragments import HOLDERS, LANES, SAME_ROW, Distribution, distribution, family_of
from codegen.ir.identifiers import shown
from codegen.lower.paths import Resolver
from codegen.lower.views import Path
from rise.errors import TranslationError
from rise.instructions import Family
from rise.nat import Facts, Nat, constant, divides, quotient, remainder, simplify, variable
from rise.types import ROW_MAJOR, Fragment, FragmentKind, Layout, Scalar

LANE, MEMBER = "lane", "member"
COLUMN_MAJOR = Layout("columnMajor")
ROWS = 8  # of a matrix that ldmatrix loads, each of 16 bytes


def load(r: Resolver, command: i.LoadFragment, facts: Facts) -> i.Command:
    row_major = _operand_layout(r, command, facts)
    places = distribution(command.fragment, row_major)
    if places is None:
        raise TranslationError("R0799", "internal: the layout of a fragment is not known", command.origin)
    if command.fragment.kind is FragmentKind.COLUMN:
        return _load_elements(r, command, places, facts)
    matrices = _matrices(r, command, places, facts)
    if matrices is not None:
        return matrices
    elements = _load_elements(r, command, places, facts)
    return _with_matrices_in_first_steps(r, command, places, facts, elements) or elements


def _with_matrices_in_first_steps(
    r: Resolver, command: i.LoadFragment, places: Distribution, facts: Facts, elements: i.Command
) -> i.Command | None:
    """Loads with ldmatrix in all steps of a sum but the last, which has fewer terms than an instruction.

    The pass `split guards` peels that step. None if there are zeros in other steps, too, or if the layout of
    the tile does not allow ldmatrix.
    """
    for index, last in _last_steps(r, command, facts):
        matrices = _matrices(r, command, places, facts.with_range(index, 0, last))
        if matrices is not None:
            step = variable(index)
            return i.sequence(i.When(step, last, matrices), i.When(last, step + 1, elements))
    return None


def _last_steps(r: Resolver, command: i.LoadFragment, facts: Facts) -> Iterator[tuple[str, Nat]]:
    """The loops around a load of which the last step may bring zeros behind a tile, and that step."""
    down, along = "matrix_row", "matrix_column"
    fragment = command.fragment
    inside = facts.with_range(down, 0, fragment.rows).with_range(along, 0, fragment.columns)
    found: list[i.Expression] = []

    def probe() -> i.Command:
        found.append(r.read(command.tile, (variable(down), variable(along)), inside))
        return i.Skip()

    r.scalars.enclose(probe)
    for index in sorted(_in_ends(found[0]) & facts.ranges.keys()):
        count = facts.ranges[index][1].value or 0
        if count > 1:
            yield index, constant(count - 1)


def _in_ends(read: i.Expression) -> frozenset[str]:
    """The variables of the conditions that choose between an element and a zero behind the last."""
    match read:
        case i.Operator("select", (i.Operator("lt", (i.Natural(value, _), _)), inner, _)):
            return value.variables | _in_ends(inner)
    return frozenset()


def _operand_layout(r: Resolver, command: i.LoadFragment, facts: Facts) -> bool:
    """The layout of an operand; if instructions exist for both, the first load fixes it in the type."""
    fragment = command.fragment
    if family_of(fragment) is not Family.VOLTA or fragment.kind is FragmentKind.ACCUMULATOR:
        return True
    tile = _tile(r, command, facts)
    row_major = tile.row_major if tile is not None else fragment.kind is FragmentKind.A
    target = r.write(command.target, (constant(0),), facts).buffer
    layout = ROW_MAJOR if row_major else COLUMN_MAJOR
    if r.operands.setdefault(target, layout) != layout:
        message = f"`{shown(target)}` is loaded from tiles of both layouts"
        raise TranslationError("R0721", message, command.origin)
    return row_major


def _load_elements(r: Resolver, command: i.LoadFragment, places: Distribution, facts: Facts) -> i.Command:
    def element(register: Nat, row: Nat, column: Nat, inside: Facts) -> i.Command:
        target = r.write(command.target, (register,), inside)
        return i.Assign(target, r.read(command.tile, (row, column), inside), command.origin)

    return _each_element(r, places, element, facts, "asFragment", command)


def store(r: Resolver, command: i.StoreFragment, places: Distribution, facts: Facts) -> i.Command:
    if command.fragment.kind is FragmentKind.COLUMN:
        return _store_elements(r, command, places, facts)
    matrices = _matrices_out(r, command, places, facts)
    return matrices if matrices is not None else _store_elements(r, command, places, facts)


def _store_elements(r: Resolver, command: i.StoreFragment, places: Distribution, facts: Facts) -> i.Command:
    def element(register: Nat, row: Nat, column: Nat, inside: Facts) -> i.Command:
        target = r.write(command.tile, (row, column), inside)
        stored = i.Assign(target, r.read(command.value, (register,), inside), command.origin)
        if command.fragment.kind is not FragmentKind.COLUMN:
            return stored
        # all lanes of a row hold its element, and the first of them stores it
        first = remainder(variable(_holders(command.fragment)[0]), constant(1 + sum(SAME_ROW)))
        return i.When(first, constant(1), stored)

    return _each_element(r, places, element, facts, "asMatrix", command)


def _each_element(
    r: Resolver,
    places: Distribution,
    make: Callable[[Nat, Nat, Nat, Facts], i.Command],
    facts: Facts,
    label: str,
    command: i.LoadFragment | i.StoreFragment,
) -> i.Command:
    """make(register, row, column, facts) for every register of every lane, adjacent elements together."""
    group, neighbour = r.scalars.fresh("g"), r.scalars.fresh("h")
    groups, run = quotient(places.registers, constant(places.run)), constant(places.run)
    lane, holders = _holders(command.fragment)
    inside = facts.with_range(lane, 0, holders).with_range(group, 0, groups).with_range(neighbour, 0, run)
    register = places.run * variable(group) + variable(neighbour)
    row, column = (simplify(n, inside) for n in places.at(variable(lane), register))
    body = r.scalars.enclose(lambda: make(register, row, column, inside))
    neighbours = i.vector_loop(neighbour, run, body)
    loop = i.For(group, groups, neighbours, unroll=True, label=label, origin=command.origin)
    return _by_holders(loop, command.fragment)


def _holders(fragment: Fragment) -> tuple[str, int]:
    """The name and number of the threads that hold a fragment."""
    family = family_of(fragment)
    holders = HOLDERS.get(family, LANES) if family is not None else LANES
    return (LANE if holders == LANES else MEMBER), holders


def _by_holders(body: i.Command, fragment: Fragment) -> i.Command:
    name, holders = _holders(fragment)
    level = i.Level.LANE if holders == LANES else i.Level.WARPGROUP_THREAD
    return i.ParallelFor(level, 0, name, constant(holders), body)


# --- ldmatrix -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """The contiguous lines of a tile: its rows, or its columns."""

    are_rows: bool


def _matrices(r: Resolver, command: i.LoadFragment, places: Distribution, facts: Facts) -> i.Command | None:
    """The load with ldmatrix; None if the layout of the tile does not allow it."""
    element = command.fragment.element
    size = element.bytes if isinstance(element, Scalar) else 0
    if family_of(command.fragment) not in (Family.MMA, Family.WGMMA) or size * places.run != 4:
        return None
    matrices = quotient(places.registers, constant(places.run)).value or 0
    count = next(c for c in (4, 2, 1) if matrices % c == 0)
    group = r.scalars.fresh("g")
    holder, holders = _holders(command.fragment)
    inside = facts.with_range(holder, 0, holders).with_range(group, 0, matrices // count)
    lane = simplify(remainder(variable(holder), constant(LANES)), inside)
    matrix = count * variable(group) + remainder(quotient(lane, constant(ROWS)), constant(count))
    first_lane = LANES * quotient(variable(holder), constant(LANES))
    row, column = places.at(first_lane, places.run * matrix)
    stored = _stored_rows(r, command, size, facts)
    # ldmatrix with .trans transposes 16-bit elements
    if stored is None or (stored.are_rows != places.along_row and size != 2):
        return None
    across = remainder(lane, constant(ROWS))
    row, column = (row + across, column) if stored.are_rows else (row, column + across)
    path = (simplify(row, inside), simplify(column, inside))
    first = simplify(places.run * count * variable(group), inside)

    def make() -> i.Command:
        target = r.write(command.target, (first,), inside)
        source = r.read(command.tile, path, inside)
        transposed = stored.are_rows != places.along_row
        return i.LoadMatrices(target, source, count, transposed, command.origin)

    body = r.scalars.enclose(make)
    groups = constant(matrices // count)
    loop = i.For(group, groups, body, unroll=True, label="asFragment", origin=command.origin)
    return _by_holders(loop, command.fragment)


def _stored_rows(r: Resolver, command: i.LoadFragment, size: int, facts: Facts) -> _Rows | None:
    """The layout of all 8×8 matrices of the tile, as `_rows_at` finds it; size: of an element, in bytes."""
    down, along, chunk = "matrices_down", "matrices_along", 16 // size
    fragment = command.fragment
    inside = facts.with_range(down, 0, quotient(fragment.rows, constant(ROWS)))
    inside = inside.with_range(along, 0, quotient(fragment.columns, constant(chunk)))
    row, column = ROWS * variable(down), chunk * variable(along)
    return _rows_at(r, lambda path, known: r.read(command.tile, path, known), row, column, inside, chunk)


def _tile(r: Resolver, command: i.LoadFragment, facts: Facts) -> i.Tile | None:
    """The tile that is loaded, if it is in memory."""
    found: list[i.Tile] = []

    def read(path: Path, inside: Facts) -> i.Expression:
        return r.read(command.tile, path, inside)

    def probe() -> i.Command:
        found.append(r.tile(read, command.fragment, facts, command.origin))
        return i.Skip()

    try:
        made = r.scalars.enclose(probe)
    except TranslationError:
        return None
    return found[0] if isinstance(made, i.Skip) else None


# --- stmatrix -----------------------------------------------------------------------------------------------


def _matrices_out(
    r: Resolver, command: i.StoreFragment, places: Distribution, facts: Facts
) -> i.Command | None:
    """The store with stmatrix; None if the layout of the tile does not allow it."""
    fragment = command.fragment
    size = fragment.element.bytes if isinstance(fragment.element, Scalar) else 0
    if family_of(fragment) is not Family.WGMMA or size * places.run != 4:
        return None
    matrices = quotient(places.registers, constant(places.run)).value or 0
    count = next(c for c in (4, 2, 1) if matrices % c == 0)
    group, inside = r.scalars.fresh("g"), facts.with_range(MEMBER, 0, HOLDERS[Family.WGMMA])
    inside = inside.with_range(group, 0, matrices // count)
    member = variable(MEMBER)
    matrix = count * variable(group) + remainder(quotient(member, constant(ROWS)), constant(count))
    # the number of the warp's first lane
    first = places.at(LANES * quotient(member, constant(LANES)), places.run * matrix)
    row, column = (simplify(n, inside) for n in first)
    stored = _rows_at(r, lambda path, known: r.write(command.tile, path, known), row, column, inside)
    if stored is None:
        return None
    across = remainder(member, constant(ROWS))
    row, column = (row + across, column) if stored.are_rows else (row, column + across)

    def make() -> i.Command:
        target = r.write(command.tile, (simplify(row, inside), simplify(column, inside)), inside)
        value = r.read(command.value, (simplify(places.run * count * variable(group), inside),), inside)
        transposed = stored.are_rows != places.along_row
        return i.StoreMatrices(target, value, count, transposed, command.origin)

    body = r.scalars.enclose(make)
    groups = constant(matrices // count)
    loop = i.For(group, groups, body, unroll=True, label="asMatrix", origin=command.origin)
    return i.ParallelFor(i.Level.WARPGROUP_THREAD, 0, MEMBER, constant(HOLDERS[Family.WGMMA]), loop)


def _rows_at(
    r: Resolver,
    element: Callable[[Path, Facts], i.Expression],
    row: Nat,
    column: Nat,
    facts: Facts,
    chunk: int = ROWS,
) -> _Rows | None:
    """The layout of the 8×8 matrix at (row, column), if its rows or columns are aligned runs of 16 bytes.

    Each lane computes where one of them starts, so they may be anywhere: rows behind the last row of an array
    may all be in its place. None also if the matrix is moved under a condition, or computed.
    chunk: the number of elements in 16 bytes
    """
    down, along = "matrix_row", "matrix_column"
    inside = facts.with_range(down, 0, ROWS).with_range(along, 0, chunk)
    path = tuple(simplify(n, inside) for n in (row + variable(down), column + variable(along)))
    found: list[_Rows] = []

    def probe() -> i.Command:
        access = element(path, inside)
        if isinstance(access, i.Access) and access.buffer in r.shared and not r.scalars.write_guards:
            linear = simplify(r.linear(access), inside)
            for name, are_rows in ((along, True), (down, False)):
                start = simplify(linear - variable(name), inside)
                apart = name not in start.variables and not r.scalars.depends_on({name})
                if apart and divides(chunk, start, inside):
                    found.append(_Rows(are_rows))
        return i.Skip()

    try:
        r.scalars.enclose(probe)
    except TranslationError:
        return None
    return next(iter(found), None)
