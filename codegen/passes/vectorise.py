"""Vectorises accesses: one instruction moves the adjacent, aligned elements of a vector.

A copying loop over the lanes of a vector becomes one assignment of the vector. A computing loop loads its
operands as vectors, computes lane by lane in registers, and stores a vector. If elements are not adjacent in
memory, lanes access them one by one, which is slower but correct: a transposition has vectors on one side
only. An asynchronous copy has no such fallback, nor does a vector that the program declares as aligned.

A conditional read is hoisted only if it is certain to be within its array. A conditional write becomes a
vector store if its condition is the same for all lanes. An asynchronous copy that may be out of bounds copies
all lanes or zero-fills them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from codegen.ir import imperative as i
from codegen.ir.fragments import extents
from codegen.ir.identifiers import derived, shown
from codegen.ir.scalar_temporaries import BOOL, or_zero
from codegen.lower.paths import flatten
from codegen.passes.analysis.fresh import names_of
from codegen.passes.analysis.shifts import granularity, starts
from rise.errors import TranslationError
from rise.nat import Facts, Nat, NatVariable, at_least, constant, divides, less_than, simplify
from rise.source import Origin
from rise.types import Data, Scalar, Space, Vector

WIDEST = 16  # bytes that one instruction moves at most; narrower ones move 2, 4 or 8


def vectorise(function: i.Function) -> i.Function:
    """The pass."""
    types = {v.name: v.type for v in (*function.outputs, *function.inputs)}
    own = set()
    for command in i.commands(function.body):
        if isinstance(command, i.New):
            types[command.name] = command.type
            own |= {command.name} if command.space is Space.LOCAL else set()
    runs = {name: granularity(start, chunk) for name, (start, chunk) in starts(function.body).items()}
    vectoriser = _Vectoriser(types, frozenset(own), runs, names_of(function).taken)
    return replace(function, body=vectoriser.go(function.body, Facts()))


@dataclass
class _Vectoriser:
    """types: of all buffers; own: the buffers in registers; taken: the names in use

    granularity: for each buffer that is a run, of how many elements its offset is a multiple
    """

    types: dict[str, Data]
    own: frozenset[str] = frozenset()
    granularity: Mapping[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    numbers: count[int] = field(default_factory=count)

    def go(self, command: i.Command, facts: Facts) -> i.Command:
        if isinstance(command, i.For) and command.role in (i.Role.VECTOR, i.Role.ALIGNED_VECTOR):
            return self._loop(command, facts)
        if isinstance(command, i.CopyAsync):
            return self._element(command)
        if isinstance(command, i.For | i.ParallelFor):
            facts = facts.with_range(command.index, 0, command.count)
        return i.with_inner(command, tuple(self.go(c, facts) for c in i.inner(command)))

    def _loop(self, loop: i.For, facts: Facts) -> i.Command:
        body = loop.body
        if isinstance(body, i.When) and loop.index not in body.value.variables | body.bound.variables:
            return replace(body, body=self._loop(replace(loop, body=body.body), facts))
        uniform = _uniform(loop)
        if uniform is not None:
            new, first, rest = uniform
            return replace(new, body=i.sequence(first, self._loop(replace(loop, body=rest), facts)))
        guard = self._partial(loop, facts)
        if guard is not None:
            return self._versioned(loop, guard, facts)
        made = None
        if isinstance(body, i.Assign | i.CopyAsync) and isinstance(body.target, i.Access):
            made = self._assignment(loop, body, body.target, facts)
        elif isinstance(body, i.New):
            made = self._by_lanes(loop, body, facts)
        if made is None and isinstance(body, i.CopyAsync):
            raise _refused(body.origin, "an asynchronous copy")
        if made is None and loop.role is i.Role.ALIGNED_VECTOR:
            raise _refused(getattr(body, "origin", None), "a vector that is declared as aligned")
        return made or i.rebuild(loop, i.CopyAsync, self._element)

    def _element(self, copy: i.CopyAsync) -> i.CopyAsync:
        """The asynchronous copy of one element of an array in memory, which may be zero-filled."""
        if not isinstance(copy.target, i.Access):
            return copy
        conditions, value = or_zero(copy.value)
        if not isinstance(value, i.Access) or not _is_copy_width(copy.target.type):
            raise _refused(copy.origin, "an asynchronous copy")
        if not value.indices or value.buffer in self.own:
            message = f"an asynchronous copy reads memory, and `{shown(value.buffer)}` is in registers"
            raise TranslationError("R0724", message, copy.origin, "store it with `toMem`")
        return replace(copy, value=_if_all(conditions, value))

    def _partial(self, loop: i.For, facts: Facts) -> Guard | None:
        """A condition of a write, or of what could be read as a vector, that only the first lanes satisfy."""
        found: Iterable[Guard] = ()
        match loop:
            case i.For(body=i.When(value, bound), role=i.Role.VECTOR):
                found = [(value, bound)]
            case i.For(body=i.Assign(_, value) | i.CopyAsync(_, value), role=i.Role.VECTOR):
                found = (
                    guard
                    for access, guards in _reads((value,), ())
                    if isinstance(access, i.Access) and self._vector(access, loop, facts)
                    for guard in guards or ()
                )
        return next((guard for guard in found if _grows(guard, loop.index)), None)

    def _versioned(self, loop: i.For, guard: Guard, facts: Facts) -> i.Command:
        """One version for vectors all of whose elements exist, and one for the vector at the end.

        Both are the same loop where vectors are not possible, which then stays.
        """
        assumed = replace(loop, body=_assuming(loop.body, guard))
        whole = self._loop(assumed, facts)
        if whole == assumed:
            return loop
        value, bound = guard
        last = value.substitute({NatVariable(loop.index): loop.count - 1})
        return i.sequence(i.When(last, bound, whole), i.When(bound, last + 1, _synchronous(loop)))

    def _assignment(
        self, loop: i.For, body: i.Assign | i.CopyAsync, target: i.Access, facts: Facts
    ) -> i.Command | None:
        whole = self._vector(target, loop, facts)
        if isinstance(body.value, i.Access):
            source = self._vector(body.value, loop, facts)
            if whole is not None and source is not None:
                at_once = _is_copy_width(whole.type) or isinstance(body, i.Assign)
                return replace(body, target=whole, value=source) if at_once else None
        if isinstance(body, i.CopyAsync) and whole is not None and _is_copy_width(whole.type):
            return self._or_zeros(loop, body, whole, facts)
        return None if isinstance(body, i.CopyAsync) else self._by_lanes(loop, body, facts)

    def _or_zeros(self, loop: i.For, body: i.CopyAsync, whole: i.Access, facts: Facts) -> i.Command | None:
        """The copy of a vector that is zero-filled where conditions that are the same for all lanes fail."""
        conditions, value = or_zero(body.value)
        source = self._vector(value, loop, facts) if isinstance(value, i.Access) else None
        if source is None or any(_depends(condition, loop.index) for condition in conditions):
            return None
        return replace(body, target=whole, value=_if_all(conditions, source))

    def _by_lanes(self, loop: i.For, body: i.Command, facts: Facts) -> i.Command | None:
        """Loads vectors, computes lane by lane in registers, and stores a vector, as far as possible.

        Scalars that have the same value in all lanes are computed before the loop.
        """
        lanes = _Lanes.of(loop.index, body)
        if lanes is None:
            return None
        place = lanes.assigned.target
        whole = None if _mentions(place, lanes.varying) else self._vector(place, loop, facts)  # type: ignore[arg-type]  # resolved
        loaded = self._loaded(loop, lanes, facts)
        complete = whole is not None and all(load is not None for load in loaded.values())
        if not complete:
            if loop.role is i.Role.ALIGNED_VECTOR:
                return None
            whole = whole if place.buffer not in self.own else None  # type: ignore[union-attr]  # resolved
            loaded = {access: v for access, v in loaded.items() if access.buffer not in self.own}
        loads = {access: load for access, load in loaded.items() if load is not None}
        return self._computed(loop, lanes, whole, loads) if whole or loads else None

    def _loaded(self, loop: i.For, lanes: _Lanes, facts: Facts) -> dict[i.Access, _Load | None]:
        """For each access that varies with the lane: how to load all lanes at once, or None."""
        lane = NatVariable(loop.index)
        found: dict[i.Access, _Load | None] = {}
        for access, guards in _reads(lanes.values(), ()):
            if not any(lane in n.atoms for n in access.indices) or not isinstance(access, i.Access):
                continue
            vector = None if _mentions(access, lanes.varying) else self._vector(access, loop, facts)
            if vector is not None and self._inside(vector, loop, facts):
                guards = ()
            if guards is None or any(lane in n.atoms or _named(n, lanes.varying) for g in guards for n in g):
                vector = None
            load = _Load(vector, guards or ()) if vector is not None else None
            if access in found and (other := found[access]) != load:
                load = None if other is None or load is None else _either(load, other)
            found[access] = load
        return dict(sorted(found.items(), key=lambda item: str(item[0])))

    def _computed(
        self, loop: i.For, lanes: _Lanes, target: i.Access | None, loads: dict[i.Access, _Load]
    ) -> i.Command:
        """Loads vectors, computes into registers, and stores them to `target` at once if there is one."""
        lane, start, assigned = _of(NatVariable(loop.index)), (constant(0),), lanes.assigned
        registers = {access: self._name(derived(access.buffer, "vector")) for access in loads}
        types = {registers[access]: load.vector.type for access, load in loads.items()}
        made = [load.into(registers[access], assigned.origin) for access, load in loads.items()]
        stored: list[i.Command] = []
        if target is not None:
            place: i.Access = assigned.target  # type: ignore[assignment]  # resolved by now
            name = registers[place] if place in registers else self._name("result")
            registers[place], types[name] = name, target.type
            stored.append(i.Assign(target, i.Access(name, start, target.type), assigned.origin))

        def in_registers(access: i.Access) -> i.Access:
            return i.Access(registers[access], (lane,), access.type) if access in registers else access

        by_lane = replace(loop, body=lanes.each(), label="lanes")
        whole = i.sequence(*made, i.rebuild(by_lane, i.Access, in_registers), *stored)
        for name, type_ in types.items():
            whole = i.New(Space.LOCAL, name, type_, whole, assigned.origin)
        return lanes.after_uniform(whole)

    def _inside(self, vector: i.Access, loop: i.For, facts: Facts) -> bool:
        """Whether all lanes are certain to be within the array, whatever the conditions are."""
        sizes = extents(self.types[vector.buffer])
        start, total = self._linear(vector, vector.indices), flatten((), sizes)
        return at_least(start, 0, facts) and less_than(start + loop.count - 1, total, facts)

    def _name(self, stem: str) -> str:
        """An unused name, with the next number."""
        names = (derived(stem, f"v{number}") for number in self.numbers)
        return next(name for name in names if name not in self.taken)

    def _vector(self, access: i.Access, loop: i.For, facts: Facts) -> i.Access | None:
        """The access to all lanes at once, or None if they are not adjacent and aligned."""
        width, element = loop.count.value, access.type
        if width is None or not isinstance(element, Scalar):
            return None
        aligned = min(width, WIDEST // element.bytes)
        if width % aligned or aligned & (aligned - 1):
            return None
        lane = NatVariable(loop.index)
        first = tuple(n.substitute({lane: constant(0)}) for n in access.indices)
        inside = facts.with_range(loop.index, 0, loop.count)
        start = simplify(self._linear(access, first), facts)
        linear = simplify(self._linear(access, access.indices), inside)
        if simplify(linear - start, inside) != _of(lane) or not divides(aligned, start, facts):
            return None
        if self.granularity.get(access.buffer, aligned) % aligned:
            return None
        return i.Access(access.buffer, first, Vector(loop.count, element))

    def _linear(self, access: i.Access, indices: tuple[Nat, ...]) -> Nat:
        return flatten(indices, extents(self.types[access.buffer]))


Guard = tuple[Nat, Nat]  # (a, b) means a < b


@dataclass(frozen=True)
class _Load:
    """A vector in memory that is read only if all guards hold."""

    vector: i.Access
    guards: tuple[Guard, ...]

    def into(self, register: str, origin: Origin) -> i.Command:
        place = i.Access(register, (constant(0),), self.vector.type)
        made: i.Command = i.Assign(place, self.vector, origin)
        for value, bound in reversed(self.guards):
            made = i.When(value, bound, made)
        return made


def _either(one: _Load, other: _Load) -> _Load | None:
    """The load with fewer guards, if its guards are a subset of the other's."""
    fewer, more = sorted((one, other), key=lambda load: len(load.guards))
    return fewer if set(fewer.guards) <= set(more.guards) else None


@dataclass(frozen=True)
class _Lanes:
    """The body of a lane: assignments to scalars, then one assignment to an element.

    same: the scalars that have the same value in all lanes; varying: the names of the others
    """

    same: tuple[tuple[i.New, i.Assign], ...]
    other: tuple[tuple[i.New, i.Assign], ...]
    assigned: i.Assign

    @staticmethod
    def of(lane: str, body: i.Command) -> _Lanes | None:
        """None if the body does anything else."""
        varying = {lane}
        same: list[tuple[i.New, i.Assign]] = []
        other: list[tuple[i.New, i.Assign]] = []
        while isinstance(body, i.New):
            match body.body:
                case i.Sequence((i.Assign(i.Access(name)) as first, *rest)) if name == body.name:
                    found = same if varying.isdisjoint(_variables(first)) else other
                    found.append((body, first))
                    varying |= {name} if found is other else set()
                    body = i.sequence(*rest)
                case _:
                    return None
        if not isinstance(body, i.Assign) or not isinstance(body.target, i.Access):
            return None
        return _Lanes(tuple(same), tuple(other), body)

    @property
    def varying(self) -> set[str]:
        return {new.name for new, _ in self.other}

    def values(self) -> Iterator[i.Expression]:
        return (assign.value for assign in (*(a for _, a in self.other), self.assigned))

    def each(self) -> i.Command:
        """The computation that remains for each lane."""
        return _scalars(self.other, self.assigned)

    def after_uniform(self, command: i.Command) -> i.Command:
        return _scalars(self.same, command)


def _scalars(scalars: tuple[tuple[i.New, i.Assign], ...], command: i.Command) -> i.Command:
    for new, assign in reversed(scalars):
        command = replace(new, body=i.sequence(assign, command))
    return command


def _uniform(loop: i.For) -> tuple[i.New, i.Assign, i.Command] | None:
    """A scalar that has the same value in all lanes, and what the lanes do with it: an index from memory."""
    match loop.body:
        case i.New(_, name, _, i.Sequence((i.Assign(i.Access(first)) as assign, *rest))) as new if (
            first == name and loop.index not in _variables(assign)
        ):
            return new, assign, i.sequence(*rest)
        case _:
            return None


def _variables(assign: i.Assign) -> set[str]:
    """The buffers and indices that an assignment reads."""
    found = {access.buffer for access in i.accesses(assign.value)}

    def see(value: Nat) -> Nat:
        found.update(value.variables)
        return value

    i.rebuild(assign, Nat, see)
    return found


def _grows(guard: Guard, lane: str) -> bool:
    """Whether a value and its bound say: lane + something < something else."""
    value, bound = guard
    first = value.substitute({NatVariable(lane): constant(0)})
    return value - first == _of(NatVariable(lane)) and lane not in bound.variables | first.variables


def _assuming(body: i.Command, guard: Guard) -> i.Command:
    """What a lane does where the condition holds."""
    if isinstance(body, i.When) and (body.value, body.bound) == guard:
        return body.body
    return i.rebuild(body, i.Operator, lambda operator: _chosen(operator, guard))


def _chosen(operator: i.Operator, guard: Guard) -> i.Expression:
    match operator:
        case i.Operator("select", (condition, first, _)) if _comparison(condition)[0] == guard:
            return i.rebuild(first, i.Operator, lambda inner: _chosen(inner, guard))
        case i.Operator(_, operands):
            inside = i.rebuild(operands, i.Operator, lambda inner: _chosen(inner, guard))
            return replace(operator, operands=inside)


def _mentions(access: i.Access, names: set[str]) -> bool:
    return any(_named(index, names) for index in access.indices)


def _named(value: Nat, names: set[str]) -> bool:
    return not names.isdisjoint(value.variables)


def _reads(
    values: Iterable[i.Expression], guards: tuple[Guard, ...] | None
) -> Iterator[tuple[i.Access | i.Tile, tuple[Guard, ...] | None]]:
    """Every access with the index comparisons that guard it; None if other conditions do, too."""
    for value in values:
        match value:
            case i.Operator("select", (condition, first, second)):
                yield from _reads((condition,), guards)
                yes, no = _comparison(condition)
                yield from _reads((first,), None if guards is None or yes is None else (*guards, yes))
                yield from _reads((second,), None if guards is None or no is None else (*guards, no))
            case i.Operator(_, operands) | i.ForeignCall(_, _, operands):
                yield from _reads(operands, guards)
            case _:
                yield from ((access, guards) for access in i.accesses(value))


def _comparison(condition: i.Expression) -> tuple[Guard | None, Guard | None]:
    """A comparison of indices, and its negation."""
    match condition:
        case i.Operator("lt", (i.Natural(value, _), i.Natural(bound, _))):
            return (value, bound), (bound, value + 1)
        case _:
            return None, None


def _synchronous(loop: i.For) -> i.For:
    """Asynchronous copies of elements that are too narrow for them: assignments, through a register."""

    def change(copy: i.CopyAsync) -> i.Command:
        narrow = isinstance(copy.target, i.Access) and not _is_copy_width(copy.target.type)
        return i.Assign(copy.target, copy.value, copy.origin) if narrow else copy

    return replace(loop, body=i.rebuild(loop.body, i.CopyAsync, change))


def _if_all(conditions: tuple[i.Expression, ...], value: i.Access) -> i.Expression:
    """The value if all conditions hold, else zero."""
    if not conditions:
        return value
    inside = conditions[0]
    for condition in conditions[1:]:
        inside = i.Operator("and", (inside, condition), BOOL)
    element = value.type.element if isinstance(value.type, Vector) else value.type
    return i.Operator("select", (inside, value, i.Number(0, element)), value.type)


def _depends(value: i.Expression, index: str) -> bool:
    return index in _variables(i.Assign(i.Access("", (), BOOL), value))


def _is_copy_width(type_: Data) -> bool:
    """Whether one asynchronous copy can move a value of this type."""
    match type_:
        case Vector(Nat(value=int() as width), Scalar() as element):
            return width * element.bytes in (4, 8, 16)
        case Scalar():
            return type_.bytes in (4, 8, 16)
        case _:
            return False


def _of(lane: NatVariable) -> Nat:
    from rise.nat import variable

    return variable(lane.name)


def _refused(origin: Origin, what: str) -> TranslationError:
    return TranslationError(
        "R0724",
        f"{what} moves 4, 8 or 16 adjacent bytes, which must be aligned in both arrays",
        origin,
        "choose the vector's width and the layout so that rows are multiples of it",
    )
