"""Two plots for each program of a table: ratios to the baselines, and fractions of the limit."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.results import Row, latest
from bench.table import Case, Subject, Table
from rise import files
from rise.errors import UsageError

LIMITS = {"tensor": "the tensor cores' peak", "copy": "the bandwidth of a copy"}


def drawing() -> Any:
    """matplotlib's pyplot, which draws to files. UsageError R0867 where it is not installed."""
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        hint = "install the extra: pip install 'rise-lang[plot]'"
        raise UsageError(
            "R0867", "plots are drawn by matplotlib, which is not installed", None, hint
        ) from None
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")


def draw(table: Table, rows: Sequence[Row], folder: Path) -> list[Path]:
    """PNG files; their paths. UsageError R0867 where matplotlib is not installed."""
    pyplot = drawing()
    written = []
    for subject in table.subjects:
        for what, label in (("ratio", "time over ours"), ("fraction", f"of {LIMITS[subject.limit]}")):
            path = folder / f"{table.name}.{subject.definition}.{what}.png"
            figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
            if _lines(axes, subject, latest(rows), what):
                axes.set_ylabel(label)
                axes.set_ylim(bottom=0)
                axes.set_title(subject.definition)
                axes.legend()
                with files.replacing(path) as file:
                    figure.savefig(file, format="png", dpi=120)
                written.append(path)
            pyplot.close(figure)
    return written


def _lines(axes: Any, subject: Subject, rows: Sequence[Row], what: str) -> bool:
    """One line for each kind, over the cases in their order. Whether there is any."""
    cases = [Case(subject, sizes) for sizes in subject.sizes]
    places = {case.key: place for place, case in enumerate(cases)}
    drawn = False
    for kind in subject.kinds:
        points = [(places[r.case], getattr(r, what)) for r in rows if r.kind == kind and r.case in places]
        points = sorted((place, value) for place, value in points if value)
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=kind)
            drawn = True
    step = max(1, len(cases) // 20)
    shown = list(range(0, len(cases), step))
    labels = ["×".join(map(str, cases[place].sizes.values())) for place in shown]
    axes.set_xticks(shown, labels, rotation=60, ha="right", fontsize=7)
    return drawn
