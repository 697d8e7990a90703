"""Processes that answer one request after the other, in lines of JSON, and end where nobody waits for them.

A newer request of the same kind makes an older one needless; so does any request about another program.
What is needless and not yet begun is never begun. What was begun may still end, since a process knows much
that the next one would have to find out again; if it takes too long for that, the process is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Data = Mapping[str, Any]
LONGEST_ANSWER = 256 * 2**20  # bytes
NEWER = "superseded"  # the code of a request that a newer one made needless
FAILED = "worker"  # the code where there is no answer: the time was up, or the process ended


def failure(code: str, message: str) -> Data:
    """An answer that says why there is none."""
    return {"error": {"code": code, "message": message, "mistakes": []}}


@dataclass(eq=False)
class Question:
    """A request that is not answered yet."""

    method: str
    params: Data
    answer: asyncio.Future[Data]
    needless: asyncio.Event = field(default_factory=asyncio.Event)

    def finish(self, answer: Data) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def give_up(self) -> None:
        self.finish(failure(NEWER, "a newer request came"))
        self.needless.set()


@dataclass
class Worker:
    """A process, which is started for the first request, and again for the one after its end.

    arguments: of Python
    patience:  seconds for which a request that has become needless may go on
    seconds:   for any request
    """

    arguments: Sequence[str]
    patience: float = 3.0
    seconds: float = 120.0
    _waiting: list[Question] = field(default_factory=list)
    _running: Question | None = None
    _process: asyncio.subprocess.Process | None = None
    _task: asyncio.Task[None] | None = None
    _number: int = 0

    async def ask(self, method: str, params: Data) -> Data:
        """`{"result": …}` or `{"error": …}`."""
        question = Question(method, params, asyncio.get_running_loop().create_future())
        self._make_room(question)
        self._waiting.append(question)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await question.answer

    def _make_room(self, new: Question) -> None:
        """Gives up what the new question makes needless; of its own program, a process goes on."""
        for old in [*self._waiting]:
            if old.method == new.method or old.params["program"] != new.params["program"]:
                self._waiting.remove(old)
                old.give_up()
        running = self._running
        if running is None:
            return
        if running.params["program"] != new.params["program"]:
            running.give_up()
        elif running.method == new.method:
            running.finish(failure(NEWER, "a newer request came"))

    async def _run(self) -> None:
        while self._waiting:
            self._running = self._waiting.pop(0)
            try:
                self._running.finish(await self._answered(self._running))
            except (OSError, ValueError) as error:
                await self.stop()
                self._running.finish(failure(FAILED, f"the process that answers failed: {error}"))
            finally:
                self._running = None

    async def _answered(self, question: Question) -> Data:
        process = await self._started()
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise OSError("it has no pipes")
        self._number += 1
        asked = {"id": self._number, "method": question.method, "params": question.params}
        stdin.write(json.dumps(asked).encode() + b"\n")
        await stdin.drain()
        line = await self._first_line(stdout, question)
        if line is None:
            await self.stop()
            return failure(FAILED, f"there is no answer after {self.seconds:g} s")
        if not line.endswith(b"\n"):
            await self.stop()
            return failure(FAILED, "the process that answers has ended")
        answer = json.loads(line)
        return {key: answer[key] for key in ("result", "error") if key in answer}

    async def _first_line(self, stdout: asyncio.StreamReader, question: Question) -> bytes | None:
        """None where the time is up, or where the question became needless and takes too long."""
        reading = asyncio.ensure_future(stdout.readline())
        needless = asyncio.ensure_future(question.needless.wait())
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait({reading, needless}, timeout=self.seconds, return_when=first)
            if not reading.done() and needless.done():
                await asyncio.wait({reading}, timeout=self.patience)
            return reading.result() if reading.done() else None
        finally:
            reading.cancel()
            needless.cancel()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *self.arguments, stdin=pipe, stdout=pipe, stderr=none, limit=LONGEST_ANSWER
            )
        return self._process

    async def stop(self) -> None:
        """Ends the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def close(self) -> None:
        """Ends the process, and gives up all that was asked."""
        for question in [*self._waiting, *([self._running] if self._running else [])]:
            question.give_up()
        self._waiting.clear()
        await self.stop()
