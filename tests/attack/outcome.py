"""What became of one trial of an attack."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rise.errors import RiseError


class Verdict(Enum):
    """What can become of a trial: the first three are right, each of the others is a defect."""

    RIGHT = "right"  # accepted, and what it computes is what it means
    REFUSED = "refused"  # by one of our own errors, with its code
    NOTICED = "noticed"  # a seeded fault, by the check that looks for it
    WRONG = "wrong"  # a wrong result
    MISSED = "missed"  # a seeded fault that nothing noticed
    UNBUILT = "unbuilt"  # a strategy's Success that the code generator refuses
    INTERNAL = "internal error"  # an exception that is not ours, or one of ours that blames the compiler
    HANG = "hang"  # beyond the time limit
    CRASH = "crash"  # the process is gone

    @property
    def is_defect(self) -> bool:
        return self not in (Verdict.RIGHT, Verdict.REFUSED, Verdict.NOTICED)


@dataclass(frozen=True)
class Outcome:
    """A verdict with its evidence.

    code:   of the error by which something was refused or noticed
    detail: what was said
    kernel: what identifies the kernel that was run, where different trials may give one
    """

    verdict: Verdict
    code: str = ""
    detail: str = ""
    kernel: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verdict.value, self.code, self.detail)))


def refused(error: RiseError) -> Outcome:
    """One of our own errors: internal if it blames the compiler."""
    verdict = Verdict.INTERNAL if is_internal(error.code) else Verdict.REFUSED
    return Outcome(verdict, error.code, error.message[:300])


def is_internal(code: str) -> bool:
    """Whether a code of ours says that the compiler made a mistake, not the user."""
    return code.endswith("99")
