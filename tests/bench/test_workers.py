"""Processes that build: in parallel, no longer than they may, and one that dies takes nobody with it."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from bench.build import Builds, Refused, processes
from bench.table import Candidate, Case, Subject
from bench.workers import Died, TaskTimeout, Workers
from rise.errors import StrategyError


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
        return future.result(60)
    except Exception as error:
        return type(error), str(error)


def test_one_that_is_late_dies_or_fails_loses_its_own_result_only() -> None:
    with Workers(1, seconds=2) as workers:
        tasks = [(double, 1), (sleep, 60), (double, 2), (die,), (double, 3), (fail,), (double, 4)]
        futures = [workers.submit(*task) for task in tasks]  # type: ignore[arg-type]
        start = time.monotonic()
        assert [outcome(future) for future in futures] == [
            2, (TaskTimeout, "not done within 2 seconds"), 4, (Died, "its process ended with status 7"), 6,
            (ValueError, "as it should"), 8,
        ]  # fmt: skip
        assert time.monotonic() - start < 50


def test_work_that_nobody_waits_for_ends() -> None:
    start = time.monotonic()
    workers = Workers(2)
    futures = [workers.submit(sleep, 60) for _ in range(4)]
    time.sleep(0.5)
    workers.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() or isinstance(future.exception(20), Died) for future in futures)
    assert time.monotonic() - start < 40


def derive(order: Any) -> str:
    if order.candidate.strategy == "endless":
        time.sleep(60)
    if order.candidate.strategy == "refused":
        raise StrategyError("R0606", "it does not apply")
    return "a kernel"


def test_a_candidate_that_takes_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    candidates = tuple(Candidate(name) for name in ("good", "endless", "refused"))
    file = tmp_path / "some.rise"
    file.touch()
    case = Case(Subject(file, "f", "matmul", ({"n": 1},), candidates, (), {}), {"n": 1})
    with processes(1, 4) as pool:
        builds = Builds(pool, derive, "sm_90a")
        builds.start([case])
        good, endless, refused = builds.of(case)
    assert getattr(good, "kernel", None) == "a kernel"
    assert endless == Refused(candidates[1], "TaskTimeout: not done within 4 seconds")
    assert refused == Refused(candidates[2], "R0606 it does not apply")
