"""How few kernels serve all sizes, if each may be slower than the best by a tolerance (paper 002, §V)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from bench.results import OURS, Attempt

Times = Mapping[str, Mapping[str, float]]
"""By case, then by candidate, in microseconds."""

BEST = 10  # of the kernels of a size, as many as the paper keeps
TOLERANCES = (0.0, 0.05, 0.10, 0.15)


def times(attempts: Iterable[Attempt]) -> Times:
    found: dict[str, dict[str, float]] = {}
    for a in attempts:
        if a.kind == OURS and a.median_us > 0:
            found.setdefault(a.case, {})[a.name] = a.median_us
    return found


def chosen(times: Times, tolerance: float) -> dict[str, str]:
    """A kernel for each case: the one that serves most of the cases that are left, until none is."""
    winners = {case: _within(of, tolerance) for case, of in times.items() if of}
    made: dict[str, str] = {}
    while winners:
        counted = Counter(name for names in winners.values() for name in names)
        most = min(counted, key=lambda name: (-counted[name], name))
        made.update({case: most for case, names in winners.items() if most in names})
        winners = {case: names for case, names in winners.items() if most not in names}
    return made


def _within(of: Mapping[str, float], tolerance: float) -> list[str]:
    """Of the best, those whose rate is at least the best rate less the tolerance."""
    best = sorted(of, key=lambda name: of[name])[:BEST]
    return [name for name in best if of[best[0]] >= of[name] * (1 - tolerance)]


def drop(times: Times, kernels: Mapping[str, str]) -> float:
    """The largest part of the best rate that is lost."""
    lost = (1 - min(times[case].values()) / times[case][name] for case, name in kernels.items())
    return max(lost, default=0.0)
