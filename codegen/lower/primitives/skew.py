"""Skewed steps: the last products of a step are put off behind the first ones of the next step.

A step of a pipeline by roles starts products P, computes with their results, Q, and ends with products R of
what it has computed, as attention does. While R is under way there is nothing to compute. With

    for k < n. (P k ; Q k ; R k)   =   P 0 ; Q 0 ; for k < n-1. (P (k+1) ; R k ; Q (k+1)) ; R (n-1)     n ≥ 1

Q computes while tensor cores are busy with R. The equation holds if P and R do not touch what the other one
writes. Registers that Q fills for R, and that are declared in a step, are declared around the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeVar

from codegen.ir import imperative as i
from codegen.ir.buffers import written
from codegen.lower.primitives.loop_rotation import at_index, of_worker
from codegen.lower.primitives.phases import buffers
from codegen.lower.primitives.turns import Turns
from codegen.lower.resolve import resolved
from codegen.lower.translate import Call, Continuation, Translator, continuing
from rise.errors import TranslationError
from rise.expr import Expr, Lambda, call
from rise.nat import Nat, at_least, constant, variable
from rise.source import Origin
from rise.types import Array, Data, Space

T = TypeVar("T", i.Variable, i.AcceptVariable)
HINT = "without `skewed`, each step is complete before the next one starts"


@dataclass(frozen=True)
class Guard:
    """Of rings that are in use together: the wait for a slot, and its release."""

    rings: frozenset[str]
    wait: i.Command
    release: i.Command


@dataclass(frozen=True)
class SkewedStep:
    """A step in two parts, and the registers that the first one fills for the second.

    workers: the loop over warpgroups that both parts belong to
    early:   P ; Q
    late:    R
    """

    registers: tuple[i.New, ...]
    workers: i.ParallelFor | None
    early: i.Command
    late: i.Command

    def around(self, body: i.Command) -> i.Command:
        for new in reversed(self.registers):
            body = replace(new, body=body)
        return body

    def with_registers(self, part: i.Command, registers: Sequence[i.New]) -> i.Command:
        """A part of the same step, translated again, which fills these registers in place of its own."""
        names = {other.name: mine.name for mine, other in zip(self.registers, registers, strict=True)}

        def renamed(variable_: T) -> T:
            return replace(variable_, name=names.get(variable_.name, variable_.name))

        return i.rebuild(i.rebuild(part, i.Variable, renamed), i.AcceptVariable, renamed)

    def only(self, part: i.Command) -> i.Command:
        """One of the parts."""
        return part if self.workers is None else replace(self.workers, body=part)

    def both(self, early: i.Command, late: i.Command, turns: Turns | None, number: Nat) -> i.Command:
        """The first part of a step, and the second part of the step before: behind the first products.

        turns: of warpgroups, which start both one after the other; this is the turn of that number
        """
        if turns is None or self.workers is None:
            return self.only(_behind_products(early, late))
        index = self.workers.index
        products = _behind_products(early, i.sequence(late, turns.end(index)))
        return self.only(i.sequence(turns.begin(index, number), products))


class Order(Enum):
    """How a step follows the one before."""

    PLAIN = auto()
    SKEWED = auto()
    IN_TURN = auto()  # of warpgroups
    SKEWED_IN_TURN = auto()


def skewed_step(step: Expr) -> tuple[Expr, Order]:
    """The step without `skewed` and `inTurn`, and whether it had them."""
    match step:
        case Lambda(state, Lambda(x, body)):
            match call(body):
                case "skewed", _, [inner]:
                    order, found = Order.SKEWED, call(inner)
                    if found is not None and found[0] == "inTurn":
                        order, (inner,) = Order.SKEWED_IN_TURN, found[2]
                    return Lambda(state, Lambda(x, inner), step.origin), order
                case "inTurn", _, [inner]:
                    return Lambda(state, Lambda(x, inner), step.origin), Order.IN_TURN
    return step, Order.PLAIN


@continuing("skewed")
def refused(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """A step of `reduceRoleSplit` is translated without it."""
    raise not_by_roles(call.origin)


def not_by_roles(origin: Origin) -> TranslationError:
    message = "`skewed` is for the whole step of a pipeline by roles, or for what a mask leaves of it"
    return TranslationError("R0744", message, origin, "use `reduceRoleSplit`")


def in_two_parts(step: i.Command, origin: Origin) -> SkewedStep:
    """The parts of a step. Raises TranslationError R0744 where its products cannot change places."""
    workers = step if isinstance(step, i.ParallelFor) and step.level is i.Level.WARPGROUP else None
    split = _split(step if workers is None else workers.body)
    if split is None or not _multiplies(split.early):
        message = "this step does not start products, compute with them and end with further products"
        raise TranslationError("R0744", message, origin, HINT)
    _check_independent(split, origin)
    return split if workers is None else _for_all(split, workers)


@dataclass(frozen=True)
class SkewedLoop:
    """The loop over so many steps in which each ends behind the first products of the next one.

    step:   translates a step, each time with other names
    guards: of the slots that it uses
    loop:   over so many steps, of a body
    """

    k: str
    count: Nat
    step: Callable[[], i.Command]
    guards: Sequence[Guard]
    loop: Callable[[Nat, i.Command], i.Command]
    origin: Origin

    def command(self, turns: Turns | None = None) -> i.Command:
        """P 0 ; Q 0 ; for k < n-1. (P (k+1) ; R k ; Q (k+1)) ; R (n-1)"""
        parts = in_two_parts(self.step(), self.origin)
        if turns is not None and parts.workers is None:
            raise TranslationError("R0747", "this step is not a map over warpgroups", self.origin)
        first = [guard for guard in self.guards if not guard.rings.isdisjoint(buffers(parts.early))]
        last = [guard for guard in self.guards if not guard.rings.isdisjoint(buffers(parts.late))]
        check_slots(first, last, self.origin)
        late = i.sequence(*(guard.wait for guard in last), parts.late)
        waits, releases, ends = (
            i.sequence(*commands)
            for commands in (
                (guard.wait for guard in first),
                (guard.release for guard in first),
                (guard.release for guard in last),
            )
        )
        k, zero, following, end = self.k, constant(0), variable(self.k) + 1, self.count - 1
        again = in_two_parts(self.step(), self.origin)
        renamed = parts.with_registers(again.only(again.early), again.registers)
        start = at_index(i.sequence(waits, renamed, releases), k, zero)
        both = parts.both(at_index(parts.early, k, following), late, turns, variable(k))
        body = i.sequence(at_index(waits, k, following), both, at_index(releases, k, following), ends)
        finish = at_index(i.sequence(parts.only(late), ends), k, end)
        loop = i.Skip() if end == zero else self.loop(end, body)
        whole = i.sequence(start, loop, finish)
        return parts.around(whole if at_least(self.count, 1) else i.When(zero, self.count, whole))


def check_slots(first: Sequence[Guard], last: Sequence[Guard], origin: Origin) -> None:
    """Refuses a step both of whose parts use an operand: its slot would be in use in two steps."""
    if any(guard in last for guard in first):
        message = "the first and the last products of this step use the same operand"
        raise TranslationError("R0744", message, origin, HINT)


def _split(command: i.Command) -> SkewedStep | None:
    """P and Q, and the last products with what follows them."""
    match command:
        case i.New(Space.LOCAL, name, _, body):
            inner = _split(body)
            if inner is None:
                return None
            if name in buffers(inner.late):
                return replace(inner, registers=(command, *inner.registers))
            return replace(inner, early=replace(command, body=inner.early))
        case i.Sequence(parts):
            last = max((n for n, part in enumerate(parts) if _multiplies(part)), default=None)
            inner = None if last is None else _split(parts[last])
            if inner is None or last is None:
                return None
            early, late = (*parts[:last], inner.early), (inner.late, *parts[last + 1 :])
            return replace(inner, early=i.sequence(*early), late=i.sequence(*late))
        case i.For() | i.MmaFragment() if _multiplies(command):
            return SkewedStep((), None, i.Skip(), command)
        case _:
            return None


def _multiplies(command: i.Command) -> bool:
    return any(isinstance(c, i.MmaFragment) for c in i.commands(command))


def _check_independent(split: SkewedStep, origin: Origin) -> None:
    first: list[i.Command] = []
    _behind_products(split.early, i.Skip(), first)
    for products, others in ((first, [split.late]), ([split.late], first)):
        common = _written(products) & set().union(*map(buffers, others))
        if common:
            message = f"the first and the last products of this step both use `{min(common)}`"
            raise TranslationError("R0744", message, origin, HINT)


def _written(parts: list[i.Command]) -> set[str]:
    return {name for part in parts for name in written(resolved(part))}


def _behind_products(command: i.Command, what: i.Command, first: list[i.Command] | None = None) -> i.Command:
    """Inserts a command behind the first products. first: collects what is before the place"""
    found = first if first is not None else []

    def go(part: i.Command) -> i.Command:
        match part:
            case i.New():
                return replace(part, body=go(part.body))
            case i.Sequence(parts):
                number = next(n for n, inner in enumerate(parts) if _multiplies(inner))
                found.extend(parts[:number])
                return i.sequence(*parts[:number], go(parts[number]), *parts[number + 1 :])
            case _:
                found.append(part)
                return i.sequence(part, what)

    return go(command)


def _for_all(split: SkewedStep, workers: i.ParallelFor) -> SkewedStep:
    """The parts for all warpgroups, each with its own share of the registers."""
    types: Mapping[str, Data] = {new.name: new.type for new in split.registers}
    registers = tuple(replace(new, type=Array(workers.count, new.type)) for new in split.registers)

    def part(body: i.Command) -> i.Command:
        return of_worker(body, types, variable(workers.index), workers.count)

    return SkewedStep(registers, workers, part(split.early), part(split.late))
