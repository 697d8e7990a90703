"""`rise run --check`: a kernel beside the interpreter, on several inputs that tell programs apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rise.check.agreement import reference
from rise.check.compare import Comparison, Tolerance, compare, tolerance
from rise.check.draws import ASCENDING, BELOW, BEYOND, EQUAL, FRACTIONS, LITERALS, WHOLE, at
from rise.check.polynomial import draws
from rise.check.undefined import where_defined
from rise.errors import EvaluationError
from rise.expr import Expr
from rise.interpret import call
from rise.progress import progress, stepwise

# the most telling draws come first; floats with all digits are left out, as a kernel rounds in its own order
ORDER = (WHOLE, LITERALS, BELOW, FRACTIONS, ASCENDING, EQUAL, BEYOND)
DRAWS = 4
FIRST, SECONDS = 8.0, 3.0  # of the first run, in which the kernel is compiled; of all others together

Inputs = list[Any]


class Outcome(Protocol):
    """The result of a run."""

    @property
    def result(self) -> Any: ...
    @property
    def seconds(self) -> float: ...


Ran = TypeVar("Ran", bound=Outcome)


@dataclass(frozen=True)
class Trial:
    """Inputs, and what the interpreter computes from them."""

    inputs: Inputs
    expected: Any


@dataclass(frozen=True)
class Verdict:
    """The verdict of the last run; `draws` is how many there were, of those that were wanted.

    missed: a difference goes unnoticed with probability at most 2^-missed; why: what that follows from
    """

    comparison: Comparison
    draws: int
    wanted: int
    missed: int | None = None
    why: str = ""

    def __str__(self) -> str:
        agrees = "agrees" if self.comparison.agrees else "WRONG"
        runs = f"{self.draws} draw{'' if self.draws == 1 else 's'}"
        if self.comparison.agrees and self.draws < self.wanted:
            runs += f" of {self.wanted}, because one takes long"
        why = f" of {self.why}" if self.why else ""
        return f"{agrees}, {self.comparison} ({runs}{why})"


def telling_trials(
    program: Expr, derived: Expr, given: Callable[[Inputs], Inputs] | None, seed: int, count: int
) -> Iterator[Trial]:
    """At most so many sets of inputs on which the program is defined.

    derived: the program as the kernel computes it: its literals are looked at, too
    given:   puts inputs of the user's in the place of those drawn; None where there are none
    """
    with progress("the interpreter computes what is expected"):
        first = reference(program, [derived], seed)
    kinds = first.draws.kinds
    ranked = sorted(range(len(kinds)), key=lambda i: (kinds.index(kinds[i]) != i, _rank(kinds[i])))
    for done, i in enumerate(ranked[:count]):
        inputs = first.draws.one(i)
        if given is None:
            yield Trial(inputs, at(first.results, i))
            continue
        try:
            inputs = given(inputs)
            yield Trial(inputs, call(program, *inputs))
        except EvaluationError:
            if done == 0:
                raise


def _rank(kind: str) -> int:
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def compared(
    program: Expr, trials: Iterator[Trial], run: Callable[[Inputs], Ran], wanted: int
) -> tuple[Ran, Verdict]:
    """Runs one after the other, up to the first wrong one, which is given back; else the first."""
    allowed = tolerance(program)

    def attempt(trial: Trial) -> tuple[Ran, Comparison]:
        outcome = run(trial.inputs)
        found = compare(outcome.result, trial.expected, allowed)
        if not found.agrees:  # perhaps only where the program leaves its result undefined
            defined = where_defined(program, trial.inputs, outcome.result, trial.expected)
            found = compare(defined, trial.expected, allowed)
        return outcome, found

    first, worst = attempt(next(trials))
    done = 1
    if not worst.agrees or first.seconds > FIRST:
        return first, Verdict(worst, done, wanted)
    started = time.perf_counter()
    for trial in stepwise("checking further draws", trials, wanted - 1):
        outcome, found = attempt(trial)
        done += 1
        if not found.agrees:
            return outcome, Verdict(found, done, wanted)
        worst = max(worst, found, key=lambda comparison: comparison.error)
        if time.perf_counter() - started + outcome.seconds > SECONDS:
            break
    return first, Verdict(worst, done, wanted)


def in_field(program: Expr, run: Callable[[Inputs], Ran], seed: int) -> tuple[Ran, Verdict]:
    """Runs a program of sums and products on as many draws as tell it from any other one.

    UsageError R0020, R0021 for programs that this is not for; see `rise.check.polynomial`.
    """
    plan = draws(program)
    outcomes: list[Ran] = []
    for number in stepwise("checking", range(plan.count), plan.count):
        inputs = plan.inputs(program, number, seed)
        outcomes.append(run(inputs))
        found = compare(outcomes[-1].result, call(program, *inputs), Tolerance())
        if not found.agrees:
            return outcomes[-1], Verdict(found, number + 1, plan.count)
    return outcomes[0], Verdict(found, plan.count, plan.count, plan.missed, str(plan))
