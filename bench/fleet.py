"""A table on several GPUs: a supervised process for each, which takes what is built; results are merged.

A fleet has GPUs: those of this host, which follow, or the workers of a cluster (`bench.cluster`).

On this host each process has its own GPU, by CUDA_VISIBLE_DEVICES, and its own folder, `gpu-0`, `gpu-1`,
and so on, so that no two write the same files. They start at once, and import what they need while one pool
of processes compiles for all of them, the longest cases first. Each case is posted on a board (`bench.board`)
when it is built. It belongs to the process that takes it first, and all of its rounds are on that GPU, since
clocks and temperatures of GPUs differ. Of fewer cases than GPUs, the candidates are posted one by one, and
all GPUs time them coarsely; the last round of a case is then on one of them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING, Protocol

from bench.board import Board
from bench.build import Builds, Built, Refused, code, processes
from bench.results import Attempt, Row, append
from bench.table import Case
from rise import files
from rise.progress import progress, said

if TYPE_CHECKING:
    from bench.session import Session

TELL = 0.1  # seconds after which it is looked at what is done
VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


def see_only(gpu: str) -> None:
    """Makes that GPU, as nvidia-smi counts them, the only one of this process, before CUDA is initialised."""
    os.environ[VISIBLE] = gpu
    os.environ.setdefault(ORDER, "PCI_BUS_ID")


class Fleet(Protocol):
    """Several GPUs."""

    def measured(self, session: Session, deadline: float) -> int:
        """Measures every case, and merges results into the folder of the session; 0, or a failure's status.

        A GPU whose process fails, after the restarts that `supervise` allows, is left out, and the others
        take its cases.
        """


def share(session: Session, fleet: Fleet, seconds: float) -> int:
    """Measures a table on a fleet; returns 0, or the status of a process that failed."""
    deadline = monotonic() + seconds
    status = fleet.measured(replace(session, fleet=None), deadline)
    _tell_what_is_left(session, deadline)
    return status


def length(case: Case) -> int:
    """In no unit: for cases of one table, the longer one takes longer."""
    return prod(case.sizes.values()) * (len(case.subject.candidates) + len(case.subject.baselines))


def _tell_what_is_left(session: Session, deadline: float) -> None:
    """Says which cases have no results, where that is because the time is over."""
    finished = {row.case for row in session.rows() if row.code == code()}
    left = [case.key for case in session.table.cases if case.key not in finished]
    if left and monotonic() >= deadline:
        print(f"no time was left for {len(left)} cases; run the command again to resume:", *left, sep="\n  ")


@dataclass(frozen=True)
class Gpus:
    """GPUs of this host, by their names for CUDA_VISIBLE_DEVICES."""

    names: tuple[str, ...]

    def measured(self, session: Session, deadline: float) -> int:
        """Posts what is built while the processes run. Ctrl-C ends all of them."""
        folder = session.path("board")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        board, working = Board(folder), [self._on(session, gpu, folder) for gpu in self.names]
        merge_folders(session, working)
        stop = Event()
        with ThreadPoolExecutor(len(working) + 1) as threads:
            try:
                for one in working:
                    _copy(session, one)
                running = [threads.submit(_run, one, deadline, stop) for one in working]

                def gone() -> bool:
                    return all(each.done() for each in running)

                told = threads.submit(_tell, board, len(session.table.cases), gone)
                (session.feed or partial(feed, session, len(working), gone))(board)
                board.close()
                statuses = [each.result() for each in running]
                told.result()
            finally:
                stop.set()
                merge_folders(session, working)
        left = not board.finished and monotonic() < deadline  # nobody was there to take it
        shutil.rmtree(folder, ignore_errors=True)
        return next((found for found in statuses if found), 0) if left else 0

    def _on(self, session: Session, gpu: str, folder: Path) -> Session:
        """The part of a session that one GPU has."""
        board = Board(folder, gpu, len(self.names))
        return replace(session, folder=session.folder / f"gpu-{gpu}", gpu=gpu, feed=None, board=board)


def _run(one: Session, deadline: float, stop: Event) -> int:
    """Whatever ends it, others can take what it has begun: else they would wait for it."""
    status = 1
    try:
        status = one.run(deadline - monotonic(), stop)
    finally:
        if status and one.board is not None:
            said(f"GPU {one.gpu}: its process failed; others take its cases", sys.stderr)
            one.board.release()
    return status


def feed(session: Session, gpus: int, gone: Callable[[], bool], board: Board) -> None:
    """Compiles a table, the longest cases first, and posts each when it is built; of few, each candidate.

    gone: whether nobody measures any longer
    """
    from bench.derive import derive
    from codegen.runtime import device_target

    cases = sorted(session.table.cases, key=length, reverse=True)
    apart = len(cases) < gpus
    pieces = [
        (at, each) for at, case in enumerate(cases) for each in (by_candidate(case) if apart else [case])
    ]
    made: dict[int, list[Built | Refused]] = {at: [] for at in range(len(cases))}
    count = session.processes or max(1, (os.cpu_count() or 2) - gpus)
    with processes(count, session.timeout) as pool:
        builds = Builds(pool, derive, session.target or device_target())
        for position, built in builds.as_built([piece for _, piece in pieces], gone):
            at, piece = pieces[position]
            made[at] += built
            if piece is not cases[at]:
                board.part(at, position, piece, *built)
            candidates = cases[at].subject.candidates
            if len(made[at]) == len(candidates):
                made[at].sort(key=lambda each: candidates.index(each.candidate))
                board.last(at, cases[at], made[at], apart)


def by_candidate(case: Case) -> list[Case]:
    """The same case for each candidate, without baselines; itself where there is none."""
    subject = case.subject
    alone = [replace(subject, candidates=(each,), baselines=()) for each in subject.candidates]
    return [Case(each, case.sizes) for each in alone] or [case]


def _tell(board: Board, expected: int, gone: Callable[[], bool]) -> None:
    """Prints a line for each case that is done, and shows how many are, until nobody measures."""
    told: set[str] = set()
    with progress("measuring") as advance:
        over = False
        while not over:
            over = gone()  # looked at first: nothing is done afterwards
            for name, gpu, line in board.lines():
                if name not in told and line:
                    said(f"GPU {gpu}: {line}")
                told.add(name)
            done, posted = board.count()
            advance(done, max(posted, expected))
            sleep(TELL)


def _copy(session: Session, part: Session) -> None:
    """A process resumes with the results of all."""
    part.folder.mkdir(parents=True, exist_ok=True)
    for ending in ("csv", "attempts.csv"):
        if session.path(ending).exists():
            files.write(part.path(ending), session.path(ending).read_bytes())


def merge_folders(session: Session, parts: Iterable[Session]) -> None:
    """Adds what the folders of parts have, and what is known of a GPU."""
    parts = list(parts)
    rows = (row for part in parts for row in part.rows())
    merge(session, rows, (attempt for part in parts for attempt in part.attempts()))
    for machine in _machines(parts):
        files.write(session.path("machine.json"), machine.read_bytes())


def merge(session: Session, rows: Iterable[Row], attempts: Iterable[Attempt]) -> None:
    """Adds those that the session's folder does not have yet."""
    known, tried = set(session.rows()), set(session.attempts())
    new = dict.fromkeys(row for row in rows if row not in known)
    append(session.path("csv"), sorted(new, key=lambda row: row.date))
    append(session.path("attempts.csv"), [*dict.fromkeys(a for a in attempts if a not in tried)])


def _machines(parts: Iterable[Session]) -> Iterator[Path]:
    """What is known of the first GPU that has measured something."""
    found = (part.path("machine.json") for part in parts)
    yield from [path for path in found if path.exists()][:1]
