"""Bounds on the iterations of a kernel's loops, which distinguish an endless thread from a slow one."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.passes.analysis.walk import facts_of_workers, inside, substituted
from rise.nat import Atom, Facts, Nat, NatVariable, constant, nat, upper_bound

ELEMENTS = 256  # of a fragment that a thread holds at most

# An edited text may do the same in smaller steps, such as scalar instead of vector copies or rolled loops.
SLACK, FLOOR = 8, 1024


def most_steps(kernel: Kernel, launch: Launch, sizes: dict[str, int]) -> int | None:
    """The limit on loop iterations for a thread of this kernel, or of an edited text in its place.

    It is derived from the program, not from the text. None if a loop of the program has no bound.

    launch: at these sizes
    sizes:  the kernel's run-time sizes, by name
    """
    if not kernel.stages:
        return None
    values: dict[Atom, Nat] = {NatVariable(name): constant(size) for name, size in sizes.items()}
    printed = substituted(kernel.stages[-1][1].body, values)
    steps = _steps(printed, facts_of_workers(launch), launch)
    return None if steps is None else SLACK * steps + FLOOR


def _steps(command: i.Command, facts: Facts, launch: Launch) -> int | None:
    within = inside(command, facts)
    parts = [_steps(part, within, launch) for part in i.inner(command)]
    known = [part for part in parts if part is not None]
    times = _iterations(command, facts, launch)
    if times is None or len(known) < len(parts):
        return None
    return times * (1 + sum(known)) if times != 1 else sum(known)


def _iterations(command: i.Command, facts: Facts, launch: Launch) -> int | None:
    """How often a thread executes the body of a command."""
    match command:
        case i.For(_, count) | i.InitBarriers(_, count):
            return _most(count, facts)
        case i.ParallelFor(level, dimension, _, count):
            whole, workers = _most(count, facts), nat(launch.workers(level, dimension)).value
            return None if whole is None or not workers else -(-whole // int(workers))
        case i.ForFragment():
            return ELEMENTS
        case _:
            return 1


def _most(count: Nat, facts: Facts) -> int | None:
    most = upper_bound(count, facts)
    return None if most is None or most.value is None else max(0, int(most.value))
