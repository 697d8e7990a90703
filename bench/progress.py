"""Progress of a run: a bar on a terminal, a line for each case elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.contest import Finalist, Tried
from bench.results import OURS
from bench.table import Case


class Shown:
    """A context in which the bar is shown; lines stay above it."""

    def __init__(self, console: Console, prefix: str = "") -> None:
        self._console, self._prefix = console, prefix
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("")
        self._case = ""

    def __enter__(self) -> Shown:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def case(self, case: Case, position: int, count: int) -> None:
        self._case = case.key
        self._bar.update(self._task, completed=position, total=count, description=f"{case.key}: compiling")

    def step(self, kind: str, name: str) -> None:
        self._bar.update(self._task, description=f"{self._case}: {kind} {name}")

    def finished(self, case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> None:
        self._bar.advance(self._task)
        self._line(summary(case, finalists, tried))

    def skipped(self, case: Case, reason: str) -> None:
        self._bar.advance(self._task)
        self._line(f"{case.key}: skipped: {reason}")

    def _line(self, text: str) -> None:
        self._console.print(self._prefix + text, markup=False, highlight=False, soft_wrap=True)


def summary(case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> str:
    """`gemm m=…: 12.3 µs, cublas 1.02; by …; 2 refused, 1 wrong (first: why)`"""
    ours = next((f for f in finalists if f.variant.kind == OURS), None)
    parts = [f"{ours.summary.median:.2f} µs" if ours else "none of ours"]
    for other in finalists:
        if other is not ours:
            ratio = f" ({other.summary.median / ours.summary.median:.3f})" if ours else ""
            parts.append(f"{other.variant.kind} {other.summary.median:.2f}{ratio}")
    text = f"{case.key}: {', '.join(parts)}"
    if ours:
        text += f"; by {ours.variant.name}"
    for status in ("refused", "wrong", "failed"):
        those = [t for t in tried if t.status == status]
        if those:
            first = those[0]
            text += f"; {len(those)} {status} (first: {first.kind} {first.name}: {first.reason[:120]})"
    return text
