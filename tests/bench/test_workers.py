"""Processes that build in parallel: one that hangs or crashes loses its own result only."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from pebble import ProcessExpired

from bench.build import TOO_LONG, Builds, Order, Refused
from bench.table import Candidate, Case, Source, Subject
from bench.workers import Workers
from rise.errors import StrategyError

HANGS = 3600.0  # for far longer than any guard waits
GUARD = 600  # against a test that hangs: nothing that ends takes so long on a busy machine


class LimitedWorkers(Workers):
    """Workers with a limit for tasks that hang only: on a busy machine any other may need some time."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        order = next((a for a in arguments if isinstance(a, Order)), None)
        hangs = function is sleep or (order is not None and order.candidate.strategy == "endless")
        self.seconds = 1 if hangs else None
        return super().submit(function, *arguments, **named)


def double(value: int) -> int:
    return 2 * value


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def die() -> None:
    os._exit(7)


def fail() -> None:
    raise ValueError("as it should")


def outcome(future: Future[Any]) -> Any:
    try:
        return future.result(GUARD)
    except Exception as error:
        return type(error), str(error)


def test_one_that_hangs_crashes_or_fails_loses_its_own_result_only() -> None:
    with LimitedWorkers(1) as workers:
        tasks = [(double, 1), (sleep, HANGS), (double, 2), (die,), (double, 3), (fail,), (double, 4)]
        futures = [workers.submit(*task) for task in tasks]  # type: ignore[arg-type]
        results = [outcome(future) for future in futures]
    assert [result for result in results if isinstance(result, int)] == [2, 4, 6, 8]
    assert [result[0] for result in results if isinstance(result, tuple)] == [
        TimeoutError, ProcessExpired, ValueError,
    ]  # fmt: skip


def test_work_that_nobody_waits_for_ends() -> None:
    workers = Workers(2)
    futures = [workers.submit(sleep, HANGS) for _ in range(4)]
    while not any(future.running() for future in futures):
        time.sleep(0.01)
    processes = multiprocessing.active_children()
    assert processes
    workers.shutdown(wait=False, cancel_futures=True)
    assert not any(process.is_alive() for process in processes)


def derive(order: Any) -> str:
    if order.candidate.strategy == "endless":
        time.sleep(HANGS)
    if order.candidate.strategy == "crashing":
        die()
    if order.candidate.strategy == "refused":
        raise StrategyError("R0606", "it does not apply")
    return "a kernel"


def test_a_candidate_that_hangs_or_crashes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    candidates = tuple(Candidate(name) for name in ("good", "endless", "refused", "crashing"))
    file = tmp_path / "some.rise"
    file.touch()
    case = Case(Subject(Source(file), "f", "matmul", ({"n": 1},), candidates, (), {}), {"n": 1})
    with LimitedWorkers(1) as pool:
        builds = Builds(pool, derive, "sm_90a")
        builds.start([case])
        good, endless, refused, crashing = builds.of(case)
    assert getattr(good, "kernel", None) == "a kernel"
    assert endless == Refused(candidates[1], TOO_LONG)
    assert refused == Refused(candidates[2], "R0606 it does not apply")
    assert crashing == Refused(candidates[3], "the compiling process ended with status 7")


def is_imported(module: str) -> bool:
    return module in sys.modules


@pytest.mark.parametrize("imports", [(), ("colorsys",)], ids=["none", "one"])
def test_a_process_imports_what_tasks_need_before_its_first_one(imports: tuple[str, ...]) -> None:
    with Workers(1, imports=imports) as workers:
        assert workers.submit(is_imported, "colorsys").result(GUARD) == bool(imports)
