"""A copy in two halves: an early load into registers, to hide the latency of memory, and a late store."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.ir.data import element_type
from rise.nat import Nat, variable
from rise.types import Array, Data


@dataclass(frozen=True)
class Halves:
    """`load` copies a thread's elements into its `registers`, and `store` copies them to their target."""

    registers: i.Variable
    load: i.Command
    store: i.Command


def halves(name: str, first: i.Command, second: i.Command) -> Halves | None:
    """The halves of one copy, given its translation twice. None unless it is loops around one assignment."""
    sizes = _sizes(first)
    leaf = _leaf(first)
    if sizes is None or leaf is None:
        return None
    type_: Data = leaf.value.type
    for size in reversed(sizes):
        type_ = Array(size, type_)
    registers = i.Variable(name, type_)
    return Halves(registers, _into(first, name, type_, ()), _out_of(second, name, type_, ()))


def _sizes(command: i.Command) -> tuple[Nat, ...] | None:
    """The extents of the sequential loops around the assignment: the elements that one thread copies."""
    match command:
        case i.For(_, size, body):
            inner = _sizes(body)
            return None if inner is None else (size, *inner)
        case i.ParallelFor(level) if level is i.Level.THREAD:
            return _sizes(command.body)
        case i.Assign():
            return ()
        case _:
            return None


def _leaf(command: i.Command) -> i.Assign | None:
    while isinstance(command, i.For | i.ParallelFor):
        command = command.body
    return command if isinstance(command, i.Assign) else None


def _into(command: i.Command, name: str, type_: Data, indices: tuple[str, ...]) -> i.Command:
    if isinstance(command, i.Assign):
        target: i.Acceptor = i.AcceptVariable(name, type_)
        for index in indices:
            target = i.AcceptAt(variable(index), target, element_type(target.type))
        return i.Assign(target, command.value, command.origin)
    inner = _below(command, indices)
    return i.with_inner(command, tuple(_into(c, name, type_, inner) for c in i.inner(command)))


def _out_of(command: i.Command, name: str, type_: Data, indices: tuple[str, ...]) -> i.Command:
    if isinstance(command, i.Assign):
        value: i.Expression = i.Variable(name, type_)
        for index in indices:
            value = i.At(variable(index), value, element_type(value.type))
        return i.Assign(command.target, value, command.origin)
    inner = _below(command, indices)
    return i.with_inner(command, tuple(_out_of(c, name, type_, inner) for c in i.inner(command)))


def _below(command: i.Command, indices: tuple[str, ...]) -> tuple[str, ...]:
    return (*indices, command.index) if isinstance(command, i.For) else indices
