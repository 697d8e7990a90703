"""Tasks on a Dask cluster, whose workers may die while they work; and a fleet with a worker for each GPU.

A task is given to one worker by name, and a worker has one task at a time. When a worker dies, or fails at a
task, another one tries that task again. If two workers fail at a task, it is reported as failed; so is every
task that remains when no worker is left.
"""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bench.build import code
from bench.fleet import Fleet, Gpus, length, merge
from bench.results import Attempt, Row, append
from bench.supervise import LOOK
from bench.table import Case, Table
from rise import files
from rise.errors import UsageError
from rise.progress import progress, said

if TYPE_CHECKING:
    from bench.session import Session

PARTS = 2  # of the candidates of a case, for each GPU
TRIES = 2  # of a task, by different workers
PATIENCE = 60.0  # seconds without a worker, for those that are started again
ANSWER = 10  # seconds in which a scheduler has to answer
DIED = "the worker died"
NONE_LEFT = "no worker is left"

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Ended(Generic[T, R]):
    """One try of a task: what it gave, and why it failed, which is empty where it did not.

    last: whether it is not tried again
    """

    task: T
    worker: str
    value: R | None
    failure: str
    last: bool


@dataclass(frozen=True)
class Job(Generic[T]):
    """A task, and how often it was tried."""

    task: T
    tries: int = 0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a scheduler. UsageError R0868 without `distributed`, R0869 where none answers."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        hint = "install the extra: pip install 'rise-lang[cluster]'"
        message = "clusters are those of Dask's `distributed`, which is not installed"
        raise UsageError("R0868", message, hint=hint) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it logs tracebacks of what is raised here
    try:
        client = distributed.Client(address, timeout=ANSWER)
    except (OSError, ValueError, TypeError) as error:
        raise _no_answer(address, error) from None
    try:
        with client:
            yield client
    except OSError as error:
        raise _no_answer(address, error) from None


def _no_answer(address: str, error: Exception) -> UsageError:
    hint = (
        "`dask scheduler` prints its address, such as tcp://10.0.0.1:8786; `dask worker ADDRESS` adds workers"
    )
    reason = str(error).split("\n", 1)[0] or type(error).__name__
    return UsageError("R0869", f"no Dask scheduler answers at {address}: {reason}", hint=hint)


@dataclass
class Desk(Generic[T, R]):
    """Where tasks are handed out, and their results come back.

    work:     in a worker, gives the value of a task, and why it failed at it, if it did
    patience: seconds without a worker after which it gives up; where all have failed and none has died, which
              may be started again, it gives up at once
    """

    client: Any
    work: Callable[[T], tuple[R, str]]
    tasks: Iterator[T]
    patience: float = PATIENCE
    waiting: list[Job[T]] = field(default_factory=list)
    busy: dict[str, tuple[Job[T], Any]] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    died: bool = False

    def ended(self) -> Generator[Ended[T, R], None, None]:
        """Every try of every task, as they end. Those that still run when the caller stops are cancelled."""
        seen = monotonic()
        try:
            while self.busy or self._next() is not None:
                present = set(self.client.nthreads())
                self._hand_out(present - self.left_out - self.busy.keys())
                if self.busy:
                    seen = monotonic()
                    yield from self._collected(present)
                elif (present and not self.died) or monotonic() - seen > self.patience:
                    yield from self._given_up()
                else:
                    sleep(LOOK)
        finally:
            self.client.cancel([future for _, future in self.busy.values()])

    def _next(self) -> Job[T] | None:
        """The first that waits, which stays."""
        if not self.waiting:
            self.waiting += [Job(task) for task in [next(self.tasks, None)] if task is not None]
        return self.waiting[0] if self.waiting else None

    def _hand_out(self, idle: Iterable[str]) -> None:
        for worker in sorted(idle):
            if (job := self._next()) is None:
                return
            self.waiting.remove(job)
            future = self.client.submit(self.work, job.task, workers=[worker], pure=False)
            self.busy[worker] = job, future

    def _collected(self, present: set[str]) -> Iterator[Ended[T, R]]:
        with suppress(TimeoutError, CancelledError):
            wait = import_module("distributed").wait
            wait([future for _, future in self.busy.values()], LOOK, return_when="FIRST_COMPLETED")
        for worker, (job, future) in list(self.busy.items()):
            if future.done() or worker not in present:
                yield self._end(worker, job, future)

    def _end(self, worker: str, job: Job[T], future: Any) -> Ended[T, R]:
        """A worker that failed at a task gets no other. One that died may come back."""
        del self.busy[worker]
        value, failure = _outcome(future)
        last = not failure or job.tries + 1 >= TRIES
        if failure == DIED:
            self.died = True
        elif failure:
            self.left_out.add(worker)
        if not last:
            self.waiting.append(Job(job.task, job.tries + 1))
        return Ended(job.task, worker, value, failure, last)

    def _given_up(self) -> Iterator[Ended[T, R]]:
        while (job := self._next()) is not None:
            self.waiting.remove(job)
            yield Ended(job.task, "", None, NONE_LEFT, last=True)


def _outcome(future: Any) -> tuple[Any, str]:
    """The value of a task, and why it failed; the task of a dead worker is cancelled."""
    match future.status:
        case "finished":
            return future.result()  # type: ignore[no-any-return]  # what `Desk.work` returns
        case "error" if type(error := future.exception()).__name__ != "KilledWorker":
            return None, f"{type(error).__name__}: {error}"
    future.cancel()
    return None, DIED


# --- in a worker --------------------------------------------------------------------------------------------


class Cancelled:
    """Whether the client is gone or no longer wants the task of this thread, as an event says it."""

    def __init__(self) -> None:
        self._worker = import_module("distributed").get_worker()
        self._key = self._worker.get_current_task()

    def is_set(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state == "cancelled"


def may_start_processes() -> int:
    """Lets a task start processes, which workers may not by default; how many it should."""
    multiprocessing.current_process().daemon = False
    return int(import_module("distributed").get_worker().state.nthreads)


@dataclass(frozen=True)
class Part:
    """A part of a table for one worker, with what is known of it; or, as it comes back, what was measured."""

    session: Session
    seconds: float
    code: str
    rows: tuple[Row, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    machine: str | None = None


def measured(part: Part) -> tuple[Part, str]:
    """What a session does on one host, in a folder of its own."""
    if code() != part.code:
        return part, "it has another version of the compiler"
    processes = may_start_processes()
    with TemporaryDirectory() as folder:
        session = replace(
            part.session, folder=Path(folder), processes=part.session.processes or max(1, processes)
        )
        append(session.path("csv"), part.rows)
        append(session.path("attempts.csv"), part.attempts)
        status = session.run(part.seconds, Cancelled())
        found = session.path("machine.json")
        machine = files.read_text(found) if found.exists() else None
        came = replace(part, rows=tuple(session.rows()), attempts=tuple(session.attempts()), machine=machine)
        return came, f"its process ended with status {status}" if status else ""


# --- a fleet ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """The workers of a Dask scheduler, each of which has a GPU.

    They read the programs of the table at the same paths, and need no folder in common.
    """

    address: str
    patience: float = PATIENCE

    def measured(self, session: Session, deadline: float) -> int:
        """A task for each case, the longest first, so that all rounds of a case are on one GPU.

        Of fewer cases than GPUs, each GPU times candidates coarsely; then one of them has the last rounds.
        """
        with connected(self.address) as client:
            count = max(1, len(client.nthreads()))
        if len(session.table.cases) >= count:
            return self.each(session, deadline)
        shared = replace(session, table=in_parts(session.table, PARTS * count), finalists=0)
        return self.each(shared, deadline) or self.together(session, deadline)

    def each(self, session: Session, deadline: float) -> int:
        cases = sorted(session.table.cases, key=length, reverse=True)
        return self._measured(session, [_of(session, case) for case in cases], deadline)

    def together(self, session: Session, deadline: float) -> int:
        return self._measured(session, [session], deadline)

    def _measured(self, session: Session, parts: Sequence[Session], deadline: float) -> int:
        """Merges what each worker sends, also where it failed; 1 where a part has no result in the end."""
        status = done = 0
        tasks = (_part(one, deadline) for one in parts if monotonic() < deadline)
        with connected(self.address) as client, progress("measuring") as advance:
            desk = Desk(client, measured, tasks, self.patience)
            for end in desk.ended():
                if end.value is not None:
                    merge(session, end.value.rows, end.value.attempts)
                    if end.value.machine is not None:
                        files.write(session.path("machine.json"), end.value.machine)
                _tell(end)
                done += end.last
                advance(done, len(parts))
                status = status or int(end.last and bool(end.failure))
        return status


def fleet(gpus: tuple[str, ...], address: str | None) -> Fleet | None:
    """Which GPUs share the work; None: this host's first one does it."""
    return Cluster(address) if address else Gpus(gpus) if gpus else None


def in_parts(table: Table, count: int) -> Table:
    """The same cases, each several times, with a part of the candidates and without baselines."""
    subjects = []
    for subject in table.subjects:
        size = max(1, -(-len(subject.candidates) // count))
        for start in range(0, len(subject.candidates), size):
            part = subject.candidates[start : start + size]
            subjects.append(replace(subject, candidates=part, baselines=()))
    return replace(table, subjects=tuple(subjects))


def _of(session: Session, case: Case) -> Session:
    subject = replace(case.subject, sizes=(case.sizes,))
    return replace(session, table=replace(session.table, subjects=(subject,)))


def _part(session: Session, deadline: float) -> Part:
    keys = {case.key for case in session.table.cases}
    subjects = tuple(replace(s, source=s.source.resolved()) for s in session.table.subjects)
    alone = replace(session, table=replace(session.table, subjects=subjects), fleet=None)
    return Part(
        alone, deadline - monotonic() if deadline < inf else inf, code(),
        tuple(row for row in session.rows() if row.case in keys),
        tuple(attempt for attempt in session.attempts() if attempt.case in keys),
    )  # fmt: skip


def _tell(end: Ended[Part, Part]) -> None:
    """A line for each try: times, or why there are none and what becomes of the cases."""
    cases = ", ".join(case.key for case in end.task.session.table.cases)
    if end.failure:
        then = "nobody takes it" if end.last else "another worker takes it"
        said(f"{cases}: {end.worker or 'no worker'}: {end.failure}; {then}")
    elif end.value is not None:
        rows = [row for row in end.value.rows if row not in end.task.rows]
        times = ", ".join(f"{row.kind} {row.median_us:.2f} µs" for row in rows)
        tried = len(end.value.attempts) - len(end.task.attempts)
        said(f"{cases}: {times or f'{tried} tried'}; on {end.worker}")
