"""Reads indices before the loops in which they are the same, and before the runs that start there.

Which matrix a tile is multiplied with, and where its rows start, may be data. A loop that brings the tile
step by step would read such an index from memory in each step, before it can start the copy:

    for k < n. (new i. i := A[t] ; c)   =   new i. i := A[t] ; for k < n. c      n ≥ 1, A an input

Nothing is read that was not read before: the loop has an iteration, in which no condition is around the read.

A run, adjacent elements that the copy engine brings, has the same offset from a 16-byte boundary in shared
memory as in the array (see `analysis.shifts`). So all threads need the index of its first element, not only
the one that starts the copy:

    new run. c ; new i. i := A[t] ; copy run from i on
        =   new i. i := A[t] ; new run. c ; copy run from i on          A an input
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.buffers import written
from codegen.passes.analysis.fresh import bound_in
from codegen.passes.analysis.shifts import starts
from rise.nat import Nat, at_least
from rise.types import Index, Space


def hoist_reads(function: i.Function) -> i.Function:
    """The pass."""
    return replace(function, body=_out_of_loops(function.body, _Reads.of(function)))


def hoist_run_starts(function: i.Function) -> i.Function:
    """The pass `run starts`. Raises TranslationError R0745 for a buffer that is a run of several arrays."""
    needed = {name: start.variables for name, (start, _) in starts(function.body).items()}
    return replace(function, body=_out_of_runs(function.body, needed, _Reads.of(function)))


@dataclass(frozen=True)
class _Reads:
    """inputs: the arrays that the kernel only reads; once: the names that it declares in one place"""

    inputs: frozenset[str]
    once: frozenset[str]

    @classmethod
    def of(cls, function: i.Function) -> _Reads:
        declared = Counter(c.name for c in i.commands(function.body) if isinstance(c, i.New))
        inputs = frozenset(v.name for v in function.inputs) - written(function.body)
        return cls(inputs, frozenset(name for name, times in declared.items() if times == 1))

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

    def computed(self, command: i.New, bound: set[str], free: Set[str]) -> bool:
        """Whether a scalar is computed from inputs, and otherwise from names that are not bound.

        free: scalars that are
        """
        value = _assigned(command)
        return (
            command.space is Space.LOCAL
            and command.name in self.once
            and value is not None
            and all(access.buffer in self.inputs | free for access in i.accesses(value))
            and bound.isdisjoint(_names(value))
        )


def _out_of_loops(command: i.Command, reads: _Reads) -> i.Command:
    command = i.with_inner(command, tuple(_out_of_loops(part, reads) for part in i.inner(command)))
    if not isinstance(command, i.For) or not at_least(command.count, 1):
        return command
    bound = {command.index} | bound_in(command.body)
    found = [new for new in _always(command.body) if reads.invariant(new, bound - {new.name})]
    return _before(command, found)


def _out_of_runs(command: i.Command, needed: Mapping[str, Set[str]], reads: _Reads) -> i.Command:
    """needed: for each buffer that is a run, the names on which its start depends"""
    command = i.with_inner(command, tuple(_out_of_runs(part, needed, reads) for part in i.inner(command)))
    if not isinstance(command, i.New) or command.name not in needed:
        return command
    bound, free = bound_in(command.body), dict[str, i.New]()
    for new in _always(command.body, (i.Elected,)):
        if reads.computed(new, bound - {new.name, *free}, free.keys()):
            free[new.name] = new
    used = set(needed[command.name])
    for name in reversed(free):
        used |= _names(_assigned(free[name])) if name in used else set()
    return _before(command, [new for name, new in free.items() if name in used])


def _before(command: i.Command, found: list[i.New]) -> i.Command:
    """The command, behind the reads that it contains."""
    names = {new.name for new in found}
    moved = i.with_inner(command, tuple(_without(part, names) for part in i.inner(command)))
    for new in reversed(found):
        moved = replace(new, body=i.sequence(_parts(new)[0], moved))
    return moved


def _always(command: i.Command, around: tuple[type[i.Command], ...] = ()) -> Iterator[i.New]:
    """The declarations that are executed whenever a command is. around: further commands to look into"""
    if isinstance(command, i.New):
        yield command
    if isinstance(command, (i.New, i.Sequence, *around)):
        for part in i.inner(command):
            yield from _always(part, around)


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


def _names(value: i.Expression | None) -> set[str]:
    """The variables and buffers that a value depends on."""
    found = {access.buffer for access in i.accesses(value)}

    def see(number: Nat) -> Nat:
        found.update(number.variables)
        return number

    i.rebuild(value, Nat, see)
    return found


def _parts(command: i.New) -> tuple[i.Command, ...]:
    return command.body.commands if isinstance(command.body, i.Sequence) else (command.body,)
