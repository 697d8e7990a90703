"""One case: all variants are checked and timed roughly; the fastest of each kind are timed in rotation.

This is successive halving: each round has fewer variants and more samples than the round before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from bench.build import Built, Refused, reason
from bench.measure import FEWEST, ROUNDS, SEMIFINALISTS, Clock, Coarse, Timed, coarse, in_rotation, survivors
from bench.results import OURS
from bench.statistics import Summary
from rise.errors import RiseError
from rise.progress import stepwise

FINALISTS = 2  # of each kind
ROTATION = "rotation"  # what is reported to run when several variants are timed in rotation
WRONG = ("R0829", "R0830")


class ContextLost(Exception):
    """The GPU no longer answers in this process."""


@dataclass(frozen=True)
class Variant:
    """One implementation that is timed.

    kind: `rise`, or the name of a baseline. run: what the runner needs to run it
    resources: registers, spills and shared memory, as they are shown
    """

    kind: str
    name: str
    run: Any = field(repr=False, compare=False)
    resources: str = ""


@dataclass(frozen=True)
class Verdict:
    """A correct result. error and bound: the largest, on random data; how: what was compared."""

    error: float
    bound: float
    how: str


class Runner(Protocol):
    """Runs the variants of one case on a device, which holds their operands."""

    exact: bool  # whether results on whole numbers are exact

    def ours(self, built: Built) -> Variant:
        """Raises where the kernel cannot be loaded."""

    def baseline(self, name: str) -> Sequence[Variant]:
        """All variants of a baseline. Raises where it is not installed."""

    def fill(self, whole_numbers: bool) -> None:
        """Puts data into the operands."""

    def check(self, variant: Variant) -> Verdict:
        """Runs it once, into a poisoned result. RiseError R0829, R0830 where the result is wrong."""

    def timed(self, variant: Variant) -> Timed: ...

    def answers(self) -> bool:
        """Whether the device still works: a kernel may have destroyed its context."""

    def close(self) -> None:
        """Frees the operands."""


@dataclass(frozen=True)
class Tried:
    """The outcome of one variant, or of a candidate that was not built."""

    kind: str
    name: str
    status: str
    summary: Summary | None = None
    resources: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Finalist:
    variant: Variant
    summary: Summary
    verdict: Verdict


Measured = tuple[Variant, Coarse]


@dataclass
class Contest:
    """The rounds of one case.

    report: is called with the kind and name of what runs next; with None when nothing does
    barred: kinds and names of the variants that crashed the process before
    told:   is called with each outcome as soon as it is known; twice for a finalist
    measured: what the coarse pass found before an interruption, by kind and name
    finalists: how many of each kind reach the last round; 0: there is none
    """

    runner: Runner
    clock: Clock
    report: Callable[[tuple[str, str] | None], None] = lambda _: None
    barred: frozenset[tuple[str, str]] = frozenset()
    told: Callable[[Tried], None] = lambda _: None
    measured: Mapping[tuple[str, str], Summary] = field(default_factory=dict)
    finalists: int = FINALISTS
    tried: list[Tried] = field(default_factory=list)

    def run(self, builds: Sequence[Built | Refused], baselines: Sequence[str]) -> list[Finalist]:
        """The best of each kind, ours first. `tried` has the outcome of every variant."""
        variants = [*self._ours(builds), *self._baselines(baselines)]
        verdicts = self._checked(variants)
        timed = self._coarse(list(verdicts))
        if not self.finalists:
            self.report(None)
            return []
        semifinalists = self._kept(timed, SEMIFINALISTS)
        finalists = self._in_rotation(self._kept(self._compared(semifinalists), self.finalists))
        for variant, found in finalists:
            self._tell(_tried(variant, "finalist", found.summary))
        return _best(Finalist(variant, found.summary, verdicts[variant]) for variant, found in finalists)

    # --- the variants

    def _ours(self, builds: Sequence[Built | Refused]) -> Iterator[Variant]:
        for made in builds:
            name = str(made.candidate)
            series = made.candidate.series
            if isinstance(made, Refused):
                self._tell(Tried(series, name, "refused", reason=made.reason))
            elif (series, name) not in self.barred:
                variant = self._guarded(series, name, partial(self.runner.ours, made))
                yield from () if variant is None else (variant,)

    def _baselines(self, names: Sequence[str]) -> Iterator[Variant]:
        for name in names:
            if (name, name) not in self.barred:
                made = self._guarded(name, name, partial(self.runner.baseline, name))
                yield from (v for v in made or () if (v.kind, v.name) not in self.barred)

    def _guarded(self, kind: str, name: str, action: Callable[[], Any]) -> Any:
        """The result of the action; None where it fails, which is noted."""
        self.report((kind, name))
        try:
            return action()
        except Exception as error:  # noqa: BLE001  # any library may raise anything: it is recorded, and the others run
            wrong = isinstance(error, RiseError) and error.code in WRONG
            self._tell(Tried(kind, name, "wrong" if wrong else "failed", reason=reason(error)))
            if not self.runner.answers():
                raise ContextLost(reason(error)) from error
            return None

    # --- checking and timing

    def _checked(self, variants: Sequence[Variant]) -> dict[Variant, Verdict]:
        """The variants that are correct on whole numbers, where these are exact, and on random ones."""
        verdicts = {variant: Verdict(0.0, 0.0, "") for variant in variants}
        for whole_numbers in (True, False) if self.runner.exact else (False,):
            self.runner.fill(whole_numbers)
            for variant, before in stepwise("checking", list(verdicts.items()), len(verdicts)):
                found = self._guarded(variant.kind, variant.name, partial(self.runner.check, variant))
                if found is None:
                    del verdicts[variant]
                else:
                    how = ", ".join(text for text in (before.how, found.how) if text)
                    verdicts[variant] = replace(found, how=how)
        return verdicts

    def _coarse(self, variants: Sequence[Variant]) -> list[Measured]:
        """Each by itself; only one sample of a variant that is much slower than the best of its kind."""
        measured: list[Measured] = []
        best: dict[str, float] = {}
        for variant in stepwise("timing", variants, len(variants)):
            until_now = best.get(variant.kind, float("inf"))
            found = self._guarded(variant.kind, variant.name, partial(self._timed, variant, until_now))
            if found is not None:
                self.told(_tried(variant, _status(found), found.summary))
                measured.append((variant, found))
                best[variant.kind] = min(until_now, found.summary.median)
        return measured

    def _compared(self, measured: Sequence[Measured]) -> Sequence[Measured]:
        """A short rotation, where there are more of a kind than the last round takes."""
        kinds = Counter(variant.kind for variant, _ in measured)
        several = any(count > self.finalists for count in kinds.values())
        return self._in_rotation(measured, FEWEST) if several else measured

    def _in_rotation(self, variants: Sequence[Measured], rounds: int = ROUNDS) -> list[Measured]:
        if not variants:
            return []
        self.report((" ".join(variant.kind for variant, _ in variants), ROTATION))
        summaries = in_rotation([found.timed for _, found in variants], self.clock, rounds)
        self.report(None)
        return [
            (variant, Coarse(found.timed, summary))
            for (variant, found), summary in zip(variants, summaries, strict=True)
        ]

    def _kept(self, measured: Sequence[Measured], most: int) -> list[Measured]:
        """The best of each kind; the times of the others are noted."""
        kept: list[Measured] = []
        for kind in dict.fromkeys(variant.kind for variant, _ in measured):
            of_kind = [(variant, found) for variant, found in measured if variant.kind == kind]
            best = survivors([found for _, found in of_kind], most)
            for variant, found in of_kind:
                if found in best:
                    kept.append((variant, found))
                else:
                    self.tried.append(_tried(variant, _status(found), found.summary))
        return kept

    def _timed(self, variant: Variant, best: float) -> Coarse:
        timed, before = self.runner.timed(variant), self.measured.get((variant.kind, variant.name))
        return Coarse(timed, before) if before else coarse(timed, self.clock, best)

    def _tell(self, tried: Tried) -> None:
        self.tried.append(tried)
        self.told(tried)


def _status(found: Coarse) -> str:
    return "slow" if found.cut else "timed"


def _tried(variant: Variant, status: str, summary: Summary) -> Tried:
    return Tried(variant.kind, variant.name, status, summary, variant.resources)


def _best(finalists: Iterable[Finalist]) -> list[Finalist]:
    """The fastest of each kind, ours first."""
    best: dict[str, Finalist] = {}
    for finalist in finalists:
        kind = finalist.variant.kind
        if kind not in best or finalist.summary.median < best[kind].summary.median:
            best[kind] = finalist
    return sorted(best.values(), key=lambda f: f.variant.kind != OURS)
