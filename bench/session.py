"""A table from its candidates to its report: compiled, measured in a process of its own, written down."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from rich.console import Console

from bench import machine
from bench.build import Builds, Built, code, processes
from bench.campaign import Campaign
from bench.contest import FINALISTS, ContextLost
from bench.derive import derive
from bench.gpu import Gpu
from bench.journal import Journal
from bench.progress import Shown
from bench.report import markdown
from bench.results import Attempt, Row, read_attempts, read_rows
from bench.supervise import LOST, alone, supervise
from bench.table import Table
from rise import files
from rise.errors import UsageError


class SystemClock:
    def now(self) -> float:
        return monotonic()


@dataclass(frozen=True)
class Session:
    """A table, how its candidates are compiled and measured, and the folder of its results.

    processes: how many compile; by default all processors but one
    timeout:   seconds that compiling one candidate may take
    finalists: how many of each kind are compared in the last round
    target:    what kernels are compiled for; by default this machine's GPU
    """

    table: Table
    folder: Path
    processes: int | None = None
    timeout: float | None = None
    finalists: int = FINALISTS
    target: str | None = None

    def path(self, ending: str) -> Path:
        return self.folder / f"{self.table.name}.{ending}"

    def rows(self) -> list[Row]:
        return read_rows(self.path("csv"))

    def attempts(self) -> list[Attempt]:
        return read_attempts(self.path("attempts.csv"))

    def run(self, seconds: float) -> int:
        """Measures in a new process, for at most so many seconds; returns its exit status."""
        clock = SystemClock()
        deadline = clock.now() + seconds
        self.rows(), self.attempts()  # refuses files of another format before anything is measured
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError("R0004", f"cannot write to {self.folder}: {error.strerror}") from None
        return supervise(
            lambda left: alone(measure, self, left),
            Journal(self.path("running.json")),
            self.path("attempts.csv"),
            code(),
            lambda: machine.read(self.path("machine.json")).device,
            lambda: deadline - clock.now(),
        )

    def incorrect(self) -> bool:
        """Whether a kernel of this compiler gave a wrong result, or crashed."""
        series = {name for subject in self.table.subjects for name in subject.series}
        ours = [a for a in self.attempts() if a.kind in series and a.code == code()]
        return any(a.status in ("wrong", "crashed") for a in ours)

    def report(self) -> str | None:
        """Writes the report beside the results, and returns it; None where there are no results."""
        if not self.path("csv").exists():
            return None
        found = self.path("machine.json")
        measured_on = machine.read(found) if found.exists() else None
        text = markdown(self.table, self.rows(), self.attempts(), measured_on)
        files.write(self.path("md"), text)
        return text


def measure(session: Session, seconds: float) -> int:
    """Runs in the process that has the GPU, and leaves at once where the GPU is lost."""
    clock = SystemClock()
    deadline = clock.now() + seconds
    gpu = Gpu()
    gpu.machine().write(session.path("machine.json"))
    with processes(session.processes, session.timeout) as pool, Shown(Console()) as progress:
        campaign = Campaign(
            session.table, session.folder, gpu, Builds(pool, derive, session.target or gpu.target), clock,
            progress, code(), deadline, finalists=session.finalists,
        )  # fmt: skip
        try:
            campaign.run()
        except ContextLost as error:
            print(f"the GPU stopped answering: {error}", file=sys.stderr, flush=True)
            sys.stdout.flush()
            os._exit(LOST)  # nothing on a lost GPU can be released
    if campaign.left:
        print(f"no time was left for {len(campaign.left)} cases; run the command again to resume:")
        print(*(f"  {case.key}" for case in campaign.left), sep="\n")
    return 0


def prepare(table: Table, target: str, count: int | None) -> Iterator[str]:
    """Compiles every candidate at every size into the cache, without a GPU; says what was refused."""
    built, refused = 0, Counter[tuple[str, str]]()
    with processes(count) as pool:
        builds = Builds(pool, derive, target)
        builds.start(table.cases)
        for case in table.cases:
            made = builds.of(case)
            compiled = sum(isinstance(each, Built) for each in made)
            built += compiled
            refused.update((str(e.candidate), e.reason) for e in made if not isinstance(e, Built))
            yield f"{case.key}: {compiled} of {len(made)} candidates"
    yield f"{built} kernels for {target}, {refused.total()} refused"
    for (name, reason), times in refused.most_common():
        yield f"  {times:4} × {name}: {reason}"
