"""Measuring in a process of its own, which is started again when a kernel crashes it.

A kernel that writes out of bounds destroys its GPU context, and one that never ends blocks its process. The
journal names what was running: it is recorded as crashed, and a new process continues without it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from bench.journal import Journal
from bench.results import Attempt, append
from rise.depth import deep
from rise.errors import RiseError, UsageError
from rise.output import escape_what_cannot_be_encoded

SPAWN = multiprocessing.get_context("spawn")
LOST = 75  # exit status of a process whose GPU no longer answers
RESTARTS = 20
LOOK = 0.2  # seconds after which a process that may be stopped is looked at again

# runs the worker for at most so many seconds; returns its exit status
Start = Callable[[float], int]


class Stop(Protocol):
    """Whether what runs is to end, as events say it."""

    def is_set(self) -> bool: ...


def supervise(
    start: Start,
    journal: Journal,
    attempts: Path,
    code: str,
    device: Callable[[], str],
    seconds: Callable[[], float],
) -> int:
    """Runs the worker until it ends without a crash; returns the exit status of the last one.

    attempts: the file that records crashes. seconds: how many are left
    """
    status = 0
    for _ in range(RESTARTS):
        journal.clear()
        status = start(seconds())
        running = journal.running()
        if running is None or seconds() <= 0:
            break
        case, kind, name = running
        reason = "the GPU stopped answering" if status == LOST else f"the process ended with status {status}"
        append(attempts, [Attempt(code, device(), case, kind, name, "crashed", 0.0, 0.0, "", reason)])
        print(f"{case}: {kind} {name}: {reason}; continuing without it", file=sys.stderr, flush=True)
    journal.clear()
    return status


def alone(action: Callable[..., int], *arguments: Any, stop: Stop | None = None) -> int:
    """Calls a function in a new process, and ends whatever it has started and left behind.

    stop: ends the process when it is set
    """
    process = SPAWN.Process(target=_lead, args=(action, *arguments))
    process.start()
    group = process.pid
    try:
        while process.is_alive() and not (stop is not None and stop.is_set()):
            process.join(None if stop is None else LOOK)
        return process.exitcode or 0
    finally:
        process.kill()
        with suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(group, signal.SIGKILL)


@deep
def _lead(action: Callable[..., int], *arguments: Any) -> None:
    """In the new process, which leads a group that can be ended as a whole, and ends with its parent."""
    os.setsid()
    Thread(target=_end_with_parent, daemon=True).start()
    escape_what_cannot_be_encoded()
    try:
        sys.exit(action(*arguments))
    except RiseError as error:
        print(error.render(), file=sys.stderr, flush=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)


def _end_with_parent() -> None:
    """Or the GPU would stay busy where the parent is killed."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os.killpg(0, signal.SIGKILL)
