"""Roles: a program in which some warpgroups load and others compute, taken apart into one for each.

A pipeline with roles stands somewhere in a kernel, in the loop over the tiles of a persistent block, say.
Each role's program is what is left of the kernel when only that role's part of every such pipeline is
kept; everything that is in no pipeline is for those who compute. So the loop over tiles goes to both:

    for t. (a ; roles(p, c) ; b)   =   roles(for t. p, for t. (a ; c ; b))

What they share, the rings and their mbarriers, is there before both, and made once: while the kernel before
in the stream still runs, since nothing of that is in global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen import imperative as i
from codegen.launch import WARPGROUP, Launch, derive
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, constant, quotient, variable
from rise.types import Space


def split_roles(function: i.Function) -> i.Function:
    """The pass."""
    found = [c for c in i.commands(function.body) if isinstance(c, i.Roles)]
    if not found:
        return function
    launch = derive(function.body)
    first = found[0]
    for roles in found:
        _check(roles, first, launch)
    body = _counting_turns(function.body, constant(0), launch)
    shared = list(_shared(body))
    names = {new.name for new in shared}
    produce = _project(body, lambda roles: roles.produce, False, names)
    consume = _project(body, lambda roles: roles.consume, True, names)
    maps = i.Elected(i.sequence(*(i.PrefetchMap(m.name) for m in function.maps)), WARPGROUP * first.consumers)
    setup = i.sequence(*(c.setup for c in i.commands(body) if isinstance(c, i.Roles)), maps)
    meet = i.Scope.CLUSTER if launch.cluster > 1 else i.Scope.BLOCK
    whole: i.Command = replace(
        first,
        setup=i.sequence(_emptied_by_all(setup, consume, launch.cluster), i.Barrier(meet), i.FollowKernel()),
        produce=produce,
        consume=i.rebuild(consume, i.Arrive, lambda arrive: replace(arrive, blocks=launch.cluster)),
        turn="",
    )
    if launch.cluster > 1:
        # nobody ends while another block may write into its memory
        whole = i.sequence(whole, i.Barrier(meet))
    for new in reversed(shared):
        whole = replace(new, body=whole)
    return replace(function, body=whole)


def _check(roles: i.Roles, first: i.Roles, launch: Launch) -> None:
    consumers = launch.warps // 4
    if consumers != roles.consumers or launch.block[1:] != (1, 1):
        message = f"{consumers} warpgroups compute, and the pipeline says {roles.consumers}"
        raise TranslationError("R0734", message, roles.origin, "`consumers` is what mapWarpGroup is over")
    if (roles.producers, roles.consumers) != (first.producers, first.consumers):
        message = "the pipelines of a kernel have different roles"
        raise TranslationError("R0734", message, roles.origin)


def _counting_turns(command: i.Command, turn: Nat, launch: Launch) -> i.Command:
    """How often a pipeline was executed before: a number of the loops around it."""
    match command:
        case i.Roles(turn=name):
            number: dict[Atom, Nat] = {NatVariable(name): turn}
            return i.rebuild(command, Nat, lambda n: n.substitute(number))
        case i.For(index, count):
            turn = turn * count + variable(index)
        case i.ParallelFor(level, dimension, index, count):
            workers = launch.workers(level, dimension)
            rounds = -(-(count.value or 0) // workers) if isinstance(workers, int) else 1
            if rounds > 1:
                turn = turn * rounds + quotient(variable(index), workers)
        case _:
            pass
    return i.with_inner(command, tuple(_counting_turns(c, turn, launch) for c in i.inner(command)))


def _shared(command: i.Command) -> Iterator[i.New]:
    """The buffers in shared memory around pipelines, outermost first."""
    if isinstance(command, i.Roles) or not _has_roles(command):
        return
    if isinstance(command, i.New) and command.space is Space.SHARED:
        yield command
    for part in i.inner(command):
        yield from _shared(part)


def _has_roles(command: i.Command) -> bool:
    return any(isinstance(c, i.Roles) for c in i.commands(command))


def _project(
    command: i.Command, role: Callable[[i.Roles], i.Command], everything: bool, shared: set[str]
) -> i.Command:
    """The program of one role: `everything` is for those who also do what is in no pipeline."""
    if isinstance(command, i.Roles):
        return role(command)
    if not _has_roles(command):
        return command if everything else i.Skip()
    if isinstance(command, i.New) and (command.name in shared or not everything):
        return _project(command.body, role, everything, shared)
    return i.with_inner(command, tuple(_project(c, role, everything, shared) for c in i.inner(command)))


def _emptied_by_all(setup: i.Command, consume: i.Command, blocks: int) -> i.Command:
    """A slot is empty when those of all blocks of the cluster have read it: loads may go to all of them."""
    emptied = {_buffer(c.barrier) for c in i.commands(consume) if isinstance(c, i.Arrive)}

    def init(command: i.InitBarriers) -> i.InitBarriers:
        times = blocks if _buffer(command.barriers) in emptied else 1
        return replace(command, arrivals=command.arrivals * times)

    return i.rebuild(setup, i.InitBarriers, init)


def _buffer(barrier: i.Acceptor) -> str:
    return barrier.buffer if isinstance(barrier, i.Access) else ""
