"""Synchronises wgmma instructions: inserts fences, commits and waits, and releases the slots of rings.

Products that nothing separates are a commit group. What has to wait, and for how many groups, follows from
the uses of accumulators, operands in registers and slots (see `analysis.in_flight`):

    products ; commit ; … ; wait for at most N groups ; use

A release hands a slot back to the warpgroup that loads. It takes place once the products that read the slot
are complete, but never makes a warpgroup wait for all of its products: it is put off until others are under
way, if need be to the next iteration of the loop, or until something else has to wait for them.

    for k < n. (products k ; release k)  =
    for k < n. (products k ; commit ; wait for at most 1 ; when (0 < k) release (k-1)) ; wait ; release (n-1)

Registers that other instructions have written are fenced before the first product that uses them: before all
loops in which only products use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, inner_element
from codegen.passes.analysis.dependences import ANY, WARPGROUPS, Use
from codegen.passes.analysis.in_flight import (
    InFlight,
    Need,
    guarded_rings,
    in_flight,
    is_warpgroup_loop,
    multiplies,
    only_multiplies,
    release_of,
)
from codegen.passes.analysis.wgmma_operands import check_operands
from codegen.passes.late_waits import late_waits
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, at_least, constant, variable
from rise.types import Data


def wgmma_sync(function: i.Function) -> i.Function:
    """The pass."""
    if not multiplies(function.body):
        return function
    news = {c.name: c for c in i.commands(function.body) if isinstance(c, i.New)}
    check_operands(function.body, news)
    guarded = guarded_rings(function.body)
    body = _prepared(function.body, guarded, _consumers(function.body))
    types = {name: new.type for name, new in news.items()}
    at_once: frozenset[int] = frozenset()
    while True:
        inserter = _Inserter(in_flight(body, guarded, at_once), types, _consumers(body))
        done, owed = inserter.go(body, [], frozenset())
        if inserter.in_vain <= at_once:
            return replace(function, body=late_waits(i.sequence(done, *inserter.flushed(owed))))
        at_once |= inserter.in_vain


# --- slots, and who guards them ---------------------------------------------------------------------------


def _consumers(body: i.Command) -> int:
    return max((c.consumers for c in i.commands(body) if isinstance(c, i.WarpSpecialise)), default=0)


def _prepared(command: i.Command, guarded: Mapping[str, frozenset[str]], consumers: int) -> i.Command:
    """Each release directly after the last command that reads the slot; adjacent products together."""
    command = i.with_inner(command, tuple(_prepared(c, guarded, consumers) for c in i.inner(command)))
    if not isinstance(command, i.Sequence):
        return command
    parts: list[i.Command] = []
    for part in command.commands:
        if isinstance(part, i.Arrive) and part.release and isinstance(part.barrier, i.Access):
            rings = guarded.get(part.barrier.buffer, frozenset())
            readers = [n for n, other in enumerate(parts) if _reads(other, rings)]
            if readers:
                alone = len(readers) == 1
                parts[readers[-1]] = _behind(parts[readers[-1]], part, rings, consumers, alone)
                continue
        if parts and (merged := _together(parts[-1], part)) is not None:
            parts[-1] = merged
        else:
            parts.append(part)
    return i.sequence(*parts)


def _reads(command: i.Command, buffers: frozenset[str]) -> bool:
    return any(access.buffer in buffers for access in i.accesses_in(command))


def _behind(
    command: i.Command, release: i.Command, rings: frozenset[str], consumers: int, alone: bool
) -> i.Command:
    """The command, with a release of a slot behind the last part of it that reads one.

    alone: nothing before the command reads it. In a loop the release is then a part of the last iteration;
           where there is none, nothing has to be waited for.

    Where products before the command read the slot, too, the release stands behind all of a command that
    starts none: it has to wait for these products, which are not under way inside of that command.
    """
    match command:
        case _ if not alone and not multiplies(command):
            return i.sequence(command, release)
        case i.For(index, count, unroll=False) if alone and not only_multiplies(command.body):
            last = i.When(count, variable(index) + 2, release)
            loop = replace(command, body=_behind(command.body, last, rings, consumers, True))
            if at_least(count, 1):
                return loop
            unused = i.rebuild(release, i.Arrive, lambda arrive: replace(arrive, release=False))
            return i.sequence(loop, i.When(count, constant(1), unused))
        case i.Sequence(parts):
            *before, number = (n for n, part in enumerate(parts) if _reads(part, rings))
            inside = _behind(parts[number], release, rings, consumers, alone and not before)
            return i.sequence(*parts[:number], inside, *parts[number + 1 :])
        case i.New() | i.Define():
            return replace(command, body=_behind(command.body, release, rings, consumers, alone))
        case i.ParallelFor(count=count) if is_warpgroup_loop(command) and count == constant(consumers):
            return replace(command, body=_behind(command.body, release, rings, consumers, alone))
        case _:
            return i.sequence(command, release)


def _together(first: i.Command, second: i.Command) -> i.Command | None:
    """Products of the same warpgroups, one after the other, as the body of one loop over warpgroups."""
    if not (isinstance(first, i.ParallelFor) and isinstance(second, i.ParallelFor)):
        return None
    loops = is_warpgroup_loop(first) and is_warpgroup_loop(second) and first.count == second.count
    if not loops or not only_multiplies(first.body) or first.execution or second.execution:
        return None
    parts = second.body.commands if isinstance(second.body, i.Sequence) else (second.body,)
    if not only_multiplies(parts[0]):
        return None
    renamed = _at(second.body, {NatVariable(second.index): variable(first.index)})
    return replace(first, body=i.sequence(first.body, renamed))


def _at(command: i.Command, values: dict[Atom, Nat]) -> i.Command:
    return i.rebuild(command, Nat, lambda n: n.substitute(values))


# --- insertion --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Owed:
    """A release that has to wait for products, and the number of groups committed after these.

    number: identifies the release that the program has
    late:   it belongs to the previous iteration
    key:    identifies this one, with its condition
    """

    release: i.Command
    age: int
    number: int
    late: bool = False
    key: object = field(default_factory=object)


@dataclass(frozen=True)
class _Inserter:
    """The state of the traversal.

    known:     what is under way at each command
    types:     those of buffers
    consumers: how many warpgroups release each slot
    in_vain:   the releases that are put off to the next iteration, where no product starts before the wait
    """

    known: InFlight
    types: Mapping[str, Data]
    consumers: int
    in_vain: set[int] = field(default_factory=set)

    def go(
        self, command: i.Command, owed: list[_Owed], fenced: frozenset[str]
    ) -> tuple[i.Command, list[_Owed]]:
        """The command, given the releases that are owed before it and the registers that are fenced."""
        parts = command.commands if isinstance(command, i.Sequence) else (command,)
        out: list[i.Command] = []
        for number, part in enumerate(parts):
            need = self.known.needs.get(id(part))
            if need is not None:
                out += self._waits(need, part)
                if need.pending == 0:
                    self.in_vain.update(each.number for each in owed if not each.age and each.late)
                owed = _paid(out, owed, need.pending)
            if (release := release_of(part)) is not None:
                owed = self._release(release, part, out, owed)
            elif not multiplies(part) and id(part) not in self.known.entered:
                out.append(part)
            elif only_multiplies(part):
                before = parts[number - 1] if number else i.Skip()
                if need is not None or not only_multiplies(before):
                    out += self._fences_of_run(parts[number:], fenced)
                out += [part, i.WgmmaCommit()]
                owed = [replace(each, age=each.age + 1) for each in owed]
                owed = self._after_run(parts[number + 1 :], out, owed)
            elif isinstance(part, i.For):
                names, fences = self._fences(part, fenced)
                inside, owed = self._loop(part, owed, fenced | names)
                out += [*fences, inside]
            else:
                inside, owed = self._inside(part, owed, fenced)
                out.append(inside)
        return i.sequence(*out), owed

    def flushed(self, owed: list[_Owed]) -> list[i.Command]:
        """All that is owed, after a wait for it."""
        if not owed:
            return []
        releases = _those_of_every_time_first(each.release for each in owed)
        return [i.WgmmaWait(min(each.age for each in owed)), *releases]

    # --- waits and releases -----------------------------------------------------------------------

    def _waits(self, need: Need, command: i.Command) -> list[i.Command]:
        """The wait before a command, which names the registers that it uses."""
        operands = tuple(sorted(need.operands))

        ages = need.buffers if need.pending in need.buffers.values() else {}

        def wait(access: i.Access) -> i.Command:
            return i.WgmmaWait(ages.get(access.buffer, need.pending), (access,), operands)

        named = self._for_each_used(command, need.buffers, wait)
        free = (use for use in sorted(need.registers, key=str) if use.buffer not in need.buffers)
        named += [self._for_use(use, need.pending, operands) for use in free]
        return _different(named) or [i.WgmmaWait(need.pending, (), operands)]

    def _for_each_used(
        self, command: i.Command, buffers: Mapping[str, int], make: Callable[[i.Access], i.Command]
    ) -> list[i.Command]:
        """make(fragment) for the fragments that a command uses, in the loops that select them."""
        found: list[i.Command] = []
        for access in i.accesses(command):
            if access.buffer in buffers and isinstance(access, i.Access):
                found.append(make(self._fragment(access)))
        for part in i.inner(command):
            found += self._for_each_used(part, buffers, make)
        match command:
            case i.For(index) | i.ParallelFor(_, _, index):
                found = [_around(command, made) if index in _mentioned(made) else made for made in found]
            case i.ForFragment(_, index):
                found = [self._for_all(made, index) if index in _mentioned(made) else made for made in found]
        return list({_canonical(made): made for made in found}.values())

    def _for_all(self, made: i.Command, index: str) -> i.Command:
        """What is made of a fragment that the number of an element selects, for all fragments."""
        (access,) = i.accesses_in(made)
        sizes = dimensions(self.types[access.buffer])
        numbers = [n for n, value in enumerate(access.indices) if index in value.variables]
        if not isinstance(access, i.Access) or len(numbers) != 1:
            raise TranslationError("R0799", "internal: an element selects fragments in several dimensions")
        (number,) = numbers
        indices = (*access.indices[:number], variable(index), *access.indices[number + 1 :])
        one = i.rebuild(made, i.Access, lambda a: replace(a, indices=indices) if a == access else a)
        return i.For(index, sizes[number], one, True, label="accumulators")

    def _fragment(self, access: i.Access) -> i.Access:
        """The fragment to which a register belongs."""
        type_ = self.types[access.buffer]
        return i.Access(access.buffer, access.indices[: len(dimensions(type_))], inner_element(type_))

    def _release(
        self, release: i.Arrive, whole: i.Command, out: list[i.Command], owed: list[_Owed]
    ) -> list[_Owed]:
        """whole: the release with its condition"""
        age = self.known.released.get(id(release))
        if age == 0 and id(release) not in self.known.at_once:
            return [*owed, _Owed(whole, 0, id(release))]
        if age is not None:
            out.append(i.WgmmaWait(age))
            owed = _paid(out, owed, age)
        out.append(whole)
        return owed

    def _after_run(
        self, following: tuple[i.Command, ...], out: list[i.Command], owed: list[_Owed]
    ) -> list[_Owed]:
        """Products have been started: what was owed before them is due, unless the same wait follows anyway.

        following: the rest of the sequence. A wait that only releases and declarations precede follows.
        """
        other = next((part for part in following if release_of(part) is None), i.Skip())
        need = self._first_need(other)
        if need is None and following and only_multiplies(following[0]):
            return owed
        due = [each.age for each in owed if each.age]
        if not due or (need is not None and need.pending == min(due)):
            return owed
        out.append(i.WgmmaWait(min(due)))
        return _paid(out, owed, min(due))

    def _first_need(self, command: i.Command) -> Need | None:
        """The wait before a command, or before the first command of the scope that it opens."""
        match command:
            case i.New() | i.Define() if id(command) not in self.known.needs:
                return self._first_need(command.body)
            case i.Sequence((first, *_)):
                return self._first_need(first)
            case _:
                return self.known.needs.get(id(command))

    # --- fences -----------------------------------------------------------------------------------

    def _fences_of_run(self, parts: tuple[i.Command, ...], fenced: frozenset[str]) -> list[i.Command]:
        """The fence before products that follow each other, after all registers that it is for."""
        found: list[i.Command] = []
        for number, part in enumerate(parts):
            if not only_multiplies(part) or (number and id(part) in self.known.needs):
                break
            names, fences = self._fences(part, fenced)
            fenced |= names
            found += fences
        if len(found) == 1 and isinstance(found[0], i.WgmmaFence):
            return found
        pinned = [i.rebuild(part, i.WgmmaFence, lambda fence: replace(fence, pins=True)) for part in found]
        return [*pinned, i.WgmmaFence()]

    def _fences(self, part: i.Command, fenced: frozenset[str]) -> tuple[frozenset[str], list[i.Command]]:
        """The registers that only products use in a command, if they are not fenced yet, and their fences."""
        products = [c for c in i.commands(part) if isinstance(c, i.Wgmma)]
        registers = {a.buffer for c in products for a in (c.target, c.a) if isinstance(a, i.Access)}
        declared = {c.name for c in i.commands(part) if isinstance(c, i.New)}
        used = {a.buffer for c in i.commands(part) if not isinstance(c, i.Wgmma) for a in i.accesses(c)}
        busy = self.known.busy.get(id(part), set())
        names = registers - declared - used - busy - fenced

        def fence(product: i.Wgmma) -> i.Command:
            named = (a for a in (product.target, product.a) if isinstance(a, i.Access) and a.buffer in names)
            return i.sequence(*(i.WgmmaFence((access,)) for access in named))

        fences = _for_each(part, fence) if names else i.Sequence(())
        return frozenset(names), list(fences.commands if isinstance(fences, i.Sequence) else (fences,))

    # --- nested commands --------------------------------------------------------------------------

    def _inside(
        self, command: i.Command, owed: list[_Owed], fenced: frozenset[str]
    ) -> tuple[i.Command, list[_Owed]]:
        match command:
            case i.New() | i.Define():
                body, owed = self.go(command.body, owed, fenced)
                body, owed = self._ended(command, body, owed)
                ended = [each for each in owed if command.name in _numbers(each.release)]
                body = i.sequence(body, *self.flushed(ended))
                return replace(command, body=body), [each for each in owed if each not in ended]
            case i.ParallelFor(count=count) if is_warpgroup_loop(command) and (
                not self.consumers or count == constant(self.consumers)
            ):
                body, owed = self.go(command.body, owed, fenced)
                return replace(command, body=body), owed
            case i.WarpSpecialise():
                body, after = self._ended(command, *self.go(command.consume, [], fenced))
                return replace(command, consume=i.sequence(body, *self.flushed(after))), owed
            case i.When() | i.ParallelFor():
                body, after = self.go(command.body, [], fenced)
                return replace(command, body=i.sequence(body, *self.flushed(after))), owed
            case _:
                raise TranslationError("R0799", f"internal: products in a {type(command).__name__}")

    def _ended(self, scope: i.Command, body: i.Command, owed: list[_Owed]) -> tuple[i.Command, list[_Owed]]:
        """The body of a scope, and the wait at its end, which names registers of products."""
        need = self.known.ends.get(id(scope))
        if need is None:
            return body, owed
        operands = tuple(sorted(need.operands))
        named: dict[i.Command, i.Command] = {}
        outside = {use: age for use, age in need.registers.items() if use.buffer not in _declared(body)}
        for use, age in sorted(outside.items(), key=lambda item: -item[1]):
            made = self._for_use(use, age, operands)
            named[_canonical(made)] = made
        out: list[i.Command] = list(named.values())
        if need.pending not in outside.values():
            out.append(i.WgmmaWait(need.pending, (), operands))
        owed = _paid(out, owed, need.pending)
        return i.sequence(body, *out), owed

    def _for_use(self, use: Use, pending: int, operands: tuple[str, ...]) -> i.Command:
        """The wait that names the fragments of a use, in the loops that select them."""
        values: dict[Atom, Nat] = {NatVariable(ANY + loop.index): variable(loop.index) for loop in use.around}
        indices = tuple(n.substitute(values) for n in use.indices)
        access = i.Access(use.buffer, indices, inner_element(self.types[use.buffer]))
        made: i.Command = i.WgmmaWait(pending, (self._fragment(access),), operands)
        for loop in reversed(use.around):
            if loop.index in _mentioned(made):
                if loop.workers == WARPGROUPS:
                    made = i.ParallelFor(i.Level.WARPGROUP, 0, loop.index, loop.count, made)
                else:
                    made = i.For(loop.index, loop.count, made, True, label="accumulators")
        return made

    def _loop(self, loop: i.For, owed: list[_Owed], fenced: frozenset[str]) -> tuple[i.Command, list[_Owed]]:
        """Releases that are owed at the end of an iteration take place in the next one, or after the loop."""
        k = NatVariable(loop.index)
        first = at_least(loop.count, 1)
        bare, late = self._ended(loop, *self.go(loop.body, [], fenced))
        before = [
            _Owed(
                i.When(constant(0), variable(loop.index), _at(each.release, {k: variable(loop.index) - 1})),
                each.age,
                each.number,
                late=True,
            )
            for each in late
        ]
        entering = [
            replace(each, release=i.When(variable(loop.index), constant(1), each.release)) for each in owed
        ]
        owed_before = [*(entering if first else []), *before]
        body, after = self._ended(loop, *self.go(loop.body, owed_before, fenced))
        passed = {each.key for each in (*entering, *before)}
        if any(each.key in passed for each in after) or (owed and not first):
            # no product of an iteration follows which would make them due
            body = i.sequence(bare, *self.flushed(late))
            return i.sequence(*self.flushed(owed), replace(loop, body=body)), []
        done = [replace(each, release=_last(each.release, loop)) for each in after]
        return replace(loop, body=body), done


def _paid(out: list[i.Command], owed: list[_Owed], pending: int) -> list[_Owed]:
    """Releases what a wait for at most `pending` groups has completed; the rest remains owed."""
    out += _those_of_every_time_first(each.release for each in owed if each.age >= pending)
    return [each for each in owed if each.age < pending]


def _those_of_every_time_first(releases: Iterable[i.Command]) -> list[i.Command]:
    """Releases of different slots, those under a condition last.

    They are executed in this order, and NVIDIA's assembler computes conditions, and what follows them, late:
    the slot of the keys would be handed back only when the weights are there.
    """
    return sorted(releases, key=lambda release: isinstance(release, i.When))


def _last(release: i.Command, loop: i.For) -> i.Command:
    """A release of the last iteration, if there is one."""
    last = _at(release, {NatVariable(loop.index): loop.count - 1})
    return last if at_least(loop.count, 1) else i.When(constant(0), loop.count, last)


def _declared(command: i.Command) -> set[str]:
    return {c.name for c in i.commands(command) if isinstance(c, i.New)}


def _mentioned(command: i.Command) -> set[str]:
    return {name for a in i.accesses_in(command) for n in a.indices for name in n.variables}


def _numbers(command: i.Command) -> set[str]:
    """The numbers that a command uses."""
    return {name for n in i.own(command, Nat) for name in n.variables} | {
        name for part in i.inner(command) for name in _numbers(part)
    }


def _around(loop: i.For | i.ParallelFor, body: i.Command) -> i.Command:
    if isinstance(loop, i.For):
        return replace(loop, body=body, unroll=True, role=i.Role.SEQUENCE, label="accumulators")
    return replace(loop, body=body)


def _canonical(command: i.Command, depth: int = 0) -> i.Command:
    """The command with its loops' indices named by depth, to tell equal ones."""
    if not isinstance(command, i.For | i.ParallelFor):
        return command
    name = f"#{depth}"
    body = _canonical(_at(command.body, {NatVariable(command.index): variable(name)}), depth + 1)
    if isinstance(command, i.For):
        return i.For(name, command.count, body)
    return i.ParallelFor(command.level, command.dimension, name, command.count, body)


def _for_each(command: i.Command, make: Callable[[i.Wgmma], i.Command]) -> i.Command:
    """make(product) for each product, inside the loops whose indices `make` refers to."""
    match command:
        case i.Wgmma():
            return make(command)
        case i.For(index) | i.ParallelFor(_, _, index):
            inner = _for_each(command.body, make)
            return _around(command, inner) if index in _mentioned(inner) else inner
        case _:
            return i.sequence(*_different(_for_each(c, make) for c in i.inner(command)))


def _different(commands: Iterable[i.Command]) -> list[i.Command]:
    return list({_canonical(command): command for command in commands}.values())
