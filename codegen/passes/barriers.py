"""Barriers, computed from what is read and written in shared memory between parallel loops.

Two commands conflict if one writes a place in shared memory that the other accesses in another thread
(see `uses`). Between them those who share the place have to meet: the block, or a warp or warpgroup where
no other touches it. Commands in a loop also meet those of the iterations before.

What the copying unit or a product is to read is fenced by who wrote it, before they meet. A bulk store reads
until the thread that started it waits: before the next write, or at the end. Products of warpgroups read
until they are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS
from codegen.ir.launch import GRIDS, Launch, Sharing
from codegen.passes.allocate import Region, goes_around
from codegen.passes.analysis.dependences import (
    EARLIER,
    GROUPS,
    WARPS,
    Loop,
    Use,
    loop_of,
    meeting,
    meeting_in_group,
    target_of,
    uses,
)
from rise.errors import TranslationError
from rise.nat import Nat, constant, variable
from rise.types import Space

Uses = frozenset[Use]
NOTHING: Uses = frozenset()
ONE = constant(1)


def after_barrier(pending: Uses) -> Uses:
    return frozenset(use for use in pending if use.copying or use.storing)


def after_barrier_of_warp(pending: Uses) -> Uses:
    return frozenset(use if use.copying or use.storing else replace(use, ordered=True) for use in pending)


def committed(pending: Uses, most: int) -> Uses:
    """After a commit: `most` is how many count."""
    return frozenset(
        replace(use, copying=min(use.copying + 1, most)) if use.copying else use for use in pending
    )


def waited(pending: Uses, groups: int) -> Uses:
    """After a wait until at most so many groups are under way: older ones are complete, others may be."""
    complete = frozenset(replace(use, copying=0) for use in pending)
    return complete | frozenset(use for use in pending if 0 < use.copying < groups + 2)


def insert_barriers(function: i.Function, regions: Mapping[str, Region], launch: Launch) -> i.Function:
    """The pass. `regions` are those of the buffers in shared memory: they may overlap."""
    waits = [c.pending for c in i.commands(function.body) if isinstance(c, i.Wait)]
    news = (c for c in i.commands(function.body) if isinstance(c, i.New))
    rings = _rings_of_roles(function.body)
    sync = frozenset(new.name for new in news if new.layout == BARRIERS) | rings
    inserting = _Inserting(
        regions,
        launch,
        max(waits, default=0) + 2,
        groups=_of_groups(function.body),
        unit=_read_by_units(function.body) | _filled_later(function.body, regions, launch),
        products=_read_by_products(function.body),
        stores=_scopes_of_stores(function.body),
        sync=sync,
        rings=rings,
    )
    body, after = inserting.go(function.body, NOTHING)
    waiting, _ = inserting.waited_for(frozenset(use for use in after if use.storing), after)
    return replace(function, body=i.sequence(body, *waiting))


def _of_groups(body: i.Command) -> frozenset[str]:
    """The buffers that each warpgroup has one of."""
    loops = (c for c in i.commands(body) if isinstance(c, i.ParallelFor) and c.level is i.Level.WARPGROUP)
    return frozenset(new.name for loop in loops for new in _shared(loop))


def _shared(command: i.Command) -> list[i.New]:
    """The buffers in shared memory that live inside of a command."""
    return [c for c in i.commands(command) if isinstance(c, i.New) and c.space is Space.SHARED]


def _read_by_units(body: i.Command) -> frozenset[str]:
    """The buffers that the copying unit or products of warpgroups read."""
    stores = (c.value for c in i.commands(body) if isinstance(c, i.BulkStore))
    return _read_by_products(body) | frozenset(a.buffer for tile in stores for a in i.accesses(tile))


def _read_by_products(body: i.Command) -> frozenset[str]:
    products = (c for c in i.commands(body) if isinstance(c, i.Wgmma))
    return frozenset(a.buffer for c in products for a in (c.a, c.b) if isinstance(a, i.Tile))


def _filled_later(body: i.Command, regions: Mapping[str, Region], launch: Launch) -> frozenset[str]:
    """The buffers where threads write what the copying unit overwrites later: with a tile of another one."""
    order = [
        (command, around) for command, around in _with_loops(body, launch) if target_of(command) is not None
    ]
    found: set[str] = set()
    for number, (copy, around) in enumerate(order):
        if not isinstance(copy, i.BulkCopy) or not isinstance(copy.target, i.Tile):
            continue
        ring = regions[copy.target.buffer]
        for earlier, (write, others) in enumerate(order):
            name = getattr(target_of(write), "buffer", "")
            again = not around.isdisjoint(others)
            if name in regions and not isinstance(write, i.BulkCopy) and (earlier < number or again):
                found |= {name} if regions[name].overlaps(ring) else set()
    return frozenset(found)


def _with_loops(
    command: i.Command, launch: Launch, around: frozenset[int] = frozenset()
) -> Iterator[tuple[i.Command, frozenset[int]]]:
    """Every command, in order, and which loops around it have iterations that follow each other."""
    yield command, around
    if isinstance(command, i.WarpSpecialise):
        return  # who loads does not wait for those who write
    if goes_around(command, launch):
        around |= {id(command)}
    for part in i.inner(command):
        yield from _with_loops(part, launch, around)


def _scopes_of_stores(body: i.Command) -> dict[str, i.Scope]:
    """Of each buffer that bulk stores read: whose thread starts them."""
    found: dict[str, i.Scope] = {}
    for elected in i.commands(body):
        if isinstance(elected, i.Elected):
            stores = (c for c in i.commands(elected.body) if isinstance(c, i.BulkStore))
            found |= {a.buffer: elected.scope for c in stores for a in i.accesses(c.value)}
    return found


@dataclass(frozen=True)
class _Inserting:
    """regions: where in shared memory the buffers are; around: the loops around a command

    own:  the buffers that each warp has one of
    groups: the buffers that each warpgroup has one of
    unit: the buffers that are read, or overwritten, asynchronously, so that writes to them are fenced
    products: those of them that products of warpgroups read
    stores: of the buffers that bulk stores read, whose thread starts these
    here: the buffers that were there before the innermost loop
    most: after so many commits less one any wait ends a copy
    found: the uses of the commands met so far
    sync: the buffers of mbarriers, by which threads wait for each other, and those that they guard: `rings`
    met:  who has to wait between two uses, as far as it has been asked
    """

    regions: Mapping[str, Region]
    launch: Launch
    most: int = 2
    around: tuple[Loop, ...] = ()
    own: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    unit: frozenset[str] = frozenset()
    products: frozenset[str] = frozenset()
    stores: Mapping[str, i.Scope] = field(default_factory=dict)
    sync: frozenset[str] = frozenset()
    rings: frozenset[str] = frozenset()
    here: frozenset[str] = frozenset()
    found: dict[tuple[int, tuple[Loop, ...]], tuple[i.Command, Uses]] = field(
        default_factory=dict, compare=False
    )
    met: dict[tuple[Use, Use], i.Scope | None] = field(default_factory=dict, compare=False)

    @property
    def in_warp(self) -> bool:
        return any(loop.workers == WARPS for loop in self.around)

    @property
    def in_group(self) -> bool:
        return any(loop.workers == GROUPS for loop in self.around)

    def inside(self, loop: Loop) -> _Inserting:
        return replace(self, around=(*self.around, loop))

    def go(self, command: i.Command, before: Uses) -> tuple[i.Command, Uses]:
        """The command with its barriers, and what is pending after it."""
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
            case i.When() if self.in_group and _shared(command):
                # a warpgroup as a whole has its turn, or not, and then it has waited for nothing
                body, after = self.go(command.body, before)
                return replace(command, body=body), before | after
            case i.WarpSpecialise():
                consume, after = self.go(command.consume, before)
                waiting, after = self.waited_for(frozenset(use for use in after if use.storing), after)
                consume = i.rebuild(i.sequence(consume, *waiting), i.Barrier, _of_consumers)
                if self._reads_itself(consume):
                    consume = _arriving_together(consume)
                return replace(command, consume=consume), after
            case i.Commit():
                return command, committed(before, self.most)
            case i.Wait(groups):
                return command, waited(before, groups)
            case i.For() | i.ParallelFor() if (passed := self._only_read(command, before)) is not None:
                return command, passed
            case i.For():
                return self._for(command, before)
            case i.ParallelFor(level) if level in (*GRIDS, i.Level.WARP):
                return self._workers(command, before)
            case i.ParallelFor(i.Level.WARPGROUP) if _shared(command):
                return self._workers(command, before)
            case _:
                return self._command(command, before)

    def _only_read(self, loop: i.For | i.ParallelFor, before: Uses) -> Uses | None:
        """What is pending after a loop that writes nothing others read, where it waits for nothing either."""
        if any(isinstance(c, i.Commit | i.Wait) for c in i.commands(loop)):
            return None
        later = self._uses(loop)
        if any(use.written for use in later) or self._conflicts(before, later):
            return None
        inside = len(self.around)
        return before | frozenset(
            reduce(lambda over, around: over.after(around.index), use.around[inside:], use) for use in later
        )

    def _reads_itself(self, consume: i.Command) -> bool:
        """Whether threads read what others load: when products are over says nothing of that."""
        ordinary = (
            c
            for c in i.commands(consume)
            if not isinstance(c, i.MmaFragment | i.Wgmma | i.Arrive | i.WaitBarrier)
        )
        return any(a.buffer in self.rings for c in ordinary for a in i.accesses(c))

    # --- loops ----------------------------------------------------------------------------------------

    def _for(self, loop: i.For, before: Uses) -> tuple[i.Command, Uses]:
        """With a barrier before the loop, if that saves one in every iteration."""
        if self.in_group and loop.count == ONE:
            return self._iterations_of_one(loop, before)
        new, after = self._loop(loop, before, ONE)
        if self.in_warp or self.in_group or not _barriers(new):
            return new, after
        bare, then = self._loop(loop, after_barrier(before), ONE)
        if _barriers(bare) < _barriers(new):
            return i.sequence(*self._meet(self._scope_of_block, before), bare), then
        return new, after

    def _iterations_of_one(self, loop: i.For, before: Uses) -> tuple[i.Command, Uses]:
        """A loop of one iteration, which follows no other."""
        body, after = self.inside(_as_loop(loop)).go(loop.body, before)
        return replace(loop, body=body), after

    def _loop(self, loop: i.For | i.ParallelFor, before: Uses, by: Nat) -> tuple[i.Command, Uses]:
        """A loop's body follows itself: what is pending at its end is pending at its start.

        by: so many iterations an earlier one was earlier
        """
        inner = self.inside(_as_loop(loop))
        _, once = inner.go(loop.body, NOTHING)
        if isinstance(loop, i.ParallelFor) or loop.role is i.Role.MAP:
            once = frozenset(replace(u, mapped=u.written and u.buffer in self.here) for u in once)
        once |= self._still_copying(inner, loop, once, by)
        body, after = inner.go(loop.body, before | _earlier(once, loop.index, by))
        if not _barriers(body):
            # nothing separates an iteration from those long before it
            by = variable(EARLIER + loop.index)
            body, after = inner.go(loop.body, before | _earlier(once, loop.index, by))
            return replace(loop, body=body), _any_iteration(after, loop.index)
        # what the barriers inside have separated is not pending at the end, so fewer of them may do
        pending = after - before
        fewer, end = inner.go(loop.body, before | _earlier(pending, loop.index, by))
        if _barriers(fewer) < _barriers(body) and end - before <= pending:
            body, after = fewer, end
        return replace(loop, body=body), _any_iteration(after, loop.index)

    def _still_copying(self, inner: _Inserting, loop: i.For | i.ParallelFor, once: Uses, by: Nat) -> Uses:
        """At the end of an iteration: the copies that earlier ones started, and did not wait for."""
        found: Uses = NOTHING
        started = frozenset(use for use in once if use.copying)
        for _ in range(self.most):
            _, after = inner.go(loop.body, _earlier(started, loop.index, by))
            started = frozenset(use for use in after if use.copying) - once - found
            found |= started
        return found

    def _workers(self, loop: i.ParallelFor, before: Uses) -> tuple[i.Command, Uses]:
        if loop.level in (i.Level.WARP, i.Level.WARPGROUP):
            waits = self._conflicts(before, self._uses(loop)).values()
            if i.Scope.BLOCK in waits:
                # a barrier of the block belongs before the loop over warps, not into it
                waiting, before = self.waited_for(self._uses(loop), before)
                new, after = self._iterations(loop, after_barrier(before))
                return i.sequence(*waiting, *self._meet(i.Scope.BLOCK, before), new), after
        return self._iterations(loop, before)

    def _iterations(self, loop: i.ParallelFor, before: Uses) -> tuple[i.Command, Uses]:
        """A worker has one iteration, or one after the other."""
        if self.launch.sharing(loop) is Sharing.STRIDED:
            return self._loop(loop, before, variable(EARLIER + loop.index))
        body, after = self.inside(_as_loop(loop)).go(loop.body, before)
        return replace(loop, body=body), after

    # --- commands -------------------------------------------------------------------------------------

    @property
    def _scope_of_block(self) -> i.Scope:
        """A block of one warp waits as a warp does."""
        return i.Scope.BLOCK if self.launch.threads > 32 else i.Scope.WARP

    def _command(self, command: i.Command, before: Uses) -> tuple[i.Command, Uses]:
        later = self._uses(command)
        conflicts = self._conflicts(before, later)
        if not conflicts:
            return command, before | later
        scope = next(s for s in i.Scope if s in conflicts.values())  # the widest
        if scope is i.Scope.BLOCK and (self.in_warp or self.in_group):
            name = min(use.buffer for use in conflicts)
            raise TranslationError(
                "R0718",
                f"warps would have to wait for each other inside of mapWarp, for `{name}`",
                hint="end the mapWarp, store its result in Shared memory, and start another",
            )
        waiting, before = self.waited_for(later, before)
        return i.sequence(*waiting, *self._meet(scope, before), command), later | self._after(scope, before)

    def _after(self, scope: i.Scope, before: Uses) -> Uses:
        """What is pending after a barrier."""
        if scope is self._scope_of_block:
            return after_barrier(before)
        if scope is i.Scope.WARP:
            return after_barrier_of_warp(before)
        own = frozenset(use for use in before if use.buffer in self.groups)
        return (before - own) | after_barrier(own)

    def waited_for(self, later: Uses, before: Uses) -> tuple[list[i.Command], Uses]:
        """Waits for the bulk stores that read what is written later, or that are among `later` themselves;
        and what is pending after them. All threads execute them, though one has stored: who has not goes on,
        and where only some do, the GPU's compiler loses sight of the products around."""
        scopes = {
            self.stores[use.buffer]
            for use in before
            if use.storing and (use in later or self._conflicts(frozenset({use}), later))
        }
        waits: list[i.Command] = [i.BulkWait(0)] if scopes else []
        return waits, frozenset(u for u in before if not (u.storing and self.stores[u.buffer] in scopes))

    def _meet(self, scope: i.Scope, before: Uses) -> tuple[i.Command, ...]:
        """The barrier; before it the fence, if something was written that units read."""
        fenced = any(use.written and not use.copying and use.buffer in self.unit for use in before)
        return (i.FenceAsync(), i.Barrier(scope)) if fenced else (i.Barrier(scope),)

    def _conflicts(self, before: Uses, later: Uses) -> dict[Use, i.Scope]:
        """The later uses that must not come before an earlier one is over, and who has to wait for that."""
        found: dict[Use, i.Scope] = {}
        for use in later:
            for earlier in before:
                if earlier.copying:
                    # what is used has been waited for: then the copy is among those that are complete
                    continue
                scope = self._meeting(earlier, use)
                if scope is not None and found.get(use) is not i.Scope.BLOCK:
                    found[use] = scope
        return found

    def _meeting(self, earlier: Use, later: Use) -> i.Scope | None:
        if (earlier, later) not in self.met:
            self.met[earlier, later] = self._who_meets(earlier, later)
        return self.met[earlier, later]

    def _who_meets(self, earlier: Use, later: Use) -> i.Scope | None:
        if earlier.buffer == later.buffer and later.buffer in self.groups:
            return meeting_in_group(earlier, later)
        if earlier.buffer == later.buffer:
            return meeting(earlier, later, later.buffer in self.own, self.launch)
        overlap = self.regions[earlier.buffer].overlaps(self.regions[later.buffer])
        # other warps may have used another buffer that was at the same place
        return self._scope_of_block if overlap and (earlier.written or later.written) else None

    def _uses(self, command: i.Command) -> Uses:
        key = (id(command), self.around)
        if key not in self.found:
            seen = uses(command, self.around)
            found = frozenset(u for u in seen if u.buffer in self.regions and u.buffer not in self.sync)
            if any(isinstance(c, i.WgmmaWait) and not c.pending for c in i.commands(command)):
                found |= frozenset(Use(name, (), (), False) for name in self.products)
            # the command is kept, so that no other gets its number
            self.found[key] = (command, found)
        return self.found[key][1]


def _rings_of_roles(body: i.Command) -> frozenset[str]:
    """What some warpgroups load and others read: mbarriers say when."""
    loads = (c.produce for c in i.commands(body) if isinstance(c, i.WarpSpecialise))
    return frozenset(
        c.target.buffer
        for load in loads
        for c in i.commands(load)
        if isinstance(c, i.BulkCopy) and isinstance(c.target, i.Tile)
    )


def _arriving_together(command: i.Command) -> i.Command:
    """One thread arrives for its warpgroup: when all of it have read."""
    if isinstance(command, i.Arrive) and command.release:
        return i.sequence(i.Barrier(i.Scope.WARPGROUP), command)
    return i.with_inner(command, tuple(_arriving_together(part) for part in i.inner(command)))


def _of_consumers(barrier: i.Barrier) -> i.Barrier:
    """Those who load do not wait with those who compute."""
    return i.Barrier(i.Scope.CONSUMERS) if barrier.scope is i.Scope.BLOCK else barrier


def _as_loop(loop: i.For | i.ParallelFor) -> Loop:
    made = loop_of(loop)
    if made is None:
        raise TranslationError("R0799", "internal: a loop is no loop")
    return made


def _barriers(command: i.Command) -> int:
    return sum(isinstance(c, i.Barrier) for c in i.commands(command))


def _earlier(pending: Iterable[Use], index: str, by: Nat) -> Uses:
    """The uses as those of an iteration before: of the last one, or of one `by` earlier."""
    return frozenset(use.substitute(index, variable(index) - by) for use in pending)


def _any_iteration(pending: Iterable[Use], index: str) -> Uses:
    """The uses as those of any iteration."""
    return frozenset(use.after(index) for use in pending)
