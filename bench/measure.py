"""Three passes of timing: a coarse one drops slow variants, a short rotation selects, a long one counts.

The variant that is timed first finds the GPU cool, and is up to 13 % faster for it. So the coarse pass only
drops variants, and variants that are compared are timed in rotation. The selected ones are timed again: the
minimum of many noisy times is too low.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.statistics import Summary, summarise
from rise.progress import stepwise

WARM_UP, COARSE = 0.01, 0.01  # seconds
LEAST, MOST = 3, 1000  # samples of the coarse pass
HOPELESS, KEPT = 3.0, 1.3  # times the best: after one sample, after the coarse pass
ROUNDS, SETTLING = 15, 2  # of a rotation; the first ones do not count
FINE = 0.3  # seconds for each in a rotation, at most, as long as there are FEWEST rounds
FEWEST = 5
SEMIFINALISTS = 6  # of each kind; they are timed in FEWEST rounds


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since some fixed moment."""


class Timed(Protocol):
    """Something that can be timed again and again."""

    @property
    def name(self) -> str: ...

    def sample(self) -> float:
        """Runs it several times in a row; returns the microseconds of one run."""


@dataclass(frozen=True)
class Coarse:
    """The result of the coarse pass. cut: one sample was enough, because it was so slow"""

    timed: Timed
    summary: Summary
    cut: bool = False


def coarse(timed: Timed, clock: Clock, best: float = float("inf"), seconds: float = COARSE) -> Coarse:
    """A first sample, warming up, then samples for so many seconds.

    best: microseconds of the best one until now; one that is much slower gets no further samples
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
    """The best ones, at most `most`, and only those within KEPT times the best."""
    ordered = sorted(measured, key=lambda m: m.summary.median)
    return [m for m in ordered if m.summary.median <= KEPT * ordered[0].summary.median][:most]


def in_rotation(
    finalists: Sequence[Timed], clock: Clock, rounds: int = ROUNDS, seconds: float = FINE
) -> list[Summary]:
    """Samples each once a round, in a new random order each round; a summary for each."""
    samples: list[list[float]] = [[] for _ in finalists]
    order, shuffling = list(range(len(finalists))), random.Random(0)
    start = clock.now()
    for turn in stepwise("comparing the best", range(rounds + SETTLING), rounds + SETTLING):
        late = clock.now() - start > seconds * len(finalists)
        if late and turn >= FEWEST + SETTLING:
            break
        shuffling.shuffle(order)
        for which in order:
            sample = finalists[which].sample()
            if turn >= SETTLING:
                samples[which].append(sample)
    return [summarise(each) for each in samples]
