"""Median and spread of a list of times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Median and quartiles, in the unit of the samples (microseconds); how many samples."""

    median: float
    lower: float
    upper: float
    samples: int

    @property
    def spread(self) -> float:
        """The interquartile range as a fraction of the median."""
        return (self.upper - self.lower) / self.median if self.median else 0.0


def summarise(samples: Sequence[float]) -> Summary:
    """Of at least one sample; quartiles include the ends (so that of one sample all three are it)."""
    if len(samples) == 1:
        return Summary(samples[0], samples[0], samples[0], 1)
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return Summary(median, lower, upper, len(samples))
