"""A run in a process of its own, begun again where a kernel takes the process with it.

A kernel that writes where it must not leaves no usable GPU context behind, one that never ends no usable
process. What was running then stands in the journal: it is written down as crashed, and a new process goes on
without it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from bench.journal import Journal
from bench.results import Attempt, append

LOST = 75  # exit status of a process whose GPU answers no more
RESTARTS = 20

# runs the worker with these further arguments; gives its exit status
Start = Callable[[Sequence[str]], int]


def supervise(
    start: Start,
    journal: Journal,
    attempts: Path,
    code: str,
    device: Callable[[], str],
    seconds: Callable[[], float],
) -> int:
    """Runs the worker until it ends by itself; the exit status of the last one.

    attempts: the file in which what crashed is noted. seconds: how many are left
    """
    status = 0
    for _ in range(RESTARTS):
        journal.clear()
        status = start([f"--worker={seconds()}"])
        running = journal.running()
        if running is None or seconds() <= 0:
            break
        case, kind, name = running
        reason = "the GPU answered no more" if status == LOST else f"the process ended with status {status}"
        append(attempts, [Attempt(code, device(), case, kind, name, "crashed", 0.0, 0.0, "", reason)])
        print(f"{case}: {kind} {name}: {reason}; going on without it", file=sys.stderr, flush=True)
    journal.clear()
    return status


def process(arguments: Sequence[str]) -> Start:
    """The same command in a new process."""

    def start(further: Sequence[str]) -> int:
        return alone([sys.executable, "-m", "rise.cli", *arguments, *further])

    return start


def alone(command: Sequence[str]) -> int:
    """Runs a command in a session of its own; what it has started and left behind ends with it."""
    running = subprocess.Popen(command, start_new_session=True)
    try:
        return running.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
