"""What the step of a reduction may read of the accumulator that it updates in place."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from rise.errors import TranslationError
from rise.nat import Nat
from rise.source import Origin


def check_update(step: i.Command) -> None:
    """A resolved step reads only the elements of its accumulators that it replaces, and before that.

    Raises TranslationError R0720.
    """
    for name in _updated(step):
        _elementwise(step, name)


def _updated(command: i.Command) -> set[str]:
    inside = {c.name for c in i.commands(command) if isinstance(c, i.New)}
    written = {t.buffer for c in i.commands(command) if isinstance(t := i.target_of(c), i.Access)}
    return written - inside


def _elementwise(command: i.Command, name: str) -> None:
    """No command reads what an earlier command of the step replaced, or what its loop replaces elsewhere."""
    written: set[tuple[Nat, ...]] = set()
    for part in _parts(command):
        writes = {place for c in i.commands(part) if (place := _place(c, name)) is not None}
        places = written | writes
        replaced: set[tuple[Nat, ...]] = set()
        for inner in i.commands(part):
            target = _place(inner, name)
            for indices in _reads(inner, name):
                if written or (writes and any(indices != place for place in places)):
                    raise _refused(part, name, "that it does not write")
                # an update of what was just written goes on with it; anything else wants the old value
                if target is None and indices in replaced:
                    raise _refused(part, name, "that it has replaced")
            replaced |= set() if target is None else {target}
        written |= writes


def _refused(part: i.Command, name: str, which: str) -> TranslationError:
    return TranslationError(
        "R0720",
        f"the step of a reduction reads an element of `{shown(name)}` {which}",
        _origin(part, name),
        "store the new value elsewhere before it replaces the accumulator",
    )


def _place(command: i.Command, name: str) -> tuple[Nat, ...] | None:
    """The indices at which a command writes a buffer."""
    target = i.target_of(command)
    return target.indices if isinstance(target, i.Access) and target.buffer == name else None


def _parts(command: i.Command) -> tuple[i.Command, ...]:
    """The commands of a step, in order."""
    match command:
        case i.New(body=body) | i.ParallelFor(body=body):
            return _parts(body)
        case i.Sequence(commands):
            return tuple(part for inner in commands for part in _parts(inner))
        case _:
            return (command,)


def _reads(command: i.Command, name: str) -> list[tuple[Nat, ...]]:
    """The indices at which a command reads a buffer."""
    target = i.target_of(command)
    found = [a for a in i.accesses(command) if isinstance(a, i.Access) and a.buffer == name]
    if isinstance(target, i.Access) and target.buffer == name:
        found.remove(target)
    return [access.indices for access in found]


def _origin(command: i.Command, name: str) -> Origin:
    """Where the source has the value that replaces the buffer."""
    for part in i.commands(command):
        target = i.target_of(part)
        if isinstance(target, i.Access) and target.buffer == name:
            return getattr(part, "origin", None)
    return getattr(command, "origin", None)
