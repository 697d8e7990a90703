"""Turns: warpgroups start the products of their skewed steps one after the other, the next one when one has.

    parFor(warpgroup) g < w. (P (k+1) ; R k ; Q (k+1))   =
    parFor(warpgroup) g < w. (wait for turn g ; P (k+1) ; R k ; arrive at turn (g+1) mod w ; Q (k+1))

While one warpgroup computes with its products, Q, the products of another one keep tensor cores busy. Without
turns all warpgroups of a block tend to multiply, and then to compute, at the same time. The equation holds
whatever the steps are, if all warpgroups have equally many: a turn is an mbarrier with one arrival. This is
the ping-pong of FlashAttention-3 (Shah et al., 2024, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, MBARRIER
from codegen.lower.translate import Call, Continuation, Translator, accept_at, continuing
from rise.errors import TranslationError
from rise.nat import Nat, constant, quotient, remainder, variable
from rise.source import Origin
from rise.types import Array, Space

HINT = "write `skewed(inTurn(…))` for the step of a `reduceRoleSplit` whose consumers are 2 or more"


@dataclass(frozen=True)
class Turns:
    """The turns of so many warpgroups. A pipeline of n elements has n - 1, which begin behind the first step.

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


@continuing("inTurn")
def refused(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """A skewed step of `reduceRoleSplit` is translated without it."""
    message = "`inTurn` is for a skewed step of a pipeline by roles"
    raise TranslationError("R0747", message, call.origin, HINT)
