"""Fuses successive loops over the elements of fragments.

    for g. x[g] := … ; forFragment e. y[e] := f(x[e]) ; for g. … := y[g]
      =  for g. (x[g] := … ; for h. y[w·g + h] := f(x[w·g + h]) ; … := y[g])

The iterations are independent, since each works on its own elements. The fused loop needs registers for a few
elements at a time, where separate loops keep whole fragments of addends, sums and results live. A step of one
loop may do several steps of the other, as one that stores a whole matrix. Waits before stores
come before loops that load operands, so that these are fused with the stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, inner_element
from codegen.ir.fragments import extents
from codegen.ir.launch import Launch
from codegen.passes.analysis.fresh import Names, names_of
from codegen.passes.analysis.walk import substituted
from rise.nat import Facts, Nat, NatVariable, at_least, constant, less_than, variable
from rise.types import Data, Fragment, Space, Vector

ORDINARY = (i.Skip, i.Sequence, i.Assign, i.For, i.New, i.When, i.Define, i.LoadMatrices, i.StoreMatrices)


def fuse_fragment_loops(function: i.Function, launch: Launch) -> i.Function:
    """The pass; it runs after the pass `workers`, which turns parallel loops into worker numbers."""
    fragments = {c.name: c.type for c in i.commands(function.body) if _is_fragment(c)}  # type: ignore[union-attr]
    inputs = frozenset(v.name for v in function.inputs)
    return replace(function, body=_Fuser(fragments, inputs, names_of(function)).go(function.body))


def _is_fragment(command: i.Command) -> bool:
    if not isinstance(command, i.New) or command.space is not Space.LOCAL:
        return False
    return isinstance(inner_element(command.type), Fragment) and _elements(command.type) > 0


def _elements(type_: Data) -> int:
    """The elements that a thread holds of a fragment with a known layout; 0 for other types."""
    own = extents(type_)[len(dimensions(type_)) :]
    return (own[0].value or 0) if own else 0


@dataclass(frozen=True)
class Run:
    """The elements of one iteration: `width` elements from `first`."""

    first: Nat
    width: int


@dataclass
class _Fuser:
    """fragments: the types of all fragment buffers; inputs: the kernel's, which it only reads"""

    fragments: dict[str, Data]
    inputs: frozenset[str]
    names: Names

    def go(self, command: i.Command) -> i.Command:
        command = i.with_inner(command, tuple(self.go(part) for part in i.inner(command)))
        if not isinstance(command, i.Sequence) and not _is_fragment(command):
            return command
        news, parts = _flat(command)
        fused = min((self._all(order) for order in (parts, self._waiting_first(parts))), key=len)
        if len(fused) == len(parts):
            return command
        return reduce(lambda body, new: replace(new, body=body), reversed(news), i.sequence(*fused))

    def _all(self, parts: Sequence[i.Command]) -> list[i.Command]:
        """The parts in order, those beside each other fused where that is possible."""
        fused: list[i.Command] = []
        for part in parts:
            together = self._fused(fused[-1], part) if fused else None
            fused[-1:] = [*fused[-1:], part] if together is None else [together]
        return fused

    def _waiting_first(self, parts: Sequence[i.Command]) -> list[i.Command]:
        """The parts with barriers and waits before loops that load operands, which then stand beside stores.

        What such a loop reads nobody writes, and what it writes nobody else reads.
        """
        order: list[i.Command] = []
        for part in parts:
            place = len(order)
            while (
                isinstance(part, i.Barrier | i.BulkWait) and place and self._loads_operands(order[place - 1])
            ):
                place -= 1
            order.insert(place, part)
        return order

    def _loads_operands(self, command: i.Command) -> bool:
        """Whether a loop loads inputs, and works on fragments only."""
        parts = list(i.commands(command))
        own = {part.name for part in parts if isinstance(part, i.New) and part.space is Space.LOCAL}
        used = {a.buffer for a in i.accesses_in(command)}
        private = used <= own | self.inputs | self.fragments.keys() and not used.isdisjoint(self.inputs)
        return private and all(isinstance(part, (*ORDINARY, i.ForFragment)) for part in parts)

    def _fused(self, first: i.Command, second: i.Command) -> i.Command | None:
        if isinstance(first, i.ForFragment) and isinstance(second, i.ForFragment):
            if first.fragment != second.fragment:
                return None
            body = substituted(second.body, {NatVariable(second.index): variable(first.index)})
            apart = self._apart(first.body, body, Run(variable(first.index), 1))
            return replace(first, body=i.sequence(first.body, body)) if apart else None
        for loops in (_loops(first), _loops(second)):
            for depth in range(len(loops), 0, -1):
                if (made := self._at(first, second, loops[:depth])) is not None:
                    return made
        return None

    def _at(self, first: i.Command, second: i.Command, loops: Sequence[i.For]) -> i.Command | None:
        """Both commands as bodies of these loops, which are the loops of one of them."""
        run = self._run(loops)
        one, other = self._body(first, loops, run, second), self._body(second, loops, run, first)
        if one is None or other is None or not self._apart(one, other, run):
            return None
        body = i.sequence(one, other)
        for loop in reversed(loops):
            body = replace(loop, body=body, label="elements")
        return body

    def _run(self, loops: Sequence[i.For]) -> Run:
        """The elements of an iteration, if the loops partition them in order; else an empty run."""
        used = (self.fragments.get(a.buffer) for a in i.accesses_in(loops[-1].body))
        width = next((_elements(type_) for type_ in used if type_ is not None), 0)
        first = constant(0)
        for loop in loops:
            width //= loop.count.value or 1
            first = first + width * variable(loop.index)
        return Run(first, width)

    def _body(
        self, command: i.Command, loops: Sequence[i.For], run: Run, partner: i.Command
    ) -> i.Command | None:
        """The part of the command that one iteration executes, beside that of its partner."""
        if isinstance(command, i.ForFragment):
            if _elements(command.fragment) != run.width * prod(loop.count.value or 1 for loop in loops):
                return None
            within = self.names.fresh("h")
            body = substituted(command.body, {NatVariable(command.index): run.first + variable(within)})
            return i.For(within, constant(run.width), body, unroll=True, label="mapFragment")
        own = _loops(command)
        if len(loops) == 1 and own and (several := _ratio(own[0], loops[0])) > 1:
            if not self._share_a_fragment(command, partner):
                return None
            step = self.names.fresh("s")
            place = several * variable(loops[0].index) + variable(step)
            return replace(
                own[0],
                index=step,
                count=constant(several),
                body=substituted(own[0].body, {NatVariable(own[0].index): place}),
            )
        if [loop.count for loop in own[: len(loops)]] != [loop.count for loop in loops]:
            return None
        renamed = {NatVariable(a.index): variable(b.index) for a, b in zip(own, loops, strict=False)}
        return substituted(own[len(loops) - 1].body, renamed)  # type: ignore[arg-type]

    def _share_a_fragment(self, first: i.Command, second: i.Command) -> bool:
        """Otherwise a loop of several steps in one saves no registers."""
        used, others = ({a.buffer for a in i.accesses_in(part)} for part in (first, second))
        return not used.isdisjoint(others & self.fragments.keys())

    # --- independence of iterations

    def _apart(self, one: i.Command, other: i.Command, run: Run) -> bool:
        """Whether all conflicting accesses of the two commands are to the iteration's own elements."""
        parts = [*i.commands(one), *i.commands(other)]
        if not all(isinstance(part, ORDINARY) for part in parts):
            return False
        used = [{a.buffer for a in i.accesses_in(body)} for body in (one, other)]
        written = {t.buffer for part in parts if isinstance(t := i.target_of(part), i.Access)}
        shared = used[0] & used[1] & written
        return all(self._within(body, shared, run) for body in (one, other))

    def _within(self, body: i.Command, buffers: set[str], run: Run) -> bool:
        facts = Facts()
        for part in i.commands(body):
            if isinstance(part, i.For):
                facts = facts.with_range(part.index, 0, part.count)
        outer: dict[str, tuple[Nat, ...]] = {}
        for part in i.commands(body):
            for access in i.accesses(part):
                if access.buffer not in buffers:
                    continue
                if not self._is_element(access):
                    return False
                start = access.indices[-1] - run.first
                if outer.setdefault(access.buffer, access.indices[:-1]) != access.indices[:-1]:
                    return False
                end = start + (_width(part, access) - 1)
                if not at_least(start, 0, facts) or not less_than(end, run.width, facts):
                    return False
        return True

    def _is_element(self, access: i.Access | i.Tile) -> bool:
        if not isinstance(access, i.Access) or access.buffer not in self.fragments:
            return False
        return len(access.indices) == len(extents(self.fragments[access.buffer]))


def _width(command: i.Command, access: i.Access | i.Tile) -> int:
    """How many elements an access covers: two of each matrix of 16-bit elements."""
    if isinstance(command, i.LoadMatrices | i.StoreMatrices):
        return 2 * command.count
    type_ = access.type if isinstance(access, i.Access) else None
    return (type_.size.value or 1) if isinstance(type_, Vector) else 1


def _ratio(finer: i.For, coarser: i.For) -> int:
    """How many steps of one loop are a step of the other; 0 where that is not a whole number."""
    steps, fewer = finer.count.value or 0, coarser.count.value or 1
    return steps // fewer if steps % fewer == 0 else 0


def _loops(command: i.Command) -> list[i.For]:
    """The perfectly nested loops around a body."""
    found: list[i.For] = []
    while isinstance(command, i.For) and command.unroll and command.count.value and not command.owner:
        found.append(command)
        command = command.body
    return found


def _flat(command: i.Command) -> tuple[list[i.New], list[i.Command]]:
    """The fragments that a part of a program declares, and the commands on them."""
    match command:
        case i.Sequence(commands):
            found = [_flat(part) for part in commands]
            return [new for news, _ in found for new in news], [part for _, parts in found for part in parts]
        case i.New() if _is_fragment(command):
            news, parts = _flat(command.body)
            return [command, *news], parts
        case _:
            return [], [command]
