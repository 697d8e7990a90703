"""Warp specialisation: splits a program into one for the producer warpgroups and one for the consumers.

A warp-specialised pipeline may stand anywhere in a kernel, for example in the loop over the tiles of a
persistent block. The program of a role is the kernel with only that role's part of every such pipeline; the
consumers also execute everything outside the pipelines. Both roles therefore get the loop over tiles:

    for t. (a ; roles(p, c) ; b)   =   roles(for t. p, for t. (a ; c ; b))

Ping-pong consumers take the tiles alternately, so that one multiplies while another runs its epilogue. They
share one ring, in which the elements of a tile follow those of the tile before. With w warpgroups, warpgroup
t mod w computes tile t:

    parFor(warpgroup) g < w, ping-pong. roles(p, c)   =   roles(p, parFor(warpgroup) g. when(g = t mod w) c)

A pipeline may have another number of elements in each execution: its slots are then numbered on by a
counter of each role, which the pipeline advances by its elements.

What a copy by roles loads is in use in the pipelines inside it. The program of the producer has its
loads, then those of these pipelines:

    roles(p, (wait ; roles(p', c') ; release))   =   roles((p ; p'), (wait ; c' ; release))

A copy by roles beside a pipeline comes in pieces between the loads of its elements (see `_between`), so that
it keeps nobody waiting; where there are too few of these, from another warp.

Shared barriers are initialised once, before the split. That may overlap with the previous kernel of the
stream, since it does not access global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, MBARRIER
from codegen.ir.launch import WARP, WARPGROUP, Launch, derive
from codegen.passes.analysis.executions import equally_many, with_executions
from codegen.passes.analysis.fresh import names_of
from codegen.passes.analysis.in_flight import guarded_copies
from codegen.passes.overlap import await_before_uses
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, at_least, constant, quotient, remainder, variable
from rise.types import Array, Index, Space


def split_roles(function: i.Function) -> i.Function:
    """The pass."""
    _check_ping_pong(function.body)
    found = [c for c in i.commands(function.body) if isinstance(c, i.WarpSpecialise)]
    if not found:
        return function
    launch, alternating = derive(function.body), _alternating(function.body)
    first = found[0]
    for roles in found:
        _check(roles, first, launch, alternating)
    consumers = launch.warps // (WARPGROUP // WARP)
    body = _order_ping_pong(function, alternating)
    counters: list[_Counter] = []
    body = _pass_executions(function, body, launch, counters)
    shared = list(_shared(body))
    names = {new.name for new in shared}
    read = frozenset(_read_by_conditions(body))
    produce = _paced(_project(body, _elected(consumers), False, names, read))
    consume = _project(body, lambda roles: roles.consume, True, names, read)
    # blocks of the next kernel would only wait until all is loaded
    produce = i.sequence(produce, i.Elected(i.StartNextGrid(), thread=WARPGROUP * consumers))
    for counter in counters:
        produce, consume = counter.around(counter.loaded, produce), counter.around(counter.used, consume)
    maps = i.Elected(
        i.sequence(*(i.PrefetchMap(m.name) for m in function.maps)), thread=WARPGROUP * consumers
    )
    setup = i.sequence(*(c.setup for c in i.commands(body) if isinstance(c, i.WarpSpecialise)), maps)
    common = frozenset(name for roles in found for name in _released_by_all_blocks(roles))
    meet = i.Scope.CLUSTER if common else i.Scope.BLOCK
    first_wait = i.Skip() if function.ready else i.AwaitPreviousGrid()
    whole: i.Command = replace(
        first,
        consumers=consumers,
        setup=i.sequence(_count_blocks(setup, common, launch.cluster), i.Barrier(meet), first_wait),
        produce=await_before_uses(function, produce),
        consume=i.rebuild(
            await_before_uses(function, consume),
            i.Arrive,
            lambda a: replace(a, blocks=launch.cluster if _buffer(a.barrier) in common else 1),
        ),
        execution="",
        position="",
    )
    if common:
        # a block must not exit while another block may still write to its shared memory
        whole = i.sequence(whole, i.Barrier(meet))
    for new in reversed(shared):
        whole = replace(new, body=whole)
    return replace(function, body=whole)


def _alternating(command: i.Command) -> int:
    """How many warpgroups take the tiles alternately; 1 without ping-pong."""
    return max((c.count.value or 1 for c in i.commands(command) if _is_ping_pong(c)), default=1)


def _is_ping_pong(command: i.Command) -> TypeGuard[i.ParallelFor]:
    return isinstance(command, i.ParallelFor) and bool(command.execution)


def _check_ping_pong(command: i.Command) -> None:
    """Either all warp-specialised pipelines are in ping-pong, with equally many warpgroups, or none is."""
    loops = [c for c in i.commands(command) if _is_ping_pong(c)]
    outside = sum(map(_pipelines, loops)) < _pipelines(command)
    for part in loops:
        message = ""
        if not _has_roles(part):
            message = "this ping-pong has no warp-specialised pipeline that warpgroups could alternate in"
        elif outside or part.count != loops[0].count:
            message = f"{part.count} warpgroups alternate here, but not in all warp-specialised pipelines"
        if message:
            hint = "in `pingPong` use `reduceRoleSplit` for all pipelines, or for none"
            raise TranslationError("R0734", message, part.origin, hint)


def _pipelines(command: i.Command) -> int:
    return sum(isinstance(c, i.WarpSpecialise) for c in i.commands(command))


def _check(roles: i.WarpSpecialise, first: i.WarpSpecialise, launch: Launch, alternating: int) -> None:
    together = launch.warps // 4 // alternating
    if together != roles.consumers or launch.block[1:] != (1, 1):
        message = f"{together} warpgroups compute together, and the pipeline says {roles.consumers}"
        raise TranslationError("R0734", message, roles.origin, "`consumers` is the extent of mapWarpGroup")
    if (roles.producers, roles.consumers) != (first.producers, first.consumers):
        message = "the pipelines of a kernel have different roles"
        raise TranslationError("R0734", message, roles.origin)


def _order_ping_pong(function: i.Function, groups: int) -> i.Command:
    """Orders the ping-pong warpgroups: each starts once the previous one has waited for its last element.

    An mbarrier phase is identified by its parity only, so a waiting thread must not be two phases ahead.
    Tile p waits for phase (p + groups - 1) / groups - 1 of its mbarrier, which tile p - 1 completes.
    """
    if groups == 1:
        return function.body
    names = names_of(function)

    def go(command: i.Command) -> i.Command:
        if not isinstance(command, i.WarpSpecialise) or (command.position and _has_roles(command.consume)):
            return i.with_inner(command, tuple(go(part) for part in i.inner(command)))
        name, p = names.fresh("baton"), variable(command.execution)
        mine, next_ = (i.Access(name, (remainder(p + ahead, groups),), MBARRIER) for ahead in (0, 1))
        phase = quotient(p + groups - 1, groups)
        pass_on = _when_last if command.position else _when_there
        consume = i.sequence(
            i.WaitBarrier(mine, remainder(phase + 1, 2)), pass_on(go(command.consume), i.Arrive(next_))
        )
        first = i.Access(name, (constant(0),), MBARRIER)
        setup = i.sequence(command.setup, i.Elected(i.InitBarriers(first, constant(groups))))
        made = replace(command, setup=setup, consume=consume)
        return i.New(Space.SHARED, name, Array(constant(groups), MBARRIER), made, layout=BARRIERS)

    return go(function.body)


def _when_last(consume: i.Command, then: i.Command) -> i.Command:
    """Inserts `then` after the last wait of a loop's last iteration.

    By then, all threads of the warpgroup have waited for their tile: the wgmmas of earlier iterations imply
    it, and where there may be none, a barrier of the warpgroup does.
    """
    if not isinstance(consume, i.For) or not _waits(consume):
        raise TranslationError("R0799", "internal: a warp-specialised pipeline is not a loop that waits")
    count = consume.count
    if count.value is None or count.value < 2:
        then = i.sequence(i.Barrier(i.Scope.WARPGROUP), then)
    last = i.When(count - 1, variable(consume.index) + 1, then)
    return replace(consume, body=_after_last_wait(consume.body, last))


def _when_there(consume: i.Command, then: i.Command) -> i.Command:
    """Inserts `then` where all threads of the warpgroup have waited for a copy by roles."""
    if not isinstance(consume, i.Sequence) or not isinstance(consume.commands[0], i.WaitBarrier):
        raise TranslationError("R0799", "internal: a copy by roles is not waited for")
    wait, *rest = consume.commands
    return i.sequence(wait, i.Barrier(i.Scope.WARPGROUP), then, *rest)


def _waits(command: i.Command) -> bool:
    return any(isinstance(c, i.WaitBarrier) for c in i.commands(command))


def _after_last_wait(command: i.Command, then: i.Command) -> i.Command:
    if isinstance(command, i.WaitBarrier):
        return i.sequence(command, then)
    parts = list(i.inner(command))
    last = max(number for number, part in enumerate(parts) if _waits(part))
    parts[last] = _after_last_wait(parts[last], then)
    return i.with_inner(command, tuple(parts))


@dataclass(frozen=True)
class _Counter:
    """The elements of all executions of a pipeline so far, modulo two phases of its ring, for each role."""

    loaded: str
    used: str
    modulus: Nat

    def around(self, name: str, body: i.Command) -> i.Command:
        """Declares the counter of a role, 0 at first."""
        start = i.Assign(self._access(name), i.Natural(constant(0), Index(self.modulus)))
        type_ = Array(constant(1), Index(self.modulus))
        return i.New(Space.LOCAL, name, type_, i.sequence(start, body))

    def numbering(self, name: str, position: str, part: i.Command, count: Nat) -> i.Command:
        """The part of a role in a pipeline of so many elements: where it starts in the ring is `position`."""
        type_, total = Index(self.modulus), self._access(name)

        after = i.Natural(remainder(variable(position) + count, self.modulus), type_)
        before = i.Assign(i.Access(position, (), type_), total)
        body = _behind_bounds(part, lambda loop: i.sequence(loop, i.Assign(total, after)))
        return i.New(Space.LOCAL, position, type_, i.sequence(before, body))

    def _access(self, name: str) -> i.Access:
        return i.Access(name, (constant(0),), Index(self.modulus))


def _behind_bounds(command: i.Command, change: Callable[[i.Command], i.Command]) -> i.Command:
    """Changes what is behind the computation of a loop's bounds."""
    match command:
        case i.New(_, name, _, i.Sequence((i.Assign(i.Access(first)) as bound, *rest))) if name == first:
            return replace(command, body=i.sequence(bound, _behind_bounds(i.sequence(*rest), change)))
        case _:
            return change(command)


def _count(produce: i.Command) -> Nat:
    """How many elements a pipeline has."""
    found: list[i.Command] = []

    def see(loop: i.Command) -> i.Command:
        found.append(loop)
        return loop

    _behind_bounds(produce, see)
    (loop,) = found
    if not isinstance(loop, i.For):
        raise TranslationError("R0799", "internal: a warp-specialised pipeline is not a loop")
    return loop.count


def _pass_executions(
    function: i.Function, body: i.Command, launch: Launch, counters: list[_Counter]
) -> i.Command:
    """Passes its execution count to each pipeline; ping-pong warpgroups execute only every w-th tile.

    counters: those that are found to be needed
    """
    names = names_of(function)

    def numbered(roles: i.WarpSpecialise) -> i.Command:
        count = _count(roles.produce)
        slots = next(c.count for c in i.commands(roles.setup) if isinstance(c, i.InitBarriers))
        counter = _Counter(names.fresh("loaded"), names.fresh("used"), 2 * slots)
        counters.append(counter)
        second = names.fresh(roles.position)
        renamed: dict[Atom, Nat] = {NatVariable(roles.position): variable(second)}
        consume = i.rebuild(roles.consume, Nat, lambda n: n.substitute(renamed))
        return replace(
            roles,
            produce=counter.numbering(counter.loaded, roles.position, roles.produce, count),
            consume=counter.numbering(counter.used, second, consume, count),
        )

    def use(command: i.Command, before: Nat) -> i.Command:
        match command:
            case i.WarpSpecialise(execution=name, position=position):
                number: dict[Atom, Nat] = {NatVariable(name): before}
                vary = position and not equally_many(command.produce, before)
                if position and not vary:
                    number[NatVariable(position)] = _count(command.produce) * before
                known = i.rebuild(command, Nat, lambda n: n.substitute(number))
                return numbered(known) if vary else known
            case i.ParallelFor(_, _, index, count) if _is_ping_pong(command):
                # 0 for the warpgroup that computes this tile
                late = remainder(variable(index) + before * (count - 1), count)
                return replace(command, body=i.When(late, constant(1), command.body))
            case _:
                return command

    return with_executions(body, launch, use)


def _shared(command: i.Command) -> Iterator[i.New]:
    """The shared buffers declared around pipelines, outermost first."""
    if isinstance(command, i.WarpSpecialise):
        command = command.consume
    if not _has_roles(command):
        return
    if isinstance(command, i.New) and command.space is Space.SHARED:
        yield command
    for part in i.inner(command):
        yield from _shared(part)


def _has_roles(command: i.Command) -> bool:
    return any(isinstance(c, i.WarpSpecialise) for c in i.commands(command))


def _read_by_conditions(command: i.Command) -> Iterator[str]:
    """The names in the conditions under which pipelines are executed: numbers of loops, and scalars."""
    if isinstance(command, i.WarpSpecialise):
        command = command.consume
    if not _has_roles(command):
        return
    if isinstance(command, i.When):
        yield from command.value.variables | command.bound.variables
    for part in i.inner(command):
        yield from _read_by_conditions(part)


def _project(
    command: i.Command,
    role: Callable[[i.WarpSpecialise], i.Command],
    everything: bool,
    shared: set[str],
    read: frozenset[str],
) -> i.Command:
    """The program of one role.

    everything: this role also executes the commands outside pipelines
    shared:     the buffers that are declared around both roles
    read:       the scalars that every role needs, since pipelines are executed under conditions on them
    """

    def project(part: i.Command) -> i.Command:
        return _project(part, role, everything, shared, read)

    if isinstance(command, i.WarpSpecialise):
        mine, inside = role(command), command.consume
        if everything:
            return project(mine) if _has_roles(inside) else mine
        return i.sequence(mine, project(inside)) if _has_roles(inside) else mine
    if not _has_roles(command):
        target = i.target_of(command)
        return command if everything or (isinstance(target, i.Access) and target.buffer in read) else i.Skip()
    if isinstance(command, i.New) and (command.name in shared or not (everything or command.name in read)):
        return project(command.body)
    if _is_ping_pong(command) and isinstance(command.body, i.When) and not everything:
        return project(command.body.body)  # whichever warpgroup it is loaded for
    return i.with_inner(command, tuple(map(project, i.inner(command))))


def _elected(consumers: int) -> Callable[[i.WarpSpecialise], i.Command]:
    """Elects the first thread after the consumers to load.

    What is copied beside the pipelines has a warp of its own: it waits for another slot than they do.
    """
    beside = count()

    def loads(roles: i.WarpSpecialise) -> i.Command:
        alone = not roles.position and not _has_roles(roles.consume)
        warp = 1 + next(beside) % (WARPGROUP // WARP - 1) if alone else 0
        return i.Elected(roles.produce, thread=WARPGROUP * consumers + WARP * warp)

    return loads


def _paced(command: i.Command) -> i.Command:
    """Brings what is copied beside a pipeline in pieces, between the loads of its elements.

    At once, it would keep them waiting. In blocks with several tiles the pieces come with the last elements,
    so that nobody waits for the slot; with one tile they come early.
    """
    command = i.with_inner(command, tuple(map(_paced, i.inner(command))))
    if not isinstance(command, i.Sequence):
        return command
    parts: list[i.Command] = []
    for part in command.commands:
        between = _between(parts[-1], part) if parts else None
        parts[-1:] = [*parts[-1:], part] if between is None else [between]
    return i.sequence(*parts)


def _between(loads: i.Command, copy: i.Command) -> i.Command | None:
    """for k < n. L k ; W ; for p < c. C p  =  for k < n. (L k ; when(k = s) W ; when(s <= k < s+c) C (k-s))

    None where the pipeline may have fewer elements than the copy has pieces.
    """
    match loads, copy:
        case i.Elected(i.For() as loop), i.Elected(i.Sequence((i.WaitBarrier() as wait, *expected, pieces))):
            pass
        case _:
            return None
    count = pieces.count.value if isinstance(pieces, i.For) else 1
    if count is None or not at_least(loop.count, count):
        return None
    k, last = variable(loop.index), loop.count - count
    first = quotient(last, constant(2)) if wait.parity.value is not None else last
    piece = i.rebuild(pieces.body, Nat, _at(pieces.index, k - first)) if isinstance(pieces, i.For) else pieces
    started = i.When(k, first + 1, i.sequence(wait, *expected))
    each = i.When(first, k + 1, i.When(k, first + count, i.sequence(started, piece)))
    return replace(loads, body=replace(loop, body=i.sequence(loop.body, each)))


def _at(name: str, value: Nat) -> Callable[[Nat], Nat]:
    return lambda n: n.substitute({NatVariable(name): value})


def _released_by_all_blocks(roles: i.WarpSpecialise) -> set[str]:
    """The "empty" mbarriers of slots that consumers in all blocks of the cluster must release.

    They belong to the rings that are filled by multicast. Where each block loads only for itself, nothing
    would order the arrivals of other blocks in one phase after those in the phase before.
    """
    return {barriers for barriers, copy in guarded_copies(roles.produce) if copy.blocks > 1}


def _count_blocks(setup: i.Command, common: frozenset[str], blocks: int) -> i.Command:
    """Sets the arrival counts of these mbarriers to the arrivals of all blocks."""

    def init(command: i.InitBarriers) -> i.InitBarriers:
        times = blocks if _buffer(command.barriers) in common else 1
        return replace(command, arrivals=command.arrivals * times)

    return i.rebuild(setup, i.InitBarriers, init)


def _buffer(barrier: i.Acceptor) -> str:
    return barrier.buffer if isinstance(barrier, i.Access) else ""
