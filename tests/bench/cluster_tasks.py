"""What the workers of a test cluster do. They import little, as they are started again and again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.attack.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from bench.session import Session

CRASHING, KILLING = 9, 14  # trials


@dataclass(frozen=True)
class Deed:
    """name: of the task. deaths: of its workers, before it succeeds. folder: where they are counted."""

    name: str
    deaths: int
    folder: Path


def do(deed: Deed) -> tuple[str, str]:
    log = deed.folder / deed.name
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if len(log.read_text().split()) <= deed.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    if deed.name == "raises":
        raise ZeroDivisionError
    return deed.name, ""


def killing(root: Path, session: Session, seconds: float) -> int:
    """In place of measuring: the first process kills its worker and would run on, others succeed."""
    log = root / "started"
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if len(log.read_text().split()) == 1:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    session.path("machine.json").write_text("measured")
    return 0


def trials(seed: int) -> Iterator[int]:
    return count(seed)


def right(trial: int) -> Outcome:
    """One trial kills its process, another one its worker."""
    if trial in (CRASHING, KILLING):
        os.kill({CRASHING: os.getpid(), KILLING: os.getppid()}[trial], signal.SIGKILL)
    return Outcome(Verdict.RIGHT)
