"""Replaces a loop of one iteration by its body, and decides conditions that always or never hold."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from rise.nat import Atom, Nat, NatVariable, constant


def unit_loops(function: i.Function) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body))


def _command(command: i.Command) -> i.Command:
    command = i.with_inner(command, tuple(_command(c) for c in i.inner(command)))
    match command:
        case i.For(index, size, body) if size == constant(1):
            zero: dict[Atom, Nat] = {NatVariable(index): constant(0)}
            return _command(i.rebuild(body, Nat, lambda n: n.substitute(zero)))
        case i.When(value, bound, body) if (difference := (bound - value).value) is not None:
            return body if difference > 0 else i.Skip()
        case i.New(_, name, _, body) if not any(
            access.buffer == name for c in i.commands(body) for access in i.accesses(c)
        ):
            return body
        case _:
            return command
