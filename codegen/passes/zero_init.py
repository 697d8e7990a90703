"""Zero initialisation: the first product into a cleared accumulator overwrites it instead.

    acc := 0 ; for k < n. acc := a[k] b[k] + acc   =   for k < n. acc := a[k] b[k] + (k > 0 ? acc : 0)

for n ≥ 1. A wgmma takes the condition as its scale-D operand, so the registers need not be cleared.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from rise.nat import Nat, at_least, constant, variable


def zero_init(function: i.Function) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body))


def _command(command: i.Command) -> i.Command:
    command = i.with_inner(command, tuple(_command(part) for part in i.inner(command)))
    return _sequence(command.commands) if isinstance(command, i.Sequence) else command


def _sequence(commands: tuple[i.Command, ...]) -> i.Command:
    """Finds a command that clears a buffer, followed by a product loop as the first use of the buffer."""
    done = list(commands)
    for number, command in enumerate(done):
        name = _cleared(command)
        user = next((n for n in range(number + 1, len(done)) if name and _uses(done[n], name)), None)
        if name is None or user is None:
            continue
        loop = _product_loop(done[user], name)
        if loop is not None:
            done[number], done[user] = i.Skip(), _with_loop(done[user], loop, _replacing(loop, name))
    return i.sequence(*done)


def _cleared(command: i.Command) -> str | None:
    """The buffer that a command sets to zero, if it does nothing else."""
    while isinstance(command, i.For | i.ParallelFor):
        command = command.body
    match command:
        case i.FillFragment(_, i.Access(name), i.Number(value)) if not value:
            return name
        case _:
            return None


def _uses(command: i.Command, name: str) -> bool:
    return any(access.buffer == name for access in i.accesses_in(command))


def _product_loop(command: i.Command, name: str) -> i.For | None:
    """The loop of the wgmmas into a buffer, if the command uses the buffer for nothing else."""
    while not isinstance(command, i.For):
        users = [part for part in i.inner(command) if _uses(part, name)]
        if len(users) != 1:
            return None
        command = users[0]
    used = [c for c in i.commands(command) if any(a.buffer == name for a in i.accesses(c))]
    products = all(isinstance(c, i.Wgmma) for c in used)
    return command if products and at_least(command.count, 1) else None


def _with_loop(command: i.Command, loop: i.For, new: i.For) -> i.Command:
    if command is loop:
        return new
    return i.with_inner(command, tuple(_with_loop(part, loop, new) for part in i.inner(command)))


def _replacing(loop: i.For, name: str) -> i.For:
    """Makes products in the first iteration of all reduction loops overwrite the accumulator."""

    def go(command: i.Command, sums: tuple[str, ...]) -> i.Command:
        match command:
            case i.Wgmma(i.Access(buffer, indices)) if buffer == name:
                places = {variable_ for n in indices for variable_ in n.variables}
                before: Nat = constant(0)
                for index in sums:
                    before += variable(index) if index not in places else 0
                return replace(command, clear=before)
            case i.For(index):
                sums = (*sums, index)
            case _:
                pass
        return i.with_inner(command, tuple(go(part, sums) for part in i.inner(command)))

    new = go(loop, ())
    return new if isinstance(new, i.For) else loop
