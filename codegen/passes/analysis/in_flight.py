"""Which products of a warpgroup are under way at each command, and which of them it has to wait for.

A wgmma is asynchronous. Its accumulators, its operands in registers and its operands in shared memory must
not be touched before it is waited for, other than by further products. Products are waited for in commit
groups, in order: a wait for at most N groups completes each that N others or more were committed after.

The analysis executes a program abstractly. It knows the commit groups that may be under way, each with its
uses and with its age: the least number of groups committed since, over all ways to the command. Unrolled
loops are executed iteration by iteration. The iterations of other loops follow each other until nothing new
is under way; the uses of earlier ones are those at k - 1, k - 2, …, so that slots of a ring are told apart. A
command that conflicts with groups needs a wait for at most as many groups as the youngest of these is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions
from codegen.passes.analysis.dependences import ANY, Loop, Use, distinct, loop_of, uses
from rise.nat import at_least, constant, variable
from rise.types import Space

# groups older than this are not distinguished: a wait for at most so many is as good
OLDEST = 31
# iterations of a loop that are distinguished; its earlier ones are not
ITERATIONS = 4
# unrolled loops of at most so many iterations are executed one by one
UNROLLED = 16

Uses = frozenset[Use]


@dataclass(frozen=True)
class Group:
    """A commit group under way.

    registers: accumulators and operands in registers
    lost:      those of them that are declared anew in each iteration, and belong to an earlier one
    operands:  tiles in shared memory
    over:      it has been waited for, but its registers have not been named since
    """

    registers: Uses = frozenset()
    lost: Uses = frozenset()
    operands: Uses = frozenset()
    over: bool = False

    @property
    def parts(self) -> tuple[Uses, Uses, Uses]:
        return self.registers, self.lost, self.operands


State = Mapping[Group, int]  # ages


@dataclass
class Need:
    """The wait before a command: for at most `pending` groups.

    buffers:   those whose registers the command uses, each with the age of the youngest group that does
    registers: what the groups that are complete then have used, and their ages: at the end of a scope all,
               elsewhere the operands, whose registers are free from then on
    operands:  the buffers in shared memory that were read until then
    """

    pending: int
    buffers: dict[str, int] = field(default_factory=dict)
    registers: dict[Use, int] = field(default_factory=dict)
    operands: set[str] = field(default_factory=set)


@dataclass
class InFlight:
    """What is known of the commands of a program, by identity.

    at_once:  the releases that are waited for where they stand
    guarded:  for the mbarrier buffers with which slots are released, the rings that they guard
    needs:    the waits before commands
    ends:     the waits at the end of the scope of a buffer, or of a program
    released: for each release of a slot, the age of the youngest group that still reads it, if there is one
    busy:     the registers that may be under way before a command
    entered:  the declarations without products in which waits stand
    scope:    what is declared where the analysis is
    """

    guarded: Mapping[str, frozenset[str]]
    at_once: frozenset[int]
    extents: Mapping[str, int] = field(default_factory=dict)
    needs: dict[int, Need] = field(default_factory=dict)
    ends: dict[int, Need] = field(default_factory=dict)
    released: dict[int, int] = field(default_factory=dict)
    busy: dict[int, set[str]] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)
    scope: list[str] = field(default_factory=list)
    buffers: dict[int, frozenset[str]] = field(default_factory=dict)
    found: dict[tuple[int, object], Uses] = field(default_factory=dict)


@dataclass(frozen=True)
class _Here:
    """The place of a command: the loops around it, and the numbers of the iterations of unrolled ones."""

    around: tuple[Loop, ...] = ()
    at: tuple[tuple[str, int], ...] = ()

    def uses(self, command: i.Command) -> Iterator[Use]:
        for use in uses(command, self.around):
            yield reduce(lambda u, place: u.substitute(place[0], constant(place[1])), self.at, use)


def in_flight(
    body: i.Command, guarded: Mapping[str, frozenset[str]], at_once: frozenset[int] = frozenset()
) -> InFlight:
    """The analysis of a program. at_once: the releases, by identity, that are waited for where they stand."""
    news = (c for c in i.commands(body) if isinstance(c, i.New))
    result = InFlight(guarded, at_once, {new.name: len(dimensions(new.type)) for new in news})
    _Analysis(result).go(body, {}, _Here())
    return result


def guarded_copies(produce: i.Command) -> Iterator[tuple[str, i.BulkCopy]]:
    """The loads of a producer, each with the mbarriers by which it waits until the slot is empty."""
    for part in i.commands(produce):
        waited = ""
        for inner in part.commands if isinstance(part, i.Sequence) else ():
            if isinstance(inner, i.WaitBarrier) and isinstance(inner.barrier, i.Access):
                waited = inner.barrier.buffer
            elif waited:
                yield from ((waited, c) for c in i.commands(inner) if isinstance(c, i.BulkCopy))


def guarded_rings(body: i.Command) -> Mapping[str, frozenset[str]]:
    """For each buffer of mbarriers that loads wait for: the rings that are filled then."""
    found: dict[str, frozenset[str]] = {}
    for roles in i.commands(body):
        if isinstance(roles, i.WarpSpecialise):
            for barriers, copy in guarded_copies(roles.produce):
                if isinstance(copy.target, i.Tile):
                    found[barriers] = found.get(barriers, frozenset()) | {copy.target.buffer}
    return found


def release_of(command: i.Command) -> i.Arrive | None:
    """The release of a slot, which may depend on a condition."""
    match command:
        case i.Arrive(release=True):
            return command
        case i.When(body=body):
            return release_of(body)
        case _:
            return None


def multiplies(command: i.Command) -> bool:
    return any(isinstance(c, i.Wgmma) for c in i.commands(command))


def only_multiplies(command: i.Command) -> bool:
    """Whether a command starts products, and does nothing else: it becomes one commit group."""
    kinds = i.Wgmma | i.For | i.Sequence
    return multiplies(command) and all(isinstance(c, kinds) for c in i.commands(command))


def is_warpgroup_loop(command: i.Command) -> bool:
    return isinstance(command, i.ParallelFor) and command.level is i.Level.WARPGROUP


@dataclass(frozen=True)
class _Analysis:
    known: InFlight

    def go(self, command: i.Command, state: State, here: _Here) -> State:
        """The state after the command."""
        if not multiplies(command):
            return self._other(command, state, here)
        if not isinstance(command, i.Sequence):
            busy = {use for group in state for use in group.registers}
            if only_multiplies(command):
                mine = self._uses(command, here)
                busy = {use for use in busy if _touched(use, mine, False)}
            self.known.busy.setdefault(id(command), set()).update(use.buffer for use in busy)
            if only_multiplies(command):
                return self._started(command, state, here)
        match command:
            case i.Sequence(parts):
                for part in parts:
                    state = self.go(part, state, here)
                return state
            case i.For():
                return self._loop(command, state, here)
            case i.ParallelFor() if not is_warpgroup_loop(command):
                return self._iterations(command, state, here, None)
            case i.ParallelFor():
                return self.go(command.body, state, _inside(command, here))
            case i.When(_, _, body):
                return _joined(state, self.go(body, state, here))
            case i.New(space, name, _, body):
                self.known.scope.append(name)
                after = self.go(body, state, here)
                self.known.scope.pop()
                return self._end(command, after, {name}) if space is Space.SHARED else after
            case i.WarpSpecialise():
                after = self.go(command.consume, state, here)
                return self._end(command, after, {u.buffer for g in after for u in g.operands})
            case _:
                for part in i.inner(command):
                    state = self.go(part, state, here)
                return state

    # --- groups ---------------------------------------------------------------------------------------

    def _started(self, products: i.Command, state: State, here: _Here) -> State:
        """A new group, behind all others."""
        inner = [loop for c in i.commands(products) if (loop := loop_of(c)) is not None]
        registers: set[Use] = set()
        operands: set[Use] = set()
        tiles = {id(a) for c in i.commands(products) for a in i.accesses(c) if isinstance(a, i.Tile)}
        names = {a.buffer for c in i.commands(products) for a in i.accesses(c) if id(a) in tiles}
        for use in here.uses(products):
            over = reduce(lambda u, loop: u.after(loop.index), inner, use)
            (operands if use.buffer in names else registers).add(over)
        older = {group: min(age + 1, OLDEST) for group, age in state.items()}
        return {**older, Group(registers=frozenset(registers), operands=frozenset(operands)): 0}

    def _other(self, command: i.Command, state: State, here: _Here) -> State:
        """A command without products: which groups does it have to wait for?"""
        if isinstance(command, i.Sequence):
            for part in command.commands:
                state = self._other(part, state, here)
            return state
        if (release := release_of(command)) is not None:
            return self._release(release, state, here)
        if not any(self._buffers(command) & {u.buffer for p in g.parts for u in p} for g in state):
            return state
        mine = self._uses(command, here)
        found = {group: age for group, age in state.items() if _conflict(group, mine)}
        if not found:
            return state
        if isinstance(command, i.New | i.Define) and not self._waits_at_once(command, state, here):
            self.known.entered.add(id(command))
            return self._other(command.body, state, here)
        need = self.known.needs.setdefault(id(command), Need(OLDEST))
        need.pending = min(need.pending, *found.values())
        for group, age in found.items():
            for name in {u.buffer for u in group.registers if _touched(u, mine, False)}:
                need.buffers[name] = min(age, need.buffers.get(name, age))
        over = {group: age for group, age in state.items() if age >= need.pending}
        need.operands |= {u.buffer for group in over for u in group.operands}
        for group, age in over.items():
            for use in filter(self._is_operand, group.registers):
                closed = tuple(loop for loop in use.around if loop not in here.around)
                need.registers[replace(use, around=closed)] = age

        def named(use: Use) -> bool:
            return self._is_operand(use) or any(self._covers(u, use) for u in mine)

        return _complete(state, need.pending, named)

    def _is_operand(self, use: Use) -> bool:
        """Whether registers, which are declared here, are an operand: no further product adds to them."""
        return not use.written and use.buffer in self.known.scope

    def _waits_at_once(self, command: i.Command, state: State, here: _Here) -> bool:
        """Whether the first thing that a declaration does has to wait."""
        match command:
            case i.New() | i.Define():
                return self._waits_at_once(command.body, state, here)
            case i.Sequence((first, *_)):
                return self._waits_at_once(first, state, here)
            case _:
                mine = self._uses(command, here)
                return any(_conflict(group, mine) for group in state)

    def _release(self, arrive: i.Arrive, state: State, here: _Here) -> State:
        slot = arrive.barrier
        if not isinstance(slot, i.Access):
            return state
        rings = self.known.guarded.get(slot.buffer, frozenset())
        mine = frozenset(
            replace(use, buffer=ring, written=True) for use in here.uses(arrive) for ring in rings
        )
        ages = [age for group, age in state.items() if any(_touched(u, mine, True) for u in group.operands)]
        number = id(arrive)
        if not ages:
            return state
        age = self.known.released[number] = min(self.known.released.get(number, OLDEST), *ages)
        return _complete(state, age, lambda _: False) if number in self.known.at_once else state

    def _end(self, command: i.Command, state: State, names: set[str]) -> State:
        """Where a buffer in shared memory ends, others may take its place."""
        found = {g: age for g, age in state.items() if any(u.buffer in names for u in g.operands)}
        return self._ended(command, state, found)

    def _settled(self, loop: i.For | i.ParallelFor, state: State) -> State:
        """The sums that an iteration also uses by other commands, such as scaling, are complete at its end.

        The GPU's compiler moves them between registers there, and serialises products that are under way.
        """
        if not isinstance(loop, i.For):
            return state
        commands = list(i.commands(loop.body))
        sums = {a.buffer for c in commands if isinstance(c, i.Wgmma) for a in i.accesses(c.target)}
        others = (c for c in commands if not isinstance(c, i.Wgmma))
        scaled = sums & {a.buffer for c in others for a in i.accesses(c)} - _declared(loop)
        found = {g: age for g, age in state.items() if any(u.buffer in scaled for u in g.registers)}
        return self._ended(loop, state, found)

    def _ended(self, command: i.Command, state: State, found: State) -> State:
        """The state once the groups found are complete, at the end of a command."""
        if not found:
            return state
        need = self.known.ends.setdefault(id(command), Need(OLDEST))
        need.pending = min(need.pending, *found.values())
        for group, age in state.items():
            if age >= need.pending:
                for use in sorted(group.registers, key=str):
                    need.registers[use] = min(age, need.registers.get(use, age))
                need.operands |= {u.buffer for u in group.operands}
        return _complete(state, need.pending, lambda use: True)

    def _buffers(self, command: i.Command) -> frozenset[str]:
        if id(command) not in self.known.buffers:
            self.known.buffers[id(command)] = frozenset(a.buffer for a in i.accesses_in(command))
        return self.known.buffers[id(command)]

    def _uses(self, command: i.Command, here: _Here) -> Uses:
        key = (id(command), here)
        if key not in self.known.found:
            self.known.found[key] = frozenset(here.uses(command))
        return self.known.found[key]

    def _covers(self, use: Use, other: Use) -> bool:
        """Whether a use touches all registers of another one."""
        if use.buffer != other.buffer:
            return False
        count = self.known.extents.get(use.buffer, 0)
        mine, yours = use.indices[:count], other.indices[:count]
        loops = {loop.index: loop for loop in use.around}
        others = {name: loop for loop in other.around for name in (loop.index, ANY + loop.index)}
        for a, b in zip(mine, yours, strict=False):
            left, right = loops.get(str(a)), others.get(str(b))
            alike = left is not None and right is not None and (left.workers, left.count) == (
                right.workers, right.count
            )  # fmt: skip
            if a != b and not alike:
                return False
        return True

    # --- loops ----------------------------------------------------------------------------------------

    def _loop(self, loop: i.For, state: State, here: _Here) -> State:
        count = loop.count.value
        if loop.unroll and count is not None and count <= UNROLLED:
            own = _declared(loop)
            for number in range(count):
                state = self.go(loop.body, state, replace(here, at=(*here.at, (loop.index, number))))
                state = _lost(state, own)
            return state
        after = self._iterations(loop, state, here, count)
        ended = _changed(after, lambda use: use.substitute(loop.index, loop.count - 1))
        return ended if at_least(loop.count, 1) else _joined(state, ended)

    def _iterations(self, loop: i.For | i.ParallelFor, state: State, here: _Here, count: int | None) -> State:
        """The state after one of the iterations that may be the last one."""
        inside = _inside(loop, here)
        own = _declared(loop)
        previous = variable(loop.index) - 1
        ends: list[State] = []
        seen: list[State] = []
        while state not in seen and len(ends) != count:
            seen.append(state)
            end = self._settled(loop, self.go(loop.body, state, inside))
            ends.append(end)
            if len(ends) < ITERATIONS and isinstance(loop, i.For):
                state = _changed(end, lambda use: use.substitute(loop.index, previous))
            else:
                end = _changed(end, lambda use: use.after(loop.index))
                state = _joined(state, end)
            state = _lost(state, own)
        return ends[-1] if count is not None else reduce(_joined, ends)


def _declared(loop: i.For | i.ParallelFor) -> set[str]:
    return {c.name for c in i.commands(loop.body) if isinstance(c, i.New)}


def _inside(loop: i.For | i.ParallelFor, here: _Here) -> _Here:
    made = loop_of(loop)
    return here if made is None else replace(here, around=(*here.around, made))


def _changed(state: State, change: Callable[[Use], Use]) -> State:
    """The state with another use for each."""
    changed: dict[Group, int] = {}
    for group, age in state.items():
        registers, lost, operands = (frozenset(map(change, part)) for part in group.parts)
        new = Group(registers, lost, operands, group.over)
        changed[new] = min(age, changed.get(new, age))
    return changed


def _lost(state: State, own: set[str]) -> State:
    """The state at the start of another iteration, which declares its own registers anew.

    The compiler may choose for any of them one that a product still reads.
    """
    changed: dict[Group, int] = {}
    for group, age in state.items():
        gone = frozenset(use for use in group.registers if use.buffer in own)
        anew = frozenset(replace(use, indices=()) for use in gone)
        lost = group.lost if group.over else group.lost | anew
        new = replace(group, registers=group.registers - gone, lost=lost)
        if any(new.parts):
            changed[new] = min(age, changed.get(new, age))
    return changed


def _joined(left: State, right: State) -> State:
    """What may be under way after one of two commands."""
    ages = {**right, **left}
    return {group: min(left.get(group, age), right.get(group, age)) for group, age in ages.items()}


def _conflict(group: Group, mine: Uses) -> bool:
    registers = (*group.registers, *group.lost)
    return any(_touched(u, mine, False) for u in registers) or any(
        _touched(u, mine, True) for u in group.operands
    )


def _touched(use: Use, mine: Uses, written: bool) -> bool:
    """Whether one of these uses may touch what a product uses; if `written`, by writing it."""
    return any(
        other.buffer == use.buffer and (other.written or not written) and not _distinct(use, other)
        for other in mine
    )


def _distinct(use: Use, other: Use) -> bool:
    """Whether two uses of a warpgroup are of different elements: an open loop is in the same iteration."""
    return distinct(
        use, other, frozenset(loop.index for loop in use.around) & {loop.index for loop in other.around}
    )


def _complete(state: State, pending: int, named: Callable[[Use], bool]) -> State:
    """The state after a wait for at most `pending` groups that names registers."""
    changed: dict[Group, int] = {}
    for group, age in state.items():
        if age >= pending:
            kept = frozenset(use for use in group.registers if not named(use))
            group = Group(registers=kept, over=True)
        if any(group.parts):
            changed[group] = min(age, changed.get(group, age))
    return changed
