"""Kernels for the candidates of a table: derived and compiled in parallel processes, kept on disk.

How a program is derived by a strategy is not this package's business: a function that does it is passed in.
What is refused is a value like any other, and kept as well: the reason is part of the result.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.table import Candidate, Case
from bench.workers import Workers
from codegen.cache import cached
from rise.errors import RiseError
from rise.user_code import own_mistake

ROOT = Path(__file__).parents[1]
PACKAGES = ("rise", "rewrites", "strategies", "codegen")
SOURCES = (".py", ".lark", ".rise", ".cuh", ".hpp")
NOT_COMPILING = ("bench/", "rise/cli/")


@dataclass(frozen=True)
class Order:
    """What is to be built: a definition of a file, at sizes, by a candidate, for a target."""

    file: Path
    definition: str
    sizes: tuple[tuple[str, int], ...]
    candidate: Candidate
    target: str

    @classmethod
    def of(cls, case: Case, candidate: Candidate, target: str) -> Order:
        return cls(case.subject.file, case.subject.definition, tuple(case.sizes.items()), candidate, target)


@dataclass(frozen=True)
class Built:
    """A kernel (or what else the derivation gives that can be loaded), compiled into the cache."""

    candidate: Candidate
    kernel: Any


@dataclass(frozen=True)
class Refused:
    """Why there is no kernel: the first line of the message, with its code."""

    candidate: Candidate
    reason: str


# derives and compiles; raises a RiseError where that cannot be. A function of a module: it runs in other
# processes
Derive = Callable[[Order], Any]


def build(order: Order, derive: Derive) -> Built | Refused:
    """From the cache, if nothing that it depends on has changed."""

    def write(path: Path) -> None:
        path.write_bytes(pickle.dumps(_build(order, derive)))

    folder = sorted(order.file.parent.glob("*.rise"))
    texts = [path.read_bytes() for path in (order.file, *folder)]
    key: list[str | bytes] = [
        code(),
        repr((order.definition, order.sizes, order.candidate, order.target)),
        *texts,
    ]
    result: Built | Refused = pickle.loads(cached(key, ".kernel", write).read_bytes())
    return result


def _build(order: Order, derive: Derive) -> Built | Refused:
    try:
        return Built(order.candidate, derive(order))
    except RiseError as error:
        return Refused(order.candidate, reason(error))
    except Exception as error:
        mistake = own_mistake(error)
        if mistake is None:
            raise
        return Refused(order.candidate, reason(mistake))


def reason(error: BaseException) -> str:
    """One line: code and message, or the kind of exception and what it says."""
    text = (
        f"{error.code} {error.message}"
        if isinstance(error, RiseError)
        else f"{type(error).__name__}: {error}"
    )
    return " ".join(text.split())[:300]


@cache
def code() -> str:
    """A digest of the compiler: results of another one are of another kernel."""
    state = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SOURCES and not name.startswith(NOT_COMPILING):
                state.update(name.encode() + path.read_bytes())
    return state.hexdigest()[:12]


# --- in parallel --------------------------------------------------------------------------------------------


class Builds:
    """The candidates of cases, being built in the order in which they are asked for."""

    def __init__(self, executor: Executor, derive: Derive, target: str) -> None:
        self._executor, self._derive, self._target = executor, derive, target
        self._running: dict[str, list[tuple[Candidate, Future[Built | Refused]]]] = {}

    def start(self, cases: Sequence[Case]) -> None:
        for case in cases:
            orders = [Order.of(case, candidate, self._target) for candidate in case.subject.candidates]
            self._running[case.key] = [
                (order.candidate, self._executor.submit(build, order, self._derive)) for order in orders
            ]

    def of(self, case: Case, seconds: float | None = None) -> list[Built | Refused]:
        """Those of a case, waiting for the last of them so many seconds at most; what is late is refused."""
        return list(self.each(case, seconds))

    def each(self, case: Case, seconds: float | None = None) -> Iterator[Built | Refused]:
        """The same, one after the other, as they are done."""
        for running in self._running.pop(case.key):
            yield self._result(*running, seconds)

    def _result(
        self, candidate: Candidate, future: Future[Built | Refused], seconds: float | None
    ) -> Built | Refused:
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            return Refused(candidate, "the time was up before it was compiled")
        except Exception as error:  # noqa: BLE001  # of the compiler, or of a process that died: it is named
            return Refused(candidate, reason(error))


@contextmanager
def processes(count: int | None = None, seconds: float | None = None) -> Iterator[Executor]:
    """Processes to build in, by default all processors but one, which drives the GPU.

    seconds: that building one kernel may take
    """
    pool = Workers(count or max(1, (os.cpu_count() or 2) - 1), seconds)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # what is compiled now, nobody waits for
