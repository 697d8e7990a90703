"""What a search measured as one picture: the time of each candidate beside what the model predicts for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.build import Built
from bench.plots import drawing
from bench.results import OURS, Attempt
from bench.table import Candidate
from rise import files
from strategies.search.space import Ranked

COLOURS = {"finalist": "cornflowerblue", "timed": "lightsteelblue", "slow": "lightsteelblue"}
BASELINE = "silver"


@dataclass(frozen=True)
class Bar:
    """A candidate or a variant of a baseline.

    microseconds: 0 where it was not timed, for the reason that is its status
    cycles:       of the model; 0 where it does not rank the candidate
    """

    label: str
    kind: str
    status: str
    microseconds: float
    spread: float
    cycles: float


def bars(built: Sequence[tuple[Ranked, Built]], attempts: Sequence[Attempt]) -> list[Bar]:
    """In the order of the attempts, the fastest first; then the candidates that were not measured."""
    labels = _labels([made.candidate for _, made in built])
    cycles = {str(made.candidate): one.cost.cycles for one, made in built}
    tried = [
        Bar(
            labels.get(a.name, f"{a.kind} {a.name}"),
            a.kind,
            a.status,
            a.median_us,
            a.spread,
            cycles.get(a.name, 0.0),
        )
        for a in attempts
    ]
    measured = {a.name for a in attempts}
    left = [name for name in cycles if name not in measured]
    return tried + [Bar(labels[name], OURS, "not measured", 0.0, 0.0, cycles[name]) for name in left]


def _labels(candidates: Sequence[Candidate]) -> dict[str, str]:
    """The parameters in which they differ; the strategy where they differ in none."""
    settings = {str(c): dict(c.settings) for c in candidates}
    names = dict.fromkeys(name for given in settings.values() for name in given)
    differ = [n for n in names if len({given.get(n) for given in settings.values()}) > 1]
    return {
        str(c): " ".join(f"{n}={settings[str(c)][n]}" for n in differ if n in settings[str(c)]) or c.strategy
        for c in candidates
    }


def draw(shown: Sequence[Bar], title: str, path: Path) -> None:
    """A PNG or SVG file, as its suffix says. UsageError R0867 where matplotlib is not installed."""
    pyplot = drawing()
    size = (10, 1.2 + 0.28 * len(shown))
    with pyplot.rc_context({"svg.fonttype": "none"}):
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        _times(axes, shown)
        _predictions(axes, shown)
        axes.set_yticks(range(len(shown)), [bar.label for bar in shown], fontsize=6)
        axes.invert_yaxis()
        figure.suptitle(title, fontsize=9)
        with files.replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:], dpi=120)
        pyplot.close(figure)


def _times(axes: Any, shown: Sequence[Bar]) -> None:
    """A bar each, with the spread of its samples; in the place of a time that is missing, the reason."""
    axes.set_xlabel("µs")
    for place, bar in enumerate(shown):
        if not bar.microseconds:
            axes.text(0, place, f" {bar.status}", va="center", fontsize=6)
            continue
        colour = COLOURS.get(bar.status, BASELINE) if bar.kind == OURS else BASELINE
        axes.barh(place, bar.microseconds, xerr=bar.spread * bar.microseconds, color=colour)
        axes.text(0, place, f" {bar.microseconds:.2f}", va="center", fontsize=6)


def _predictions(axes: Any, shown: Sequence[Bar]) -> None:
    ranked = [(bar.cycles, place) for place, bar in enumerate(shown) if bar.cycles]
    if ranked:
        above = axes.twiny()
        above.plot(*zip(*ranked, strict=True), marker="d", markersize=4, linestyle="", color="tab:orange")
        above.set_xlim(left=0)
        above.set_xlabel("cycles that the model predicts (◆)", color="tab:orange")
