"""One case: everybody is checked and timed coarsely, the best take turns, and of each kind the best again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from bench.build import Built, Refused, reason
from bench.measure import FEWEST, ROUNDS, SEMIFINALISTS, Clock, Coarse, Timed, coarse, in_turns, survivors
from bench.results import OURS
from bench.statistics import Summary
from rise.errors import RiseError

FINALISTS = 2  # of each kind
IN_TURNS = "in turns"  # what is reported to run when some take turns
WRONG = ("R0829", "R0830")


class ContextLost(Exception):
    """The GPU answers no more in this process."""


@dataclass(frozen=True)
class Entrant:
    """One that takes part. kind: `rise` or a baseline; run: what the arena needs to run it.

    resources: what it needs, as it is shown: registers, spills, shared memory
    """

    kind: str
    name: str
    run: Any = field(repr=False, compare=False)
    resources: str = ""


@dataclass(frozen=True)
class Verdict:
    """A result that is right. error and bound: the largest, on random data; how: what was compared."""

    error: float
    bound: float
    how: str


class Arena(Protocol):
    """A device with the operands of one case."""

    exact: bool  # whether results on whole numbers are exact

    def ours(self, built: Built) -> Entrant:
        """Raises where the kernel cannot be loaded."""

    def baseline(self, name: str) -> Sequence[Entrant]:
        """All variants of a baseline. Raises where there is none here."""

    def fill(self, whole_numbers: bool) -> None:
        """Puts data into the operands."""

    def check(self, entrant: Entrant) -> Verdict:
        """Runs it once, into a poisoned result. RiseError R0829, R0830 where what it gives is wrong."""

    def timed(self, entrant: Entrant) -> Timed: ...

    def answers(self) -> bool:
        """Whether the device still works: a kernel may have taken everything with it."""

    def close(self) -> None:
        """Frees the operands."""


@dataclass(frozen=True)
class Tried:
    """What became of one entrant, or of one that never was."""

    kind: str
    name: str
    status: str
    summary: Summary | None = None
    resources: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Finalist:
    entrant: Entrant
    summary: Summary
    verdict: Verdict


Measured = tuple[Entrant, Coarse]


@dataclass
class Contest:
    """The course of one case.

    report: is told what is run next, as it happens: kind and name; None when nothing is
    barred: kinds and names of those that have taken the process with them before
    told:   is told what became of each, as soon as it is known; of a finalist twice
    measured: of kinds and names, what the coarse pass found before it was interrupted
    finalists: how many of each kind take turns in the end
    """

    arena: Arena
    clock: Clock
    report: Callable[[tuple[str, str] | None], None] = lambda _: None
    barred: frozenset[tuple[str, str]] = frozenset()
    told: Callable[[Tried], None] = lambda _: None
    measured: Mapping[tuple[str, str], Summary] = field(default_factory=dict)
    finalists: int = FINALISTS
    tried: list[Tried] = field(default_factory=list)

    def run(self, builds: Sequence[Built | Refused], baselines: Sequence[str]) -> list[Finalist]:
        """The best of each kind, ours first. What became of everybody is in `tried`."""
        entrants = [*self._ours(builds), *self._baselines(baselines)]
        verdicts = self._checked(entrants)
        semifinalists = self._kept(self._coarse(list(verdicts)), SEMIFINALISTS)
        finalists = self._in_turns(self._kept(self._compared(semifinalists), self.finalists))
        for entrant, found in finalists:
            self._tell(_tried(entrant, "finalist", found.summary))
        return _best(Finalist(entrant, found.summary, verdicts[entrant]) for entrant, found in finalists)

    # --- who takes part

    def _ours(self, builds: Sequence[Built | Refused]) -> Iterator[Entrant]:
        for made in builds:
            name = str(made.candidate)
            if isinstance(made, Refused):
                self._tell(Tried(OURS, name, "refused", reason=made.reason))
            elif (OURS, name) not in self.barred:
                entrant = self._guarded(OURS, name, partial(self.arena.ours, made))
                yield from () if entrant is None else (entrant,)

    def _baselines(self, names: Sequence[str]) -> Iterator[Entrant]:
        for name in names:
            if (name, name) not in self.barred:
                made = self._guarded(name, name, partial(self.arena.baseline, name))
                yield from (e for e in made or () if (e.kind, e.name) not in self.barred)

    def _guarded(self, kind: str, name: str, action: Callable[[], Any]) -> Any:
        """What the action gives; None, and a note, where it fails."""
        self.report((kind, name))
        try:
            return action()
        except Exception as error:  # noqa: BLE001  # of any library: it is named, and the rest goes on
            wrong = isinstance(error, RiseError) and error.code in WRONG
            self._tell(Tried(kind, name, "wrong" if wrong else "failed", reason=reason(error)))
            if not self.arena.answers():
                raise ContextLost(reason(error)) from error
            return None

    # --- checking and timing

    def _checked(self, entrants: Sequence[Entrant]) -> dict[Entrant, Verdict]:
        """On whole numbers, where these are exact, then on random ones; those that are right both times."""
        verdicts: dict[Entrant, Verdict] = {entrant: Verdict(0.0, 0.0, "") for entrant in entrants}
        for whole_numbers in (True, False) if self.arena.exact else (False,):
            self.arena.fill(whole_numbers)
            for entrant, before in list(verdicts.items()):
                found = self._guarded(entrant.kind, entrant.name, partial(self.arena.check, entrant))
                if found is None:
                    del verdicts[entrant]
                else:
                    how = ", ".join(text for text in (before.how, found.how) if text)
                    verdicts[entrant] = replace(found, how=how)
        return verdicts

    def _coarse(self, entrants: Sequence[Entrant]) -> list[Measured]:
        """Everybody by himself; who is much slower than the best of his kind until now, shortly."""
        measured: list[Measured] = []
        best: dict[str, float] = {}
        for entrant in entrants:
            until_now = best.get(entrant.kind, float("inf"))
            found = self._guarded(entrant.kind, entrant.name, partial(self._timed, entrant, until_now))
            if found is not None:
                self.told(_tried(entrant, _status(found), found.summary))
                measured.append((entrant, found))
                best[entrant.kind] = min(until_now, found.summary.median)
        return measured

    def _compared(self, measured: Sequence[Measured]) -> Sequence[Measured]:
        """By turns, shortly, where there are more of a kind than can go on."""
        kinds = Counter(entrant.kind for entrant, _ in measured)
        several = any(count > self.finalists for count in kinds.values())
        return self._in_turns(measured, FEWEST) if several else measured

    def _in_turns(self, entrants: Sequence[Measured], rounds: int = ROUNDS) -> list[Measured]:
        if not entrants:
            return []
        self.report((" ".join(entrant.kind for entrant, _ in entrants), IN_TURNS))
        summaries = in_turns([found.timed for _, found in entrants], self.clock, rounds)
        self.report(None)
        return [
            (entrant, Coarse(found.timed, summary))
            for (entrant, found), summary in zip(entrants, summaries, strict=True)
        ]

    def _kept(self, measured: Sequence[Measured], most: int) -> list[Measured]:
        """The best of each kind; of the others it is noted how long they took."""
        kept: list[Measured] = []
        for kind in dict.fromkeys(entrant.kind for entrant, _ in measured):
            of_kind = [(entrant, found) for entrant, found in measured if entrant.kind == kind]
            best = survivors([found for _, found in of_kind], most)
            for entrant, found in of_kind:
                if found in best:
                    kept.append((entrant, found))
                else:
                    self.tried.append(_tried(entrant, _status(found), found.summary))
        return kept

    def _timed(self, entrant: Entrant, best: float) -> Coarse:
        timed, before = self.arena.timed(entrant), self.measured.get((entrant.kind, entrant.name))
        return Coarse(timed, before) if before else coarse(timed, self.clock, best)

    def _tell(self, tried: Tried) -> None:
        self.tried.append(tried)
        self.told(tried)


def _status(found: Coarse) -> str:
    return "slow" if found.cut else "timed"


def _tried(entrant: Entrant, status: str, summary: Summary) -> Tried:
    return Tried(entrant.kind, entrant.name, status, summary, entrant.resources)


def _best(finalists: Iterable[Finalist]) -> list[Finalist]:
    """The fastest of each kind, ours first."""
    best: dict[str, Finalist] = {}
    for finalist in finalists:
        kind = finalist.entrant.kind
        if kind not in best or finalist.summary.median < best[kind].summary.median:
            best[kind] = finalist
    return sorted(best.values(), key=lambda f: f.entrant.kind != OURS)
