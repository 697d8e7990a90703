"""How long launches on a GPU take, and where tables go, for the benchmarks beside this file."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

LAUNCHES = 10


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


def write(folder: Path | None, name: str, table: str) -> None:
    """Prints a table, and writes it to a file of the folder, if there is one."""
    print(table)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(table, encoding="utf-8")
