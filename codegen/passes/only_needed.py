"""Products that only some warpgroups need are started by these only.

Where all that reads accumulators has a condition that the loop over warpgroups decides, so have all products:

    new acc. (parFor w. c(acc[w]) ; parFor w. when (v w < n) u(acc[w]))  =
    new acc. (parFor w. when (v w < n) c(acc[w]) ; parFor w. when (v w < n) u(acc[w]))

n is read from an input. The waits and the releases of slots stay, and mean the same: a warpgroup that starts
no product of a sum has none under way, as all of the kernel's products have this condition. But products are
started by all threads together, so all have seen that a slot is full before one of them releases it. Where no
products are, a barrier of the warpgroup sees to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from codegen.ir import imperative as i
from codegen.passes.analysis.fresh import Names, bound_in, names_of
from codegen.passes.analysis.in_flight import is_warpgroup_loop, multiplies, only_multiplies
from rise.nat import Atom, Nat, NatVariable, variable
from rise.types import Data, Space

# what names an accumulator, and needs no value of it
NO_USE = i.Wgmma | i.FillFragment | i.WgmmaFence | i.WgmmaWait
INDEX = "warpgroup"  # in conditions


@dataclass(frozen=True)
class _Condition:
    """value < an element of an input, of a type: for the warpgroup INDEX."""

    value: Nat
    bound: i.Access
    type: Data

    @classmethod
    def of(cls, command: i.New, index: str) -> tuple[_Condition, i.Command] | None:
        """Of `new n. n := input[…] ; when (value < n) body` in a loop over warpgroups, and the body."""
        match command.body:
            case i.Sequence((i.Assign(i.Access(name, ()), i.Access() as bound), i.When() as when)) if (
                name == command.name and when.bound == variable(name)
            ):
                place = tuple(_renamed(n, index, INDEX) for n in bound.indices)
                value = _renamed(when.value, index, INDEX)
                return cls(value, replace(bound, indices=place), command.type), when.body
            case _:
                return None

    @property
    def names(self) -> frozenset[str]:
        """What it depends on, besides the warpgroup."""
        numbers = (self.value, *self.bound.indices)
        return frozenset(name for number in numbers for name in number.variables) - {INDEX}

    def around(self, body: i.Command, index: str, names: Names) -> i.Command:
        """The body where it holds, for the warpgroup with an index; a barrier of that elsewhere."""
        name = names.fresh("rows")
        place = tuple(_renamed(n, INDEX, index) for n in self.bound.indices)
        read = i.Assign(i.Access(name, (), self.bound.type), replace(self.bound, indices=place))
        value = _renamed(self.value, INDEX, index)
        inside = i.When(value, variable(name), body)
        outside = i.When(variable(name), value + 1, i.Barrier(i.Scope.WARPGROUP))
        return i.New(Space.LOCAL, name, self.type, i.sequence(read, inside, outside))


def only_needed(function: i.Function) -> i.Function:
    """The pass."""
    products = {
        c.target.buffer
        for c in i.commands(function.body)
        if isinstance(c, i.Wgmma) and isinstance(c.target, i.Access)
    }
    sums = [c for c in i.commands(function.body) if isinstance(c, i.New) and c.name in products]
    written = {
        t.buffer for c in i.commands(function.body) if isinstance(t := i.target_of(c), i.Access | i.Tile)
    }
    inputs = frozenset(v.name for v in function.inputs) - written
    found = {_condition(new, inputs) for new in sums}
    (condition, *others) = found or {None}
    if condition is None or others or not _all_of_one(function.body, None):
        return function
    return replace(function, body=_started(function.body, condition, names_of(function)))


def _started(command: i.Command, condition: _Condition, names: Names) -> i.Command:
    """Products, and commits of them, under a condition, in loops over warpgroups."""

    def where(part: i.Command, index: str) -> i.Command:
        if isinstance(part, i.Sequence):
            runs = groupby(part.commands, _starts)
            return i.sequence(*(
                condition.around(i.sequence(*run), index, names) if starts
                else i.sequence(*(where(each, index) for each in run))
                for starts, run in runs
            ))  # fmt: skip
        if _starts(part):
            return condition.around(part, index, names)
        return i.with_inner(part, tuple(where(each, index) for each in i.inner(part)))

    if is_warpgroup_loop(command) and isinstance(command, i.ParallelFor):
        return replace(command, body=where(command.body, command.index))
    return i.with_inner(command, tuple(_started(part, condition, names) for part in i.inner(command)))


def _starts(command: i.Command) -> bool:
    """Whether a command starts products, or belongs to these."""
    fence = isinstance(command, i.WgmmaFence) and not command.fragments
    return fence or only_multiplies(command) or isinstance(command, i.WgmmaCommit)


def _condition(new: i.New, inputs: frozenset[str]) -> _Condition | None:
    """The one condition of all that reads an accumulator; it depends on nothing that is bound inside."""
    (condition, *others) = set(_uses(new.body, new.name, inputs, None, None)) or {None}
    if condition is None or others or not condition.names.isdisjoint(bound_in(new.body)):
        return None
    return condition


def _uses(
    command: i.Command, name: str, inputs: frozenset[str], index: str | None, condition: _Condition | None
) -> Iterator[_Condition | None]:
    """The condition of each command that reads an accumulator; None where it has none."""
    if isinstance(command, i.Wgmma) and isinstance(command.a, i.Access) and command.a.buffer == name:
        yield None
    if isinstance(command, NO_USE):
        return
    if is_warpgroup_loop(command) and isinstance(command, i.ParallelFor):
        index = command.index
    if isinstance(command, i.New) and index is not None and (found := _Condition.of(command, index)):
        here, body = found
        if here.bound.buffer in inputs:
            yield from _uses(body, name, inputs, index, here)
            return
    for access in i.accesses(command):
        if access.buffer == name:
            yield condition if index is not None and _of_one(access, index) else None
    for part in i.inner(command):
        yield from _uses(part, name, inputs, index, condition)


def _all_of_one(command: i.Command, index: str | None) -> bool:
    """Whether all products are for the warpgroup that starts them."""
    if isinstance(command, i.Wgmma):
        return index is not None and _of_one(command.target, index)
    if is_warpgroup_loop(command) and isinstance(command, i.ParallelFor):
        index = command.index
    return all(_all_of_one(part, index) for part in i.inner(command) if multiplies(part))


def _of_one(target: object, index: str) -> bool:
    """Whether an access is to the accumulators of the warpgroup with an index."""
    return isinstance(target, i.Access) and bool(target.indices) and target.indices[0] == variable(index)


def _renamed(number: Nat, old: str, new: str) -> Nat:
    values: dict[Atom, Nat] = {NatVariable(old): variable(new)}
    return number.substitute(values)
