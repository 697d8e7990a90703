"""Hoists definitions of indices as far as the availability of their operands allows.

A walk passes each command with its place to `own`, which puts the definitions to be inserted there, or
further out, into `definitions`, by the number of the scope. Scopes are numbered in program order, so one walk
can count what the next one defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from codegen.ir import imperative as i
from codegen.passes.analysis.fresh import binds
from codegen.passes.analysis.walk import own_nats, substituted
from rise.errors import RiseError
from rise.frozen import filled_at_once
from rise.nat import Nat, NatVariable, variable
from rise.source import Origin
from rise.types import Array, Fragment, Vector


@filled_at_once
@dataclass(frozen=True, slots=True)
class Scope:
    """Commands in which the same variables are available; `repeated` if they are the body of a loop."""

    number: int = 0
    repeated: bool = False
    unrolled: bool = False


@filled_at_once
@dataclass(frozen=True, slots=True)
class Place:
    """The place of a command: the scopes around it, outermost first, and where variables are available."""

    scopes: tuple[Scope, ...] = (Scope(),)
    depths: Mapping[str, int] = field(default_factory=dict)

    def depth(self, value: Nat) -> int:
        """The index of the outermost scope in which a value is available."""
        return max((self.depths.get(name, 0) for name in value.variables), default=0)

    def home(self, value: Nat) -> Place:
        """The outermost place at which a value is available."""
        return replace(self, scopes=self.scopes[: self.depth(value) + 1])

    @property
    def number(self) -> int:
        return self.scopes[-1].number

    def repeats(self, value: Nat) -> bool:
        """Whether the command is in a loop in which the value is invariant."""
        return any(scope.repeated for scope in self.scopes[self.depth(value) + 1 :])

    def within(self, scope: Scope, names: tuple[str, ...]) -> Place:
        depths = {**self.depths, **dict.fromkeys(names, len(self.scopes))}
        return Place((*self.scopes, scope), depths)

    def knowing(self, name: str, value: Nat) -> Place:
        return replace(self, depths={**self.depths, name: self.depth(value)})


@dataclass
class Walk:
    """guards: whether values that depend on a guarded index are computed under the same guard"""

    own: Callable[[i.Command, Place], i.Command]
    guards: bool = False
    definitions: dict[int, dict[Nat, str]] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def program(self, body: i.Command) -> i.Command:
        return self._defining(0, self.go(body, Place()))

    def define(self, home: Place, value: Nat, name: Callable[[], str]) -> str:
        """The name of a value, which is defined in the innermost scope of a place."""
        there = self.definitions.setdefault(home.number, {})
        if value not in there:
            there[value] = name()
        return there[value]

    def go(self, command: i.Command, place: Place) -> i.Command:
        match command:
            case i.Sequence(parts):
                return i.sequence(*(self.go(part, place) for part in parts))
            case i.Define():
                return self._moved(command, place)
            case i.New(body=body):
                changed = self.own(command, place)
                scalar = not isinstance(command.type, Array | Vector | Fragment)
                inner = self._behind_assignment(command.name, body, place) if scalar else self.go(body, place)
                return i.with_inner(changed, (inner,))
            case i.For() | i.ParallelFor() | i.ForFragment():
                unrolled = not isinstance(command, i.ParallelFor) and getattr(command, "unroll", True)
                scope = Scope(next(self.numbers), True, unrolled)
                return self._around(command, place, scope, binds(command))
            case i.When(value):
                scope = Scope(next(self.numbers))
                return self._around(command, place, scope, tuple(value.variables) if self.guards else ())
            case _:
                return self.own(command, place)

    def _around(self, command: i.Command, place: Place, scope: Scope, names: tuple[str, ...]) -> i.Command:
        changed = self.own(command, place)
        (body,) = i.inner(command)
        new = self._defining(scope.number, self.go(body, place.within(scope, names)))
        return i.with_inner(changed, (new,))

    def _moved(self, command: i.Define, place: Place) -> i.Command:
        """Hoists a definition to the outermost place at which its value is available, once per value."""
        value: Nat = self.own(replace(command, body=i.Skip()), place).value  # type: ignore[union-attr, assignment]  # a Define, too
        name = self.define(place.home(command.value), value, lambda: command.name)
        body = command.body
        if name != command.name:
            body = substituted(body, {NatVariable(command.name): variable(name)})
        return self.go(body, place.knowing(name, command.value))

    def _behind_assignment(self, name: str, body: i.Command, place: Place) -> i.Command:
        """The body of a scalar, which is available as an index after its first command, the assignment."""
        match body:
            case i.Sequence((i.Assign(i.Access(first)) as assigned, *rest)) if first == name:
                scope = Scope(next(self.numbers))
                within = place.within(scope, (name,))
                behind = self._defining(scope.number, self.go(i.sequence(*rest), within))
                return i.sequence(self.go(assigned, place), behind)
        if any(name in value.variables for part in i.commands(body) for value in own_nats(part)):
            raise RiseError("R0799", f"internal: `{name}` is an index, but is not assigned first")
        return self.go(body, place)

    def _defining(self, number: int, body: i.Command) -> i.Command:
        """The body, inside the definitions of its scope that it uses."""
        used = {name for part in i.commands(body) for value in own_nats(part) for name in value.variables}
        for value, name in reversed(self.definitions.get(number, {}).items()):
            if name in used:
                origin = _of_first_use(name, body)
                body, used = i.Define(name, value, body, origin), used | value.variables
        return body


def _of_first_use(name: str, command: i.Command, around: Origin = None) -> Origin:
    """The origin of the first command that uses a name, or of what is around it."""
    origin = getattr(command, "origin", None) or around
    if any(name in value.variables for value in own_nats(command)):
        return origin
    found = (_of_first_use(name, part, origin) for part in i.inner(command))
    return next((origin for origin in found if origin is not None), None)
