"""Traversals over the sizes and indices of a program, with known ranges of the variables in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.ir.scalar_temporaries import assuming_less
from rise.nat import Atom, Facts, Nat, NatVariable, Operation, lower_bound, simplify, upper_bound
from rise.types import Index

N = TypeVar("N")


def rebuild_own(command: i.Command, kind: type[N], change: Callable[[N], N]) -> i.Command:
    """Changes every node of a kind in the command, but not in the commands inside it."""
    inside = i.inner(command)
    if isinstance(command, i.Sequence) or not inside:
        return command if isinstance(command, i.Sequence) else i.rebuild(command, kind, change)
    hollow = i.with_inner(command, (i.Skip(),) * len(inside))
    return i.with_inner(i.rebuild(hollow, kind, change), inside)


def own_nats(command: i.Command) -> list[Nat]:
    """The sizes and indices of a command, without those of the commands inside it."""
    return list(i.own(command, Nat))


def substituted(command: i.Command, values: Mapping[Atom, Nat]) -> i.Command:
    return i.rebuild(command, Nat, lambda n: n.substitute(values))


def facts_of_workers(launch: Launch) -> Facts:
    """The ranges of CUDA's thread and block indices."""
    facts = Facts()
    for register, sizes in (("threadIdx", launch.block), ("blockIdx", launch.grid)):
        for axis, size in zip("xyz", sizes, strict=True):
            facts = facts.with_range(f"{register}.{axis}", 0, size)
    return facts


def inside(command: i.Command, facts: Facts) -> Facts:
    """The facts that hold in the body of a command."""
    match command:
        case i.For(index, count):
            for counter in command.counters:
                facts = facts.with_range(counter.name, 0, counter.modulus)
            return facts.with_range(index, 0, count)
        case i.ParallelFor(_, _, index, count):
            return facts.with_range(index, 0, count)
        case i.When(value, bound):
            return assuming_less(facts, value, bound)
        case i.Define(name, value):
            lowest, highest = lower_bound(value, facts), upper_bound(value, facts)
            if lowest is None or highest is None:
                return facts
            return facts.with_range(name, lowest, highest + 1)
        case i.New(_, name, Index(size)):
            return facts.with_range(name, 0, size)
        case _:
            return facts


def simplified(command: i.Command, facts: Facts) -> i.Command:
    """Simplifies every size and index under the facts at its place, and substitutes aliases of an index."""
    command = rebuild_own(command, Nat, lambda n: simplify(n, facts))
    if isinstance(command, i.Define) and (command.value.value is not None or is_variable(command.value)):
        return simplified(substituted(command.body, {NatVariable(command.name): command.value}), facts)
    within = inside(command, facts)
    return i.with_inner(command, tuple(simplified(part, within) for part in i.inner(command)))


def is_variable(value: Nat) -> bool:
    """Whether the value is just an index of ours; `threadIdx.x` still gets a shorter name."""
    match value.terms:
        case ((((NatVariable(name), 1),), 1),):
            return name.isidentifier()
        case _:
            return False


def divisions(command: i.Command, indices: set[str]) -> set[Operation]:
    """The quotients and remainders by constants that depend on one of the given indices."""
    return {
        atom
        for part in i.commands(command)
        for value in own_nats(part)
        if not value.variables.isdisjoint(indices)
        for atom in value.atoms
        if isinstance(atom, Operation)
        and atom.operator in ("quotient", "remainder")
        and not atom.left.variables.isdisjoint(indices)
        and atom.right.value
    }
