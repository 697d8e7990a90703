"""Processes that work at the same time, each on one task, none of them longer than it may.

A task that takes too long, or takes its process with it, loses its own result and nobody else's: the process
is ended, and the next task gets a new one.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

CONTEXT = multiprocessing.get_context("spawn")


class TaskTimeout(Exception):
    """The task took longer than it may."""


class Died(Exception):
    """The process of the task ended."""


class Workers(Executor):
    """count: of processes. seconds: that a task may take; None: any. Functions and results are pickled."""

    def __init__(self, count: int, seconds: float | None = None) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._seconds = seconds
        self._own = threading.local()
        self._lock, self._workers, self._closed = threading.Lock(), set[_Worker](), False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._threads.submit(self._run, function, arguments, named)

    def _run(self, function: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """In a thread, which has a process of its own."""
        worker = getattr(self._own, "worker", None) or self._new_worker()
        try:
            return worker.result((function, arguments, named), self._seconds)
        except (TaskTimeout, Died):
            self._own.worker = None
            with self._lock:
                self._workers.discard(worker)
            worker.end()
            raise

    def _new_worker(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise Died("the workers have been sent home")
            self._own.worker = made = _Worker()
            self._workers.add(made)
        return made

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes; what they work on now, nobody waits for."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        with self._lock:
            self._closed = True
            for worker in self._workers:
                worker.end()


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, theirs = CONTEXT.Pipe()
        self._process: BaseProcess = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def result(self, task: Any, seconds: float | None) -> Any:
        try:
            self._pipe.send(task)
            if not self._pipe.poll(seconds):
                raise TaskTimeout(f"not done within {seconds:g} seconds")
            right, value = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(1)
            raise Died(f"its process ended with status {self._process.exitcode}") from error
        if not right:
            raise value
        return value

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    """In the process: one task after the other, until nobody is there any more."""
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            function, arguments, named = pipe.recv()
            try:
                answer = True, function(*arguments, **named)
            except Exception as error:  # noqa: BLE001  # whatever it is: it belongs to who asked
                answer = False, error
            pipe.send(answer)
