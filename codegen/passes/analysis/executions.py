"""How often a part of a kernel was executed before, in terms of the indices of the loops around it."""

from __future__ import annotations

from collections.abc import Callable

from codegen.ir import imperative as i
from codegen.ir.launch import Launch, Sharing
from rise.errors import TranslationError
from rise.nat import Nat, constant, divides, nat, quotient, remainder, variable
from rise.source import Origin

Use = Callable[[i.Command, Nat], i.Command]


def with_executions(command: i.Command, launch: Launch, use: Use, before: Nat = constant(0)) -> i.Command:
    """Applies `use` to each command, outermost first, with its number of earlier executions by its worker."""
    command, inside = use(command, before), before
    match command:
        case i.For(index, count) if count != constant(1):
            inside = before * count + variable(index)
        case i.ParallelFor(level, dimension, index, count) if launch.sharing(command) is Sharing.STRIDED:
            workers = nat(launch.workers(level, dimension))
            # where they do not divide the iterations, the last workers have one round less
            late = constant(0) if divides(workers, count) else remainder(variable(index), workers)
            rounds = quotient(count + workers - 1 - late, workers)
            inside = before * rounds + quotient(variable(index), workers)
        case _:
            pass
    return i.with_inner(
        command, tuple(with_executions(part, launch, use, inside) for part in i.inner(command))
    )


def check_equally_many(command: i.Command, before: Nat, origin: Origin) -> None:
    """Refuses a pipeline that has more elements in some of its executions by a block than in others.

    The slots of its ring are numbered on from one execution to the next.
    """
    if not equally_many(command, before):
        message = "this pipeline has another number of elements each time that a persistent block executes it"
        hint = "use a block for each tile, `mapBlock`, or `reduceRoleSplit`, where folds skip elements"
        raise TranslationError("R0739", message, origin, hint)


def equally_many(command: i.Command, before: Nat) -> bool:
    """Whether a pipeline has as many elements in each of its executions by a block."""
    used: set[str] = set()
    for part in i.commands(command):
        if isinstance(part, i.For):
            used |= part.count.variables
    for part in i.commands(command):
        if isinstance(part, i.Assign) and isinstance(part.target, i.Access) and part.target.buffer in used:
            used |= _indices(part.value)
    return used.isdisjoint(before.variables)


def _indices(value: i.Expression) -> frozenset[str]:
    match value:
        case i.Natural(known):
            return known.variables
        case i.Operator(_, operands):
            return frozenset().union(*map(_indices, operands))
        case _:
            return frozenset()
