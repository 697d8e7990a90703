"""The elements of a vector moved at once, where they lie side by side from an aligned place on.

A loop over the lanes of a vector that copies becomes one assignment of the vector. One that computes
loads what it reads as vectors, computes lane by lane in registers, and stores a vector. Where the
elements do not lie so, the loop stays: it is slower, not wrong. An asynchronous copy has no such way
out, nor has a vector that the program calls aligned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from codegen import imperative as i
from codegen.paths import dimensions, flatten
from codegen.translate import ALIGNED, VECTOR
from rise.errors import TranslationError
from rise.nat import Facts, Nat, NatVariable, constant, divides, simplify
from rise.source import Origin
from rise.types import Data, Scalar, Space, Vector

WIDEST = 16  # bytes that one instruction moves; or 2, 4, 8


def vectorise(function: i.Function) -> i.Function:
    """The pass."""
    types = {v.name: v.type for v in (*function.outputs, *function.inputs)}
    for command in i.commands(function.body):
        if isinstance(command, i.New):
            types[command.name] = command.type
    return replace(function, body=_Vectorising(types).go(function.body, Facts()))


@dataclass
class _Vectorising:
    types: dict[str, Data]
    numbers: count[int] = field(default_factory=count)

    def go(self, command: i.Command, facts: Facts) -> i.Command:
        if isinstance(command, i.For) and command.pattern in (VECTOR, ALIGNED):
            return self._loop(command, facts)
        if isinstance(command, i.For | i.ParallelFor):
            facts = facts.with_range(command.index, 0, command.count)
        return i.with_inner(command, tuple(self.go(c, facts) for c in i.inner(command)))

    def _loop(self, loop: i.For, facts: Facts) -> i.Command:
        body = loop.body
        made = None
        if isinstance(body, i.Assign | i.CopyAsync) and isinstance(body.target, i.Access):
            made = self._assignment(loop, body, body.target, facts)
        if made is None and isinstance(body, i.CopyAsync):
            raise _refused(body.origin, "an asynchronous copy")
        if made is None and loop.pattern == ALIGNED:
            raise _refused(getattr(body, "origin", None), "a vector that is called aligned")
        return made or loop

    def _assignment(
        self, loop: i.For, body: i.Assign | i.CopyAsync, target: i.Access, facts: Facts
    ) -> i.Command | None:
        whole = self._vector(target, loop, facts)
        if whole is None:
            return None
        if isinstance(body.value, i.Access):
            source = self._vector(body.value, loop, facts)
            if source is None or (isinstance(body, i.CopyAsync) and not _at_once(whole.type)):
                return None
            return replace(body, target=whole, value=source)
        return None if isinstance(body, i.CopyAsync) else self._computed(loop, body, whole, facts)

    def _computed(self, loop: i.For, body: i.Assign, target: i.Access, facts: Facts) -> i.Command | None:
        """Vectors loaded into registers, the computation lane by lane, a vector stored."""
        lane = NatVariable(loop.index)
        varying = {a for a in i.accesses(body.value) if any(lane in n.atoms for n in a.indices)}
        loaded: dict[i.Access, tuple[str, i.Access]] = {}
        for access in sorted(varying, key=str):
            vector = self._vector(access, loop, facts)  # type: ignore[arg-type]
            if vector is None:
                return None
            loaded[access] = (self._name(f"{access.buffer}_vector"), vector)  # type: ignore[index]
        result = self._name("result")
        index = (_of(lane),)

        def in_registers(access: i.Access) -> i.Access:
            return i.Access(loaded[access][0], index, access.type) if access in loaded else access

        computed = i.Assign(i.Access(result, index, body.target.type), body.value, body.origin)  # type: ignore[union-attr]
        start = (constant(0),)
        made = i.sequence(
            *(i.Assign(i.Access(name, start, v.type), v, body.origin) for name, v in loaded.values()),
            replace(loop, body=i.rebuild(computed, i.Access, in_registers), pattern="lanes"),
            i.Assign(target, i.Access(result, start, target.type), body.origin),
        )
        registers = [(name, v.type) for name, v in loaded.values()] + [(result, target.type)]
        for name, type_ in registers:
            made = i.New(Space.LOCAL, name, type_, made, body.origin)
        return made

    def _name(self, stem: str) -> str:
        return f"{stem}_v{next(self.numbers)}"

    def _vector(self, access: i.Access, loop: i.For, facts: Facts) -> i.Access | None:
        """The access to all lanes at once, or None where they do not lie so."""
        width, element = loop.count.value, access.type
        if width is None or not isinstance(element, Scalar):
            return None
        aligned = min(width, WIDEST // element.bytes)
        if width % aligned or aligned & (aligned - 1):
            return None
        lane = NatVariable(loop.index)
        first = tuple(n.substitute({lane: constant(0)}) for n in access.indices)
        start, linear = self._linear(access, first), self._linear(access, access.indices)
        inside = facts.with_range(loop.index, 0, loop.count)
        if simplify(linear - start, inside) != _of(lane) or not divides(aligned, start, facts):
            return None
        return i.Access(access.buffer, first, Vector(loop.count, element))

    def _linear(self, access: i.Access, indices: tuple[Nat, ...]) -> Nat:
        return flatten(indices, dimensions(self.types[access.buffer]))


def _at_once(type_: Data) -> bool:
    """Whether one asynchronous copy moves values of a type."""
    match type_:
        case Vector(Nat(value=int() as width), Scalar() as element):
            return width * element.bytes in (4, 8, 16)
        case _:
            return False


def _of(lane: NatVariable) -> Nat:
    from rise.nat import variable

    return variable(lane.name)


def _refused(origin: Origin, what: str) -> TranslationError:
    return TranslationError(
        "R0724",
        f"{what} needs 4, 8 or 16 bytes side by side, from an aligned place on, in both arrays",
        origin,
        "choose the vector's width and the layout so that rows are multiples of it",
    )
