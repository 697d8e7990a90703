"""Reads indices before the loops in which they are the same.

Which matrix a tile is multiplied with, and where its rows start, may be data. A loop that brings the tile
step by step would read such an index from memory in each step, before it can start the copy:

    for k < n. (new i. i := A[t] ; c)   =   new i. i := A[t] ; for k < n. c      n ≥ 1, A an input

Nothing is read that was not read before: the loop has an iteration, in which no condition is around the read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.buffers import written
from codegen.passes.analysis.fresh import bound_in
from rise.nat import at_least
from rise.types import Index, Space


def hoist_reads(function: i.Function) -> i.Function:
    """The pass."""
    declared = Counter(c.name for c in i.commands(function.body) if isinstance(c, i.New))
    inputs = frozenset(v.name for v in function.inputs) - written(function.body)
    once = frozenset(name for name, times in declared.items() if times == 1)
    return replace(function, body=_command(function.body, _Reads(inputs, once)))


@dataclass(frozen=True)
class _Reads:
    """inputs: the arrays that the kernel only reads; once: the names that it declares in one place"""

    inputs: frozenset[str]
    once: frozenset[str]

    def invariant(self, command: i.New, bound: set[str]) -> bool:
        """Whether a scalar is an index that is read from an input, at a place that does not vary."""
        value = _assigned(command)
        return (
            command.space is Space.LOCAL
            and isinstance(command.type, Index)
            and command.name in self.once
            and isinstance(value, i.Access)
            and value.buffer in self.inputs
            and all(bound.isdisjoint(n.variables) for n in value.indices)
        )


def _command(command: i.Command, reads: _Reads) -> i.Command:
    command = i.with_inner(command, tuple(_command(part, reads) for part in i.inner(command)))
    if not isinstance(command, i.For) or not at_least(command.count, 1):
        return command
    bound = {command.index} | bound_in(command.body)
    found = [new for new in _always(command.body) if reads.invariant(new, bound - {new.name})]
    loop: i.Command = replace(command, body=_without(command.body, {new.name for new in found}))
    for new in reversed(found):
        loop = replace(new, body=i.sequence(_parts(new)[0], loop))
    return loop


def _always(command: i.Command) -> Iterator[i.New]:
    """The declarations that are executed whenever a command is."""
    if isinstance(command, i.New):
        yield command
    if isinstance(command, i.New | i.Sequence):
        for part in i.inner(command):
            yield from _always(part)


def _without(command: i.Command, names: set[str]) -> i.Command:
    if isinstance(command, i.New) and command.name in names:
        return _without(i.sequence(*_parts(command)[1:]), names)
    return i.with_inner(command, tuple(_without(part, names) for part in i.inner(command)))


def _assigned(command: i.New) -> i.Expression | None:
    """What a scalar is assigned first."""
    match _parts(command)[0]:
        case i.Assign(i.Access(name, ()), value) if name == command.name:
            return value
        case _:
            return None


def _parts(command: i.New) -> tuple[i.Command, ...]:
    return command.body.commands if isinstance(command.body, i.Sequence) else (command.body,)
