"""The strategy that was found to be best for a program at its sizes; where none was, a model chooses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rewrites.result import Failure, Result, Success
from rise.errors import RiseError, StrategyError
from rise.expr import Expr
from strategies.core import FunctionStrategy, prints_as_call
from strategies.registry import find
from strategies.search.hardware import Gpu, for_target
from strategies.search.identity import identity
from strategies.search.problem import Problem
from strategies.search.space import Point, Ranked, candidates
from strategies.search.store import Record, lookup, point_of
from strategies.search.trials import SHARED, Trials, summary

FIRST = 16  # of what the model ranks first, tiles that differ
TRIED = 24  # until one is a kernel
NO_PRODUCT = "it is not a product of matrices of known sizes, which the cost model could rank"
# of a low-level program, for a target: the bytes of shared memory that a block of its kernels takes. Raises
# raises a RiseError where the program does not become a kernel
Builds = Callable[[Expr, str], int]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why."""

    point: Point
    reason: str

    def __str__(self) -> str:
        return f"tuned: {self.point}: {self.reason}"


@dataclass(frozen=True, repr=False)
class Tuned(FunctionStrategy):
    """choice: what a term is rewritten by.

    first_that: the same strategy, for which a candidate counts only if the program that it gives builds.
    """

    choice: Callable[[Expr], Choice] = field(kw_only=True)
    first_that: Callable[[Builds], Tuned] = field(kw_only=True)


@dataclass(frozen=True)
class _Search:
    """The arguments of `tuned`, and how it builds kernels."""

    gpu: Gpu
    target: str
    store: str
    strategy: str
    builds: Builds | None = None

    def attempt(self, point: Point, term: Expr) -> Success | RiseError:
        """What a point makes of a term; why it makes no kernel of it."""
        try:
            result = find(point.strategy).make(point.settings)(term)
            if isinstance(result, Failure):
                return result.error(point.strategy)
            if self.builds is not None:
                self._check(self.builds(result.term, self.target))
        except RiseError as error:
            return error
        return result

    def _check(self, shared: int) -> None:
        there = self.gpu.limits.shared_bytes
        if shared > there:
            message = f"{shared} bytes of shared memory are needed; at most {there} exist for {self.target}"
            raise StrategyError(SHARED, message)


@prints_as_call
def tuned(target: str = "sm_90a", store: str = "", strategy: str = "tensor_core") -> Tuned:
    """The parameters that `rise tune` remembers for a program; else the first that the cost model ranks.

    What does not derive is passed over, and what does not build where that is tried (`first_that`). The last
    candidate is `default`, which is for any program.

    target:   the GPU that code is for
    store:    a file of remembered parameters, besides those that are found always
    strategy: whose parameters the model chooses, where nothing is remembered
    """
    return _tuned(_Search(for_target(target), target, store, strategy))


def _tuned(search: _Search) -> Tuned:
    done: dict[str, tuple[Choice, Result]] = {}

    def chosen(term: Expr) -> tuple[Choice, Result]:
        key = identity(term)
        if key not in done:
            done[key] = _chosen(search, key, term)
        return done[key]

    return Tuned(
        "tuned", lambda term: chosen(term)[1], choice=lambda term: chosen(term)[0],
        first_that=lambda builds: _tuned(_Search(*_asked(search), builds)),
    )  # fmt: skip


def _asked(search: _Search) -> tuple[Gpu, str, str, str]:
    return search.gpu, search.target, search.store, search.strategy


def _chosen(search: _Search, key: str, term: Expr) -> tuple[Choice, Result]:
    """What is remembered, what the model ranks, `default`: the first that becomes a kernel."""
    record = lookup(key, search.target, search.store)
    said = ["nothing is remembered"]
    if record is not None:
        remembered = _remembered(search, record, term)
        if not isinstance(remembered, RiseError):
            return remembered
        said = [f"the remembered parameters no longer make a kernel, {record}: {reason(remembered)}"]
    problem = _problem(term)
    if problem is None:
        said.append(NO_PRODUCT)
    else:
        found, trials = _modelled(search, problem, term)
        said += [found[1]] if found is not None else []
        passed = summary(why for _, why in trials.refused)
        said += [passed] if passed else []
        if found is not None:
            return Choice(found[0], "; ".join(said)), found[2]
        if not passed:
            operand = f"products of `{problem.operand}` on {search.gpu.target}"
            said.append(f"nothing is tried of `{search.strategy}` for {operand}")
    return Choice(Point.of("default", {}), "; ".join(said)), find("default").make({})(term)


def _problem(term: Expr) -> Problem | None:
    try:
        return Problem.of(term)
    except RiseError:  # of a rule that does not take the program: then there is no product to rank
        return None


def _remembered(search: _Search, record: Record, term: Expr) -> tuple[Choice, Result] | RiseError:
    try:
        point = point_of(record)
    except RiseError as error:
        return error
    result = search.attempt(point, term)
    return (Choice(point, f"remembered, {record}"), result) if isinstance(result, Success) else result


Found = tuple[Point, str, Success]


def _modelled(search: _Search, problem: Problem, term: Expr) -> tuple[Found | None, Trials]:
    """The first of what the cost model ranks that is a kernel, with its place; and those before it."""
    trials = Trials(candidates(search.strategy, problem, search.gpu, FIRST), problem)
    for number, one in _numbered(trials):
        result = search.attempt(one.point, term)
        if isinstance(result, Success):
            place = "first" if number == 1 else f"number {number}"
            expected = f"{search.gpu.microseconds(one.cost.cycles):.1f} µs expected on {search.gpu.name}"
            return (one.point, f"{place} by the cost model, {expected}", result), trials
        trials.refuse(one, reason(result))
    return None, trials


def _numbered(trials: Trials) -> Iterator[tuple[int, Ranked]]:
    for number in range(1, TRIED + 1):
        one = trials.take()
        if one is None:
            return
        yield number, one


def reason(error: RiseError) -> str:
    """In a line: code and message."""
    return " ".join(f"{error.code} {error.message}".split())
