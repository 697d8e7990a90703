"""Lines of memory that an epilogue reads element by element: in the L2 cache before the first product.

The reads come behind all products of a tile, when every block of the grid reads from memory at the same time.
Until then memory is idle, and what is read is known: threads that compute first ask for the lines with the
first and the last element of each read of their warp. The lanes of a warp share these among themselves:

    for i. y[i] = f(x[i, lane])   =   (for (i, e) by lanes. prefetch x[i, 31·e]) ; for i. y[i] = f(x[i, lane])

Only addresses that are known when the threads start count: not those of the next tile of a persistent block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from codegen.ir import imperative as i
from codegen.ir.buffers import shared
from codegen.ir.launch import THREAD, WARP, Launch
from codegen.passes.analysis.fresh import binds, names_of
from codegen.passes.grouped_reads import Elements, elements_of, varying_reads
from rise.nat import Atom, Nat, NatVariable, Operation, constant, quotient, remainder, variable
from rise.types import Array

Guards = tuple[tuple[Nat, Nat], ...]


def prefetches(function: i.Function, _: Launch) -> i.Function:
    """The pass, for kernels whose threads have roles."""
    inputs = {v.name for v in function.inputs if isinstance(v.type, Array)}
    inputs &= function.ready or inputs
    outputs = {v.name for v in function.outputs}
    memory = frozenset(inputs.union(outputs, (new.name for new in shared(function.body))))
    number = names_of(function).fresh("read")

    def go(command: i.Command, known: frozenset[str], threads: Mapping[str, Nat]) -> i.Command:
        if isinstance(command, i.WarpSpecialise):
            made = dict[i.Access, tuple[int, Guards]]()
            for found in _nests(command.consume, memory):
                for access in varying_reads(found):
                    if access.buffer in inputs:
                        place, count, guards = _by_lanes(found, access, number, threads)
                        used = {name for n in (*place.indices, *sum(guards, ())) for name in n.variables}
                        if used <= known | {number} and len(guards) >= len(made.get(place, (0, ()))[1]):
                            made[place] = count, guards
            first = [_prefetch(place, number, *rest) for place, rest in made.items()]
            return replace(command, consume=i.sequence(*first, command.consume))
        if isinstance(command, i.Define) and THREAD in command.value.variables:
            threads = {**threads, command.name: command.value}
        below = known.union(binds(command))
        return i.with_inner(command, tuple(go(part, below, threads) for part in i.inner(command)))

    return replace(function, body=go(function.body, frozenset({THREAD, "blockIdx.x", "blockIdx.y"}), {}))


def _nests(command: i.Command, memory: frozenset[str]) -> Iterator[Elements]:
    found = elements_of(command, memory) if isinstance(command, i.For) else None
    if found is not None:
        yield found
        return
    for part in i.inner(command):
        yield from _nests(part, memory)


def _by_lanes(
    found: Elements, access: i.Access, number: str, threads: Mapping[str, Nat]
) -> tuple[i.Access, int, Guards]:
    """The access of a warp's first or last lane in an iteration, both by number; and how many there are."""
    lane = remainder(variable(THREAD), WARP)
    which = WARP * variable(number) + lane
    at: dict[Atom, Nat] = {
        NatVariable(name): variable(name) - lane + (WARP - 1) * remainder(which, 2)
        for name, value in threads.items()
        if not _is_number_of_group(value)
    }
    left = quotient(which, 2)
    for loop in reversed(found.loops):
        at[NatVariable(loop.index)] = remainder(left, loop.count)
        left = quotient(left, loop.count)
    count = 2 * prod(loop.count.value or 1 for loop in found.loops)
    whens = (each for each in found.around if isinstance(each, i.When))
    guards = tuple((each.value.substitute(at), each.bound.substitute(at)) for each in whens)
    return replace(access, indices=tuple(n.substitute(at) for n in access.indices)), count, guards


def _is_number_of_group(value: Nat) -> bool:
    """Whether all threads of a warp have the same of such a number."""
    return any(isinstance(atom, Operation) and atom.operator == "quotient" for atom in value.atoms)


def _prefetch(place: i.Access, number: str, count: int, guards: Guards) -> i.Command:
    lane = remainder(variable(THREAD), WARP)
    command: i.Command = i.Prefetch(place)
    for value, bound in reversed(guards):
        command = i.When(value, bound, command)
    rounds = -(-count // WARP)
    if count % WARP:
        command = i.When(WARP * variable(number) + lane, constant(count), command)
    return i.For(number, constant(rounds), command, unroll=True, label="prefetch")
