"""Processes that build kernels in parallel; a task that hangs or crashes loses only its own result."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from pebble import ProcessPool


class Workers(Executor):
    """count: how many processes. seconds: what a task may take; None: any. Results are pickled."""

    def __init__(self, count: int, seconds: float | None = None) -> None:
        self._pool = ProcessPool(count, context=multiprocessing.get_context("spawn"))
        self.seconds = seconds

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """The future raises TimeoutError where the task takes too long, ProcessExpired where it crashes."""
        return self._pool.schedule(function, arguments, named, self.seconds)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for what was submitted, or else ends the processes at once."""
        if cancel_futures:
            self._pool.stop()
        else:
            self._pool.close()
        self._pool.join()
