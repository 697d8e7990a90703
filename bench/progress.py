"""Progress of a run: what is compiled and measured now, and a line of output for each case."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol

from bench.contest import ROTATION, Finalist, Tried
from bench.results import OURS
from bench.table import Case
from rise.progress import Advance, progress, said


class Progress(Protocol):
    """Is called as the measurement proceeds."""

    def case(self, case: Case, position: int, count: int) -> None: ...

    def step(self, kind: str, name: str) -> None: ...

    def finished(self, case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> None: ...

    def skipped(self, case: Case, reason: str) -> None: ...


class Quiet:
    """Shows nothing: another process does, for several."""

    def case(self, case: Case, position: int, count: int) -> None:
        pass

    def step(self, kind: str, name: str) -> None:
        pass

    def finished(self, case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> None:
        pass

    def skipped(self, case: Case, reason: str) -> None:
        pass


class Shown:
    """A context in which it is shown."""

    def __init__(self) -> None:
        self._cases, self._case, self._step = ExitStack(), ExitStack(), ExitStack()
        self._advance: Advance = lambda done, of: None
        self._position = self._count = 0

    def __enter__(self) -> Shown:
        self._advance = self._cases.enter_context(progress("cases"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._step, self._case, self._cases):
            each.close()

    def case(self, case: Case, position: int, count: int) -> None:
        self._position, self._count = position, count
        self._advance(position, count)
        self._case.enter_context(progress(case.key))

    def step(self, kind: str, name: str) -> None:
        self._step.close()
        self._step.enter_context(progress("the last round" if name == ROTATION else f"{kind} {name}"))

    def finished(self, case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> None:
        self._end(summary(case, finalists, tried))

    def skipped(self, case: Case, reason: str) -> None:
        self._end(skipped(case, reason))

    def _end(self, text: str) -> None:
        self._step.close()
        self._case.close()
        self._advance(self._position + 1, self._count)
        said(text)


def skipped(case: Case, reason: str) -> str:
    return f"{case.key}: skipped: {reason}"


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
