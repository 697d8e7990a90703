"""Elements that a thread reads and stores in an unrolled loop: several are read before the first is stored.

Where a loop reads one array and writes another, each iteration waits for memory: elements at the end of a
matrix are under conditions, and the compiler of CUDA moves nothing over those. Arrays do not overlap, and
what is computed of zeros is not stored, so that

    for i. when g(i) (y[i] = f(x[i]))   =   for groups of i.
        (for i. xs[i] = if g(i) then x[i] else 0) ; (for i. ys[i] = f(xs[i])) ;
        (for i. when g(i) (y[i] = ys[i]))

Each of these conditions is about one instruction, which needs no branch. Threads that compute are fewer than
those of a block with roles: conditions that hold for all of them go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from codegen.ir import imperative as i
from codegen.ir.buffers import shared
from codegen.ir.identifiers import derived
from codegen.ir.launch import THREAD, WARPGROUP, Launch
from codegen.ir.scalar_temporaries import PARTIAL, both, less
from codegen.passes.analysis.fresh import Names, names_of
from codegen.passes.analysis.walk import facts_of_workers, inside, substituted
from codegen.passes.split_guards import decide
from rise.nat import Atom, Facts, Nat, NatVariable, constant, variable
from rise.types import Array, Data, Scalar, Space

AT_ONCE = 40  # numbers that a thread has read before it uses the first of them: a register each


def grouped_reads(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    arrays = (v.name for v in (*function.inputs, *function.outputs) if isinstance(v.type, Array))
    own = (new.name for new in shared(function.body))
    grouping = _Grouping(frozenset((*arrays, *own)), names_of(function))
    body = _of_consumers(function.body, facts_of_workers(launch), (THREAD,))
    return replace(function, body=grouping.go(body))


def _of_consumers(command: i.Command, facts: Facts, threads: tuple[str, ...]) -> i.Command:
    """The command, in which threads that compute do not ask whether they do."""
    if isinstance(command, i.WarpSpecialise):
        for name in threads:
            facts = facts.with_range(name, 0, WARPGROUP * command.consumers)
        return replace(command, consume=decide(command.consume, facts))
    if isinstance(command, i.Define) and command.value == variable(THREAD):
        threads = (*threads, command.name)
    below = inside(command, facts)
    return i.with_inner(command, tuple(_of_consumers(part, below, threads) for part in i.inner(command)))


@dataclass(frozen=True)
class Elements:
    """Loops, outermost first, and conditions, around one assignment to an element in memory."""

    around: tuple[i.For | i.When, ...]
    assigned: i.Assign
    target: i.Access

    @property
    def loops(self) -> list[i.For]:
        return [each for each in self.around if isinstance(each, i.For)]

    @property
    def each(self) -> int:
        """How many elements an iteration of the outermost loop has."""
        return prod(loop.count.value or 1 for loop in self.loops[1:])

    def doing(self, command: i.Command, whens: bool) -> i.Command:
        """The same elements, with which something else is done: under their conditions, or for all."""
        for each in reversed(self.around):
            command = replace(each, body=command) if whens or isinstance(each, i.For) else command
        return command

    def or_zero(self, value: i.Expression) -> i.Expression:
        """A value where there is the element, else zero."""
        conditions = [less(each.value, each.bound) for each in self.around if isinstance(each, i.When)]
        zero = i.Number(0, value.type)
        return (
            i.Operator("select", (reduce(both, conditions), value, zero), value.type) if conditions else value
        )


@dataclass(frozen=True)
class _Grouping:
    """memory: arrays that are inputs or in shared memory"""

    memory: frozenset[str]
    names: Names

    def go(self, command: i.Command) -> i.Command:
        found = elements_of(command, self.memory) if isinstance(command, i.For) else None
        if not isinstance(command, i.For) or found is None:
            return i.with_inner(command, tuple(map(self.go, i.inner(command))))
        return self._grouped(command, found.each * max(len(varying_reads(found)), 1))

    def _grouped(self, loop: i.For, each: int) -> i.Command:
        """Groups of as many iterations as there are registers for, and a smaller one behind them."""
        total = loop.count.value or 0
        size = _group_size(total, max(AT_ONCE // each, 1))
        groups, left = divmod(total, size)
        if groups == 1:
            parts = [self._group(_from(loop, constant(0), size))]
        else:
            group = self.names.fresh(derived(loop.index, "group"))
            body = self._group(_from(loop, size * variable(group), size))
            # a loop that is not unrolled: else the compiler mixes the reads of a group with uses of another
            parts = [replace(loop, index=group, count=constant(groups), body=body, unroll=False)]
        if left:
            parts.append(self._group(_from(loop, constant(groups * size), left)))
        return i.sequence(*parts)

    def _group(self, loop: i.For) -> i.Command:
        found = elements_of(loop, self.memory)
        if found is None:
            return loop
        place = tuple(variable(each.index) for each in found.loops)
        origin, target = found.assigned.origin, found.target
        reads = {
            access: i.Access(self.names.fresh(derived(access.buffer, "read")), place, access.type)
            for access in varying_reads(found)
        }

        def read(access: i.Access) -> i.Expression:
            return reads[access] if access in reads else found.or_zero(access)

        before = [
            found.doing(i.Assign(register, found.or_zero(access), origin), whens=False)
            for access, register in reads.items()
        ]
        result: i.Expression = i.rebuild(found.assigned.value, i.Access, read)
        if not isinstance(result, i.Access) or result not in reads.values():
            register = i.Access(self.names.fresh(derived(target.buffer, "element")), place, target.type)
            before.append(found.doing(i.Assign(register, result, origin), whens=False))
            result = register
        stored = found.doing(replace(found.assigned, value=result), whens=True)
        whole = i.sequence(*before, stored)
        for register in dict.fromkeys((*reads.values(), result)):
            type_: Data = register.type
            for each in reversed(found.loops):
                type_ = Array(each.count, type_)
            whole = i.New(Space.LOCAL, register.buffer, type_, whole, origin)
        return whole


def elements_of(command: i.Command, memory: frozenset[str]) -> Elements | None:
    """What a command does with elements of memory one by one; None where it does anything else."""
    around: list[i.For | i.When] = []
    while isinstance(command, i.For | i.When):
        if isinstance(command, i.For) and not _is_unrolled(command):
            return None
        around.append(command)
        command = command.body
    if not isinstance(command, i.Assign) or not isinstance(command.target, i.Access):
        return None
    found, value = Elements(tuple(around), command, command.target), command.value
    reads = list(i.accesses(value))
    of_memory = {access.buffer for access in reads} <= memory - {found.target.buffer}
    scalars = all(isinstance(each.type, Scalar) for each in (found.target, *reads))
    worth = bool(reads) and found.target.buffer in memory and scalars and of_memory
    return found if worth and is_defined(value) else None


def varying_reads(found: Elements) -> list[i.Access]:
    """What each element is computed from, whatever data say, and is another one for each of them."""
    own = {loop.index for loop in found.loops}
    reads = dict.fromkeys(_certain(found.assigned.value))
    return [each for each in reads if any(not own.isdisjoint(index.variables) for index in each.indices)]


def _group_size(total: int, most: int) -> int:
    """Into groups of up to so many, of equal size if they have at least half as many."""
    sizes = range(min(most, total), 0, -1)
    best = next(size for size in sizes if total % size == 0)
    return best if 2 * best >= min(most, total) else min(most, total)


def _is_unrolled(loop: i.For) -> bool:
    """Over elements, and not over those of a vector, which are few and next to each other."""
    return loop.unroll and loop.role is i.Role.MAP and not loop.counters and loop.count.value is not None


def is_defined(value: i.Expression) -> bool:
    """Whether a value is defined whatever numbers it is computed from, so that it may be one of zeros."""
    match value:
        case i.Operator(name, operands, Scalar() as type_) if name not in PARTIAL or type_.is_float:
            return all(map(is_defined, operands))
        case _:
            return isinstance(value, i.Access | i.Number | i.Natural)


def _from(loop: i.For, start: Nat, count: int) -> i.For:
    """So many iterations from one on."""
    at: dict[Atom, Nat] = {NatVariable(loop.index): start + variable(loop.index)}
    return replace(loop, count=constant(count), body=substituted(loop.body, at))


def _certain(value: i.Expression) -> Iterator[i.Access]:
    """What a value is computed from in any case, and not only where a condition holds."""
    match value:
        case i.Operator("select", (condition, *_)):
            yield from _certain(condition)
        case i.Operator(_, operands):
            for operand in operands:
                yield from _certain(operand)
        case i.Access():
            yield value
