"""The cases of a table: which are done, which there is time for, and their records on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from time import sleep
from typing import Protocol

from bench.board import Board, Task
from bench.build import Builds, Built, Refused
from bench.contest import FINALISTS, ROTATION, Contest, Finalist, Runner, Tried
from bench.interpreted import operation_of
from bench.journal import Journal
from bench.measure import SEMIFINALISTS, Clock
from bench.progress import Progress, skipped, summary
from bench.results import OURS, Attempt, Row, append, crashed, done, measured, read_attempts, read_rows
from bench.statistics import Summary
from bench.table import Case, Table
from rise.progress import progress

LOOK = 0.02  # seconds after which a board is looked at again


@dataclass(frozen=True)
class Limits:
    """Peak rates: tensor operations (TFLOP/s) and copies (GB/s); None where they are unknown."""

    tflops: float | None
    gb_s: float | None


@dataclass(frozen=True)
class State:
    """Clock and power of a device under load."""

    sm_mhz: int = 0
    watts: float = 0.0


class Device(Protocol):
    """The device that a table is measured on."""

    name: str
    limits: Limits

    def runner(self, case: Case) -> Runner: ...

    def state(self) -> State: ...

    def bytes(self, case: Case) -> int:
        """Of all inputs and the result."""


@dataclass
class Campaign:
    """folder: where the results are. deadline: on the clock; code: a digest of the compiler.

    beside: in whose folders other processes write attempts, too, at cases that this one decides

    The outcome of each candidate is recorded as soon as it is known, so an interrupted case resumes with the
    times that it has.
    """

    table: Table
    folder: Path
    device: Device
    builds: Builds
    clock: Clock
    progress: Progress
    code: str
    deadline: float = inf
    date: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="milliseconds")
    finalists: int = FINALISTS
    beside: Path | None = None
    left: list[Case] = field(default_factory=list)
    opened: tuple[str, Runner] | None = None

    @property
    def rows_path(self) -> Path:
        return self.folder / f"{self.table.name}.csv"

    @property
    def attempts_path(self) -> Path:
        return self.folder / f"{self.table.name}.attempts.csv"

    @property
    def journal(self) -> Journal:
        return Journal(self.folder / f"{self.table.name}.running.json")

    def run(self) -> None:
        """Measures every case that is not done, while there is time. The others are in `left`."""
        finished = self._finished()
        waiting = [case for case in self.table.cases if case.key not in finished]
        self.builds.start(waiting)
        longest = 0.0
        for position, case in enumerate(waiting):
            if self._time_left() <= longest:
                self.left = waiting[position:]
                break
            start = self.clock.now()
            self.progress.case(case, position, len(waiting))
            self._case(Task(case, tuple(self._built(case))))
            self._close()
            longest = max(longest, self.clock.now() - start)

    def serve(self, board: Board, wait: Callable[[], None] = partial(sleep, LOOK)) -> None:
        """Measures what it gets from a board, until all of that is done, while there is time.

        Operands stay for as long as parts of the same case follow each other.
        """
        finished, longest = self._finished(), 0.0
        while not board.finished and self._time_left() > longest:
            if (task := board.take()) is None:
                wait()
                continue
            start = self.clock.now()
            if self.opened is not None and self.opened[0] != task.case.key:
                self._close()
            board.finish(task, "" if task.case.key in finished else self._case(task))
            longest = max(longest, self.clock.now() - start)
        self._close()

    def _finished(self) -> set[str]:
        return done(read_rows(self.rows_path), self.code, self.device.name)

    def _time_left(self) -> float:
        return self.deadline - self.clock.now()

    def _built(self, case: Case) -> Sequence[Built | Refused]:
        with progress("compiling"):
            return self.builds.of(case, None if self.deadline == inf else max(0.0, self._time_left()))

    def _case(self, task: Task) -> str:
        """What became of it, in a line, which is empty for parts."""
        case = task.case
        tried = self._attempts()
        barred = {(k, n) for key, k, n in crashed(tried, self.code, self.device.name) if key == case.key}
        if any(name == ROTATION for _, name in barred):
            return self._skipped(case, "its finalists crashed the process before")
        before = measured(tried, self.code, self.device.name).get(case.key, {})
        builds = promising(task.builds, before) if task.apart else task.builds
        try:
            runner = self._runner(case)
        except Exception as error:  # noqa: BLE001  # it may be too large for the device
            return self._skipped(case, str(error))
        contest = Contest(
            runner, self.clock, self._report(case), frozenset(barred), partial(self._write_down, case),
            before, self.finalists if task.last else 0,
        )  # fmt: skip
        finalists: list[Finalist] = []
        try:
            finalists = contest.run(builds, case.subject.baselines)
        finally:
            append(self.rows_path, self._rows(case, finalists))
            self.progress.finished(case, finalists, contest.tried)
        return summary(case, finalists, contest.tried) if task.last else ""

    def _attempts(self) -> list[Attempt]:
        others = sorted(self.beside.glob(f"*/{self.attempts_path.name}")) if self.beside else []
        return [a for path in (self.attempts_path, *others) for a in read_attempts(path)]

    def _skipped(self, case: Case, reason: str) -> str:
        self.progress.skipped(case, reason)
        return skipped(case, reason)

    def _runner(self, case: Case) -> Runner:
        if self.opened is None:
            self.opened = case.key, self.device.runner(case)
        return self.opened[1]

    def _close(self) -> None:
        if self.opened is not None:
            self.opened[1].close()
            self.opened = None

    def _report(self, case: Case) -> Callable[[tuple[str, str] | None], None]:
        def report(running: tuple[str, str] | None) -> None:
            if running is None:
                self.journal.clear()
            else:
                self.journal.note(case.key, *running)
                self.progress.step(*running)

        return report

    # --- records

    def _write_down(self, case: Case, tried: Tried) -> None:
        append(self.attempts_path, [self._attempt(case, tried)])

    def _attempt(self, case: Case, tried: Tried) -> Attempt:
        median, spread = (tried.summary.median, tried.summary.spread) if tried.summary else (0.0, 0.0)
        return Attempt(
            self.code, self.device.name, case.key, tried.kind, tried.name, tried.status,
            median, spread, tried.resources, tried.reason,
        )  # fmt: skip

    def _rows(self, case: Case, finalists: Sequence[Finalist]) -> list[Row]:
        date, state = self.date(), self.device.state()
        ours = next((f.summary.median for f in finalists if f.variant.kind == OURS), 0.0)
        return [self._row(case, finalist, date, state, ours) for finalist in finalists]

    def _row(self, case: Case, finalist: Finalist, date: str, state: State, ours: float) -> Row:
        variant, summary, verdict = finalist.variant, finalist.summary, finalist.verdict
        microseconds = summary.median
        tflops = operation_of(case).flops(case.sizes) / microseconds / 1e6
        gb_s = self.device.bytes(case) / microseconds / 1e3
        limits = self.device.limits
        reached, limit = (tflops, limits.tflops) if case.subject.limit == "tensor" else (gb_s, limits.gb_s)
        return Row(
            date, self.device.name, self.code, case.key, variant.kind, variant.name,
            microseconds, summary.lower, summary.upper, summary.spread, summary.samples,
            tflops, gb_s, case.subject.limit, reached / limit if limit else 0.0,
            microseconds / ours if ours else 0.0, verdict.error, verdict.bound, verdict.how,
            state.sm_mhz, state.watts,
        )  # fmt: skip


def promising(
    builds: Sequence[Built | Refused], before: Mapping[tuple[str, str], Summary]
) -> list[Built | Refused]:
    """Those that may reach the last round: of each series, those that the coarse one found fastest."""
    kept: list[Built | Refused] = []
    for series in dict.fromkeys(made.candidate.series for made in builds):
        timed = [made for made in builds if made.candidate.series == series and _name(made) in before]
        kept += sorted(timed, key=lambda made: before[_name(made)].median)[:SEMIFINALISTS]
    return kept


def _name(made: Built | Refused) -> tuple[str, str]:
    return made.candidate.series, str(made.candidate)
