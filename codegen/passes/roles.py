"""Roles: a program in which some warpgroups load and others compute, taken apart into one for each.

A pipeline with roles stands somewhere in a kernel, in the loop over the tiles of a persistent block, say.
Each role's program is what is left of the kernel when only that role's part of every such pipeline is
kept; everything that is in no pipeline is for those who compute. So the loop over tiles goes to both:

    for t. (a ; roles(p, c) ; b)   =   roles(for t. p, for t. (a ; c ; b))

Warpgroups that compute a tile in turn take turns at the ring: what is loaded for one follows what is loaded
for the one before, so one multiplies while another finishes its tile. Whose turn it is says how often there
was one before, t of w:

    parFor(warpgroup) g < w, in turn. roles(p, c)   =   roles(p, parFor(warpgroup) g. when(g = t mod w) c)

What they share, the rings and their mbarriers, is there before both, and made once: while the kernel before
in the stream still runs, since nothing of that is in global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS
from codegen.ir.launch import WARP, WARPGROUP, Launch, derive
from codegen.passes.analysis.executions import with_turns
from codegen.passes.analysis.fresh import names_of
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, constant, quotient, remainder, variable
from rise.types import Array, Scalar, Space

BARRIER = Scalar("u64")  # what an mbarrier takes in memory


def split_roles(function: i.Function) -> i.Function:
    """The pass."""
    _check_turns(function.body)
    found = [c for c in i.commands(function.body) if isinstance(c, i.WarpSpecialise)]
    if not found:
        return function
    launch, turns = derive(function.body), _taking_turns(function.body)
    first = found[0]
    for roles in found:
        _check(roles, first, launch, turns)
    consumers = launch.warps // (WARPGROUP // WARP)
    body = _passing_on(function, turns)
    body = _counting_turns(body, launch)
    shared = list(_shared(body))
    names = {new.name for new in shared}
    produce = _project(body, lambda roles: _elected(roles.produce, consumers), False, names)
    consume = _project(body, lambda roles: roles.consume, True, names)
    maps = i.Elected(
        i.sequence(*(i.PrefetchMap(m.name) for m in function.maps)), thread=WARPGROUP * consumers
    )
    setup = i.sequence(*(c.setup for c in i.commands(body) if isinstance(c, i.WarpSpecialise)), maps)
    common = frozenset(name for roles in found for name in _emptied_by_all(roles))
    meet = i.Scope.CLUSTER if launch.cluster > 1 else i.Scope.BLOCK
    whole: i.Command = replace(
        first,
        consumers=consumers,
        setup=i.sequence(_counting_all(setup, common, launch.cluster), i.Barrier(meet), i.GridDependency()),
        produce=produce,
        consume=i.rebuild(
            consume,
            i.Arrive,
            lambda a: replace(a, blocks=launch.cluster if _buffer(a.barrier) in common else 1),
        ),
        turn="",
    )
    if launch.cluster > 1:
        # nobody ends while another block may write into its memory
        whole = i.sequence(whole, i.Barrier(meet))
    for new in reversed(shared):
        whole = replace(new, body=whole)
    return replace(function, body=whole)


def _taking_turns(command: i.Command) -> int:
    """How many warpgroups there are to do it in turn."""
    return max((c.count.value or 1 for c in i.commands(command) if _in_turn(c)), default=1)


def _in_turn(command: i.Command) -> TypeGuard[i.ParallelFor]:
    return isinstance(command, i.ParallelFor) and bool(command.turn)


def _check_turns(command: i.Command) -> None:
    """Either all pipelines with roles are executed in turn, by as many warpgroups, or none is."""
    dealt = [c for c in i.commands(command) if _in_turn(c)]
    outside = sum(map(_pipelines, dealt)) < _pipelines(command)
    for part in dealt:
        message = ""
        if not _has_roles(part):
            message = "there is nothing here that warpgroups could do in turn"
        elif outside or part.count != dealt[0].count:
            message = f"{part.count} warpgroups do this in turn, and not all pipelines with roles"
        if message:
            hint = "in `pingPong` all pipelines are `reduceRoleSplit`, or none is"
            raise TranslationError("R0734", message, part.origin, hint)


def _pipelines(command: i.Command) -> int:
    return sum(isinstance(c, i.WarpSpecialise) for c in i.commands(command))


def _check(roles: i.WarpSpecialise, first: i.WarpSpecialise, launch: Launch, taking_turns: int) -> None:
    together = launch.warps // 4 // taking_turns
    if together != roles.consumers or launch.block[1:] != (1, 1):
        message = f"{together} warpgroups compute together, and the pipeline says {roles.consumers}"
        raise TranslationError("R0734", message, roles.origin, "`consumers` is what mapWarpGroup is over")
    if (roles.producers, roles.consumers) != (first.producers, first.consumers):
        message = "the pipelines of a kernel have different roles"
        raise TranslationError("R0734", message, roles.origin)


def _passing_on(function: i.Function, groups: int) -> i.Command:
    """Each of the warpgroups that take turns starts when the one before has waited for its last element.

    A phase of an mbarrier is known by its parity only: who waits must not be two phases ahead. The p-th turn
    waits for phase (p + groups - 1) / groups - 1 of its mbarrier, which the turn before ends.
    """
    if groups == 1:
        return function.body
    names = names_of(function)

    def go(command: i.Command) -> i.Command:
        if not isinstance(command, i.WarpSpecialise):
            return i.with_inner(command, tuple(go(part) for part in i.inner(command)))
        name, p = names.fresh("baton"), variable(command.turn)
        mine, next_ = (i.Access(name, (remainder(p + ahead, groups),), BARRIER) for ahead in (0, 1))
        phase = quotient(p + groups - 1, groups)
        consume = i.sequence(
            i.WaitBarrier(mine, remainder(phase + 1, 2)), _when_last(command.consume, i.Arrive(next_))
        )
        first = i.Access(name, (constant(0),), BARRIER)
        setup = i.sequence(command.setup, i.Elected(i.InitBarriers(first, constant(groups))))
        made = replace(command, setup=setup, consume=consume)
        return i.New(Space.SHARED, name, Array(constant(groups), BARRIER), made, layout=BARRIERS)

    return go(function.body)


def _when_last(consume: i.Command, then: i.Command) -> i.Command:
    """Behind the first command, a wait, of a loop's last iteration.

    All threads of the warpgroup have waited for their turn by then: products of the iterations before say so,
    and where there may be none, the warpgroup meets.
    """
    match consume:
        case i.For(index, count, i.Sequence((i.WaitBarrier() as wait, *rest))):
            if count.value is None or count.value < 2:
                then = i.sequence(i.Barrier(i.Scope.WARPGROUP), then)
            last = i.When(count - 1, variable(index) + 1, then)
            return replace(consume, body=i.sequence(wait, last, *rest))
        case _:
            raise TranslationError("R0799", "internal: a pipeline with roles is no loop that waits")


def _counting_turns(body: i.Command, launch: Launch) -> i.Command:
    """Pipelines are told how often they were executed before; of those in turn only one is executed."""

    def use(command: i.Command, turn: Nat) -> i.Command:
        match command:
            case i.WarpSpecialise(turn=name):
                number: dict[Atom, Nat] = {NatVariable(name): turn}
                return i.rebuild(command, Nat, lambda n: n.substitute(number))
            case i.ParallelFor(_, _, index, count) if _in_turn(command):
                # 0 for the one whose number is that of the turn
                late = remainder(variable(index) + turn * (count - 1), count)
                return replace(command, body=i.When(late, constant(1), command.body))
            case _:
                return command

    return with_turns(body, launch, use)


def _shared(command: i.Command) -> Iterator[i.New]:
    """The buffers in shared memory around pipelines, outermost first."""
    if isinstance(command, i.WarpSpecialise) or not _has_roles(command):
        return
    if isinstance(command, i.New) and command.space is Space.SHARED:
        yield command
    for part in i.inner(command):
        yield from _shared(part)


def _has_roles(command: i.Command) -> bool:
    return any(isinstance(c, i.WarpSpecialise) for c in i.commands(command))


def _project(
    command: i.Command, role: Callable[[i.WarpSpecialise], i.Command], everything: bool, shared: set[str]
) -> i.Command:
    """The program of one role: `everything` is for those who also do what is in no pipeline."""
    if isinstance(command, i.WarpSpecialise):
        return role(command)
    if not _has_roles(command):
        return command if everything else i.Skip()
    if isinstance(command, i.New) and (command.name in shared or not everything):
        return _project(command.body, role, everything, shared)
    if _in_turn(command) and isinstance(command.body, i.When) and not everything:
        return _project(command.body.body, role, everything, shared)  # whoever it is loaded for
    inside = tuple(_project(c, role, everything, shared) for c in i.inner(command))
    return i.with_inner(command, inside)


def _elected(produce: i.Command, consumers: int) -> i.Command:
    """The first thread behind those who compute loads."""
    return i.Elected(produce, thread=WARPGROUP * consumers)


def _emptied_by_all(roles: i.WarpSpecialise) -> set[str]:
    """The barriers of slots that are empty when those of all blocks of the cluster have read them.

    They are those of rings into which a block loads for others. Where each loads for itself, nothing would
    order what the others say of one round after what they say of the round before.
    """
    if not any(isinstance(c, i.BulkCopy) and c.blocks > 1 for c in i.commands(roles.produce)):
        return set()
    return {_buffer(c.barrier) for c in i.commands(roles.consume) if isinstance(c, i.Arrive) and c.release}


def _counting_all(setup: i.Command, common: frozenset[str], blocks: int) -> i.Command:
    """The common barriers count what all blocks say."""

    def init(command: i.InitBarriers) -> i.InitBarriers:
        times = blocks if _buffer(command.barriers) in common else 1
        return replace(command, arrivals=command.arrivals * times)

    return i.rebuild(setup, i.InitBarriers, init)


def _buffer(barrier: i.Acceptor) -> str:
    return barrier.buffer if isinstance(barrier, i.Access) else ""
