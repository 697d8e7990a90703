"""A table from its candidates to its report: compiled, measured in a process of its own, written down."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from bench import machine
from bench.board import Board, Feed
from bench.build import Builds, Built, code, processes
from bench.campaign import Campaign
from bench.contest import FINALISTS, ContextLost
from bench.fleet import Fleet, see_only, share
from bench.journal import Journal
from bench.progress import Quiet, Shown
from bench.report import markdown
from bench.results import Attempt, Row, read_attempts, read_rows
from bench.supervise import LOST, Stop, alone, supervise
from bench.table import Table
from rise import files
from rise.errors import UsageError
from rise.progress import stepwise, watching


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
    fleet:     several GPUs that share the work
    gpu:       the one that is used where there are several; by default the first
    feed:      posts what a fleet is to measure; by default all of the table
    board:     where this process takes what it measures, as one of a fleet; by default it measures the table
    progress:  whether what is done now is shown on stderr; by default, if that is a terminal
    measure:   what the process does
    """

    table: Table
    folder: Path
    processes: int | None = None
    timeout: float | None = None
    finalists: int = FINALISTS
    target: str | None = None
    fleet: Fleet | None = None
    gpu: str | None = None
    feed: Feed | None = None
    board: Board | None = None
    progress: bool | None = None
    measure: Callable[[Session, float], int] = field(default_factory=lambda: measure)

    def path(self, ending: str) -> Path:
        return self.folder / f"{self.table.name}.{ending}"

    def rows(self) -> list[Row]:
        return read_rows(self.path("csv"))

    def attempts(self) -> list[Attempt]:
        return read_attempts(self.path("attempts.csv"))

    def run(self, seconds: float, stop: Stop | None = None) -> int:
        """Measures in a new process, for at most so many seconds; returns its exit status.

        With a fleet, in one for each GPU. stop: ends the process
        """
        self.rows(), self.attempts()  # refuses files of another format before anything is measured
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError("R0004", f"cannot write to {self.folder}: {error.strerror}") from None
        if self.fleet is not None:
            return share(self, self.fleet, seconds)
        clock = SystemClock()
        deadline = clock.now() + seconds
        return supervise(
            lambda left: alone(self.measure, self, left, stop=stop),
            Journal(self.path("running.json")),
            self.path("attempts.csv"),
            code(),
            lambda: machine.read(self.path("machine.json")).device,
            lambda: 0.0 if stop is not None and stop.is_set() else deadline - clock.now(),
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
    from bench.derive import derive
    from bench.gpu import Gpu
    from bench.torch_baselines import prepare as prepare_torch

    clock = SystemClock()
    deadline = clock.now() + seconds
    if session.gpu is not None:
        see_only(session.gpu)
    gpu = Gpu()
    gpu.machine().write(session.path("machine.json"))
    alone = session.board is None  # else one process compiles, and shows how far it is, for several GPUs
    with (
        watching(session.progress if alone else False),
        processes(
            session.processes, session.timeout
        ) as pool,  # which start when there is something to compile
        Shown() if alone else nullcontext(Quiet()) as progress,
    ):
        campaign = Campaign(
            session.table, session.folder, gpu, Builds(pool, derive, session.target or gpu.target), clock,
            progress, code(), deadline, finalists=session.finalists,
            beside=None if alone else session.folder.parent,
        )  # fmt: skip
        try:
            if session.board is None:
                campaign.run()
            else:
                prepare_torch(name for subject in session.table.subjects for name in subject.baselines)
                campaign.serve(session.board)
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
    from bench.derive import derive

    built, refused = 0, Counter[tuple[str, str]]()
    with processes(count) as pool:
        builds = Builds(pool, derive, target)
        builds.start(table.cases)
        for case in stepwise("compiling cases", table.cases, len(table.cases)):
            made = builds.of(case)
            compiled = sum(isinstance(each, Built) for each in made)
            built += compiled
            refused.update((str(e.candidate), e.reason) for e in made if not isinstance(e, Built))
            yield f"{case.key}: {compiled} of {len(made)} candidates"
    yield f"{built} kernels for {target}, {refused.total()} refused"
    for (name, reason), times in refused.most_common():
        yield f"  {times:4} × {name}: {reason}"
