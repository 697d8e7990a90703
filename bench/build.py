"""Kernels for the candidates of a table: derived and compiled in parallel processes, cached on disk.

The function that derives and compiles is an argument. A refusal is cached like a kernel, with its reason.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pebble import ProcessExpired

from bench.table import Candidate, Case, Source
from bench.workers import Workers
from codegen.cache import cached
from rise.errors import RiseError
from rise.user_code import own_mistake

ROOT = Path(__file__).parents[1]
PACKAGES = ("rise", "rewrites", "strategies", "codegen")
SOURCES = (".py", ".lark", ".rise", ".cuh", ".hpp")
NOT_COMPILING = "rise/cli/"
LOOK = 0.2  # seconds after which it is asked whether somebody waits
TOO_LONG = "compiling it takes longer than the timeout"


@dataclass(frozen=True)
class Order:
    """What to build: a definition of a file, at sizes, by a candidate, for a target."""

    source: Source
    definition: str
    sizes: tuple[tuple[str, int], ...]
    candidate: Candidate
    target: str

    @classmethod
    def of(cls, case: Case, candidate: Candidate, target: str) -> Order:
        return cls(case.subject.source, case.subject.definition, tuple(case.sizes.items()), candidate, target)


@dataclass(frozen=True)
class Built:
    """A kernel or a program of several kernels, compiled into the cache."""

    candidate: Candidate
    kernel: Any


@dataclass(frozen=True)
class Refused:
    """Why there is no kernel: the first line of the message, with its code."""

    candidate: Candidate
    reason: str


# what orders are of, and what derives and compiles them
IMPORTS = ("bench.derive", "strategies.auto", "strategies.matmul.tensor_core", "codegen.runtime")
# derives and compiles, or raises a RiseError. It is a function of a module, since other processes call it
Derive = Callable[[Order], Any]


def build(order: Order, derive: Derive) -> Built | Refused:
    """From the cache, unless something that the kernel depends on has changed."""

    def write(path: Path) -> None:
        path.write_bytes(pickle.dumps(_build(order, derive)))

    key: list[str | bytes] = [
        code(),
        repr((order.definition, order.sizes, order.candidate, order.target)),
        *order.source.texts(),
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
    """One line: code and message, or the class of the exception and its text."""
    text = (
        f"{error.code} {error.message}"
        if isinstance(error, RiseError)
        else f"{type(error).__name__}: {error}"
    )
    return " ".join(text.split())[:300]


@cache
def code() -> str:
    """A digest of the compiler: a result counts for this version of the compiler only."""
    state = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SOURCES and not name.startswith(NOT_COMPILING):
                state.update(name.encode() + path.read_bytes())
    return state.hexdigest()[:12]


# --- in parallel --------------------------------------------------------------------------------------------


class Builds:
    """Builds the candidates of cases in the order in which they are submitted."""

    def __init__(self, executor: Executor, derive: Derive, target: str) -> None:
        self._executor, self._derive, self._target = executor, derive, target
        self._running: dict[Any, list[tuple[Candidate, Future[Built | Refused]]]] = {}

    def start(self, cases: Sequence[Case]) -> None:
        for case in cases:
            orders = [Order.of(case, candidate, self._target) for candidate in case.subject.candidates]
            self._running[_key(case)] = [
                (order.candidate, self._executor.submit(build, order, self._derive)) for order in orders
            ]

    def as_built(
        self, cases: Sequence[Case], gone: Callable[[], bool]
    ) -> Iterator[tuple[int, list[Built | Refused]]]:
        """Builds cases; yields the position of each with its candidates, as soon as all of these are built.

        gone: whether nobody waits any longer
        """
        self.start(cases)
        built: SimpleQueue[int] = SimpleQueue()
        missing = [len(case.subject.candidates) or 1 for case in cases]
        for position, case in enumerate(cases):
            for _, future in self._running[_key(case)]:
                future.add_done_callback(lambda _, at=position: built.put(at))  # type: ignore[misc]
            if not case.subject.candidates:
                built.put(position)
        while any(missing) and not gone():
            with suppress(Empty):
                at = built.get(timeout=LOOK)
                missing[at] -= 1
                if not missing[at]:
                    yield at, self.of(cases[at])

    def of(self, case: Case, seconds: float | None = None) -> list[Built | Refused]:
        """Those of a case. One that is not built within so many seconds is refused."""
        return list(self.each(case, seconds))

    def each(self, case: Case, seconds: float | None = None) -> Iterator[Built | Refused]:
        """The same, each as soon as it is built."""
        for running in self._running.pop(_key(case)):
            yield self._result(*running, seconds)

    def _result(
        self, candidate: Candidate, future: Future[Built | Refused], seconds: float | None
    ) -> Built | Refused:
        try:
            return future.result(seconds)
        except TimeoutError:
            own = future.done()  # else the time of the whole run is up
            future.cancel()
            return Refused(candidate, TOO_LONG if own else "no time was left to compile it")
        except ProcessExpired as error:
            return Refused(candidate, f"the compiling process ended with status {error.exitcode}")
        except Exception as error:  # noqa: BLE001  # a bug of the compiler is recorded, the others are built
            return Refused(candidate, reason(error))


def _key(case: Case) -> tuple[str, tuple[Candidate, ...]]:
    """A case may be several, each with a part of the candidates."""
    return case.key, case.subject.candidates


@contextmanager
def processes(count: int | None = None, seconds: float | None = None) -> Iterator[Executor]:
    """Processes to build in: by default as many as there are processors but one, which drives the GPU.

    seconds: how long building one kernel may take
    """
    pool = Workers(count or max(1, (os.cpu_count() or 2) - 1), seconds, IMPORTS)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # nobody waits for what is compiled now
