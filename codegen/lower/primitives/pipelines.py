"""Software pipelines: folds that load the next elements into ring buffers while they compute with one.

`reducePipelined(S)(load)(step)(z)(xs)` is reduceSeq(step)(z) after map(load). Whatever `load` stores in
Shared memory goes to one of S slots; element k + S - 1 is loaded while element k is computed with. The load
uses asynchronous copies, which are waited for, or the registers of the copying threads, which are stored to
the slot after the computation (with one slot, this is element k + 1). The pass that inserts barriers ensures
that slots are not overwritten while they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, MBARRIER, bytes_of
from codegen.ir.data import data
from codegen.ir.launch import number
from codegen.lower.accumulators import check_update
from codegen.lower.primitives.levels import Element, elements, in_place, start_of, step_of
from codegen.lower.primitives.loop_rotation import at_index, rotated
from codegen.lower.primitives.memory import asynchronously, layout_of, stem
from codegen.lower.primitives.phases import before_phase, by_phase
from codegen.lower.primitives.prefetch import Halves, halves
from codegen.lower.primitives.skew import Guard, Order, SkewedLoop, not_by_roles, skewed_step
from codegen.lower.primitives.skipping import Visited, visited
from codegen.lower.primitives.turns import Turns, not_in_turn
from codegen.lower.resolve import resolved
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
from rise.source import Origin
from rise.types import ROW_MAJOR, Array, Data, Layout, Space

Step = Callable[[i.Expression], i.Command]  # what is done with a loaded element

COPIES = ("copyAsync", "copyThreads", "bulkCopy")


@dataclass(frozen=True)
class Ring:
    """A stored part of the result of `load`: `stages` buffers for it."""

    name: str
    stages: Nat
    value: Expr
    layout: Layout
    asynchronous: bool
    space: Space = Space.SHARED
    bulk: bool = False
    origin: Origin = None

    @property
    def type(self) -> Data:
        return Array(self.stages, data(self.value))

    def fill(self, translator: Translator, slot: Nat, environment: Environment) -> i.Command:
        target = accept_at(i.AcceptVariable(self.name, self.type), slot)
        written = translator.accept(self.value, target, environment)
        return asynchronously(written) if self.asynchronous else written


@dataclass(frozen=True)
class Loaded:
    """The result of `load`, in which the stored parts are the names of their rings.

    The other parts are evaluated where they are used.
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
    if not isinstance(load, Lambda):
        message = "the load of a pipeline must be a function literal"
        raise TranslationError("R0725", message, call.origin, "`x => copyAsync(x)`")

    def loops(element: Element) -> i.Command:
        whole = Visited(step, element, call.nat("n"))
        found = visited(translator, step, load, whole, call.environment)
        plain, order = skewed_step(found.step)

        def updated(loaded: i.Expression) -> i.Command:
            command = step_of(translator, call, plain, (value, loaded), target)
            check_update(resolved(command))
            return command

        return _Pipeline(translator, call, load, found, call.nat("stages"), order).run(updated)

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
    load: Lambda
    visited: Visited
    stages: Nat
    order: Order = Order.PLAIN

    @property
    def count(self) -> Nat:
        return self.visited.count

    def run(self, step: Step) -> i.Command:
        if self.stages.value is None or self.stages.value < 1:
            message = f"a pipeline has 1 stage or more, not {self.stages}"
            raise TranslationError("R0713", message, self.call.origin)
        loaded = self._loaded()
        if not loaded.rings:
            message = "the load of a pipeline stores nothing in Shared memory or in registers"
            hint = "say what to store with `copyAsync`, `copyThreads` or `toMem(Local)`"
            raise TranslationError("R0725", message, self.call.origin, hint)
        if self.call.name == "reduceRoleSplit":
            return self._warp_specialised(loaded, step)
        if self.order is Order.IN_TURN:
            raise not_in_turn(self.call.origin)
        if self.order is not Order.PLAIN:
            raise not_by_roles(self.call.origin)
        return self.visited.around(self._by_all(loaded, step))

    def _by_all(self, loaded: Loaded, step: Step) -> i.Command:
        """The pipeline of which all threads execute all parts."""
        rings = loaded.rings
        if any(ring.bulk for ring in rings):
            return self._bulk(loaded, step)
        ahead = self._ahead(number(self.stages, "the number of stages", self.call.origin), rings)
        copying = any(ring.asynchronous for ring in rings)
        body = i.sequence(
            self._prologue(rings, ahead),
            self._steady(loaded, ahead, step),
            # no copies are pending any more, but proving that would need counting
            i.Wait(0) if copying and ahead else i.Skip(),
        )
        for ring in reversed(rings):
            body = i.New(ring.space, ring.name, ring.type, body, ring.origin, ring.layout)
        return body

    # --- loading --------------------------------------------------------------------------------------

    def _loaded(self) -> Loaded:
        rings: list[Ring] = []

        def named(expr: Expr) -> Expr:
            ring = self._ring(expr)
            if ring is not None:
                rings.append(ring)
                return Identifier(ring.name, ring.value.type, expr.origin)
            return expr if isinstance(expr, Lambda) else map_children(expr, named)

        value = named(self.load.body)
        return Loaded(value, tuple(rings))

    def _ring(self, expr: Expr) -> Ring | None:
        """The ring that stores a part, if it is stored."""
        inner = as_call(expr, self.call.environment)
        if inner is not None and inner.name in COPIES:
            name = self.translator.name("ring", inner.type)
            asynchronous = inner.name == "copyAsync"
            bulk = inner.name == "bulkCopy"
            return Ring(
                name,
                self.stages,
                inner.arguments[0],
                layout_of(inner),
                asynchronous,
                bulk=bulk,
                origin=inner.origin,
            )
        if inner is not None and inner.name == "toMem" and inner.size("a") is Space.LOCAL:
            name = self.translator.name(stem(inner.type, Space.LOCAL), inner.type)
            return Ring(
                name, self.stages, inner.arguments[0], ROW_MAJOR, False, Space.LOCAL, origin=inner.origin
            )
        return None

    def _at_element(self, index: Nat, use: Callable[[Environment], i.Command]) -> i.Command:
        """Applies `use` in the environment that binds load's parameter to the element at an index."""
        named = self.load.parameter.name
        return self.visited.element(index, lambda x: use({**self.call.environment, named: x}))

    # --- loops ----------------------------------------------------------------------------------------

    def _ahead(self, stages: int, rings: Sequence[Ring]) -> int:
        """The distance in elements between load and computation: at least 1 for copies through registers."""
        if stages == 1 and any(ring.asynchronous or ring.space is Space.LOCAL for ring in rings):
            return 0
        return max(stages - 1, 1)

    def _fill(self, rings: Sequence[Ring], index: Nat, slot: Nat) -> i.Command:
        def fill(environment: Environment) -> i.Command:
            return i.sequence(*(ring.fill(self.translator, slot, environment) for ring in rings))

        return self._at_element(index, fill)

    def _commit(self, rings: Sequence[Ring]) -> i.Command:
        return i.Commit() if any(ring.asynchronous for ring in rings) else i.Skip()

    def _prologue(self, rings: Sequence[Ring], ahead: int) -> i.Command:
        index = self.translator.name("k")
        fill = _when(variable(index), self.count, self._fill(rings, variable(index), variable(index)), ahead)
        loop = i.sequence(fill, self._commit(rings))
        role, label = (i.Role.PRELOAD, "fetch") if _in_registers(rings) else (i.Role.SEQUENCE, "prologue")
        return (
            i.For(index, constant(ahead), loop, True, role=role, label=label, origin=self.call.origin)
            if ahead
            else i.Skip()
        )

    def _steady(self, loaded: Loaded, ahead: int, step: Step) -> i.Command:
        rings, stages, count = loaded.rings, self.stages, self.count
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
        # the copies of element k are in the oldest group, followed by ahead - 1 others
        wait: i.Command = i.Wait(max(ahead - 1, 0)) if any(ring.asynchronous for ring in rings) else i.Skip()
        use = self._at_element(
            k, lambda environment: step(self._value(loaded, remainder(k, stages), environment))
        )
        parts = rotated(self.translator, use) if ahead and not split else None
        if parts is not None:
            after = _unless_empty(i.When(k + 1, count, at_index(parts.first, name, k + 1)))
            body = i.sequence(early, self._commit(rings), parts.middle, wait, after, parts.last)
            loop = i.For(
                name, count, body, role=i.Role.PIPELINE, label=self.call.name, origin=self.call.origin
            )
            return parts.around(i.sequence(wait, at_index(parts.first, name, constant(0)), loop))
        load = (early, self._commit(rings))
        if not ahead:
            body = i.sequence(*load, wait, use, late)
        elif _in_registers(rings) and _asynchronous(use):
            # element k - 1 has the registers of element k + S - 1: its product may still be under way
            body = i.sequence(wait, use, *load, late)
        else:
            body = i.sequence(wait, *load, use, late)
        for half in split.values():
            registers = half.registers
            body = i.New(Space.LOCAL, registers.name, registers.type, body, self.call.origin)
        # registers cannot be indexed at run time
        return i.For(
            name,
            count,
            body,
            _in_registers(rings),
            role=i.Role.PIPELINE,
            label=self.call.name,
            origin=self.call.origin,
        )

    # --- bulk copies ----------------------------------------------------------------------------------

    def _bulk(self, loaded: Loaded, step: Step) -> i.Command:
        """One thread starts the copies, which signal their bytes to the slot's mbarrier.

        Products of a step may be pending when the next one starts; once those of step k - 1 are complete,
        element k + S - 1 is loaded into its slot.
        """
        rings, stages, count = loaded.rings, self.stages, self.count
        number = stages.value or 0
        if number < 2 or not all(ring.bulk for ring in rings):
            message = "a pipeline of bulk copies has at least 2 stages, and only bulk copies"
            raise TranslationError("R0731", message, self.call.origin)
        type_ = Array(stages, MBARRIER)
        full = i.AcceptVariable(self.translator.name("full"), type_)
        name = self.translator.name("k")
        prologue, execution = self.translator.name("k"), self.translator.name("turn")
        k, filled, ahead = variable(name), variable(prologue), number - 1
        place = _RingPosition(count * variable(execution), stages)
        first = self._start(rings, full, filled, place.slot(filled))
        following = self._start(rings, full, k + ahead, place.slot(k + ahead))
        use = self._at_element(k, lambda environment: step(self._value(loaded, place.slot(k), environment)))
        body = i.sequence(
            i.WaitBarrier(accept_at(full, place.slot(k)), remainder(place.phase(k), constant(2))),
            use,
            i.Elected(i.When(k + ahead, count, following)),
        )
        pipeline = i.sequence(
            i.Elected(
                i.For(
                    prologue,
                    constant(ahead),
                    _when(filled, count, first, ahead),
                    True,
                    label="prologue",
                    origin=self.call.origin,
                )
            ),
            i.For(name, count, body, role=i.Role.PIPELINE, label=self.call.name, origin=self.call.origin),
        )
        whole: i.Command = i.Ring(i.InitBarriers(full, stages), pipeline, execution, self.call.origin)
        for ring in reversed(rings):
            whole = i.New(ring.space, ring.name, ring.type, whole, ring.origin, ring.layout)
        return i.New(Space.SHARED, full.name, type_, whole, self.call.origin, BARRIERS)

    def _warp_specialised(self, loaded: Loaded, step: Step) -> i.Command:
        """Producers wait until a slot is empty, consumers until it is full.

        Operands of different phases of a step have mbarriers of their own (see `phases`).
        Slot p % S holds the p-th element of the ring, counted over all executions of the pipeline.
        """
        rings, stages, count = loaded.rings, self.stages, self.count
        if stages.value == 1:
            # a consumer releases a slot only after it has started the products of the next element
            message = (
                "this warp-specialised pipeline has one slot, which is released only after the next load"
            )
            raise TranslationError("R0736", message, self.call.origin, "use 2 stages or more")
        if not all(ring.bulk for ring in rings):
            message = "a warp-specialised pipeline can only load with bulk copies"
            raise TranslationError("R0731", message, self.call.origin)
        producers, consumers = (
            number(self.call.nat(name), f"the number of {name}", self.call.origin)
            for name in ("producers", "consumers")
        )
        type_ = Array(stages, MBARRIER)
        execution, position, k, filled = (self.translator.name(n) for n in ("turn", "before", "k", "k"))
        place = _RingPosition(variable(position), stages)
        next_, this = place.slot(variable(filled)), place.slot(variable(k))

        def again() -> i.Command:
            return self._at_element(variable(k), lambda e: step(self._value(loaded, this, e)))

        use = again()
        loads: list[i.Command] = []
        guards: list[Guard] = []
        setup: list[i.Command] = []
        declared: list[i.AcceptVariable] = []
        for together in by_phase(use, [ring.name for ring in rings]):
            full, empty = (i.AcceptVariable(self.translator.name(name), type_) for name in ("full", "empty"))
            filling = [ring for ring in rings if ring.name in together]
            emptied = remainder(place.phase(variable(filled)) + 1, constant(2))
            loads.append(i.WaitBarrier(accept_at(empty, next_), emptied))
            loads.append(self._start(filling, full, variable(filled), next_))
            wait = i.WaitBarrier(accept_at(full, this), remainder(place.phase(variable(k)), constant(2)))
            guards.append(Guard(together, wait, i.Arrive(accept_at(empty, this), release=True)))
            setup += [i.InitBarriers(full, stages), i.InitBarriers(empty, stages, consumers)]
            declared += [full, empty]
        turns = None
        if self.order in (Order.IN_TURN, Order.SKEWED_IN_TURN):
            # with `skewed` one less in each execution: an odd number where position - execution is
            earlier = variable(position)
            earlier += variable(execution) if self.order is Order.SKEWED_IN_TURN else 0
            turns = Turns.of(self.translator, consumers, earlier, self.call.origin)
            setup.append(turns.setup)
        looping = self._loop(k, use, guards, turns)
        if self.order in (Order.SKEWED, Order.SKEWED_IN_TURN):
            loop = partial(self._for, k)
            looping = SkewedLoop(k, count, again, guards, loop, self.call.origin).command(turns)
        whole: i.Command = i.WarpSpecialise(
            i.Elected(i.sequence(*setup)),
            self.visited.around(
                i.For(filled, count, i.sequence(*loads), label="load", origin=self.call.origin)
            ),
            self.visited.around(looping),
            producers,
            consumers,
            execution,
            position,
            self.call.origin,
        )
        if turns is not None:
            whole = turns.around(whole, self.call.origin)
        for barriers in reversed(declared):
            whole = i.New(Space.SHARED, barriers.name, type_, whole, self.call.origin, BARRIERS)
        for ring in reversed(rings):
            whole = i.New(ring.space, ring.name, ring.type, whole, ring.origin, ring.layout)
        return whole

    def _loop(self, k: str, step: i.Command, guards: Sequence[Guard], turns: Turns | None) -> i.Command:
        """for k < n. step, which waits for the slots that it uses, and hands them back"""
        given = step
        for guard in guards:
            step = before_phase(step, guard.rings, guard.wait)
        finish: i.Command = i.Skip()
        if turns is not None and self.order is Order.IN_TURN:
            step, finish = turns.within(given, step, variable(k), self.call.origin)
        loop = self._for(k, self.count, i.sequence(step, *(guard.release for guard in guards)))
        return i.sequence(loop, i.When(constant(0), self.count, finish)) if finish != i.Skip() else loop

    def _for(self, index: str, count: Nat, body: i.Command) -> i.Command:
        return i.For(index, count, body, role=i.Role.PIPELINE, label=self.call.name, origin=self.call.origin)

    def _start(self, rings: Sequence[Ring], full: i.AcceptVariable, index: Nat, slot: Nat) -> i.Command:
        barrier = accept_at(full, slot)

        def start(environment: Environment) -> i.Command:
            copies = [
                self.translator.continue_with(
                    ring.value,
                    lambda value, ring=ring: i.BulkCopy(  # type: ignore[misc]  # bound at once
                        accept_at(i.AcceptVariable(ring.name, ring.type), slot),
                        value,
                        barrier,
                        origin=ring.origin,
                    ),
                    environment,
                )
                for ring in rings
            ]
            total = sum(bytes_of(data(ring.value)) for ring in rings)
            return i.sequence(i.Expect(barrier, total), *copies)

        return self._at_element(index, start)

    def _halves(self, rings: Sequence[Ring], index: Nat, slot: Nat) -> dict[str, Halves]:
        """For each ring that is filled through registers, the two halves of the copy, if it can be split."""
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
class _RingPosition:
    """The slots of a pipeline's elements in its ring, after `before` elements of earlier executions."""

    before: Nat
    stages: Nat

    def slot(self, index: Nat) -> Nat:
        return remainder(self.before + index, self.stages)

    def phase(self, index: Nat) -> Nat:
        return quotient(self.before + index, self.stages)


def _in_registers(rings: Sequence[Ring]) -> bool:
    return any(ring.space is Space.LOCAL for ring in rings)


def _asynchronous(step: i.Command) -> bool:
    return any(isinstance(c, i.Wgmma) for c in i.commands(resolved(step)))


def _unless_empty(when: i.When) -> i.Command:
    return when if when.body != i.sequence() else i.Skip()


def _when(value: Nat, bound: Nat, body: i.Command, ahead: int) -> i.Command:
    """The body if value < bound; unconditional if value < ahead ≤ bound."""
    return body if ahead and at_least(bound, ahead) else i.When(value, bound, body)
