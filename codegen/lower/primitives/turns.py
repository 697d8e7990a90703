"""Turns: warpgroups start the products of their steps one after the other, the next one when one has.

Of skewed steps,

    parFor(warpgroup) g < w. (P (k+1) ; R k ; Q (k+1))   =
    parFor(warpgroup) g < w. (wait for turn g ; P (k+1) ; R k ; arrive at turn (g+1) mod w ; Q (k+1))

and of others, P k ; Q k ; R k, the last products of a step and the first ones of the next are a turn:

    parFor(warpgroup) g < w. (P (k+1) ; if 0 < k+1 then arrive at turn (g+1) mod w ; Q ; wait for turn g ; R)

While one warpgroup computes with its products, Q, the products of another one keep tensor cores busy. Without
turns all warpgroups of a block tend to multiply, and then to compute, at the same time. The equation holds
whatever the steps are, if all warpgroups have equally many: a turn is an mbarrier with one arrival. This is
the ping-pong of FlashAttention-3 (Shah et al., 2024, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, MBARRIER
from codegen.lower.primitives.phases import in_turn
from codegen.lower.translate import Call, Continuation, Translator, accept_at, continuing
from rise.errors import TranslationError
from rise.nat import Nat, constant, quotient, remainder, variable
from rise.source import Origin
from rise.types import Array, Space

HINT = "write `inTurn(…)`, or `skewed(inTurn(…))`, for the step of a `reduceRoleSplit` by 2 consumers or more"


@dataclass(frozen=True)
class Turns:
    """The turns of so many warpgroups. A pipeline of n elements has n, one of skewed steps n - 1.

    before: how many there were in earlier executions of the pipeline, up to a multiple of 2
    """

    barriers: i.AcceptVariable
    warpgroups: int
    before: Nat

    @classmethod
    def of(cls, translator: Translator, warpgroups: int, before: Nat, origin: Origin) -> Turns:
        if warpgroups < 2:
            message = "turns are for several warpgroups, and here one computes"
            raise TranslationError("R0747", message, origin, HINT)
        type_ = Array(constant(warpgroups), MBARRIER)
        return cls(i.AcceptVariable(translator.name("turns"), type_), warpgroups, before)

    @property
    def setup(self) -> i.Command:
        return i.InitBarriers(self.barriers, constant(self.warpgroups))

    def around(self, body: i.Command, origin: Origin) -> i.Command:
        """Declares the mbarriers."""
        return i.New(Space.SHARED, self.barriers.name, self.barriers.type, body, origin, BARRIERS)

    def begin(self, warpgroup: str, number: Nat) -> i.Command:
        """Waits for a turn; the first warpgroup for the end of the one before."""
        group, count = variable(warpgroup), constant(self.warpgroups)
        phase = self.before + number + quotient(group + count - 1, count)
        return i.WaitBarrier(accept_at(self.barriers, group), remainder(phase + 1, constant(2)))

    def end(self, warpgroup: str) -> i.Command:
        """Hands the turn on.

        By then all threads have waited for it: before, a slot is released, when the first products end.
        """
        following = remainder(variable(warpgroup) + 1, constant(self.warpgroups))
        return i.Arrive(accept_at(self.barriers, following))

    def within(
        self, given: i.Command, step: i.Command, k: Nat, origin: Origin
    ) -> tuple[i.Command, i.Command]:
        """The step of number k, and what follows the last one.

        given: the step without waits for slots, which is a loop over warpgroups
        """
        if not (isinstance(given, i.ParallelFor) and given.level is i.Level.WARPGROUP):
            raise TranslationError("R0747", "this step is not a map over warpgroups", origin)
        begin, end = self.begin(given.index, k), self.end(given.index)
        made = in_turn(step, begin, i.When(constant(0), k, end))
        if made is None:
            message = "this step does not start products, compute with them and end with further products"
            raise TranslationError("R0747", message, origin, HINT)
        return made, replace(given, body=end)


@continuing("inTurn")
def refused(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """A step of `reduceRoleSplit` is translated without it."""
    raise not_in_turn(call.origin)


def not_in_turn(origin: Origin) -> TranslationError:
    return TranslationError("R0747", "`inTurn` is for the step of a pipeline by roles", origin, HINT)
