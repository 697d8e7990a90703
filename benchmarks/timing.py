"""How long launches on a GPU take, and where tables go, for the benchmarks beside this file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import in_rotation
from bench.session import SystemClock

LAUNCHES = 10
SAMPLE_MS = 2.5  # about how long launches of one kind follow each other in a rotation
ROUNDS = 9


def median_ms(torch: Any, launch: Callable[[], Any]) -> float:
    """The median over launches that follow each other on a warm GPU, in milliseconds."""
    launch()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(LAUNCHES + 1)]
    marks[0].record()
    for mark in marks[1:]:
        launch()
        mark.record()
    torch.cuda.synchronize()
    return float(median(a.elapsed_time(b) for a, b in pairwise(marks)))


@dataclass
class Sampled:
    """A launch that takes turns with others: several in a row, behind one that does not count."""

    torch: Any
    name: str
    launch: Callable[[], Any]

    def __post_init__(self) -> None:
        self.count = 1
        self.count = max(1, round(1000 * SAMPLE_MS / min(self.sample(), self.sample())))

    def sample(self) -> float:
        """Microseconds of one launch."""
        self.launch()
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(self.count):
            self.launch()
        end.record()
        end.synchronize()
        return 1000 * float(start.elapsed_time(end)) / self.count


def rotated_ms(torch: Any, launches: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """The medians over samples that take turns, in a new order each round, in milliseconds.

    Where power limits the clock, what runs first finds the GPU cool, so the best of several times favours it.
    """
    samples = [Sampled(torch, name, launch) for name, launch in launches.items()]
    found = in_rotation(samples, SystemClock(), ROUNDS, seconds=float("inf"))
    return {name: each.median / 1000 for name, each in zip(launches, found, strict=True)}


def write(folder: Path | None, name: str, table: str) -> None:
    """Prints a table, and writes it to a file of the folder, if there is one."""
    print(table)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(table, encoding="utf-8")
