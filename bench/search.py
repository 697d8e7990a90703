"""Candidates of tables: remembered ones, and those that the cost model ranks first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.build import processes
from bench.derive import program
from bench.results import OURS, Row, latest
from bench.table import Candidate, Case, Source, Subject, Table
from rise.check.specialise import specialise
from rise.errors import UsageError
from rise.expr import Expr
from rise.normal import data_flow
from rise.progress import stepwise
from strategies.search.cost import UNKNOWN
from strategies.search.hardware import for_target
from strategies.search.identity import identity
from strategies.search.problem import Problem
from strategies.search.space import SPACES, Point, Ranked, candidates, declared, ranked, refusal, varied
from strategies.search.store import Record, append, lookup, point_of, read
from strategies.search.trials import InOrder, Trials

MANY = 5  # cases: ranking the candidates of fewer takes no longer than starting processes


@dataclass(frozen=True)
class Search:
    """The search for a schedule of a program at its sizes on a target.

    fixed: parameters of the strategy that are not searched, with their values
    """

    program: Expr
    target: str
    strategy: str = "tensor_core"
    store: str = ""
    fixed: tuple[tuple[str, Any], ...] = ()

    @property
    def identity(self) -> str:
        return identity(self.program)

    @property
    def problem(self) -> Problem | None:
        return Problem.of(self.program)

    @property
    def described(self) -> str:
        """For messages: where there is nothing to rank."""
        operand = self.problem.operand if self.problem else "?"
        return f"of `{self.strategy}` for products of `{operand}` on {self.target}"

    def remembered(self) -> Record | None:
        return lookup(self.identity, self.target, self.store)

    def ranked(self, count: int) -> list[Ranked]:
        """The best by the model. UsageError R0034 where the model cannot rank the program."""
        return varied(ranked(self.strategy, self._product, for_target(self.target)), count)

    def trials(self, count: int) -> InOrder:
        """The same and those after them, in the order in which they are tried. R0034 as above.

        Of a strategy that declares its space: its combinations, which nothing ranks.
        """
        if self.strategy not in SPACES:
            return InOrder(Ranked(point, UNKNOWN) for point in declared(self.strategy, dict(self.fixed)))
        problem = self._product
        found = candidates(self.strategy, problem, for_target(self.target), count, dict(self.fixed))
        return Trials(found, problem)

    @property
    def _product(self) -> Problem:
        if (problem := self.problem) is not None:
            return problem
        message = "the program is not a product of matrices of known sizes, which the model could rank"
        hint = "give all sizes; `--strategy tuned` of `rise run` uses `default` for other programs"
        raise UsageError("R0034", message, hint=hint)


def search(
    source: Source,
    definition: str,
    sizes: Mapping[str, int],
    target: str,
    strategy: str,
    store: str = "",
    settings: Mapping[str, str] | None = None,
) -> Search:
    """settings: parameters that are fixed. UsageError R0011 for one that the strategy does not have."""
    term = data_flow(specialise(program(source)[definition], dict(sizes)))
    return Search(term, target, strategy, store, Point.read(strategy, settings or {}).parameters)


def candidate(point: Point) -> Candidate:
    return Candidate(point.strategy, tuple(point.settings.items()))


def searched(
    table: Table, how: str, count: int, target: str, store: str = "", jobs: int | None = None
) -> Table:
    """The table with candidates by `how` for each case; programs that the model cannot rank keep theirs.

    tuned: remembered ones, else the first `count` of the model; model: always these; both: what is
    remembered, and these; table: its own that apply. Series with a name of their own stay as they are: they
    show what they are called.
    jobs: how many processes rank the candidates of many cases
    """
    if how == "table":
        kept = tuple(s for each in table.subjects for s in applicable(each, target))
        return table if kept == table.subjects else replace(table, subjects=kept)
    find = partial(_candidates, how=how, count=count, target=target, store=store)
    found = zip(table.cases, _each(find, table.cases, jobs), strict=True)
    subjects = (replace(case.subject, sizes=(case.sizes,), candidates=mine) for case, mine in found)
    return replace(table, subjects=tuple(subjects))


def _each(
    find: Callable[[Case], tuple[Candidate, ...]], cases: Sequence[Case], jobs: int | None
) -> Sequence[tuple[Candidate, ...]]:
    """Of each case, in processes where there are many."""
    if len(cases) < MANY:
        return [find(case) for case in cases]
    with processes(jobs) as pool:
        made = [pool.submit(find, case) for case in cases]
        return [each.result() for each in stepwise("ranking candidates", made, len(made))]


def _candidates(case: Case, how: str, count: int, target: str, store: str) -> tuple[Candidate, ...]:
    named = tuple(c for c in case.subject.candidates if c.series != OURS)
    return (*_ours(case, how, count, target, store), *named)


def _ours(case: Case, how: str, count: int, target: str, store: str) -> tuple[Candidate, ...]:
    subject = case.subject
    of = search(subject.source, subject.definition, case.sizes, target, "tensor_core", store)
    record = of.remembered() if how in ("tuned", "both") else None
    known = () if record is None else (candidate(point_of(record)),)
    if how == "tuned" and known:
        return known
    if of.problem is None:
        return tuple(c for c in subject.candidates if c.series == OURS)
    return tuple(dict.fromkeys((*known, *(candidate(one.point) for one in of.ranked(count)))))


# --- what is remembered -----------------------------------------------------------------------------------


def record(of: Search, case: Case, best: Row) -> Record:
    """That the candidate of this name is the fastest for a case."""
    winner = next(c for c in case.subject.candidates if str(c) == best.name)
    return Record(
        of.identity, case.subject.definition, dict(case.sizes), of.target, best.device, winner.strategy,
        dict(winner.settings), round(best.median_us, 3), round(best.spread, 4), best.code, best.date,
    )  # fmt: skip


def winners(table: Table, rows: Iterable[Row], target: str) -> Iterator[Record]:
    """Of each case that was measured, if its fastest candidate has parameters that the model ranks."""
    fastest = {row.case: row for row in latest(rows) if row.kind == OURS}
    for case in table.cases:
        best = fastest.get(case.key)
        if best is not None and best.name.startswith("tensor_core "):
            of = search(case.subject.source, case.subject.definition, case.sizes, target, "tensor_core")
            yield record(of, case, best)


def remember(found: Record, path: Path) -> bool:
    """Appends it to a file that does not have it; whether it did."""
    news = not path.is_file() or found not in read(path)
    if news:
        append(path, found)
    return news


# --- candidates that cannot apply ---------------------------------------------------------------------------


def applicable(subject: Subject, target: str) -> list[Subject]:
    """The subject without candidates that their parameters rule out at a size, where there are others."""
    if not any(_competes(candidate, subject) for candidate in subject.candidates):
        return [subject]
    possible = [tuple(_possible(Case(subject, sizes), target)) for sizes in subject.sizes]
    if all(candidates == subject.candidates for candidates in possible):
        return [subject]
    each = zip(subject.sizes, possible, strict=True)
    return [replace(subject, sizes=(sizes,), candidates=candidates) for sizes, candidates in each]


def _competes(candidate: Candidate, subject: Subject) -> bool:
    """Whether it has parameters that can be ruled out, and the series has other candidates."""
    series = [c for c in subject.candidates if c.series == candidate.series]
    return candidate.strategy == "tensor_core" and len(series) > 1


def _possible(case: Case, target: str) -> Iterator[Candidate]:
    subject = case.subject
    problem = search(subject.source, subject.definition, case.sizes, target, "tensor_core", "").problem
    for candidate in subject.candidates:
        if problem is None or not _competes(candidate, subject):
            yield candidate
            continue
        point = Point.read(candidate.strategy, dict(candidate.settings))
        if refusal(point, problem, for_target(target)) is None:
            yield candidate
