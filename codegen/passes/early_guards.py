"""Threads that store no result do not compute it.

A map over fewer elements than there are threads has a condition around the store, and a loop that reads
shared memory in front of it. The other warps would take the time of those that store anything:

    new x. (for k. x := x + tile[k, min(i, n - 1)] ; when (i < n) y[i] := x)
    =   when (i < n) new x. (for k. … ; y[i] := x)

Loops that read global memory stay as they are: reads under no condition start before earlier ones end.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.buffers import written
from rise.types import Space

LEAST = 8  # iterations of a loop that is worth a condition
PRIVATE = (i.Sequence, i.Skip, i.For, i.New, i.Define, i.When, i.Assign)


def early_guards(function: i.Function) -> i.Function:
    """The pass."""
    shared = {c.name for c in i.commands(function.body) if isinstance(c, i.New) and c.space is Space.SHARED}
    return replace(function, body=_command(function.body, shared))


def _command(command: i.Command, shared: Set[str]) -> i.Command:
    command = i.with_inner(command, tuple(_command(part, shared) for part in i.inner(command)))
    if not (isinstance(command, i.New) and command.space is Space.LOCAL and _takes_long(command, shared)):
        return command
    own = {c.name for c in i.commands(command) if isinstance(c, i.New)}
    return _guarded(command, own) or command


def _takes_long(command: i.Command, shared: Set[str]) -> bool:
    """Whether a loop reads shared memory, and no other."""
    read = {access.buffer for access in i.accesses_in(command)}
    own = {c.name for c in i.commands(command) if isinstance(c, i.New)}
    long = (c for c in i.commands(command) if isinstance(c, i.For) and (c.count.value or LEAST) >= LEAST)
    return read <= {*shared, *own} and any(True for _ in long)


def _guarded(command: i.Command, own: Set[str]) -> i.When | None:
    """All of a command under the condition of its last part, which alone has an effect; None without one."""
    match command:
        case i.When():
            return command
        case i.New(space=Space.LOCAL) | i.Define() | i.For():
            found = _guarded(command.body, own)
            bound = command.index if isinstance(command, i.For) else command.name
            if found is None or bound in found.value.variables | found.bound.variables:
                return None
            return replace(found, body=replace(command, body=found.body))
        case i.Sequence((*first, last)):
            found = _guarded(last, own)
            if found is None or not all(_is_private(part, own) for part in first):
                return None
            return replace(found, body=i.sequence(*first, found.body))
        case _:
            return None


def _is_private(command: i.Command, own: Set[str]) -> bool:
    """Whether a command does nothing but to compute values in registers of its own."""
    return written(command) <= own and all(isinstance(part, PRIVATE) for part in i.commands(command))
