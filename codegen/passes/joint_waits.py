"""One wait for copies that follow each other, instead of one behind each.

    copy x ; commit ; wait ; copy y ; commit ; wait   =   copy x ; commit ; copy y ; commit ; wait

Each of several arrays that a block brings would else take a latency of its own. A wait moves to another
one, or to that for a bulk copy, where nothing but copies is in between: a pipeline that waits for one stage,
and then starts copies for the next, stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i

ALL = i.Wait(0)
STARTING = (i.CopyAsync, i.Commit, i.InitBarriers, i.Expect, i.BulkCopy, i.Barrier, i.FenceAsync, i.Skip)
AROUND = (i.Sequence, i.For, i.ParallelFor, i.When, i.Define, i.Elected)


def joint_waits(function: i.Function) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body))


def _command(command: i.Command) -> i.Command:
    """The command, with waits for all copies where others are."""
    match command:
        case i.Sequence(parts):
            return i.sequence(*_joined(parts))
        case _:
            return i.with_inner(command, tuple(map(_command, i.inner(command))))


def _joined(parts: tuple[i.Command, ...]) -> list[i.Command]:
    """A sequence, each of whose waits has moved, or stayed."""
    done: list[i.Command] = []
    while parts:
        first, *others = parts
        here = not others or isinstance(others[0], i.WaitBarrier)
        later = None if here or first != ALL else _waiting_later(tuple(others))
        parts = tuple(others) if later is None else later
        if later is None:
            done.append(_command(first))
    return done


def _waiting_later(parts: tuple[i.Command, ...]) -> tuple[i.Command, ...] | None:
    """What follows a wait, with that wait at the next one; None where something comes in between."""
    match parts:
        case (i.Wait(0), *_):
            return parts
        case (i.WaitBarrier(), *_):
            return ALL, *parts
        case (i.New() | i.Ring() as first, *others) if all(map(_only_starts, i.inner(first)[:-1])):
            body = first.body.commands if isinstance(first.body, i.Sequence) else (first.body,)
            later = _waiting_later(body)
            return later and (replace(first, body=i.sequence(*later)), *others)
        case (first, *others) if _only_starts(first):
            rest = _waiting_later(tuple(others))
            return rest and (first, *rest)
        case _:
            return None


def _only_starts(command: i.Command) -> bool:
    """Whether a command only starts copies."""
    return all(isinstance(part, (*STARTING, *AROUND)) for part in i.commands(command))
