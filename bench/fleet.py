"""A table on several GPUs: a supervised process for each, cases handed out one by one, results merged.

Each process has its own GPU, by CUDA_VISIBLE_DEVICES, and its own folder, `gpu-0`, `gpu-1`, …, so that no two
write the same files. A case belongs to the process that claims it first. Its last round is on one GPU, since
clocks and temperatures of GPUs differ. A table with fewer cases than GPUs is timed coarsely in parts of the
candidates; the last rounds are then on the first GPU, which resumes with the times that are there.
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
from typing import TYPE_CHECKING

from bench.build import code
from bench.results import append
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


def on_gpus(session: Session, seconds: float) -> int:
    """Measures a table on the GPUs of a session; returns 0, or the status of the last process that failed.

    A GPU whose process fails, after the restarts that `supervise` allows, is left out, and the others take
    its cases.
    """
    deadline = monotonic() + seconds
    if len(session.table.cases) >= len(session.gpus):
        status = _in_rounds(session, deadline)
        _tell_what_is_left(session, deadline)
        return status
    shared = replace(session, table=in_parts(session.table, PARTS * len(session.gpus)), finalists=0)
    status = _in_rounds(shared, deadline)
    return status or replace(session, gpu=session.gpus[0], gpus=()).run(deadline - monotonic())


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


def _in_rounds(session: Session, deadline: float) -> int:
    """All GPUs at once; again, without those that failed, while there are any to take over."""
    claims = session.path("claims")
    shutil.rmtree(claims, ignore_errors=True)
    claims.mkdir(parents=True)
    working = [_on(session, gpu, claims) for gpu in session.gpus]
    merge(session, working)
    status = 0
    try:
        while working:
            statuses = _at_once(session, working, deadline)
            merge(session, working)
            failed = [one for one, found in zip(working, statuses, strict=True) if found]
            status = next((found for found in statuses if found), 0)
            if not failed or monotonic() >= deadline:
                break
            for one in failed:
                print(
                    f"GPU {one.gpu}: its process failed; others take its cases", file=sys.stderr, flush=True
                )
                one.claims.release()  # type: ignore[union-attr]  # `_on` has set it
            working = [one for one in working if one not in failed]
    finally:
        merge(session, working)
        shutil.rmtree(claims, ignore_errors=True)
    return status


def _on(session: Session, gpu: str, claims: Path) -> Session:
    """The part of a session that one GPU has; compilation is shared among them."""
    share = max(1, (session.processes or max(1, (os.cpu_count() or 2) - 1)) // len(session.gpus))
    folder = session.folder / f"gpu-{gpu}"
    return replace(session, folder=folder, gpu=gpu, gpus=(), processes=share, claims=Claims(claims, gpu))


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


def merge(session: Session, parts: Iterable[Session]) -> None:
    """Adds what the folders of parts have, and the session's does not have yet."""
    parts = list(parts)
    rows, attempts = set(session.rows()), set(session.attempts())
    new = [row for part in parts for row in part.rows() if row not in rows]
    append(session.path("csv"), sorted(dict.fromkeys(new), key=lambda row: row.date))
    tried = [attempt for part in parts for attempt in part.attempts() if attempt not in attempts]
    append(session.path("attempts.csv"), list(dict.fromkeys(tried)))
    for machine in _machines(parts):
        files.write(session.path("machine.json"), machine.read_bytes())


def _machines(parts: Iterable[Session]) -> Iterator[Path]:
    """What is known of the first GPU that has measured something."""
    found = (part.path("machine.json") for part in parts)
    yield from [path for path in found if path.exists()][:1]
