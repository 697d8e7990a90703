"""Which candidates are tried, in the order of the model: what failed says which others would fail alike."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable

from rise.instructions import family
from strategies.search.problem import Problem
from strategies.search.schedules import needed
from strategies.search.space import Ranked

ALIKE = 2  # of a kind fail for one reason; then the others of that kind are not tried
AT_ALL = 10  # failures with one reason, after which the program is at fault
SMALLER = 0.75  # of what did not fit in: at most so much is tried next
SHARED, SPILLS = "R0716", "R0832"
Kind = tuple[object, ...]


class InOrder:
    """Candidates in their order, until the program seems to be at fault."""

    def __init__(self, candidates: Iterable[Ranked]) -> None:
        self._left = iter(candidates)
        self._reasons: Counter[str] = Counter()
        self.refused: list[tuple[Ranked, str]] = []

    @property
    def none_is_left(self) -> bool:
        """Whether there is nothing to take."""
        one = self.take()
        self._left = itertools.chain([one] if one is not None else [], self._left)
        return one is None

    def take(self) -> Ranked | None:
        """The next that is worth a trial; None where there is none."""
        if any(count >= AT_ALL for count in self._reasons.values()):
            return None
        return next((one for one in self._left if not self._hopeless(one)), None)

    def refuse(self, one: Ranked, reason: str) -> None:
        """One does not become a kernel, for a reason that begins with its code."""
        self.refused.append((one, reason))
        if reason.split(" ", 1)[0] not in (SHARED, SPILLS):
            self._reasons[without_numbers(reason)] += 1

    def _hopeless(self, one: Ranked) -> bool:
        return False


class Trials(InOrder):
    """Those that the model ranks, without those that would fail as others did.

    A candidate that does not derive says so of others of its kind, which differ from it in sizes of tiles
    only. One that needs too much of what a block or a thread has says so of those that need about as much.
    """

    def __init__(self, candidates: Iterable[Ranked], problem: Problem) -> None:
        super().__init__(candidates)
        self._problem = problem
        self._failed: Counter[tuple[Kind, str]] = Counter()
        self._most: dict[Kind, float] = {}

    def refuse(self, one: Ranked, reason: str) -> None:
        super().refuse(one, reason)
        code = reason.split(" ", 1)[0]
        if code in (SHARED, SPILLS):
            key, used = self._needs(one, code)
            self._most[key] = min(self._most.get(key, used), used * SMALLER)
        else:
            self._failed[self._kind(one), without_numbers(reason)] += 1

    def _hopeless(self, one: Ranked) -> bool:
        kind = self._kind(one)
        if any(count >= ALIKE for (of, _), count in self._failed.items() if of == kind):
            return True
        needs = (self._needs(one, code) for code in (SHARED, SPILLS))
        return any(used > self._most.get(key, used) for key, used in needs)

    def _needs(self, one: Ranked, code: str) -> tuple[Kind, float]:
        """What it needs of shared memory, or of registers; with those that it is compared with."""
        s = one.point.schedule
        block = needed(s, self._problem.seen_by(s))
        if code == SHARED:
            return (code,), block.shared_bytes
        return (code, *self._kind(one)), block.accumulators

    def _kind(self, one: Ranked) -> Kind:
        """Everything but how large tiles are, and whether they stick out."""
        s = one.point.schedule
        p = self._problem.seen_by(s)
        out = any(size % tile > 0 for size, tile in zip((p.m, p.n, p.k), s.block, strict=True))
        ways = (s.epilogue, s.vector, s.cp_async, s.prefetch_fragments)
        return (one.point.strategy, family(s.fragment), ways, out, s.split_k > 1, s.split_cluster)


def without_numbers(reason: str) -> str:
    return re.sub(r"\d+", "…", reason)


def summary(reasons: Iterable[str]) -> str:
    """In a line: `passed over 5: 3 × R0606 …; R0716 …`, each reason once, with its first words."""
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(without_numbers(reason), []).append(reason)
    parts = [
        f"{len(all_)} × {short(all_[0])}" if len(all_) > 1 else short(all_[0]) for all_ in alike.values()
    ]
    return f"passed over {sum(map(len, alike.values()))}: {'; '.join(parts)}" if parts else ""


def short(reason: str, most: int = 140) -> str:
    """The first line, and of that the first words."""
    line = reason.split("\n", 1)[0]
    return line if len(line) <= most else line[:most].rsplit(" ", 1)[0] + " …"
