"""Injectivity: whether workers write different locations, by the form of the indices or by trying all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from codegen.ir import imperative as i
from codegen.passes.analysis.dependences import Use, Workers, determined, same_workers
from rise.nat import (
    Atom,
    Facts,
    Nat,
    NatVariable,
    Operation,
    at_least,
    constant,
    maximum,
    minimum,
    quotient,
    remainder,
)

# the number of iterations that are enumerated at most
MOST = 2**20
Numbers = NDArray[np.int64]


def same_location(
    use: Use,
    workers: Collection[Workers],
    uniform: frozenset[str],
    views: bool,
    conditions: Collection[tuple[Nat, Nat]] = (),
) -> Workers | None:
    """Workers, among several, that write the same location; None if there are none.

    uniform: the indices that are the same in both writes, which therefore do not distinguish them
    views:   the write is through views, which are bijections; if it cannot be enumerated, it is accepted
    conditions: pairs (value, bound) of loop indices: the write is executed only if each value < bound
    """
    shown = same_workers(use, use, uniform)
    unknown = [w for w in workers if w not in shown]
    if unknown:  # trying all takes a hundred times as long
        shown = determined(use, uniform)
        unknown = [w for w in unknown if w not in shown]
    if not unknown:
        return None
    if _too_many(use):
        return None if views else unknown[0]
    indices = _iterations(use)
    if not all(numbers.size for numbers in indices.values()):
        return None  # the write is never executed
    at, size = _as_numbers([_numbers(n, indices) for n in (*use.indices, *_same(uniform, indices))])
    names = use.workers()
    executed = np.ones((), bool)
    for value, bound in conditions:
        executed = executed & (_numbers(value, indices) < _numbers(bound, indices))
    for worker in unknown:
        number, place, runs = np.broadcast_arrays(indices[names[worker]], at, executed)
        number, place = number[runs], place[runs]
        writer = np.empty(size, np.int64)
        writer[place] = number  # one of the writers of each location
        if np.any(writer[place] != number):
            return worker
    return None


def _too_many(use: Use) -> bool:
    total = constant(1)
    for loop in (*use.around, *use.collective):
        total = total * loop.count
    known = {loop.index for loop in (*use.around, *use.collective)}
    simple = all(n.is_whole and n.variables <= known for n in use.indices)
    return not simple or total.value is None or total.value > MOST


def _iterations(use: Use) -> dict[str, Numbers]:
    """The indices of all loops in all iterations, each along its own axis."""
    loops = (*use.around, *use.collective)
    grid = np.indices([loop.count.value or 0 for loop in loops], np.int64, sparse=True)
    return {loop.index: numbers for loop, numbers in zip(loops, grid, strict=True)}


def _as_numbers(places: Sequence[Numbers]) -> tuple[Numbers, int]:
    """Multi-dimensional indices as single numbers below a bound close to the number of iterations."""
    total, size = np.zeros((), np.int64), 1
    for place in places:
        low, high = int(place.min()), int(place.max())
        number, extent = (place - low, high - low + 1) if high - low < 4 * MOST else _ranks(place)
        total, size = total * extent + number, size * extent
        if size > 4 * MOST:
            total, size = _ranks(total)
    return total, size


def _ranks(numbers: Numbers) -> tuple[Numbers, int]:
    """Replaces numbers by their ranks from 0, and counts the distinct ones."""
    different, ranks = np.unique(numbers, return_inverse=True)
    return ranks.reshape(numbers.shape), len(different)


def _same(uniform: frozenset[str], indices: Mapping[str, Numbers]) -> list[Nat]:
    return [Nat.build({((NatVariable(name), 1),): 1}) for name in sorted(uniform) if name in indices]


def _numbers(value: Nat, indices: Mapping[str, Numbers]) -> Numbers:
    """The value in all iterations."""
    total = np.zeros((), np.int64)
    for monomial, coefficient in value.terms:
        product = np.ones((), np.int64)
        for base, exponent in monomial:
            product = product * _of_atom(base, indices) ** exponent
        total = total + product * coefficient.numerator // coefficient.denominator
    return total


def _of_atom(base: Atom, indices: Mapping[str, Numbers]) -> Numbers:
    match base:
        case NatVariable(name):
            return indices[name]
        case Operation(operator, left, right):
            a, b = _numbers(left, indices), _numbers(right, indices)
            functions = {"quotient": np.floor_divide, "remainder": np.remainder}
            functions |= {"min": np.minimum, "max": np.maximum, "power": np.power}
            return functions[operator](a, b)
        case _:
            raise KeyError(str(base))


# --- indices that are stored in scalars -----------------------------------------------------------------


def natural(value: object, known: Mapping[str, Nat], facts: Facts) -> Nat | None:
    """An expression as a sum of loop indices; None if it depends on data.

    known: the scalars that hold such sums
    """
    match value:
        case i.Natural(number, _):
            return number
        case i.Number(int() as number, _):
            return constant(number)
        case i.Access(name, ()) if name in known:
            return known[name]
        case i.Operator("natAsIndex" | "indexToInt" | "cast", (operand,)):
            return natural(operand, known, facts)
        case i.Operator(name, (left, right)):
            a, b = natural(left, known, facts), natural(right, known, facts)
            return None if a is None or b is None else _combined(name, a, b, facts)
        case _:
            return None


def _combined(name: str, a: Nat, b: Nat, facts: Facts) -> Nat | None:
    match name:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "min":
            return minimum(a, b, facts)
        case "max":
            return maximum(a, b, facts)
        case "div" | "mod" if at_least(a, 0, facts) and at_least(b, 1, facts):
            return quotient(a, b, facts) if name == "div" else remainder(a, b, facts)
        case _:
            return None
