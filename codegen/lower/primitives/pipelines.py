"""Pipelines: folds whose next elements are loaded, into a ring of buffers, while one is computed with.

`reducePipelined(S)(load)(step)(z)(xs)` is reduceSeq(step)(z) after map(load). What `load` stores in Shared
memory is stored in one of S slots; element k + S - 1 is on its way while element k is computed with:
as asynchronous copies, which are waited for, or in the registers of those who copy, and from there into
its slot after the computation (with one slot, element k + 1 is). That slots are not overwritten while
they are read is the business of the pass that computes barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, bytes_of
from codegen.ir.data import data
from codegen.ir.launch import number
from codegen.lower.primitives.levels import Element, elements, in_place, start_of, step_of
from codegen.lower.primitives.loop_rotation import at_index, carried
from codegen.lower.primitives.memory import asynchronously, layout_of, stem
from codegen.lower.primitives.prefetch import Halves, halves
from codegen.lower.translate import (
    Call,
    Continuation,
    Environment,
    Translator,
    accept_at,
    accepting,
    as_call,
    at,
    continuing,
)
from rise.errors import TranslationError
from rise.expr import Expr, Identifier, Lambda, map_children
from rise.nat import Nat, at_least, constant, quotient, remainder, variable
from rise.types import ROW_MAJOR, Array, Data, Layout, Scalar, Space

COPIES = ("copyAsync", "copyThreads", "bulkCopy")
MBARRIER = Scalar("u64")  # what an mbarrier takes in memory


@dataclass(frozen=True)
class Ring:
    """A part of what `load` gives that is stored: `stages` buffers for it."""

    name: str
    stages: Nat
    value: Expr
    layout: Layout
    asynchronous: bool
    space: Space = Space.SHARED
    bulk: bool = False

    @property
    def type(self) -> Data:
        return Array(self.stages, data(self.value))

    def fill(self, translator: Translator, slot: Nat, environment: Environment) -> i.Command:
        target = accept_at(i.AcceptVariable(self.name, self.type), slot)
        written = translator.accept(self.value, target, environment)
        return asynchronously(written) if self.asynchronous else written


@dataclass(frozen=True)
class Loaded:
    """What `load` gives, the parts that are stored being named as the rings that they are in.

    What is not stored is evaluated where it is used.
    """

    value: Expr
    rings: tuple[Ring, ...]


@continuing("reducePipelined", "reduceRoleSplit")
def pipelined(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new acc, rings. acc(z)(acc) ; prologue ; for k < n. (wait ; load k+S-1 ; acc(f acc k)(acc)) ; C(acc)"""
    _, step, initial, _ = call.arguments
    name = translator.parameter(step, "acc", call.type)
    accumulator, target = i.Variable(name, call.type), i.AcceptVariable(name, call.type)
    start = start_of(translator, call, initial, target)
    update = _update(translator, call, accumulator, target)
    return i.New(Space.LOCAL, name, call.type, i.sequence(start, update, then(accumulator)), call.origin)


def _update(translator: Translator, call: Call, value: i.Expression, target: i.Acceptor) -> i.Command:
    load, step, _, xs = call.arguments

    def loops(element: Element) -> i.Command:
        return _Pipeline(translator, call, load, element).run(
            lambda loaded: step_of(translator, call, step, (value, loaded), target)
        )

    return elements(translator, xs, call.environment, loops)


@accepting("reducePipelined", "reduceRoleSplit")
def pipelined_result(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    updated = in_place(translator, call, call.arguments[2], target, _update)
    if updated is not None:
        return updated
    return pipelined(translator, call, lambda value: translator.copy(target, value, call.origin))


@dataclass(frozen=True)
class _Pipeline:
    translator: Translator
    call: Call
    load: Expr
    element: Element

    def run(self, step: Callable[[i.Expression], i.Command]) -> i.Command:
        stages, count = self.call.nat("stages"), self.call.nat("n")
        if stages.value is None or stages.value < 1:
            raise TranslationError("R0713", f"a pipeline has 1 stage or more, not {stages}", self.call.origin)
        loaded = self._loaded(self._body(), stages)
        rings = list(loaded.rings)
        if not rings:
            message = "the load of a pipeline stores nothing in Shared memory, nor in registers"
            hint = "`copyAsync`, `copyThreads` or `toMem(Local)` says what is stored"
            raise TranslationError("R0725", message, self.call.origin, hint)
        if self.call.name == "reduceRoleSplit":
            return self._roles(loaded, rings, stages, count, step)
        if any(ring.bulk for ring in rings):
            return self._bulk(loaded, rings, stages, count, step)
        ahead = self._ahead(stages.value, rings)
        copying = any(ring.asynchronous for ring in rings)
        body = i.sequence(
            self._prologue(rings, ahead, count),
            self._steady(loaded, rings, ahead, stages, count, step),
            # nothing is on its way any more, but only counting would tell
            i.Wait(0) if copying and ahead else i.Skip(),
        )
        for ring in reversed(rings):
            body = i.New(ring.space, ring.name, ring.type, body, self.call.origin, ring.layout)
        return body

    # --- what is loaded -------------------------------------------------------------------------------

    def _body(self) -> Lambda:
        if not isinstance(self.load, Lambda):
            message = "the load of a pipeline is to be written as a function"
            raise TranslationError("R0725", message, self.call.origin, "`x => copyAsync(x)`")
        return self.load

    def _loaded(self, load: Lambda, stages: Nat) -> Loaded:
        rings: list[Ring] = []

        def named(expr: Expr) -> Expr:
            ring = self._ring(expr, stages)
            if ring is not None:
                rings.append(ring)
                return Identifier(ring.name, ring.value.type, expr.origin)
            return expr if isinstance(expr, Lambda) else map_children(expr, named)

        value = named(load.body)
        return Loaded(value, tuple(rings))

    def _ring(self, expr: Expr, stages: Nat) -> Ring | None:
        """The ring in which a part is stored, where it is."""
        inner = as_call(expr, self.call.environment)
        if inner is not None and inner.name in COPIES:
            name = self.translator.name("ring", inner.type)
            asynchronous = inner.name == "copyAsync"
            bulk = inner.name == "bulkCopy"
            return Ring(name, stages, inner.arguments[0], layout_of(inner), asynchronous, bulk=bulk)
        if inner is not None and inner.name == "toMem" and inner.size("a") is Space.LOCAL:
            name = self.translator.name(stem(inner.type, Space.LOCAL), inner.type)
            return Ring(name, stages, inner.arguments[0], ROW_MAJOR, False, Space.LOCAL)
        return None

    def _with(self, index: Nat, use: Callable[[Environment], i.Command]) -> i.Command:
        """In the environment in which load's parameter is the element with that number."""
        load = self._body()
        return self.element(index, lambda x: use({**self.call.environment, load.parameter.name: x}))

    # --- loops ----------------------------------------------------------------------------------------

    def _ahead(self, stages: int, rings: list[Ring]) -> int:
        """How many elements ahead of the computation loads are: one is kept in registers in any case."""
        if stages == 1 and any(ring.asynchronous or ring.space is Space.LOCAL for ring in rings):
            return 0
        return max(stages - 1, 1)

    def _fill(self, rings: list[Ring], index: Nat, slot: Nat) -> i.Command:
        def fill(environment: Environment) -> i.Command:
            return i.sequence(*(ring.fill(self.translator, slot, environment) for ring in rings))

        return self._with(index, fill)

    def _commit(self, rings: list[Ring]) -> i.Command:
        return i.Commit() if any(ring.asynchronous for ring in rings) else i.Skip()

    def _prologue(self, rings: list[Ring], ahead: int, count: Nat) -> i.Command:
        index = self.translator.name("k")
        fill = _when(variable(index), count, self._fill(rings, variable(index), variable(index)), ahead)
        loop = i.sequence(fill, self._commit(rings))
        role, label = (i.Role.PRELOAD, "fetch") if _in_registers(rings) else (i.Role.SEQUENCE, "prologue")
        return i.For(index, constant(ahead), loop, True, role=role, label=label) if ahead else i.Skip()

    def _steady(
        self,
        loaded: Loaded,
        rings: list[Ring],
        ahead: int,
        stages: Nat,
        count: Nat,
        step: Callable[[i.Expression], i.Command],
    ) -> i.Command:
        name = self.translator.name("k")
        k = variable(name)
        following, slot = k + ahead, remainder(k + ahead, stages)
        split = self._halves(rings, following, slot) if ahead else {}
        early = i.sequence(
            self._fill([ring for ring in rings if ring.name not in split], following, slot),
            *(half.load for half in split.values()),
        )
        late = i.sequence(*(half.store for half in split.values()))
        if ahead:
            early, late = i.When(following, count, early), _unless_empty(i.When(following, count, late))
        # the copies of element k are in the oldest group but, at once behind them, ahead - 1 others
        wait: i.Command = i.Wait(max(ahead - 1, 0)) if any(ring.asynchronous for ring in rings) else i.Skip()
        use = self._with(k, lambda environment: step(self._value(loaded, remainder(k, stages), environment)))
        parts = carried(self.translator, use) if ahead and not split else None
        if parts is not None:
            after = _unless_empty(i.When(k + 1, count, at_index(parts.first, name, k + 1)))
            body = i.sequence(early, self._commit(rings), parts.middle, wait, after, parts.last)
            loop = i.For(name, count, body, role=i.Role.PIPELINE, label=self.call.name)
            return parts.around(i.sequence(wait, at_index(parts.first, name, constant(0)), loop))
        begin = (wait, early, self._commit(rings)) if ahead else (early, self._commit(rings), wait)
        body = i.sequence(*begin, use, late)
        for half in split.values():
            registers = half.registers
            body = i.New(Space.LOCAL, registers.name, registers.type, body, self.call.origin)
        # registers have no run-time index
        return i.For(name, count, body, _in_registers(rings), role=i.Role.PIPELINE, label=self.call.name)

    # --- bulk copies ----------------------------------------------------------------------------------

    def _bulk(
        self,
        loaded: Loaded,
        rings: list[Ring],
        stages: Nat,
        count: Nat,
        step: Callable[[i.Expression], i.Command],
    ) -> i.Command:
        """One thread starts the copies, and every slot has an mbarrier to which their bytes come.

        The products of a step may go on while the next one is started; when those of step k - 1 are over,
        its slot is filled with element k + S - 1.
        """
        number = stages.value or 0
        if number < 2 or not all(ring.bulk for ring in rings):
            message = "a pipeline of bulk copies has 2 stages or more, and bulk copies only"
            raise TranslationError("R0731", message, self.call.origin)
        type_ = Array(stages, MBARRIER)
        full = i.AcceptVariable(self.translator.name("full"), type_)
        name = self.translator.name("k")
        prologue, turn = self.translator.name("k"), self.translator.name("turn")
        k, filled, ahead = variable(name), variable(prologue), number - 1
        place = _Place(count * variable(turn), stages)
        first = self._start(rings, full, filled, place.slot(filled))
        following = self._start(rings, full, k + ahead, place.slot(k + ahead))
        use = self._with(k, lambda environment: step(self._value(loaded, place.slot(k), environment)))
        body = i.sequence(
            i.WaitBarrier(accept_at(full, place.slot(k)), remainder(place.lap(k), constant(2))),
            use,
            i.Elected(i.When(k + ahead, count, following)),
        )
        pipeline = i.sequence(
            i.Elected(
                i.For(prologue, constant(ahead), _when(filled, count, first, ahead), True, label="prologue")
            ),
            i.For(name, count, body, role=i.Role.PIPELINE, label=self.call.name),
        )
        whole: i.Command = i.Ring(i.InitBarriers(full, stages), pipeline, turn, self.call.origin)
        for ring in reversed(rings):
            whole = i.New(ring.space, ring.name, ring.type, whole, self.call.origin, ring.layout)
        return i.New(Space.SHARED, full.name, type_, whole, self.call.origin, BARRIERS)

    def _roles(
        self,
        loaded: Loaded,
        rings: list[Ring],
        stages: Nat,
        count: Nat,
        step: Callable[[i.Expression], i.Command],
    ) -> i.Command:
        """Who loads waits until a slot is empty, who computes until it is full.

        The element in slot p % S is the p-th that went through the ring, before this time's too.
        """
        if stages.value == 1:
            # a slot is given back when the products of the next element have been started
            message = (
                "a pipeline with roles has one slot: who computes waits for the next element to give it back"
            )
            raise TranslationError("R0736", message, self.call.origin, "use 2 stages or more")
        if not all(ring.bulk for ring in rings):
            message = "a pipeline with roles loads by bulk copies only"
            raise TranslationError("R0731", message, self.call.origin)
        producers, consumers = (
            number(self.call.nat(name), f"the number of {name}", self.call.origin)
            for name in ("producers", "consumers")
        )
        type_ = Array(stages, MBARRIER)
        full, empty = (i.AcceptVariable(self.translator.name(name), type_) for name in ("full", "empty"))
        turn, k, filled = (self.translator.name(name) for name in ("turn", "k", "k"))

        place = _Place(count * variable(turn), stages)
        next_, this = place.slot(variable(filled)), place.slot(variable(k))
        load = i.sequence(
            i.WaitBarrier(accept_at(empty, next_), remainder(place.lap(variable(filled)) + 1, constant(2))),
            self._start(rings, full, variable(filled), next_),
        )
        use = self._with(variable(k), lambda e: step(self._value(loaded, this, e)))
        compute = i.sequence(
            i.WaitBarrier(accept_at(full, this), remainder(place.lap(variable(k)), constant(2))),
            use,
            i.Arrive(accept_at(empty, this), release=True),
        )
        setup = i.sequence(i.InitBarriers(full, stages), i.InitBarriers(empty, stages, consumers))
        whole: i.Command = i.WarpSpecialise(
            i.Elected(setup),
            i.For(filled, count, load, label="load"),
            i.For(k, count, compute, role=i.Role.PIPELINE, label=self.call.name),
            producers,
            consumers,
            turn,
            self.call.origin,
        )
        for barriers in (empty, full):
            whole = i.New(Space.SHARED, barriers.name, type_, whole, self.call.origin, BARRIERS)
        for ring in reversed(rings):
            whole = i.New(ring.space, ring.name, ring.type, whole, self.call.origin, ring.layout)
        return whole

    def _start(self, rings: list[Ring], full: i.AcceptVariable, index: Nat, slot: Nat) -> i.Command:
        barrier = accept_at(full, slot)

        def start(environment: Environment) -> i.Command:
            copies = [
                self.translator.continue_with(
                    ring.value,
                    lambda value, ring=ring: i.BulkCopy(  # type: ignore[misc]  # bound at once
                        accept_at(i.AcceptVariable(ring.name, ring.type), slot),
                        value,
                        barrier,
                        origin=self.call.origin,
                    ),
                    environment,
                )
                for ring in rings
            ]
            total = sum(bytes_of(data(ring.value)) for ring in rings)
            return i.sequence(i.Expect(barrier, total), *copies)

        return self._with(index, start)

    def _halves(self, rings: list[Ring], index: Nat, slot: Nat) -> dict[str, Halves]:
        """The copies through registers, by ring, that can be halved."""
        found: dict[str, Halves] = {}
        for ring in rings:
            if not ring.asynchronous and ring.space is Space.SHARED:
                first, second = self._fill([ring], index, slot), self._fill([ring], index, slot)
                half = halves(self.translator.name("prefetched"), first, second)
                if half is not None:
                    found[ring.name] = half
        return found

    def _value(self, loaded: Loaded, slot: Nat, environment: Environment) -> i.Expression:
        stored = {ring.name: at(i.Variable(ring.name, ring.type), slot) for ring in loaded.rings}
        return self.translator.pure(loaded.value, {**environment, **stored}, self.call.origin)


@dataclass(frozen=True)
class _Place:
    """Where the elements of a pipeline are in its ring; so many went through it before this time's."""

    before: Nat
    stages: Nat

    def slot(self, index: Nat) -> Nat:
        return remainder(self.before + index, self.stages)

    def lap(self, index: Nat) -> Nat:
        return quotient(self.before + index, self.stages)


def _in_registers(rings: list[Ring]) -> bool:
    return any(ring.space is Space.LOCAL for ring in rings)


def _unless_empty(when: i.When) -> i.Command:
    return when if when.body != i.sequence() else i.Skip()


def _when(value: Nat, bound: Nat, body: i.Command, ahead: int) -> i.Command:
    """The body if value < bound; without the question where value < ahead ≤ bound."""
    return body if ahead and at_least(bound, ahead) else i.When(value, bound, body)
