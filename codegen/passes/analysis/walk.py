"""Sizes and indices of a program, each with what is known of the variables in it."""

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
    """The command with every node of a kind changed, those of the commands inside left as they are."""
    inside = i.inner(command)
    if isinstance(command, i.Sequence) or not inside:
        return command if isinstance(command, i.Sequence) else i.rebuild(command, kind, change)
    hollow = i.with_inner(command, (i.Skip(),) * len(inside))
    return i.with_inner(i.rebuild(hollow, kind, change), inside)


def own_nats(command: i.Command) -> list[Nat]:
    """The sizes and indices of a command, those of the commands inside left out."""
    found: list[Nat] = []

    def see(value: Nat) -> Nat:
        found.append(value)
        return value

    rebuild_own(command, Nat, see)
    return found


def substituted(command: i.Command, values: Mapping[Atom, Nat]) -> i.Command:
    return i.rebuild(command, Nat, lambda n: n.substitute(values))


def facts_of_workers(launch: Launch) -> Facts:
    """The ranges of the numbers of threads and blocks, as a kernel calls them."""
    facts = Facts()
    for register, sizes in (("threadIdx", launch.block), ("blockIdx", launch.grid)):
        for axis, size in zip("xyz", sizes, strict=True):
            facts = facts.with_range(f"{register}.{axis}", 0, size)
    return facts


def inside(command: i.Command, facts: Facts) -> Facts:
    """What is known, besides, in the body of a command."""
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
    """Every size and index, under what is known where it stands. Other names for an index vanish."""
    command = rebuild_own(command, Nat, lambda n: simplify(n, facts))
    if isinstance(command, i.Define) and (command.value.value is not None or is_variable(command.value)):
        return simplified(substituted(command.body, {NatVariable(command.name): command.value}), facts)
    within = inside(command, facts)
    return i.with_inner(command, tuple(simplified(part, within) for part in i.inner(command)))


def is_variable(value: Nat) -> bool:
    """Whether it is an index by itself; `threadIdx.x` deserves a name."""
    match value.terms:
        case ((((NatVariable(name), 1),), 1),):
            return name.isidentifier()
        case _:
            return False


def divisions(command: i.Command, indices: set[str]) -> set[Operation]:
    """The quotients and remainders by constants that depend on one of some indices."""
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
