"""The cases of a table: which are done, which there is time for, and their records on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Protocol

from bench.build import Builds
from bench.contest import FINALISTS, ROTATION, Contest, Finalist, Runner, Tried
from bench.interpreted import operation_of
from bench.journal import Journal
from bench.measure import Clock
from bench.results import OURS, Attempt, Row, append, crashed, done, measured, read_attempts, read_rows
from bench.statistics import Summary
from bench.table import Case, Table
from rise.progress import progress


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


class Progress(Protocol):
    """Is called as the measurement proceeds."""

    def case(self, case: Case, position: int, count: int) -> None: ...

    def step(self, kind: str, name: str) -> None: ...

    def finished(self, case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> None: ...

    def skipped(self, case: Case, reason: str) -> None: ...


@dataclass
class Campaign:
    """folder: where the results are. deadline: on the clock; code: a digest of the compiler.

    claim: whether a case is to be measured here, asked when its turn comes; by default all are

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
    claim: Callable[[Case], bool] | None = None
    left: list[Case] = field(default_factory=list)

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
        finished = done(read_rows(self.rows_path), self.code, self.device.name)
        attempts = read_attempts(self.attempts_path)
        waiting = [case for case in self.table.cases if case.key not in finished]
        barred = crashed(attempts, self.code, self.device.name)
        timed = measured(attempts, self.code, self.device.name)
        longest = 0.0
        for position, case in enumerate(self._compiling(waiting)):
            if self._time_left() <= longest:
                self.left = waiting[position:]
                break
            if any(key == case.key and name == ROTATION for key, _, name in barred):
                self.progress.skipped(case, "its finalists crashed the process before")
                continue
            start = self.clock.now()
            self.progress.case(case, position, len(waiting))
            here = frozenset((kind, name) for key, kind, name in barred if key == case.key)
            self._case(case, here, timed.get(case.key, {}))
            longest = max(longest, self.clock.now() - start)

    def _compiling(self, waiting: Sequence[Case]) -> Iterator[Case]:
        """The cases in order. All are compiled from now on; of cases that are claimed, the next one is."""
        if self.claim is None:
            self.builds.start(waiting)
            yield from waiting
            return
        mine = filter(self.claim, waiting)
        ahead = [*islice(mine, 1)]
        self.builds.start(ahead)
        while ahead:
            (case,), ahead = ahead, [*islice(mine, 1)]
            self.builds.start(ahead)
            yield case

    def _time_left(self) -> float:
        return self.deadline - self.clock.now()

    def _case(
        self, case: Case, barred: frozenset[tuple[str, str]], before: Mapping[tuple[str, str], Summary]
    ) -> None:
        waited = None if self.deadline == inf else max(0.0, self._time_left())
        with progress("compiling"):
            builds = self.builds.of(case, waited)
        try:
            runner = self.device.runner(case)
        except Exception as error:  # noqa: BLE001  # it may be too large for the device
            self.progress.skipped(case, str(error))
            return
        note = partial(self._write_down, case)
        contest = Contest(runner, self.clock, self._report(case), barred, note, before, self.finalists)
        finalists: list[Finalist] = []
        try:
            finalists = contest.run(builds, case.subject.baselines)
        finally:
            append(self.rows_path, self._rows(case, finalists))
            self.progress.finished(case, finalists, contest.tried)
        runner.close()

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
