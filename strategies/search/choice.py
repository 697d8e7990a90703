"""The schedule of one kernel: remembered parameters, or the first of the cost model that builds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from rewrites.result import Failure, Success
from rise.errors import RiseError, StrategyError
from rise.expr import Expr, Identifier, Primitive, subterms
from rise.generator import Builds
from rise.instructions import OPERANDS
from rise.progress import stepwise
from rise.types import SCALARS, scalars
from strategies.registry import find
from strategies.search.cost import BOUNDARY
from strategies.search.hardware import Gpu
from strategies.search.identity import identity
from strategies.search.open_sizes import Expected
from strategies.search.problem import Problem
from strategies.search.space import Point, Ranked, best_first, candidates, has_faster
from strategies.search.store import Record, lookup, point_of
from strategies.search.trials import SHARED, Trials, summary

FIRST = 16  # of what the model ranks first, tiles that differ
TRIED = 24  # until one is a kernel
NOTHING = "nothing is remembered"
NO_PRODUCT = "it is not a product of matrices, which the cost model could rank"


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why."""

    point: Point
    reason: str

    def __str__(self) -> str:
        return f"{self.point}: {self.reason}"


@dataclass(frozen=True)
class Search:
    """Whose parameters are searched, for which GPU, and how candidates are built.

    store:    a file of remembered parameters, besides those that are found always
    strategy: whose parameters the model chooses, where nothing is remembered
    expected: about how large sizes are that are open until launch
    in_front: bytes that a small kernel reads, in front of the one that is searched
    beside:   whether products may start beside such a kernel
    """

    gpu: Gpu
    target: str
    store: str = ""
    strategy: str = "tensor_core"
    builds: Builds | None = None
    expected: Expected = Expected()
    in_front: int = 0
    beside: bool = True

    def problem_of(self, term: Expr) -> Problem | None:
        """What the model ranks: the problem at the sizes that are expected."""
        try:
            at = self.expected.at(term)
            found = Problem.of(at)
            if found is None or not found.m * found.n * found.k * found.batch:
                return None
            return replace(found, open=at is not term, in_front=self.in_front)
        except RiseError:  # of a rule that does not take the program: then there is no product to rank
            return None

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


def chosen(search: Search, term: Expr) -> tuple[Choice, Success] | str:
    """For a closed kernel with products: what is remembered or ranked first; or why there is nothing."""
    before = remembered(search, term)
    if not isinstance(before, str):
        return before
    said = [before]
    problem = search.problem_of(term)
    if problem is None:
        return "; ".join([*said, NO_PRODUCT])
    found, trials = _modelled(search, problem, term)
    said += [found[1]] if found is not None else []
    passed = summary(why for _, why in trials.refused)
    said += [passed] if passed else []
    if found is not None:
        return Choice(found[0], "; ".join(said)), found[2]
    if not passed:
        said.append(nothing_tried(search, problem.operand))
    return "; ".join(said)


def nothing_tried(search: Search, operand: str) -> str:
    """That no instruction multiplies numbers of a type."""
    products = f"products of `{operand}` on {search.gpu.target}"
    return f"nothing is tried of `{search.strategy}` for {products}{_exactly(operand)}"


def _exactly(operand: str) -> str:
    """What to do about floats that are wider than the operands of tensor cores; nothing for other types."""
    if operand in OPERANDS or operand not in SCALARS or not SCALARS[operand].is_float:
        return ""
    return ", which no tensor core multiplies exactly: `tf32(x)` rounds a number to what one does"


def separate_operands(search: Search, term: Expr) -> bool:
    """Whether operands that bulk copies do not bring are better stored by kernels before.

    Bulk copies bring numbers as they are, and warpgroups read only those of 16 bits across k. Otherwise warps
    copy and compute the operands of each tile.
    """
    problem = search.problem_of(term)
    if problem is None or problem.ready or lookup(identity(term), search.target, search.store):
        return False
    stored = problem.stored
    with_warps = _best(search, problem)
    there = with_warps.cost.cycles if with_warps is not None else inf
    copied = (problem.m + problem.n) * problem.k * problem.batch * problem.operand_bytes
    return _faster_behind_a_kernel(search, stored, copied, there)


def reduced_beside(search: Search, term: Expr) -> bool:
    """Whether rows of an operand are better reduced in the loop of its product than by a kernel before."""
    if lookup(identity(term), search.target, search.store):
        return True
    problem = search.problem_of(term)
    if problem is None or not problem.row_work:
        return False
    best = _best(search, problem)
    read = problem.m * problem.k * problem.batch * problem.operand_bytes
    alone, beside = replace(problem, row_work=0), replace(problem, row_work=0, in_front=read)
    if best is None or has_faster(search.strategy, beside, search.gpu, best.cost.cycles):
        return False
    return not _faster_behind_a_kernel(search, alone, read / 2, best.cost.cycles)


def starts_beside(search: Search, last: Expr, read: int) -> bool:
    """Whether a product is better beside a small kernel that reads so many bytes than behind a larger one."""
    problem = search.problem_of(last)
    if problem is None:
        return False
    beside = _best(search, replace(problem, in_front=read))
    return beside is not None and not _faster_behind_a_kernel(search, problem, read / 2, beside.cost.cycles)


def pays(search: Search, whole: Expr, last: Expr, copied: int) -> bool:
    """Whether two kernels are faster than one: one that reads and writes so many bytes, and the last."""
    problems = search.problem_of(whole), search.problem_of(last)
    if lookup(identity(whole), search.target, search.store) or None in problems:
        return False
    one, two = (problem for problem in problems if problem is not None)
    best = _best(search, one)
    return best is not None and _faster_behind_a_kernel(search, two, copied, best.cost.cycles)


def _best(search: Search, problem: Problem) -> Ranked | None:
    """What the cost model expects to be fastest, if there is any schedule."""
    return next(iter(best_first(search.strategy, problem, search.gpu)), None)


def _faster_behind_a_kernel(search: Search, last: Problem, copied: float, cycles: float) -> bool:
    """Whether a kernel and one before it, which reads and writes so many bytes, take fewer cycles."""
    left = cycles - BOUNDARY - 2 * copied / search.gpu.dram_rate
    return has_faster(search.strategy, last, search.gpu, left)


def remembered(search: Search, term: Expr) -> tuple[Choice, Success] | str:
    """The kernel by what is remembered of a closed program; or why there is none."""
    record = lookup(identity(term), search.target, search.store)
    if record is None:
        return NOTHING
    found = _remembered(search, record, term)
    if isinstance(found, RiseError):
        return f"the remembered parameters no longer make a kernel, {record}: {reason(found)}"
    return found


def _remembered(search: Search, record: Record, term: Expr) -> tuple[Choice, Success] | RiseError:
    try:
        point = point_of(record)
    except RiseError as error:
        return error
    result = search.attempt(point, term)
    return (Choice(point, f"remembered, {record}"), result) if isinstance(result, Success) else result


Found = tuple[Point, str, Success]


def _modelled(search: Search, problem: Problem, term: Expr) -> tuple[Found | None, Trials]:
    """The first of what the cost model ranks that is a kernel, with its place; and those before it."""
    there = multiplies(term)
    trials = Trials(candidates(search.strategy, problem, search.gpu, FIRST) if there else (), problem)
    for number, one in stepwise("candidate", _numbered(trials), TRIED):
        result = search.attempt(one.point, term)
        if isinstance(result, Success):
            place = "first" if number == 1 else f"number {number}"
            expected = f"{search.gpu.microseconds(one.cost.cycles):.1f} µs expected on {search.gpu.name}"
            expected += search.expected.said(term)
            return (one.point, f"{place} by the cost model, {expected}", result), trials
        trials.refuse(one, reason(result))
    return None, trials


def multiplies(program: Expr) -> bool:
    """Whether an instruction may multiply numbers of a program: some have a type of operands of one.

    No rule makes numbers of another type, so without one every candidate would be derived in vain.
    """
    given: Iterator[object] = itertools.chain.from_iterable(
        part.arguments if isinstance(part, Primitive) else (part.type,)
        for part in subterms(program)
        if isinstance(part, Primitive | Identifier)
    )
    return not OPERANDS.isdisjoint(name for type_ in given for name in scalars(type_))


def _numbered(trials: Trials) -> Iterator[tuple[int, Ranked]]:
    for number in range(1, TRIED + 1):
        one = trials.take()
        if one is None:
            return
        yield number, one


def reason(error: RiseError) -> str:
    """In a line: code and message."""
    return " ".join(f"{error.code} {error.message}".split())
