"""How often a part of a kernel was executed before, in terms of the indices of the loops around it."""

from __future__ import annotations

from collections.abc import Callable

from codegen.ir import imperative as i
from codegen.ir.launch import Launch, Sharing
from rise.nat import Nat, constant, nat, quotient, variable

Use = Callable[[i.Command, Nat], i.Command]


def with_executions(command: i.Command, launch: Launch, use: Use, before: Nat = constant(0)) -> i.Command:
    """Applies `use` to each command, outermost first, with its number of earlier executions by its worker."""
    command, inside = use(command, before), before
    match command:
        case i.For(index, count) if count != constant(1):
            inside = before * count + variable(index)
        case i.ParallelFor(level, dimension, index, count) if launch.sharing(command) is Sharing.STRIDED:
            workers = nat(launch.workers(level, dimension))
            rounds = quotient(count + workers - 1, workers)
            inside = before * rounds + quotient(variable(index), workers)
        case _:
            pass
    return i.with_inner(
        command, tuple(with_executions(part, launch, use, inside) for part in i.inner(command))
    )
