"""Barriers, computed from what is read and written in shared memory between parallel loops.

Two commands conflict if one writes a buffer in shared memory that the other accesses. Between them
the workers that share the buffer have to meet: the block, or the warp where the buffer is a warp's own.
Commands in a loop also meet those of the next iteration. A thread that reads what it wrote needs no
barrier, but who wrote is not tracked here: what is written by one command and read by another is
taken to be another thread's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen import imperative as i
from rise.errors import TranslationError
from rise.types import Space


@dataclass(frozen=True)
class Pending:
    """Shared buffers read and written since the last barrier."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: Pending) -> Pending:
        return Pending(self.reads | other.reads, self.writes | other.writes)

    def conflicts(self, later: Pending) -> frozenset[str]:
        return (self.writes & (later.reads | later.writes)) | (self.reads & later.writes)


def insert_barriers(function: i.Function) -> i.Function:
    """The pass."""
    body, _ = _Inserting({}).go(function.body, Pending(), None)
    return replace(function, body=body)


@dataclass(frozen=True)
class _Inserting:
    scopes: Mapping[str, i.Scope]

    def go(self, command: i.Command, before: Pending, inside: i.Level | None) -> tuple[i.Command, Pending]:
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
                body, after = _Inserting({**self.scopes, name: scope}).go(body, before, inside)
                return replace(command, body=body), after
            case i.New():
                body, after = self.go(command.body, before, inside)
                return replace(command, body=body), after
            case i.For():
                return self._loop(command, before, inside)
            case i.ParallelFor(level) if level in (i.Level.BLOCK, i.Level.WARP, i.Level.GRID):
                return self._workers(command, before)
            case _:
                return self._command(command, before, inside)

    def _loop(self, loop: i.For, before: Pending, inside: i.Level | None) -> tuple[i.Command, Pending]:
        """A loop's body follows itself: what is pending at its end is pending at its start."""
        _, once = self.go(loop.body, before, inside)
        body, after = self.go(loop.body, before | once, inside)
        return replace(loop, body=body), after

    def _workers(self, loop: i.ParallelFor, before: Pending) -> tuple[i.Command, Pending]:
        inside = loop.level if loop.level is i.Level.WARP else None
        if loop.level is i.Level.WARP:
            # a barrier of the block belongs before the loop over warps, not into it
            touched = self._touched(loop.body)
            waits = [n for n in before.conflicts(touched) if self.scopes.get(n) is i.Scope.BLOCK]
            if waits:
                body, after = self.go(loop.body, Pending(), inside)
                return i.sequence(i.Barrier(i.Scope.BLOCK), replace(loop, body=body)), after
        body, after = self.go(loop.body, before, inside)
        return replace(loop, body=body), after

    def _command(
        self, command: i.Command, before: Pending, inside: i.Level | None
    ) -> tuple[i.Command, Pending]:
        touched = self._touched(command)
        conflicts = before.conflicts(touched)
        if not conflicts:
            return command, before | touched
        scopes = {self.scopes[n] for n in conflicts}
        scope = i.Scope.BLOCK if i.Scope.BLOCK in scopes else i.Scope.WARP
        if scope is i.Scope.BLOCK and inside is i.Level.WARP:
            raise TranslationError(
                "R0718",
                f"warps would have to wait for each other inside of mapWarp, for `{sorted(conflicts)[0]}`",
                hint="end the mapWarp, store its result in Shared memory, and start another",
            )
        return i.sequence(i.Barrier(scope), command), touched

    def _touched(self, command: i.Command) -> Pending:
        reads: set[str] = set()
        writes: set[str] = set()
        for part in i.commands(command):
            written = target_of(part)
            for access in i.accesses(part):
                name = access.buffer
                if name in self.scopes:
                    (writes if access is written else reads).add(name)
        return Pending(frozenset(reads), frozenset(writes))


def target_of(command: i.Command) -> object:
    """What a command writes."""
    match command:
        case i.Assign(target) | i.LoadFragment(_, target) | i.FillFragment(_, target) | i.MmaFragment(target):
            return target
        case i.StoreFragment(_, tile):
            return tile
        case _:
            return None
