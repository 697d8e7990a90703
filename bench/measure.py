"""Three passes of timing: a coarse one drops the slow, a short one in turns chooses, a long one counts.

Who is timed first meets a GPU that is cool, and is up to 13 % faster for it: the coarse pass only drops, and
those who are compared take turns. Who is chosen is timed again: the least of many is less than the truth.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.statistics import Summary, summarise

WARM_UP, COARSE = 0.01, 0.01  # seconds
LEAST, MOST = 3, 1000  # samples of the coarse pass
HOPELESS, KEPT = 3.0, 1.3  # times the best: after one sample, after the coarse pass
ROUNDS, SETTLING = 15, 2  # in turns; the first ones do not count
FINE = 0.3  # seconds for each in turns, at most, as long as there are FEWEST rounds
FEWEST = 5
SEMIFINALISTS = 6  # of each kind; they have FEWEST rounds


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since some moment."""


class Timed(Protocol):
    """Something that can be timed again and again."""

    @property
    def name(self) -> str: ...

    def sample(self) -> float:
        """Runs it some times in a row; microseconds that one took."""


@dataclass(frozen=True)
class Coarse:
    """What the coarse pass says about one; `cut`: it was so slow that one sample was enough."""

    timed: Timed
    summary: Summary
    cut: bool = False


def coarse(timed: Timed, clock: Clock, best: float = float("inf"), seconds: float = COARSE) -> Coarse:
    """A first sample, warming up, then samples for so many seconds.

    best: microseconds of the best one until now; one that is hopelessly slower is not looked at further
    """
    timed.sample()  # the first may load and allocate
    first = timed.sample()
    if first > HOPELESS * best:
        return Coarse(timed, summarise([first]), cut=True)
    start = clock.now()
    while clock.now() - start < WARM_UP:
        timed.sample()
    samples: list[float] = []
    start = clock.now()
    while len(samples) < LEAST or (clock.now() - start < seconds and len(samples) < MOST):
        samples.append(timed.sample())
    return Coarse(timed, summarise(samples))


def survivors(measured: Sequence[Coarse], most: int) -> list[Coarse]:
    """The best ones, at most so many, and none that is more than KEPT times the best."""
    ordered = sorted(measured, key=lambda m: m.summary.median)
    return [m for m in ordered if m.summary.median <= KEPT * ordered[0].summary.median][:most]


def in_turns(
    finalists: Sequence[Timed], clock: Clock, rounds: int = ROUNDS, seconds: float = FINE
) -> list[Summary]:
    """All of them, each round in another order, so that neighbours differ; a summary for each."""
    samples: list[list[float]] = [[] for _ in finalists]
    order, shuffling = list(range(len(finalists))), random.Random(0)
    start = clock.now()
    for turn in range(rounds + SETTLING):
        late = clock.now() - start > seconds * len(finalists)
        if late and turn >= FEWEST + SETTLING:
            break
        shuffling.shuffle(order)
        for which in order:
            sample = finalists[which].sample()
            if turn >= SETTLING:
                samples[which].append(sample)
    return [summarise(each) for each in samples]
