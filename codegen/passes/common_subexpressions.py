"""Common-subexpression elimination and loop-invariant code motion for the indices of a kernel.

A quotient, remainder or bound gets a name if it occurs more than once, or in a loop that does not change it.
The loop-invariant part of an address gets a name if it is a sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from codegen.ir import imperative as i
from codegen.ir.identifiers import derived
from codegen.ir.launch import Launch
from codegen.passes.analysis.fresh import Names, names_of
from codegen.passes.analysis.placement import Place, Walk
from codegen.passes.analysis.walk import rebuild_own
from rise.nat import Atom, Nat, NatVariable, Operation, atom, constant, variable
from rise.types import Space

# the number of the scope in which a value is available, and the value
Key = tuple[int, Nat]


def common_subexpressions(function: i.Function, _: Launch) -> i.Function:
    """The pass for quotients, remainders, minima and maxima."""
    naming = _Operations(names_of(function))
    Walk(naming.counted).program(function.body)
    naming.walk = Walk(naming.renamed)
    return replace(function, body=naming.walk.program(function.body))


@dataclass
class _Operations:
    names: Names
    uses: Counter[Key] = field(default_factory=Counter)
    repeated: set[Key] = field(default_factory=set)
    walk: Walk = field(default_factory=lambda: Walk(lambda command, _: command))
    pairs: dict[tuple[int, Nat, Nat], tuple[str, str]] = field(default_factory=dict)

    def counted(self, command: i.Command, place: Place) -> i.Command:
        def see(value: Nat) -> Nat:
            for operation in _operations(value):
                self._count(operation, place)
            return value

        if isinstance(command, i.Define):
            for operation in _parts_of(command.value):
                self._count(operation, place.home(command.value))
            return command
        return rebuild_own(command, Nat, see)

    def _count(self, operation: Operation, place: Place) -> None:
        value = atom(operation)
        home = place.home(value)
        self.uses[home.number, value] += 1
        if place.repeats(value):
            self.repeated.add((home.number, value))
        if self.uses[home.number, value] == 1:
            for part in _parts_of(value):
                self._count(part, home)

    def renamed(self, command: i.Command, place: Place) -> i.Command:
        if isinstance(command, i.Define):
            return replace(command, value=self._inside(command.value, place.home(command.value)))
        return rebuild_own(command, Nat, lambda value: self._rename(value, place))

    def _inside(self, value: Nat, place: Place) -> Nat:
        """A value that has a name: operations nested in it may get names, too."""

        def part(base: Atom) -> Nat:
            if not isinstance(base, Operation):
                return atom(base)
            left, right = self._rename(base.left, place), self._rename(base.right, place)
            return atom(Operation(base.operator, left, right))

        return value.rebuilt(part)

    def _rename(self, value: Nat, place: Place) -> Nat:
        return value.rebuilt(lambda base: self._part(base, place))

    def _part(self, base: Atom, place: Place) -> Nat:
        if not isinstance(base, Operation):
            return atom(base)
        value = atom(base)
        home = place.home(value)
        key = (home.number, value)
        new = self._inside(value, home)
        if self.uses[key] < 2 and key not in self.repeated:
            return new
        return variable(self.walk.define(home, new, lambda: self._name(new, home)))

    def _name(self, value: Nat, home: Place) -> str:
        """With threads in rows of 8, thread / 8 is called the row and thread % 8 the column."""
        (operation,) = _operations(value)
        if operation.operator not in ("quotient", "remainder"):
            return self.names.fresh("bounded" if operation.operator in ("min", "max") else operation.operator)
        pair = (home.number, operation.left, operation.right)
        if pair not in self.pairs:
            stem = _stem(operation.left)
            row, column = (derived(stem, part) if stem else part for part in ("row", "column"))
            self.pairs[pair] = (self.names.fresh(row), self.names.fresh(column))
        return self.pairs[pair][operation.operator == "remainder"]


def _stem(value: Nat) -> str:
    match value.terms:
        case ((((NatVariable(name), 1),), 1),) if name.isidentifier():
            return name
        case _:
            return ""


def _parts_of(value: Nat) -> list[Operation]:
    """The operations nested in those of a sum of products."""
    return [
        part
        for operation in _operations(value)
        for side in (operation.left, operation.right)
        for part in _operations(side)
    ]


def _operations(value: Nat) -> list[Operation]:
    """The outermost operations in a sum of products."""
    return [base for monomial, _ in value.terms for base, _ in monomial if isinstance(base, Operation)]


# --- row starts -----------------------------------------------------------------------------------------


def row_starts(function: i.Function, _: Launch) -> i.Function:
    """The pass for addresses. Indices into registers stay: they must be constants after unrolling."""
    own = {c.name for c in i.commands(function.body) if isinstance(c, i.New) and c.space is Space.LOCAL}
    naming = _Starts(names_of(function), frozenset(own))
    Walk(naming.counted, guards=True).program(function.body)
    naming.walk = Walk(naming.renamed, guards=True)
    return replace(function, body=naming.walk.program(function.body))


@dataclass
class _Starts:
    """buffers: the buffers whose addresses begin with a given start"""

    names: Names
    registers: frozenset[str]
    uses: Counter[Key] = field(default_factory=Counter)
    buffers: dict[Key, set[str]] = field(default_factory=dict)
    walk: Walk = field(default_factory=lambda: Walk(lambda command, _: command))

    def counted(self, command: i.Command, place: Place) -> i.Command:
        def see(access: i.Access | i.Tile) -> i.Access | i.Tile:
            for value in _addresses(access):
                start = _start(value, place)
                key = (place.home(start).number, start)
                self.uses[key] += 1
                self.buffers.setdefault(key, set()).add(access.buffer)
            return access

        return rebuild_own(command, i.Access | i.Tile, see)  # type: ignore[arg-type]  # two kinds

    def renamed(self, command: i.Command, place: Place) -> i.Command:
        def rename(access: i.Access | i.Tile) -> i.Access | i.Tile:
            if access.buffer in self.registers:
                return access
            match access:
                case i.Tile(offset=offset):
                    return replace(access, offset=self._address(offset, place))
                case i.Access(indices=indices):
                    return replace(access, indices=tuple(self._address(n, place) for n in indices))

        return rebuild_own(command, i.Access | i.Tile, rename)  # type: ignore[arg-type]  # two kinds

    def _address(self, value: Nat, place: Place) -> Nat:
        start = _start(value, place)
        key = (place.home(start).number, start)
        if len(start.terms) < 2 or (self.uses[key] < 2 and not place.repeats(start)):
            return value
        buffers = self.buffers[key]
        stem = derived(next(iter(buffers)), "start") if len(buffers) == 1 else "start"
        name = self.walk.define(place.home(start), start, lambda: self.names.fresh(stem))
        return value - start + variable(name)


def _addresses(access: i.Access | i.Tile) -> tuple[Nat, ...]:
    return (access.offset,) if isinstance(access, i.Tile) else access.indices


def _start(value: Nat, place: Place) -> Nat:
    """The terms that the innermost loop (else the unrolled loops) leaves invariant, without the constant."""
    loops = [n for n, scope in enumerate(place.scopes) if scope.repeated and not scope.unrolled]
    unrolled = [n for n, scope in enumerate(place.scopes) if scope.unrolled]
    end = loops[-1] if loops else unrolled[0] if unrolled else len(place.scopes)
    start = constant(0)
    for monomial, coefficient in value.terms:
        term = Nat.build({monomial: coefficient})
        if monomial and place.depth(term) < end:
            start = start + term
    return start
