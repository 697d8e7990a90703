"""The strategy that was found to be best for a program at its sizes; where none was, a model chooses one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rewrites.result import Failure, Result, Success
from rise.errors import StrategyError, UsageError
from rise.expr import Expr
from strategies.core import Strategy
from strategies.registry import find
from strategies.search.hardware import Gpu, for_target
from strategies.search.identity import identity
from strategies.search.problem import Problem
from strategies.search.space import Point, ranked, varied
from strategies.search.store import Record, lookup, point_of

TRIED = 16  # of what the model ranks first, until one derives
NOTHING = "nothing is remembered of this program, and it is no product of matrices, which a model could rank"


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why."""

    point: Point
    reason: str

    def __str__(self) -> str:
        return f"tuned: {self.point}: {self.reason}"


@dataclass(frozen=True)
class Tuned(Strategy):
    """choice: what a term is rewritten by; None where there is nothing to choose."""

    choice: Callable[[Expr], Choice | None] = field(kw_only=True)


def tuned(target: str = "sm_90a", store: str = "", strategy: str = "tensor_core") -> Tuned:
    """The parameters that `rise tune` remembers for a program; else the first that the cost model ranks.

    target:   the GPU that code is for
    store:    a file of remembered parameters, besides those that are found always
    strategy: whose parameters the model chooses, where nothing is remembered
    """
    gpu = for_target(target)
    done: dict[str, tuple[Choice | None, Result]] = {}

    def chosen(term: Expr) -> tuple[Choice | None, Result]:
        key = identity(term)
        if key not in done:
            record = lookup(key, target, store)
            if record is not None:
                done[key] = _remembered(record, term)
            else:
                done[key] = _modelled(strategy, gpu, term)
        return done[key]

    return Tuned("tuned", lambda term: chosen(term)[1], choice=lambda term: chosen(term)[0])


def _remembered(record: Record, term: Expr) -> tuple[Choice, Result]:
    """Parameters that do not fit any more are an error, not a reason to take others."""
    try:
        point = point_of(record)
        result = find(point.strategy).make(point.settings)(term)
    except (StrategyError, UsageError) as error:
        raise StrategyError(
            "R0622", f"what is remembered does not fit any more, {record}: {error.message}",
            hint="`rise tune` finds anew what is best",
        ) from error  # fmt: skip
    return Choice(point, f"remembered, {record}"), result


def _modelled(strategy: str, gpu: Gpu, term: Expr) -> tuple[Choice | None, Result]:
    """The first of what the cost model ranks that derives."""
    problem = Problem.of(term)
    if problem is None:
        return None, Failure("tuned", term, NOTHING, hint="`--strategy default` lowers any program")
    candidates = varied(ranked(strategy, problem, gpu), TRIED)
    first: Failure | None = None
    for number, candidate in enumerate(candidates, 1):
        result = find(strategy).make(candidate.point.settings)(term)
        if isinstance(result, Success):
            place = "first" if number == 1 else f"number {number}"
            expected = f"{gpu.microseconds(candidate.cost.cycles):.1f} µs expected on {gpu.name}"
            reason = f"nothing is remembered; {place} by the cost model, {expected}"
            return Choice(candidate.point, reason), result
        first = first or result
    none = f"nothing is tried of `{strategy}` for products of `{problem.operand}` on {gpu.target}"
    return None, first or Failure("tuned", term, none)
