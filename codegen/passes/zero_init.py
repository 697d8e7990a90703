"""Zero initialisation: the first product into a cleared accumulator overwrites it instead.

    acc := 0 ; for k < n. acc := a[k] b[k] + acc   =   for k < n. acc := a[k] b[k] + (k > 0 ? acc : 0)

for n ≥ 1. A wgmma takes the condition as its scale-D operand, so the registers need not be cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from codegen.ir import imperative as i
from rise.nat import Atom, Nat, NatVariable, at_least, constant, variable

Loops = tuple[i.For | i.ParallelFor, ...]


def zero_init(function: i.Function) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body))


def _command(command: i.Command) -> i.Command:
    command = i.with_inner(command, tuple(_command(part) for part in i.inner(command)))
    return _sequence(command.commands) if isinstance(command, i.Sequence) else command


def _sequence(commands: tuple[i.Command, ...]) -> i.Command:
    """Finds a command that clears buffers, and for each of them the products that are its first use."""
    done = list(commands)
    for number in range(len(done)):
        for name in list(_cleared(done[number])):
            user = next((n for n in range(number + 1, len(done)) if _uses(done[n], name)), None)
            first = None if user is None else _first_use(done[user], name)
            if user is None or first is None or not _only_products(first, name):
                continue
            overwriting = _overwriting(first, name)
            if overwriting is not None:
                done[number] = _without_fill(done[number], name)
                done[user] = _replaced(done[user], first, overwriting)
    return i.sequence(*done)


def _cleared(command: i.Command) -> Iterator[str]:
    """The buffers that a command sets to zero, if it does nothing else."""
    match command:
        case i.FillFragment(_, i.Access(name), i.Number(value)) if not value:
            yield name
        case i.For() | i.ParallelFor() | i.Sequence():
            parts = [list(_cleared(part)) for part in i.inner(command)]
            if all(parts):
                yield from (name for part in parts for name in part)


def _without_fill(command: i.Command, name: str) -> i.Command:
    match command:
        case i.FillFragment(_, i.Access(buffer)) if buffer == name:
            return i.Skip()
        case i.For() | i.ParallelFor():
            body = _without_fill(command.body, name)
            return body if body == i.Skip() else replace(command, body=body)
        case _:
            return i.with_inner(command, tuple(_without_fill(part, name) for part in i.inner(command)))


def _uses(command: i.Command, name: str) -> bool:
    return any(access.buffer == name for access in i.accesses_in(command))


def _first_use(command: i.Command, name: str) -> i.Command | None:
    """The loop or product that uses a buffer first, whenever the command is executed."""
    while not isinstance(command, i.For | i.Wgmma):
        if isinstance(command, i.When):
            return None
        user = next((part for part in i.inner(command) if _uses(part, name)), None)
        if user is None:
            return None
        command = user
    return command


def _only_products(command: i.Command, name: str) -> bool:
    """Whether products are all that uses a buffer, and whether each is executed."""
    if isinstance(command, i.When) and _uses(command, name):
        return False
    if isinstance(command, i.For) and _uses(command, name) and not at_least(command.count, 1):
        return False
    own = any(access.buffer == name for access in i.accesses(command))
    return (isinstance(command, i.Wgmma) or not own) and all(
        _only_products(part, name) for part in i.inner(command)
    )


def _replaced(command: i.Command, part: i.Command, new: i.Command) -> i.Command:
    if command is part:
        return new
    return i.with_inner(command, tuple(_replaced(inner, part, new) for inner in i.inner(command)))


def _overwriting(command: i.Command, name: str) -> i.Command | None:
    """Makes the first product into each accumulator overwrite it, the first time that it is executed.

    None if two products may have one accumulator without being seen to have the same ones.
    """
    found: list[tuple[i.Access, Loops]] = []
    several = False

    def go(part: i.Command, around: Loops) -> i.Command:
        nonlocal several
        match part:
            case i.Wgmma(i.Access(buffer) as target) if buffer == name:
                if any(_same(target, around, *other) for other in found):
                    return part
                several = several or any(not _distinct(target, other) for other, _ in found)
                found.append((target, around))
                places = {variable_ for n in target.indices for variable_ in n.variables}
                sums = (loop.index for loop in around if isinstance(loop, i.For))
                before: Nat = sum((variable(n) for n in sums if n not in places), constant(0))
                return replace(part, clear=before)
            case i.For() | i.ParallelFor():
                around = (*around, part)
            case _:
                pass
        return i.with_inner(part, tuple(go(inner, around) for inner in i.inner(part)))

    new = go(command, ())
    return None if several else new


def _same(target: i.Access, around: Loops, other: i.Access, others: Loops) -> bool:
    """Whether an access has the elements of another one, in loops with as many iterations."""
    names: dict[Atom, Nat] = {}
    for mine, yours in _paired(target, around, other, others):
        names[NatVariable(mine.index)] = variable(yours.index)
        if mine.count != yours.count:
            return False
    return _renamed(target.indices, names) == other.indices


def _paired(
    target: i.Access, around: Loops, other: i.Access, others: Loops
) -> Iterator[tuple[i.For | i.ParallelFor, i.For | i.ParallelFor]]:
    """The loops whose indices select the elements of two accesses."""

    def selecting(access: i.Access, loops: Loops) -> list[i.For | i.ParallelFor]:
        names = {name for n in access.indices for name in n.variables}
        return [loop for loop in loops if loop.index in names]

    return zip(selecting(target, around), selecting(other, others), strict=False)


def _renamed(indices: tuple[Nat, ...], names: Mapping[Atom, Nat]) -> tuple[Nat, ...]:
    return tuple(n.substitute(names) for n in indices)


def _distinct(left: i.Access, right: i.Access) -> bool:
    """Whether two accesses have different numbers at some place."""
    pairs = zip(left.indices, right.indices, strict=True)
    return any(a.value is not None and b.value is not None and a.value != b.value for a, b in pairs)
