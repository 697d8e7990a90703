"""Runs trials in worker processes, which may hang or crash, and counts what became of them."""

from __future__ import annotations

import multiprocessing
import resource
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pebble import ProcessExpired, ProcessPool

from bench.cluster import Desk, may_start_processes
from tests.attack.outcome import Outcome, Verdict

MEMORY = 16 * 2**30  # bytes of addresses of a worker: an allocation beyond raises MemoryError there
TASKS = 40  # of a worker: each kernel that it has run stays loaded, in a hundred megabytes of addresses
AHEAD = 4  # trials that wait for each worker


@dataclass(frozen=True)
class Attack:
    """A kind of attack.

    trials:   an endless iterator of trials, from a seed; a trial prints as what reproduces it
    outcome:  what becomes of a trial, in this process
    count:    how many trials are made
    seconds:  after which a trial counts as hanging
    """

    name: str
    trials: Callable[[int], Iterable[Any]]
    outcome: Callable[[Any], Outcome]
    count: int
    seconds: float


@dataclass
class Tally:
    """How often each verdict and each code of a refusal occurred, and the trials that showed a defect.

    kernels: the different kernels that were run, where trials say so
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    kernels: set[str] = field(default_factory=set)
    defects: list[tuple[Any, Outcome]] = field(default_factory=list)

    def add(self, trial: Any, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        self.codes[outcome.code] += outcome.verdict is Verdict.REFUSED
        self.kernels |= {outcome.kernel} - {""}
        if outcome.verdict.is_defect:
            self.defects.append((trial, outcome))


def run(attack: Attack, seed: int, jobs: int) -> Iterator[tuple[Any, Outcome]]:
    """Each trial with its outcome, as they end."""
    trials = islice(attack.trials(seed), attack.count)
    with ProcessPool(max_workers=jobs, max_tasks=TASKS, initializer=_limit_memory) as pool:
        yield from _outcomes(pool, jobs, trials, attack.outcome, attack.seconds)


def _outcomes(
    pool: ProcessPool, jobs: int, trials: Iterable[Any], outcome: Callable[[Any], Outcome], seconds: float
) -> Iterator[tuple[Any, Outcome]]:
    waiting: list[tuple[Any, Any]] = []
    for trial in trials:
        waiting.append((trial, pool.schedule(guarded, (outcome, trial), timeout=seconds)))
        while len(waiting) > AHEAD * jobs:
            yield _ended(*waiting.pop(0))
    for pair in waiting:
        yield _ended(*pair)


# --- on a cluster


@dataclass(frozen=True)
class Batch:
    """Trials that one worker of a cluster makes."""

    trials: tuple[Any, ...]
    outcome: Callable[[Any], Outcome]
    seconds: float


def run_on(client: Any, attack: Attack, seed: int) -> Iterator[tuple[Any, Outcome]]:
    """The same, by the workers of a cluster. A trial whose worker died twice has crashed."""
    trials = islice(attack.trials(seed), attack.count)
    batches = (
        Batch(batch, attack.outcome, attack.seconds)
        for batch in iter(lambda: tuple(islice(trials, TASKS)), ())
    )
    for end in Desk(client, made, batches).ended():
        if end.value is not None:
            yield from zip(end.task.trials, end.value, strict=True)
        elif end.last:
            lost = Outcome(Verdict.CRASH, "", f"{end.failure}, with this trial or another of {TASKS}")
            yield from ((trial, lost) for trial in end.task.trials)


def made(batch: Batch) -> tuple[list[Outcome], str]:
    """In a worker: by as many processes as it has threads."""
    jobs, spawn = may_start_processes(), multiprocessing.get_context("spawn")  # it has threads
    with ProcessPool(jobs, TASKS, initializer=_limit_memory, context=spawn) as pool:
        ended = _outcomes(pool, jobs, batch.trials, batch.outcome, batch.seconds)
        return [outcome for _, outcome in ended], ""


def guarded(outcome: Callable[[Any], Outcome], trial: Any) -> Outcome:
    """An exception that `outcome` lets through is a defect, with the place that raised it."""
    try:
        return outcome(trial)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{'/'.join(place.filename.split('/')[-2:])}:{place.lineno}"
        return Outcome(Verdict.INTERNAL, type(error).__name__, f"{error} ({where})"[:300])


def _ended(trial: Any, future: Any) -> tuple[Any, Outcome]:
    try:
        return trial, future.result()
    except TimeoutError:
        return trial, Outcome(Verdict.HANG)
    except ProcessExpired as error:
        return trial, Outcome(Verdict.CRASH, "", f"exit status {error.exitcode}")


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
