"""Splits a loop in two, where a condition on its index holds in all of its first iterations. Three kinds:

Unrolled loops. A block whose threads do not divide an array has such a condition around every access,
although only the last access of a thread may be outside. The compiler of CUDA does not know how many threads
there are; with the ranges of the parallel loops it is certain for the others that they are inside.

Loops that bring tiles by bulk copies. Where a tile is in one of several arrays, each array has a loop of its
own: a thread that starts copies under conditions falls behind those that compute.

Sums of products of fragments, of which only the last terms may be out of bounds: the last iteration is
peeled. Without conditions, the compiler of CUDA overlaps the loads for one product with another product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.scalar_temporaries import decided
from codegen.passes.analysis.walk import inside, substituted
from rise.nat import Atom, Facts, Nat, NatVariable, constant, variable

Guard = tuple[Nat, Nat]  # (a, b) means a < b
Holds = Callable[[Nat, Nat, Facts], bool | None]  # whether a < b, if that is certain


def split_guards(function: i.Function) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body, Facts()))


def _command(command: i.Command, facts: Facts) -> i.Command:
    below = inside(command, facts)
    command = i.with_inner(command, tuple(_command(part, below) for part in i.inner(command)))
    if not isinstance(command, i.For):
        return command
    if _unrolled(command) or _brings_tiles(command):
        first = _certain_iterations(command, facts)
        return _split(command, first, facts) if first else command
    last = (command.count.value or 0) - 1
    if _sums_products(command) and 0 < last == _certain_iterations(command, facts):
        return _split(command, last, facts)
    return command


def _unrolled(loop: i.For) -> bool:
    return loop.unroll and loop.role is i.Role.MAP


def _sums_products(loop: i.For) -> bool:
    """Whether a loop adds up products of fragments, and threads do not wait for each other in it."""
    if loop.role is not i.Role.REDUCTION:
        return False
    inner = list(i.commands(loop.body))
    products = any(isinstance(c, i.MmaFragment) for c in inner)
    return products and not any(isinstance(c, i.Barrier) for c in inner)


def _brings_tiles(loop: i.For) -> bool:
    """Whether a loop starts one of two bulk copies, whichever a condition on its index chooses."""
    copies = {
        (c.value, c.bound)
        for c in i.commands(loop.body)
        if isinstance(c, i.When) and any(isinstance(inner, i.BulkCopy) for inner in i.commands(c.body))
    }
    return any(loop.index in value.variables and (bound, value + 1) in copies for value, bound in copies)


def _certain_iterations(loop: i.For, facts: Facts) -> int:
    """In how many of the first iterations some condition on the index is certain to hold, if not in all."""
    count = loop.count.value or 0
    found = (
        _certain(guard, loop.index, count, known)
        for guard, known in guards(loop.body, facts)
        if loop.index in guard[0].variables and loop.index not in guard[1].variables
    )
    return max((first for first in found if first < count), default=0)


def _certain(guard: Guard, index: str, count: int, facts: Facts) -> int:
    value, bound = guard
    for number in range(count):
        at: Mapping[Atom, Nat] = {NatVariable(index): constant(number)}
        if decided(value.substitute(at), bound, facts) is not True:
            return number
    return count


def guards(command: i.Command, facts: Facts) -> Iterator[tuple[Guard, Facts]]:
    """The comparisons of indices in a command, each with what is known of their variables."""
    if isinstance(command, i.When):
        yield (command.value, command.bound), facts
    if isinstance(command, i.Assign | i.CopyAsync):
        yield from ((guard, facts) for guard in _compared(command.value))
    for part in i.inner(command):
        yield from guards(part, inside(command, facts))


def _compared(value: object) -> Iterator[Guard]:
    match value:
        case i.Operator("select", (i.Operator("lt", (i.Natural(number, _), i.Natural(bound, _))), *rest)):
            yield number, bound
            yield from (guard for part in rest for guard in _compared(part))
        case i.Operator(_, operands) | i.ForeignCall(_, _, operands):
            yield from (guard for part in operands for guard in _compared(part))


def _split(loop: i.For, first: int, facts: Facts) -> i.Command:
    """The first iterations without the conditions that hold in them, and the others as they are."""
    known = facts.with_range(loop.index, 0, first)
    one = replace(loop, count=constant(first), body=decide(loop.body, known))
    if _sums_products(loop):
        last = substituted(loop.body, {NatVariable(loop.index): constant(first)})
        return i.sequence(one, decide(last, facts))
    shifted: Mapping[Atom, Nat] = {NatVariable(loop.index): variable(loop.index) + first}
    rest = replace(loop, count=loop.count - first, body=substituted(loop.body, shifted))
    if _brings_tiles(loop):
        after = facts.with_range(loop.index, 0, loop.count - first)
        rest = replace(rest, body=decide(rest.body, after))
        return i.sequence(_command(one, facts), _command(rest, facts))
    return i.sequence(one, rest)


def decide(command: i.Command, facts: Facts, holds: Holds = decided) -> i.Command:
    """A command without the conditions that certainly hold, and without what is under those that fail."""
    match command:
        case i.When(value, bound, body) if (answer := holds(value, bound, facts)) is not None:
            return decide(body, facts, holds) if answer else i.Skip()
        case i.Assign() | i.CopyAsync():
            return replace(command, value=_chosen(command.value, facts, holds))
        case _:
            below = inside(command, facts)
            return i.with_inner(command, tuple(decide(part, below, holds) for part in i.inner(command)))


def _chosen(value: i.Expression, facts: Facts, holds: Holds) -> i.Expression:
    match value:
        case i.Operator(
            "select", (i.Operator("lt", (i.Natural(number, _), i.Natural(bound, _))), chosen, _)
        ) if holds(number, bound, facts) is True:
            return _chosen(chosen, facts, holds)
        case i.Operator(_, operands) | i.ForeignCall(_, _, operands):
            return replace(value, operands=tuple(_chosen(operand, facts, holds) for operand in operands))
        case _:
            return value
