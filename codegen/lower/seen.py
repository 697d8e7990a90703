"""An array in global memory as the copying unit sees it: in dimensions along which a box extends.

A tensor map gives an array any dimensions. Rows of arrays in an array are adjacent, so a tile of joined
arrays is a box of the list of all rows. A list is seen as a matrix, whose rows are as long as two rows of a
tile are apart.
"""

from __future__ import annotations

from math import prod

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions
from codegen.lower.paths import Limits, Resolver, coefficient
from rise.nat import Facts, Nat, NatVariable, at_least, constant, less_than, simplify, variable

Seen = tuple[tuple[Nat, ...], tuple[Nat, ...]]  # the indices of an access, and the sizes of its array


def seen_by_boxes(r: Resolver, access: i.Access, names: list[str], facts: Facts, ends: Limits) -> Seen:
    """The indices and sizes of an array, in other dimensions if a box needs them.

    names: the variables of places in the box, outermost first
    ends:  the elements beyond these are zeros, undefined or not written
    """
    found = _joined(r, access, names, facts)
    if _is_along_dimensions(found[0], names, facts):
        return found
    split = _split(r, access, names, facts, ends)
    return split if split is not None and _is_along_dimensions(split[0], names, facts) else found


def _is_along_dimensions(indices: tuple[Nat, ...], names: list[str], facts: Facts) -> bool:
    """Whether each index is constant in the box, or follows one of its variables."""
    zero = {NatVariable(name): constant(0) for name in names}
    rests = [simplify(index - index.substitute(zero), facts) for index in indices]
    return all(rest == constant(0) or any(rest == variable(name) for name in names) for rest in rests)


def _joined(r: Resolver, access: i.Access, names: list[str], facts: Facts) -> Seen:
    """Joins dimensions that a box reaches across. The innermost one stays by itself."""
    indices, sizes = list(access.indices), list(dimensions(r.buffers[access.buffer]))
    there = 0
    while there + 2 < len(indices):
        if _is_along_dimensions((indices[there],), names, facts):
            there += 1
            continue
        indices[there : there + 2] = [simplify(indices[there] * sizes[there + 1] + indices[there + 1], facts)]
        sizes[there : there + 2] = [sizes[there] * sizes[there + 1]]
    return tuple(indices), tuple(sizes)


def _split(r: Resolver, access: i.Access, names: list[str], facts: Facts, ends: Limits) -> Seen | None:
    """Splits the list of all elements where rows of a box start; None if rows leave a rest or may overlap."""
    index = simplify(r.linear(access), facts)
    size = prod(dimensions(r.buffers[access.buffer]), start=constant(1))
    indices, sizes = list[Nat](), list[Nat]()
    for name in names[:-1]:
        distance = simplify(coefficient(index, name), facts)
        rows = size.exact_quotient(distance) if distance != constant(0) else None
        if rows is None or not rows.is_whole:
            return None
        found = _row_and_column(index, distance, facts, ends)
        if found is None:
            return None
        row, index = found
        indices.append(row)
        sizes.append(rows)
        size = distance
    return (*indices, index), (*sizes, size)


def _row_and_column(index: Nat, length: Nat, facts: Facts, ends: Limits) -> tuple[Nat, Nat] | None:
    """An index as row · length + column, where there is nothing in columns behind the length."""
    columns = [column for column, end in ends if end == length]
    for column in (*columns, _rest(index, length)):
        row = (index - column).exact_quotient(length) or constant(0)
        whole = row.is_whole and row * length == index - column
        if whole and at_least(column, 0, facts) and is_below(column, length, ends, facts):
            return row, column
    return None


def _rest(value: Nat, divisor: Nat) -> Nat:
    """A value without its terms that the divisor divides."""
    terms = [Nat((term,)) for term in value.terms]
    quotients = [(term, term.exact_quotient(divisor)) for term in terms]
    return sum((term for term, part in quotients if part is None or not part.is_whole), start=constant(0))


def is_below(index: Nat, size: Nat, ends: Limits, facts: Facts) -> bool:
    """Whether an index is below a size for all elements that exist, within these ends."""
    implied = (at_least((size - index) - (end - there), 0, facts) for there, end in ends)
    return less_than(index, size, facts) or any(implied)
