"""Processes that build kernels in parallel; a task that hangs or crashes loses only its own result."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any

from pebble import ProcessPool


class Workers(Executor):
    """count: how many processes. seconds: what a task may take; None: any. Results are pickled.

    imports: modules of the tasks, which every process imports when it starts. A process that reads its first
    task keeps others from reading theirs, and would import them meanwhile, one process after the other.
    """

    def __init__(self, count: int, seconds: float | None = None, imports: Sequence[str] = ()) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPool(count, initializer=_import, initargs=(tuple(imports),), context=context)
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


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)
