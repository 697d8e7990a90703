"""The best parameters of a strategy for a program at its sizes: ranked by a model, then measured.

The measuring is that of a table with one case, whose candidates are those that the model ranks first. So a
kernel that crashes the process is left out and named, and a search that was interrupted can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path

from bench.board import Board
from bench.build import Builds, Built, Refused, code, processes
from bench.derive import derive
from bench.fleet import Fleet, by_candidate
from bench.results import OURS, Attempt, Row, latest
from bench.search import Search, candidate
from bench.session import Session
from bench.table import Candidate, Case, Subject, Table
from codegen.runtime import resources
from rise.errors import LaunchError
from rise.progress import stepwise
from strategies.search.space import Ranked
from strategies.search.trials import InOrder, summary

FINALISTS = 4  # are compared in the last round
TRIED = 3  # times as many candidates as are asked for, until so many build
LEAST = 24  # candidates are tried before the search gives up


def default_folder() -> Path:
    """Where measurements are kept: `$XDG_STATE_HOME/rise-lang/tune`."""
    chosen = os.environ.get("XDG_STATE_HOME")
    return (Path(chosen) if chosen else Path("~/.local/state").expanduser()) / "rise-lang" / "tune"


@dataclass(frozen=True)
class Found:
    """Candidates that build, the best by the model first; and those that do not, with the reasons."""

    built: tuple[tuple[Ranked, Built], ...]
    refused: tuple[tuple[Ranked, str], ...]


@dataclass(frozen=True)
class Compiled:
    """A candidate, what the model predicts for it, and the resources of its kernels."""

    candidate: str
    cycles: int
    bound: str
    registers: int
    shared_bytes: int
    spilled: int

    @classmethod
    def of(cls, ranked: Ranked, made: Built, target: str) -> Compiled:
        kernels = getattr(made.kernel, "kernels", (made.kernel,))
        taken = [resources(kernel.source, target)[kernel.name] for kernel in kernels]
        return cls(
            str(ranked.point), round(ranked.cost.cycles), ranked.cost.bound,
            max(each.registers for each in taken), max(kernel.launch.shared_bytes for kernel in kernels),
            sum(each.spill_stores for each in taken),
        )  # fmt: skip


@dataclass(frozen=True)
class Tuning:
    """What is tuned, and how long the search may be.

    subject: the program at one assignment of sizes; its candidates come from the search
    top:     how many candidates are measured
    timeout: seconds for compiling one candidate
    jobs:    how many processes compile
    """

    search: Search
    subject: Subject
    top: int
    timeout: float | None = None
    jobs: int | None = None

    def table(self, candidates: Iterable[Candidate]) -> Table:
        subject = replace(self.subject, candidates=tuple(candidates))
        return Table(f"{self.search.identity}-{self.search.target}-{self._asked}", self.title, (subject,))

    @property
    def title(self) -> str:
        (sizes,) = self.subject.sizes
        return " ".join([self.subject.definition, *(f"{name}={size}" for name, size in sizes.items())])

    @property
    def _asked(self) -> str:
        """A digest of what is searched: another search has results of its own."""
        asked = (self.search.strategy, self.search.fixed, self.top, self.subject.baselines)
        return sha256(repr(asked).encode()).hexdigest()[:8]

    def build(self, trials: InOrder, told: Callable[[Built], None] = lambda _: None) -> Found:
        """As many as are asked for, in the model's order. LaunchError R0035 where none builds.

        told: is called with each as soon as it is built
        """
        built: list[tuple[Ranked, Built]] = []
        tried = 0
        with processes(self.jobs, self.timeout) as pool:
            builds = Builds(pool, derive, self.search.target)
            while len(built) < self.top and tried < max(TRIED * self.top, LEAST):
                batch = [one for _ in range(self.top - len(built)) if (one := trials.take()) is not None]
                for one, made in zip(batch, self._built(batch, builds, told), strict=True):
                    if isinstance(made, Built):
                        built.append((one, made))
                    else:
                        trials.refuse(one, made.reason)
                tried += len(batch)
                if not batch:
                    break
        if not built:
            message = f"of {tried} candidates none builds: {summary(reason for _, reason in trials.refused)}"
            raise LaunchError("R0035", message, hint="`--strategy default` of `rise run` lowers any program")
        return Found(tuple(built), tuple(trials.refused))

    def _built(
        self, batch: Sequence[Ranked], builds: Builds, told: Callable[[Built], None]
    ) -> list[Built | Refused]:
        if not batch:
            return []
        pieces = by_candidate(self.case(candidate(one.point) for one in batch))
        made: dict[int, Built | Refused] = {}
        for position, (one,) in stepwise("compiling", builds.as_built(pieces, lambda: False), len(batch)):
            made[position] = one
            if isinstance(one, Built):
                told(one)
        return [made[position] for position in range(len(batch))]

    def case(self, candidates: Iterable[Candidate]) -> Case:
        (case,) = self.table(candidates).cases
        return case

    def session(
        self, found: Found, folder: Path, fleet: Fleet | None = None, progress: bool | None = None
    ) -> Session:
        """How the candidates that build are measured."""
        table = self.table(made.candidate for _, made in found.built)
        return Session(
            table, folder, self.jobs, self.timeout, FINALISTS, self.search.target, fleet, progress=progress
        )

    def post(self, trials: InOrder, board: Board) -> Found:
        """Builds candidates, and posts each as soon as it is built; then the last round of all."""
        number = count()

        def posted(made: Built) -> None:
            board.part(0, next(number), self.case([made.candidate]), made)

        found = self.build(trials, posted)
        built = [made for _, made in found.built]
        board.last(0, self.case(made.candidate for made in built), built, apart=True)
        return found


@dataclass(frozen=True)
class Measured:
    """What is known of the candidates of a session: the last attempt at each, the best of each kind."""

    session: Session
    attempts: tuple[Attempt, ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, session: Session) -> Measured:
        """The fastest attempt first, and last those that failed."""
        last = {(a.kind, a.name): a for a in session.attempts() if a.code == code()}
        attempts = sorted(last.values(), key=lambda a: (a.median_us == 0, a.median_us))
        return cls(session, tuple(attempts), tuple(latest(r for r in session.rows() if r.code == code())))

    @property
    def best(self) -> Row | None:
        """None where there was no time for the last round. LaunchError R0035 where no kernel is correct."""
        found = next((row for row in self.rows if row.kind == OURS), None)
        if found is None and any(a.status not in ("timed", "slow") for a in self.attempts):
            (subject,) = self.session.table.subjects
            raise LaunchError("R0035", f"none of {len(subject.candidates)} candidates is correct")
        return found
