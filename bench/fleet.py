"""A table on several GPUs: a supervised process for each, cases handed out one by one, results merged.

A fleet has GPUs: those of this host, which follow, or the workers of a cluster (`bench.cluster`).

On this host each process has its own GPU, by CUDA_VISIBLE_DEVICES, and its own folder, `gpu-0`, `gpu-1`,
and so on, so that no two write the same files. A case belongs to the process that claims it first. Its last
round is on one GPU, since clocks and temperatures of GPUs differ. A table with fewer cases than GPUs is
timed coarsely in parts of the candidates; the last rounds are then on one GPU, which resumes with the times
that are there.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from bench.build import code
from bench.results import Attempt, Row, append
from bench.table import Case, Table
from rise import files

if TYPE_CHECKING:
    from bench.session import Session

PARTS = 2  # of the candidates of a case, for each GPU
VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


@dataclass(frozen=True)
class Claims:
    """Which cases belong to which process: a symbolic link for each case, which names its owner.

    Making one is atomic, and fails where there is one.
    """

    folder: Path
    owner: str

    def take(self, case: Case) -> bool:
        """Whether the case is the owner's, now or already."""
        path = self.folder / sha256(repr((case.key, case.subject.candidates)).encode()).hexdigest()[:16]
        try:
            path.symlink_to(self.owner)
        except FileExistsError:
            return self._has(path)
        return True

    def release(self) -> None:
        """Others may take what the owner had."""
        for path in self.folder.iterdir():
            if self._has(path):
                path.unlink()

    def _has(self, path: Path) -> bool:
        return str(path.readlink()) == self.owner


def see_only(gpu: str) -> None:
    """Makes that GPU, as nvidia-smi counts them, the only one of this process, before CUDA is initialised."""
    os.environ[VISIBLE] = gpu
    os.environ.setdefault(ORDER, "PCI_BUS_ID")


class Fleet(Protocol):
    """Several GPUs. Results are merged into the folder of the session; 0 is returned, or a failure's status.

    A GPU whose process fails, after the restarts that `supervise` allows, is left out, and the others take
    its cases.
    """

    def count(self) -> int: ...

    def each(self, session: Session, deadline: float) -> int:
        """Measures every case on one of the GPUs."""

    def together(self, session: Session, deadline: float) -> int:
        """Measures all cases on the same GPU."""


def share(session: Session, fleet: Fleet, seconds: float) -> int:
    """Measures a table on a fleet; returns 0, or the status of a process that failed."""
    deadline, count = monotonic() + seconds, fleet.count()
    session = replace(session, fleet=None)
    if len(session.table.cases) >= count:
        status = fleet.each(session, deadline)
        _tell_what_is_left(session, deadline)
        return status
    shared = replace(session, table=in_parts(session.table, PARTS * count), finalists=0)
    return fleet.each(shared, deadline) or fleet.together(session, deadline)


def _tell_what_is_left(session: Session, deadline: float) -> None:
    """Says which cases have no results, where that is because the time is over."""
    finished = {row.case for row in session.rows() if row.code == code()}
    left = [case.key for case in session.table.cases if case.key not in finished]
    if left and monotonic() >= deadline:
        print(f"no time was left for {len(left)} cases; run the command again to resume:", *left, sep="\n  ")


def in_parts(table: Table, count: int) -> Table:
    """The same cases, each several times, with a part of the candidates and without baselines."""
    subjects = []
    for subject in table.subjects:
        size = max(1, -(-len(subject.candidates) // count))
        for start in range(0, len(subject.candidates), size):
            part = subject.candidates[start : start + size]
            subjects.append(replace(subject, candidates=part, baselines=()))
    return replace(table, subjects=tuple(subjects))


@dataclass(frozen=True)
class Gpus:
    """GPUs of this host, by their names for CUDA_VISIBLE_DEVICES."""

    names: tuple[str, ...]

    def count(self) -> int:
        return len(self.names)

    def together(self, session: Session, deadline: float) -> int:
        return replace(session, gpu=self.names[0]).run(deadline - monotonic())

    def each(self, session: Session, deadline: float) -> int:
        """All GPUs at once; again, without those that failed, while there are any to take over."""
        claims = session.path("claims")
        shutil.rmtree(claims, ignore_errors=True)
        claims.mkdir(parents=True)
        working = [self._on(session, gpu, claims) for gpu in self.names]
        merge_folders(session, working)
        status = 0
        try:
            while working:
                statuses = _at_once(session, working, deadline)
                merge_folders(session, working)
                failed = [one for one, found in zip(working, statuses, strict=True) if found]
                status = next((found for found in statuses if found), 0)
                if not failed or monotonic() >= deadline:
                    break
                for one in failed:
                    said = f"GPU {one.gpu}: its process failed; others take its cases"
                    print(said, file=sys.stderr, flush=True)
                    one.claims.release()  # type: ignore[union-attr]  # `_on` has set it
                working = [one for one in working if one not in failed]
        finally:
            merge_folders(session, working)
            shutil.rmtree(claims, ignore_errors=True)
        return status

    def _on(self, session: Session, gpu: str, claims: Path) -> Session:
        """The part of a session that one GPU has; compilation is shared among them."""
        share = max(1, (session.processes or max(1, (os.cpu_count() or 2) - 1)) // self.count())
        folder = session.folder / f"gpu-{gpu}"
        return replace(session, folder=folder, gpu=gpu, processes=share, claims=Claims(claims, gpu))


def _at_once(session: Session, working: Sequence[Session], deadline: float) -> list[int]:
    """Starts each where all of them have got to. Ctrl-C ends all processes."""
    for one in working:
        _copy(session, one)
    stop = Event()
    with ThreadPoolExecutor(len(working)) as threads:
        running = [threads.submit(one.run, deadline - monotonic(), stop) for one in working]
        try:
            return [each.result() for each in running]
        finally:
            stop.set()


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
