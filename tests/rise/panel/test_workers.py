"""Which requests are answered, and when the process behind them is ended, without any of the compiler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from rise.lsp.workers import FAILED, NEWER, Worker

SLOW = (str(Path(__file__).parent / "slow.py"),)
LONG = 60.0
ONE, OTHER = {"program": 1}, {"program": 2}


def run(test: Callable[[Worker], Coroutine[Any, Any, None]], patience: float = LONG) -> None:
    async def running() -> None:
        worker = Worker(SLOW, patience, LONG)
        try:
            await asyncio.wait_for(test(worker), LONG)
        finally:
            await worker.close()

    asyncio.run(running())


def code(answer: Any) -> str:
    return str(answer["error"]["code"])


async def begun(worker: Worker, folder: Path, method: str, params: Any) -> asyncio.Task[Any]:
    """A request that the process has begun with."""
    started = folder / "started"
    task = asyncio.create_task(worker.ask(method, {**params, "started": str(started)}))
    while not started.exists():
        await asyncio.sleep(0.005)
    started.unlink()
    return task


def test_what_waits_is_given_up_for_a_newer_request_of_its_kind(tmp_path: Path) -> None:
    async def test(worker: Worker) -> None:
        until = {**ONE, "file": str(tmp_path / "go")}
        first = await begun(worker, tmp_path, "until", until)
        names = ["a", "b", "c"]
        echoes = [asyncio.create_task(worker.ask("echo", {**ONE, "name": name})) for name in names]
        another = asyncio.create_task(worker.ask("another", ONE))
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
        answers = await asyncio.gather(*echoes)
        assert [code(answer) for answer in answers[:2]] == [NEWER, NEWER]
        assert answers[2]["result"]["began"] == ["until", "c"]
        assert "result" in await first
        assert (await another)["result"]["began"] == ["until", "c", "another"]

    run(test)


def test_for_its_own_program_a_process_goes_on(tmp_path: Path) -> None:
    """The older request is answered at once, and what was found out for it is not lost."""

    async def test(worker: Worker) -> None:
        process = (await worker.ask("echo", ONE))["result"]["process"]
        first = await begun(worker, tmp_path, "until", {**ONE, "file": str(tmp_path / "go")})
        second = asyncio.create_task(worker.ask("until", {**ONE, "file": str(tmp_path / "go")}))
        assert code(await first) == NEWER
        (tmp_path / "go").touch()
        assert (await second)["result"]["process"] == process

    run(test, patience=0.0)


def test_a_process_that_is_busy_with_another_program_is_ended(tmp_path: Path) -> None:
    async def test(worker: Worker) -> None:
        process = (await worker.ask("echo", ONE))["result"]["process"]
        first = await begun(worker, tmp_path, "never", ONE)
        answer = await worker.ask("echo", OTHER)
        assert code(await first) == NEWER
        assert answer["result"]["process"] != process
        assert answer["result"]["began"] == ["echo"]

    run(test, patience=0.05)


def test_a_process_that_is_soon_done_with_another_program_is_kept(tmp_path: Path) -> None:
    async def test(worker: Worker) -> None:
        process = (await worker.ask("echo", ONE))["result"]["process"]
        first = await begun(worker, tmp_path, "until", {**ONE, "file": str(tmp_path / "go")})
        second = asyncio.create_task(worker.ask("echo", OTHER))
        assert code(await first) == NEWER
        (tmp_path / "go").touch()
        assert (await second)["result"]["process"] == process

    run(test)


def test_a_request_that_takes_too_long_fails_and_the_next_one_is_answered(tmp_path: Path) -> None:
    async def test(worker: Worker) -> None:
        await worker.ask("echo", ONE)  # the process runs
        worker.seconds = 0.05
        assert code(await worker.ask("never", ONE)) == FAILED
        worker.seconds = LONG
        assert (await worker.ask("echo", ONE))["result"]["began"] == ["echo"]

    run(test)


@pytest.mark.parametrize("method", ["end", "noise"])
def test_a_process_that_ends_or_says_nonsense_is_started_again(method: str) -> None:
    async def test(worker: Worker) -> None:
        assert code(await worker.ask(method, ONE)) == FAILED
        assert (await worker.ask("echo", ONE))["result"]["began"] == ["echo"]

    run(test)


def test_no_process_can_be_started() -> None:
    async def test(worker: Worker) -> None:
        worker.arguments = ("-m", "no.such.module")
        assert code(await worker.ask("echo", ONE)) == FAILED

    run(test)


def test_closing_gives_up_everything(tmp_path: Path) -> None:
    async def test(worker: Worker) -> None:
        first = await begun(worker, tmp_path, "never", ONE)
        second = asyncio.create_task(worker.ask("echo", ONE))
        await asyncio.sleep(0)
        await worker.close()
        assert (code(await first), code(await second)) == (NEWER, NEWER)

    run(test)
