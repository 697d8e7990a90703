"""Inserts the barriers that accesses to shared memory by parallel loops require.

Two commands conflict if one of them writes a location in shared memory that another thread accesses in
the other command (see `analysis.dependences`). The threads involved synchronise between them: the block, or
only a warp or a warpgroup if no other thread touches the location. Conflicts may be loop-carried.

Blocks of a cluster that read each other's shared memory synchronise after it is written, and before it is
written again or the block that has it ends.

A thread that writes what the copy engine or a wgmma reads executes a proxy fence before that barrier. A bulk
store reads its source until the thread that started it waits, which it does before the next write or at the
end. A wgmma reads its operands until it is waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, distributed, shared
from codegen.ir.launch import GRIDS, Launch, Sharing
from codegen.passes.allocate import Region, is_repeated
from codegen.passes.analysis.dependences import (
    EARLIER,
    OUTSIDE,
    WARPGROUPS,
    WARPS,
    Loop,
    Use,
    loop_of,
    sync_scope,
    sync_scope_in_group,
    uses,
)
from rise.errors import TranslationError
from rise.frozen import filled_at_once
from rise.nat import Nat, constant, variable
from rise.types import Space

Uses = frozenset[Use]
NOTHING: Uses = frozenset()
ONE = constant(1)


def after_barrier(pending: Uses) -> Uses:
    """What a barrier of the block does not order: copies, and uses of memory that other blocks use, too."""
    return frozenset(
        replace(use, met=True) if use.distributed else use
        for use in pending
        if use.copying or use.storing or use.distributed
    )


def after_barrier_of_cluster(pending: Uses) -> Uses:
    """What no barrier orders: copies."""
    return frozenset(use for use in pending if use.copying or use.storing)


def widest(scopes: Collection[i.Scope | None]) -> i.Scope | None:
    """The scope that includes all the others; None where there is none."""
    return next((scope for scope in i.Scope if scope in scopes), None)


def after_barrier_of_warp(pending: Uses) -> Uses:
    return frozenset(use if use.copying or use.storing else replace(use, ordered=True) for use in pending)


def committed(pending: Uses, most: int) -> Uses:
    """The uses after a commit; more than `most` commits need not be distinguished."""
    return frozenset(
        replace(use, copying=min(use.copying + 1, most)) if use.copying else use for use in pending
    )


def waited(pending: Uses, groups: int) -> Uses:
    """The uses after a wait that leaves at most `groups` groups pending: older groups are complete."""
    complete = frozenset(replace(use, copying=0) for use in pending)
    return complete | frozenset(use for use in pending if 0 < use.copying < groups + 2)


def insert_barriers(function: i.Function, regions: Mapping[str, Region], launch: Launch) -> i.Function:
    """The pass. `regions` are the byte ranges of the shared buffers, which may overlap."""
    waits = [c.pending for c in i.commands(function.body) if isinstance(c, i.Wait)]
    news = (c for c in i.commands(function.body) if isinstance(c, i.New))
    rings = _rings_of_roles(function.body)
    sync = frozenset(new.name for new in news if new.layout == BARRIERS) | rings
    inserting = _Inserter(
        regions,
        launch,
        max(waits, default=0) + 2,
        groups=_per_warpgroup(function.body),
        asynchronous=_read_asynchronously(function.body) | _overwritten(function.body, regions, launch),
        stores=_scopes_of_stores(function.body),
        sync=sync,
        rings=rings,
        distributed=distributed(function.body),
    )
    body, after = inserting.go(function.body, NOTHING)
    waiting, _ = inserting.bulk_waits(frozenset(use for use in after if use.storing), after)
    # a block must not end while others read its shared memory
    ending = [i.Barrier(i.Scope.CLUSTER)] if any(use.remote for use in after) else []
    return replace(function, body=i.sequence(body, *waiting, *ending))


def _per_warpgroup(body: i.Command) -> frozenset[str]:
    """The buffers of which each warpgroup has its own copy."""
    loops = (c for c in i.commands(body) if isinstance(c, i.ParallelFor) and c.level is i.Level.WARPGROUP)
    return frozenset(new.name for loop in loops for new in shared(loop))


def _read_asynchronously(body: i.Command) -> frozenset[str]:
    """The buffers that the copy engine or wgmma instructions read."""
    stores = (c.value for c in i.commands(body) if isinstance(c, i.BulkStore))
    return _read_by_products(body) | frozenset(a.buffer for tile in stores for a in i.accesses(tile))


def _read_by_products(body: i.Command) -> frozenset[str]:
    products = (c for c in i.commands(body) if isinstance(c, i.Wgmma))
    return frozenset(a.buffer for c in products for a in (c.a, c.b) if isinstance(a, i.Tile))


def _overwritten(body: i.Command, regions: Mapping[str, Region], launch: Launch) -> frozenset[str]:
    """The buffers written by threads whose bytes a later bulk copy to another buffer overwrites."""
    order = [
        (command, around) for command, around in _with_loops(body, launch) if i.target_of(command) is not None
    ]
    found: set[str] = set()
    for number, (copy, around) in enumerate(order):
        if not isinstance(copy, i.BulkCopy) or not isinstance(copy.target, i.Tile):
            continue
        ring = regions[copy.target.buffer]
        for earlier, (write, others) in enumerate(order):
            name = getattr(i.target_of(write), "buffer", "")
            again = not around.isdisjoint(others)
            if name in regions and not isinstance(write, i.BulkCopy) and (earlier < number or again):
                found |= {name} if regions[name].overlaps(ring) else set()
    return frozenset(found)


def _with_loops(
    command: i.Command, launch: Launch, around: frozenset[int] = frozenset()
) -> Iterator[tuple[i.Command, frozenset[int]]]:
    """Every command in order, with the loops around it that run several iterations one after the other."""
    yield command, around
    if isinstance(command, i.WarpSpecialise):
        return  # producers do not wait for threads that write
    if is_repeated(command, launch):
        around |= {id(command)}
    for part in i.inner(command):
        yield from _with_loops(part, launch, around)


def _scopes_of_stores(body: i.Command) -> dict[str, i.Scope]:
    """For each buffer that bulk stores read, the scope that elects the thread that starts them."""
    found: dict[str, i.Scope] = {}
    for elected in i.commands(body):
        if isinstance(elected, i.Elected):
            stores = (c for c in i.commands(elected.body) if isinstance(c, i.BulkStore))
            found |= {a.buffer: elected.scope for c in stores for a in i.accesses(c.value)}
    return found


@filled_at_once
@dataclass(frozen=True, slots=True)
class _Inserter:
    """The state of the traversal. regions: byte ranges of buffers; around: the loops around a command

    own: the buffers of which each warp has its own copy
    groups: the buffers of which each warpgroup has its own copy
    asynchronous: the buffers that are read or overwritten asynchronously: writes to them need a proxy fence
    stores: for each buffer that bulk stores read, the scope that elects the thread that starts them
    here: the buffers that are allocated outside the innermost loop
    most: any wait completes a copy that is at least this number of commits minus one old
    found: a cache of the uses of each command
    sync: the buffers of mbarriers, with which threads synchronise, and those that they guard, the `rings`
    distributed: the arrays whose elements are in the shared memory of the blocks of a cluster
    scopes: a cache of the scope that must synchronise between two uses
    done: a cache of the loops with their barriers, by what the traversal knows before them
    """

    regions: Mapping[str, Region]
    launch: Launch
    most: int = 2
    around: tuple[Loop, ...] = ()
    own: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    asynchronous: frozenset[str] = frozenset()
    stores: Mapping[str, i.Scope] = field(default_factory=dict)
    sync: frozenset[str] = frozenset()
    rings: frozenset[str] = frozenset()
    distributed: frozenset[str] = frozenset()
    here: frozenset[str] = frozenset()
    found: dict[tuple[int, tuple[Loop, ...]], tuple[i.Command, Uses]] = field(
        default_factory=dict, compare=False
    )
    scopes: dict[tuple[Use, Use], i.Scope | None] = field(default_factory=dict, compare=False)
    done: dict[tuple[object, ...], tuple[i.Command, tuple[i.Command, Uses]]] = field(
        default_factory=dict, compare=False
    )

    @property
    def in_warp(self) -> bool:
        return any(loop.workers == WARPS for loop in self.around)

    @property
    def in_group(self) -> bool:
        return any(loop.workers == WARPGROUPS for loop in self.around)

    @property
    def of_block(self) -> bool:
        """Whether what is executed is the same for all threads of a block."""
        return all(loop.workers is None or loop.workers[0] in OUTSIDE for loop in self.around)

    def inside(self, loop: Loop) -> _Inserter:
        return replace(self, around=(*self.around, loop))

    def go(self, command: i.Command, before: Uses) -> tuple[i.Command, Uses]:
        """The command with its barriers, and the pending uses after it.

        A loop around another one tries its body several times, so what was found for the inner one is kept.
        """
        if not isinstance(command, i.For | i.ParallelFor):
            return self._go(command, before)
        key = (id(command), self.around, self.here, self.own, before)
        if key not in self.done:
            self.done[key] = command, self._go(command, before)
        return self.done[key][1]

    def _go(self, command: i.Command, before: Uses) -> tuple[i.Command, Uses]:
        match command:
            case i.Sequence(parts):
                done: list[i.Command] = []
                for part in parts:
                    new, before = self.go(part, before)
                    done.append(new)
                return i.sequence(*done), before
            case i.New(space, name):
                inner = replace(self, here=self.here | {name})
                if space is Space.SHARED and self.in_warp:
                    inner = replace(inner, own=self.own | {name})
                body, after = inner.go(command.body, before)
                return replace(command, body=body), after
            case i.When() if (self.in_group or self.of_block) and shared(command):
                # a warpgroup, or the block, executes all of the body or nothing; then it has not waited
                body, after = self.go(command.body, before)
                return replace(command, body=body), before | after
            case i.WarpSpecialise():
                consume, after = self.go(command.consume, before)
                waiting, after = self.bulk_waits(frozenset(use for use in after if use.storing), after)
                consume = i.rebuild(i.sequence(consume, *waiting), i.Barrier, _for_consumers)
                if self._reads_rings(consume):
                    consume = _arrive_once(consume)
                produce = i.sequence(command.produce, *_barriers_of_cluster(consume, self.launch))
                return replace(command, produce=produce, consume=consume), after
            case i.Barrier(i.Scope.CLUSTER):
                return command, after_barrier_of_cluster(before)
            case i.Commit():
                return command, committed(before, self.most)
            case i.Wait(groups):
                return command, waited(before, groups)
            case i.For() | i.ParallelFor() if (passed := self._pass_over(command, before)) is not None:
                return command, passed
            case i.For():
                return self._for(command, before)
            case i.ParallelFor(level) if level in (*GRIDS, i.Level.WARP):
                return self._workers(command, before)
            case i.ParallelFor(i.Level.WARPGROUP) if shared(command):
                return self._workers(command, before)
            case _:
                return self._command(command, before)

    def _pass_over(self, loop: i.For | i.ParallelFor, before: Uses) -> Uses | None:
        """The pending uses after a loop that neither writes to shared memory nor needs a barrier."""
        if any(isinstance(c, i.Commit | i.Wait) for c in i.commands(loop)):
            return None
        later = self._uses(loop)
        if any(use.written for use in later) or self._conflicts(before, later):
            return None
        inside = len(self.around)
        return before | frozenset(
            reduce(lambda over, around: over.after(around.index), use.around[inside:], use) for use in later
        )

    def _reads_rings(self, consume: i.Command) -> bool:
        """Whether threads read what producers load: the completion of a wgmma does not cover such reads."""
        ordinary = (
            c
            for c in i.commands(consume)
            if not isinstance(c, i.MmaFragment | i.Wgmma | i.Arrive | i.WaitBarrier)
        )
        return any(a.buffer in self.rings for c in ordinary for a in i.accesses(c))

    # --- loops ----------------------------------------------------------------------------------------

    def _for(self, loop: i.For, before: Uses) -> tuple[i.Command, Uses]:
        """Places a barrier before the loop if that saves one in every iteration."""
        if loop.count == ONE:
            return self._single_iteration(loop, before)
        new, after = self._loop(loop, before, ONE)
        if self.in_warp or not _barriers(new):
            return new, after
        together = any(c == i.Barrier(i.Scope.CLUSTER) for c in i.commands(new))
        scope = i.Scope.CLUSTER if together else self._scope_of_block
        if self.in_group:
            scope = i.Scope.WARPGROUP
        bare, then = self._loop(loop, self._after(scope, before), ONE)
        if _barriers(bare) < _barriers(new):
            return i.sequence(*self._sync(scope, before), bare), then
        return new, after

    def _single_iteration(self, loop: i.For, before: Uses) -> tuple[i.Command, Uses]:
        """A loop of a single iteration has no loop-carried conflicts."""
        body, after = self.inside(_as_loop(loop)).go(loop.body, before)
        return replace(loop, body=body), after

    def _loop(self, loop: i.For | i.ParallelFor, before: Uses, by: Nat) -> tuple[i.Command, Uses]:
        """Handles loop-carried conflicts: uses pending at the end of the body are pending at its start.

        by: the distance in iterations between the earlier use and the later one
        """
        inner = self.inside(_as_loop(loop))
        _, once = inner.go(loop.body, NOTHING)
        if isinstance(loop, i.ParallelFor) or loop.role is i.Role.MAP:
            once = frozenset(replace(u, mapped=u.written and u.buffer in self.here) for u in once)
        once |= self._in_flight(inner, loop, once, by)
        body, after = inner.go(loop.body, before | _earlier(once, loop.index, by))
        if not _barriers(body):
            # no barrier separates an iteration from any earlier one, however far back
            by = variable(EARLIER + loop.index)
            body, after = inner.go(loop.body, before | _earlier(once, loop.index, by))
            return replace(loop, body=body), _any_iteration(after, loop.index)
        # uses before a barrier of the body are no longer pending at its end, so fewer barriers may do
        pending = after - before
        fewer, end = inner.go(loop.body, before | _earlier(pending, loop.index, by))
        if _barriers(fewer) < _barriers(body) and end - before <= pending:
            body, after = fewer, end
        return replace(loop, body=body), _any_iteration(after, loop.index)

    def _in_flight(self, inner: _Inserter, loop: i.For | i.ParallelFor, once: Uses, by: Nat) -> Uses:
        """Copies in flight after an iteration that earlier iterations started and did not wait for."""
        found: Uses = NOTHING
        started = frozenset(use for use in once if use.copying)
        for _ in range(self.most):
            _, after = inner.go(loop.body, _earlier(started, loop.index, by))
            started = frozenset(use for use in after if use.copying) - once - found
            found |= started
        return found

    def _workers(self, loop: i.ParallelFor, before: Uses) -> tuple[i.Command, Uses]:
        if loop.level in (i.Level.WARP, i.Level.WARPGROUP):
            scope = widest(self._conflicts(before, self._uses(loop)).values())
            if scope in (i.Scope.CLUSTER, i.Scope.BLOCK):
                # a barrier of the whole block must be outside the loop over warps
                waiting, before = self.bulk_waits(self._uses(loop), before)
                new, after = self._iterations(loop, self._after(scope, before))
                return i.sequence(*waiting, *self._sync(scope, before), new), after
        return self._iterations(loop, before)

    def _iterations(self, loop: i.ParallelFor, before: Uses) -> tuple[i.Command, Uses]:
        """A worker runs one iteration, or several one after the other."""
        if self.launch.sharing(loop) is Sharing.STRIDED:
            return self._loop(loop, before, variable(EARLIER + loop.index))
        body, after = self.inside(_as_loop(loop)).go(loop.body, before)
        return replace(loop, body=body), after

    # --- commands -------------------------------------------------------------------------------------

    @property
    def _scope_of_block(self) -> i.Scope:
        """A block of a single warp needs only the warp's barrier."""
        return i.Scope.BLOCK if self.launch.threads > 32 else i.Scope.WARP

    def _command(self, command: i.Command, before: Uses) -> tuple[i.Command, Uses]:
        later = self._uses(command)
        conflicts = self._conflicts(before, later)
        scope = widest(conflicts.values())
        if scope is None:
            return command, before | later
        if scope in (i.Scope.CLUSTER, i.Scope.BLOCK) and (self.in_warp or self.in_group):
            name = min(use.buffer for use in conflicts)
            raise TranslationError(
                "R0718",
                f"warps would have to synchronise inside mapWarp because of `{name}`",
                hint="end the mapWarp, store its result in Shared memory, and start another mapWarp",
            )
        waiting, before = self.bulk_waits(later, before)
        return i.sequence(*waiting, *self._sync(scope, before), command), later | self._after(scope, before)

    def _after(self, scope: i.Scope, before: Uses) -> Uses:
        """The uses that are still pending after a barrier."""
        if scope is i.Scope.CLUSTER:
            return after_barrier_of_cluster(before)
        if scope is self._scope_of_block:
            return after_barrier(before)
        if scope is i.Scope.WARP:
            return after_barrier_of_warp(before)
        own = frozenset(use for use in before if use.buffer in self.groups)
        return (before - own) | after_barrier(own)

    def bulk_waits(self, later: Uses, before: Uses) -> tuple[list[i.Command], Uses]:
        """The waits for bulk stores that read what `later` writes, or that are among `later` themselves, and
        the uses pending after them. All threads execute the wait, though only one has stored: it returns at
        once in the others, and under a condition it would keep the GPU's compiler from overlapping wgmmas."""
        scopes = {
            self.stores[use.buffer]
            for use in before
            if use.storing and (use in later or self._conflicts(frozenset({use}), later))
        }
        waits: list[i.Command] = [i.BulkWait(0)] if scopes else []
        return waits, frozenset(u for u in before if not (u.storing and self.stores[u.buffer] in scopes))

    def _sync(self, scope: i.Scope, before: Uses) -> tuple[i.Command, ...]:
        """The barrier, with a proxy fence before it if threads wrote what an asynchronous unit reads."""
        fenced = any(use.written and not use.copying and use.buffer in self.asynchronous for use in before)
        return (i.FenceAsync(), i.Barrier(scope)) if fenced else (i.Barrier(scope),)

    def _conflicts(self, before: Uses, later: Uses) -> dict[Use, i.Scope]:
        """The later uses that conflict with a pending one, each with the scope that must synchronise."""
        found: dict[Use, i.Scope] = {}
        for use in later:
            for earlier in before:
                if earlier.copying:
                    # the use has been waited for, so its copy is among the complete ones
                    continue
                scope = self._sync_scope(earlier, use)
                if scope is not None:
                    found[use] = widest((scope, found.get(use))) or scope
        return found

    def _sync_scope(self, earlier: Use, later: Use) -> i.Scope | None:
        if (earlier, later) not in self.scopes:
            self.scopes[earlier, later] = self._compute_sync_scope(earlier, later)
        return self.scopes[earlier, later]

    def _compute_sync_scope(self, earlier: Use, later: Use) -> i.Scope | None:
        if earlier.remote or later.remote:
            return self._scope_of_remote(earlier, later)
        if earlier.met:
            return None
        if earlier.buffer == later.buffer and later.buffer in self.groups:
            return sync_scope_in_group(earlier, later)
        if earlier.buffer == later.buffer:
            return sync_scope(earlier, later, later.buffer in self.own, self.launch)
        overlap = self.regions[earlier.buffer].overlaps(self.regions[later.buffer])
        # other warps may have used another buffer at the same address
        return self._scope_of_block if overlap and (earlier.written or later.written) else None

    def _scope_of_remote(self, earlier: Use, later: Use) -> i.Scope | None:
        """Between uses of which one may be of another block's memory: the cluster, or none.

        A block uses the memory of others for a distributed array only: before it is read, it is written.
        """
        overlap = self.regions[earlier.buffer].overlaps(self.regions[later.buffer])
        if not overlap or not (earlier.written or later.written):
            return None
        return i.Scope.CLUSTER if earlier.distributed else None

    def _uses(self, command: i.Command) -> Uses:
        key = (id(command), self.around)
        if key not in self.found:
            seen = uses(command, self.around)
            seen = (u for u in seen if u.buffer in self.regions and u.buffer not in self.sync)
            found = frozenset(
                replace(u, distributed=True) if u.buffer in self.distributed else u for u in seen
            )
            waits = (c for c in i.commands(command) if isinstance(c, i.WgmmaWait))
            read = {name for wait in waits for name in wait.operands} - self.sync
            found |= frozenset(Use(name, (), (), False) for name in read)
            # keeping the command alive keeps its id unique
            self.found[key] = (command, found)
        return self.found[key][1]


def _rings_of_roles(body: i.Command) -> frozenset[str]:
    """The buffers that producer warpgroups load and consumers read: mbarriers synchronise them."""
    loads = (c.produce for c in i.commands(body) if isinstance(c, i.WarpSpecialise))
    return frozenset(
        c.target.buffer
        for load in loads
        for c in i.commands(load)
        if isinstance(c, i.BulkCopy) and isinstance(c.target, i.Tile)
    )


def _arrive_once(command: i.Command) -> i.Command:
    """One thread arrives for its warpgroup, after all of its threads have read."""
    if isinstance(command, i.Arrive) and command.release:
        return i.sequence(i.Barrier(i.Scope.WARPGROUP), command)
    return i.with_inner(command, tuple(_arrive_once(part) for part in i.inner(command)))


def _for_consumers(barrier: i.Barrier) -> i.Barrier:
    """A barrier of the block waits for the consumers only, not for the producers."""
    return i.Barrier(i.Scope.CONSUMERS) if barrier.scope is i.Scope.BLOCK else barrier


def _barriers_of_cluster(consume: i.Command, launch: Launch) -> Iterator[i.Command]:
    """As many barriers of the cluster as those that compute meet at: those that load take part in each."""
    for command, repeated in _with_loops(consume, launch):
        if command == i.Barrier(i.Scope.CLUSTER):
            if repeated:
                raise TranslationError(
                    "R0743",
                    "blocks meet in a loop, and warpgroups that only load do not execute it",
                    hint="use `reducePipelined`, or clusters that are not persistent",
                )
            yield command


def _as_loop(loop: i.For | i.ParallelFor) -> Loop:
    made = loop_of(loop)
    if made is None:
        raise TranslationError("R0799", "internal: a command is not a loop")
    return made


def _barriers(command: i.Command) -> int:
    return sum(isinstance(c, i.Barrier) for c in i.commands(command))


def _earlier(pending: Iterable[Use], index: str, by: Nat) -> Uses:
    """The uses as those of an earlier iteration: the previous one, or the one `by` before."""
    return frozenset(use.substitute(index, variable(index) - by) for use in pending)


def _any_iteration(pending: Iterable[Use], index: str) -> Uses:
    """The uses as those of any iteration."""
    return frozenset(use.after(index) for use in pending)
