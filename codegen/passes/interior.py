"""Tiles inside a matrix without conditions, where tiles stick out at its ends.

If some tile sticks out, what is done with the elements of a fragment is under a condition for each of them,
and memory is read for one element after the other. For most tiles all of these conditions hold. Such a tile
gets a version of its own, which the largest indices of elements select:

    for e. when (t + e < n) c   =   when (t + max e < n) (for e. c) ; otherwise (for e. when (t + e < n) c)

So does what threads compute in a step of a pipeline: only in the last one some conditions fail. And so does a
turn of a reduction that loads several elements before it uses the first: loads under conditions wait for each
other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce

from codegen.ir import imperative as i
from codegen.ir.scalar_temporaries import INT, both, decided, either, less
from codegen.passes.analysis.fresh import Names, bound_in, names_of
from codegen.passes.analysis.walk import inside
from codegen.passes.split_guards import Guard, decide, guards
from rise.nat import Facts, Nat, upper_bound
from rise.types import Fragment, Space, shape

THREADS = (i.Level.LANE, i.Level.WARPGROUP_THREAD, i.Level.THREAD)


def interior(function: i.Function) -> i.Function:
    """The pass: for tiles of fragments, steps of pipelines, and, without fragments, turns that load ahead."""
    fragments = any(
        isinstance(c, i.New) and isinstance(shape(c.type)[1], Fragment) for c in i.commands(function.body)
    )
    return replace(function, body=_command(function.body, Facts(), names_of(function), fragments))


def _command(command: i.Command, facts: Facts, names: Names, versions: bool) -> i.Command:
    below = inside(command, facts)
    match command:
        case _ if versions and _of_elements(command) and _of_threads(command):
            return _in_two_versions(command, facts, names)
        case i.For(role=i.Role.REDUCTION, unroll=False, body=turn) if not versions and _loads_ahead(turn):
            return replace(command, body=_in_two_versions(turn, below, names))
        case i.For(role=i.Role.PIPELINE):
            versions = True
    parts = (_command(part, below, names, versions) for part in i.inner(command))
    return i.with_inner(command, tuple(parts))


def _loads_ahead(turn: i.Command) -> bool:
    """Whether a thread loads several elements in a turn of a loop before it does anything with them."""
    loads = turn
    while isinstance(loads, i.New):
        loads = loads.body
    match turn, loads:
        case i.New(), i.Sequence((i.For(unroll=True, role=i.Role.MAP), *_)):
            return _of_elements(turn)
        case _:
            return False


def _of_elements(command: i.Command) -> bool:
    """Whether a command is about nothing but elements that threads hold: none waits for another there."""
    match command:
        case i.For(unroll=True) | i.New(space=Space.LOCAL) | i.ForFragment() | i.Define():
            own = True
        case i.ParallelFor(level=level):
            own = level in THREADS
        case i.Assign():
            own = not _exchanges(command.value)
        case _:
            own = isinstance(command, i.Sequence | i.Skip | i.When)
    return own and all(map(_of_elements, i.inner(command)))


def _exchanges(value: i.Expression) -> bool:
    """Whether a value is computed from those of other lanes, all of which have to be there."""
    match value:
        case i.Operator(name, operands):
            return name == "shuffleXor" or any(map(_exchanges, operands))
        case _:
            return False


def _of_threads(command: i.Command) -> bool:
    return any(isinstance(c, i.ParallelFor) and c.level in THREADS for c in i.commands(command))


def _in_two_versions(command: i.Command, facts: Facts, names: Names) -> i.Command:
    """The command without conditions where all of them hold; and as it is."""
    bound = bound_in(command)
    largest: dict[Guard, set[Guard | None]] = defaultdict(set)
    for guard, known in guards(command, facts):
        largest[guard].add(_largest(guard, known, bound))
    certain = frozenset(guard for guard, limits in largest.items() if None not in limits)
    limits = {limit for guard in certain for limit in largest[guard] if limit is not None}
    if limits <= certain or any(decided(*limit, facts) is False for limit in limits):
        return command  # no condition is about single elements, or no tile is inside
    name = names.fresh("inside")
    is_inside = reduce(both, (less(*limit) for limit in sorted(limits, key=str)))
    free = decide(command, facts, lambda value, bound, _: (value, bound) in certain or None)
    return i.New(Space.LOCAL, name, INT, either(name, is_inside, free, command))


def _largest(guard: Guard, facts: Facts, bound: set[str]) -> Guard | None:
    """The guard where what is bound inside is largest; None where that is not known."""
    value, limit = guard
    if not bound.isdisjoint(limit.variables):
        return None
    inner = Nat.build({m: c for m, c in value.terms if not bound.isdisjoint(Nat.build({m: c}).variables)})
    most = upper_bound(inner, facts)
    if most is None or not bound.isdisjoint(most.variables):
        return None
    return value - inner + most, limit
