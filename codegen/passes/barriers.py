"""Barriers, computed from what is read and written in shared memory between parallel loops.

Two commands conflict if one writes a place in shared memory that the other accesses. Between them
the workers that share the buffer have to meet: the block, or the warp where the buffer is a warp's own.
Commands in a loop also meet those of the iteration before. Places are told apart by the outermost index
where it is the same for all threads: so the slots of a ring (`k % 3` and `(k + 2) % 3`) are. A thread
that reads what it wrote needs no barrier, but who wrote is not tracked here: what is written by one
command and read by another is taken to be another thread's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from codegen import imperative as i
from codegen.passes.allocate import Region
from rise.errors import TranslationError
from rise.nat import Atom, Facts, Nat, NatVariable, Operation, at_least, constant, variable
from rise.types import Space

# by how many iterations an earlier one was earlier: a size that is 1 or more
EARLIER, MANY, ONE = "earlier ", constant(2**31), constant(1)


@dataclass(frozen=True)
class Use:
    """A buffer in shared memory is read or written, at a place known by its outermost index or not.

    mapped:  by an earlier iteration of a map's loop, which writes other elements than this one
    copying: by an asynchronous copy that has not been waited for: a barrier does not end that
    """

    buffer: str
    place: Nat | None
    written: bool
    mapped: bool = False
    copying: bool = False

    def conflicts(self, later: Use) -> bool:
        """With a use of the same buffer."""
        return (
            (self.written or later.written)
            and not (self.mapped and later.written)
            and not _distinct(self.place, later.place)
        )

    def at(self, index: Nat | None) -> Use:
        return replace(self, place=index)


def _distinct(left: Nat | None, right: Nat | None) -> bool:
    """Whether two indices certainly differ."""
    if left is None or right is None:
        return False
    difference = left - right
    facts = Facts()
    for name in difference.variables:
        if name.startswith(EARLIER):
            facts = facts.with_range(name, 1, MANY)
    if at_least(left - right, 1, facts) or at_least(right - left, 1, facts):
        return True
    return any(_differ_modulo(left, right, m) for m in (_modulus(left), _modulus(right)) if m)


def _differ_modulo(left: Nat, right: Nat, modulus: int) -> bool:
    """Equal numbers are congruent; these differ by a number that is no multiple."""
    difference = (_dividend(left, modulus) - _dividend(right, modulus)).value
    return difference is not None and difference % modulus != 0


def _modulus(value: Nat) -> int | None:
    """m of a % m."""
    base = _single_atom(value)
    return base.right.value if isinstance(base, Operation) and base.operator == "remainder" else None


def _dividend(value: Nat, modulus: int) -> Nat:
    """A number congruent to the value: a of a % m."""
    base = _single_atom(value)
    return base.left if isinstance(base, Operation) and _modulus(value) == modulus else value


def _single_atom(value: Nat) -> Atom | None:
    match value.terms:
        case ((((base, 1),), 1),):
            return base
        case _:
            return None


Uses = frozenset[Use]
NOTHING: Uses = frozenset()


def after_barrier(uses: Uses) -> Uses:
    return frozenset(use for use in uses if use.copying)


def waited(uses: Uses) -> Uses:
    return frozenset(replace(use, copying=False) for use in uses)


def insert_barriers(function: i.Function, regions: Mapping[str, Region]) -> i.Function:
    """The pass. `regions` are those of the buffers in shared memory: they may overlap."""
    body, _ = _Inserting({}, frozenset(), regions).go(function.body, NOTHING, None)
    return replace(function, body=body)


@dataclass(frozen=True)
class _Inserting:
    """`scopes` are the buffers in shared memory and who shares each, `uniform` the indices of loops
    that all threads run alike, `regions` where in shared memory the buffers are."""

    scopes: Mapping[str, i.Scope]
    uniform: frozenset[str]
    regions: Mapping[str, Region]

    def go(self, command: i.Command, before: Uses, inside: i.Level | None) -> tuple[i.Command, Uses]:
        """The command with its barriers, and what is pending after it."""
        match command:
            case i.Sequence(parts):
                done: list[i.Command] = []
                for part in parts:
                    new, before = self.go(part, before, inside)
                    done.append(new)
                return i.sequence(*done), before
            case i.New(space, name, _, body) if space is Space.SHARED:
                scope = i.Scope.WARP if inside is i.Level.WARP else i.Scope.BLOCK
                inner = replace(self, scopes={**self.scopes, name: scope})
                body, after = inner.go(body, before, inside)
                return replace(command, body=body), after
            case i.New():
                body, after = self.go(command.body, before, inside)
                return replace(command, body=body), after
            case i.Wait():
                return command, waited(before)
            case i.For():
                inner = replace(self, uniform=self.uniform | {command.index})
                if inside is None and inner._meets(command, before):
                    loop, after = inner._loop(command, after_barrier(before), inside)
                    return i.sequence(i.Barrier(i.Scope.BLOCK), loop), after
                return inner._loop(command, before, inside)
            case i.ParallelFor(level) if level in (i.Level.BLOCK, i.Level.WARP, i.Level.GRID):
                return self._workers(command, before)
            case _:
                return self._command(command, before, inside)

    def _meets(self, loop: i.For, before: Uses) -> bool:
        """Whether a barrier before a loop is as good as one in every iteration."""
        uses = self._uses(loop.body)
        met = {earlier for earlier in before if any(self._conflict(earlier, use) for use in uses)}
        return bool(met) and not any(use.copying for use in met)

    def _loop(self, loop: i.For, before: Uses, inside: i.Level | None) -> tuple[i.Command, Uses]:
        """A loop's body follows itself: what is pending at its end is pending at its start."""
        _, once = self.go(loop.body, NOTHING, inside)
        if loop.pattern.startswith("map"):
            once = frozenset(replace(u, mapped=u.written and u.buffer in self.scopes) for u in once)
        body, after = self.go(loop.body, before | _earlier(once, loop.index), inside)
        if not any(isinstance(c, i.Barrier) for c in i.commands(body)):
            # nothing separates an iteration from those long before it
            long_before = variable(EARLIER + loop.index)
            body, after = self.go(loop.body, before | _earlier(once, loop.index, long_before), inside)
        return replace(loop, body=body), _anywhere(after, loop.index)

    def _workers(self, loop: i.ParallelFor, before: Uses) -> tuple[i.Command, Uses]:
        inside = loop.level if loop.level is i.Level.WARP else None
        waits = self._conflicts(before, self._uses(loop.body)).values()
        if loop.level is i.Level.WARP and i.Scope.BLOCK in waits:
            # a barrier of the block belongs before the loop over warps, not into it
            body, after = self.go(loop.body, after_barrier(before), inside)
            return i.sequence(i.Barrier(i.Scope.BLOCK), replace(loop, body=body)), after
        body, after = self.go(loop.body, before, inside)
        return replace(loop, body=body), after

    def _command(self, command: i.Command, before: Uses, inside: i.Level | None) -> tuple[i.Command, Uses]:
        uses = self._uses(command)
        conflicts = self._conflicts(before, uses)
        if not conflicts:
            return command, before | uses
        scope = i.Scope.BLOCK if i.Scope.BLOCK in conflicts.values() else i.Scope.WARP
        if scope is i.Scope.BLOCK and inside is i.Level.WARP:
            name = min(use.buffer for use in conflicts)
            raise TranslationError(
                "R0718",
                f"warps would have to wait for each other inside of mapWarp, for `{name}`",
                hint="end the mapWarp, store its result in Shared memory, and start another",
            )
        return i.sequence(i.Barrier(scope), command), uses | after_barrier(before)

    def _conflicts(self, before: Uses, later: Uses) -> dict[Use, i.Scope]:
        """The later uses that must not come before an earlier one is over, and who has to wait for that."""
        found: dict[Use, i.Scope] = {}
        for use in later:
            for earlier in before:
                if self._conflict(earlier, use) and found.get(use) is not i.Scope.BLOCK:
                    # other warps may have used another buffer that was at the same place
                    same = earlier.buffer == use.buffer
                    found[use] = self.scopes.get(use.buffer, i.Scope.WARP) if same else i.Scope.BLOCK
        return found

    def _conflict(self, earlier: Use, later: Use) -> bool:
        if earlier.buffer == later.buffer:
            return earlier.conflicts(later)
        overlap = self.regions[earlier.buffer].overlaps(self.regions[later.buffer])
        return overlap and (earlier.written or later.written)

    def _uses(self, command: i.Command) -> Uses:
        found: set[Use] = set()
        for part in i.commands(command):
            written = target_of(part)
            for access in i.accesses(part):
                if access.buffer in self.regions:
                    place, writes = self._place(access.indices), access is written
                    copying = writes and isinstance(part, i.CopyAsync)
                    found.add(Use(access.buffer, place, writes, copying=copying))
        return frozenset(found)

    def _place(self, indices: tuple[Nat, ...]) -> Nat | None:
        """The outermost index, if it is the same for all threads that run a command together."""
        if not indices or not indices[0].variables <= self.uniform:
            return None
        return indices[0]


def _earlier(uses: Iterable[Use], index: str, by: Nat = ONE) -> Uses:
    """The uses as those of an iteration before: of the last one, or of one `by` earlier."""
    before: dict[Atom, Nat] = {NatVariable(index): variable(index) - by}
    return frozenset(u if u.place is None else u.at(u.place.substitute(before)) for u in uses)


def _anywhere(uses: Iterable[Use], index: str) -> Uses:
    """The uses as those of any iteration."""

    def anywhere(use: Use) -> Use:
        varies = use.place is not None and not use.place.variables.isdisjoint({index, EARLIER + index})
        return replace(use, place=None if varies else use.place, mapped=False)

    return frozenset(map(anywhere, uses))


def target_of(command: i.Command) -> object:
    """What a command writes."""
    match command:
        case i.Assign(target) | i.CopyAsync(target) | i.MmaFragment(target):
            return target
        case i.LoadFragment(_, target) | i.FillFragment(_, target):
            return target
        case i.StoreFragment(_, tile):
            return tile
        case _:
            return None
