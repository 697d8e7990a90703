"""Copies from shared memory to shared memory, through registers: all are read before the first is written.

Threads lay matrices out again, in padded rows. What they have read is of no use any more, so the padded rows
may be where it was: shared memory for both would leave room for fewer blocks.

    (for t. new x. (read x ; write x)) ; (for t. new y. (read y ; write y))   =   new xs. new ys.
        (for t. read xs[t]) ; (for t. read ys[t]) ; (for t. write xs[t]) ; (for t. write ys[t])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.buffers import shared, written
from codegen.passes.early_reads import Apart, apart


def reads_before_writes(function: i.Function) -> i.Function:
    """The pass."""
    arrays = frozenset(new.name for new in shared(function.body))
    return replace(function, body=_command(function.body, arrays))


def _command(command: i.Command, arrays: frozenset[str]) -> i.Command:
    commands = command.commands if isinstance(command, i.Sequence) else (command,)
    return i.sequence(*_together(commands, arrays))


def _together(commands: Sequence[i.Command], arrays: frozenset[str]) -> Iterator[i.Command]:
    """The commands; of copies that follow each other, first all reads, then all writes."""
    rest = list(commands)
    while rest:
        copies = list(_copies(rest, arrays))
        if copies:
            body = i.sequence(*(reads for _, reads, _ in copies), *(writes for _, _, writes in copies))
            for new, _, _ in reversed(copies):
                body = replace(new, body=body)
            yield body
        else:
            yield i.with_inner(rest[0], tuple(_command(part, arrays) for part in i.inner(rest[0])))
        del rest[: len(copies) or 1]


def _copies(commands: Sequence[i.Command], arrays: frozenset[str]) -> Iterator[Apart]:
    """The copies by threads at the beginning of these commands, none of which reads what another writes."""
    stored: frozenset[str] = frozenset()
    for command in commands:
        found = apart(command, arrays) if isinstance(command, i.ParallelFor) else None
        if found is None or not written(found[2]) <= arrays:
            return
        if any(access.buffer in stored for access in i.accesses_in(found[1])):
            return
        stored |= written(found[2])
        yield found
