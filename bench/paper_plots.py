"""Plots in the form of the papers' figures, from what was measured: PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.formulas import FORMULAS
from bench.papers import Measured, speed_ups
from bench.plots import drawing
from bench.results import Row
from bench.table import Subject
from bench.tolerance import TOLERANCES, chosen, times
from rise import files

FORMATS = ("png", "svg")


def draw(measured: Sequence[Measured], folder: Path) -> list[Path]:
    """The files that were written; none for a figure without results. UsageError R0867 without matplotlib."""
    pyplot = drawing()
    written = []
    for each in measured:
        figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
        if _drawn(axes, each):
            axes.set_title(f"{each.figure.paper}, {each.figure.number}: {each.table.title}", fontsize=9)
            if axes.get_yscale() == "linear":
                axes.set_ylim(bottom=0)
            for kind in FORMATS:
                path = folder / f"{each.table.name}.{kind}"
                with files.replacing(path) as file:
                    figure.savefig(file, format=kind, dpi=120)
                written.append(path)
        pyplot.close(figure)
    return written


def _drawn(axes: Any, measured: Measured) -> bool:
    """Whether there is anything to draw."""
    match measured.figure.form:
        case "formula":
            return _formula(axes, measured)
        case "tolerance":
            return _tolerance(axes, measured)
        case "speed-up":
            return _speed_ups(axes, measured)
        case "bars":
            return _bars(axes, measured)
        case _:
            return _lines(axes, measured)


def _lines(axes: Any, measured: Measured) -> bool:
    """A line for each kind; where other sizes than the one along the axis vary, for each of these too."""
    figure = measured.figure
    drawn = False
    for subject in measured.subjects:
        for kind, rows in measured.by_kind(subject).items():
            for label, points in _apart(figure.x, subject, rows).items():
                values = [row.tflops for _, row in points]
                name = f"{kind} {label}".strip()
                axes.plot([x for x, _ in points], values, marker="o", markersize=3, label=name)
                drawn = True
    if drawn:
        if figure.x == "b":
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.set_xlabel(figure.x)
        axes.set_ylabel("TFLOP/s")
        axes.legend(fontsize=7)
    return drawn


def _apart(x: str, subject: Subject, rows: dict[int, Row]) -> dict[str, list[tuple[int, Row]]]:
    """Points by the sizes that are not along the axis, which are the label where batches vary."""
    found: dict[str, list[tuple[int, Row]]] = {}
    for place, row in rows.items():
        sizes = subject.sizes[place]
        label = f"n={sizes['n']}" if x == "b" else ""
        found.setdefault(label, []).append((sizes[x], row))
    return found


def _speed_ups(axes: Any, measured: Measured) -> bool:
    """Speed-ups over the first baseline, a point for each size in the order of the table."""
    drawn = False
    for subject in measured.subjects:
        for (series, baseline), ratios in speed_ups(measured, subject).items():
            if ratios and baseline == subject.baselines[0]:
                name = f"{subject.definition}, {series}"
                axes.plot(
                    list(ratios), list(ratios.values()), marker="o", markersize=3, linestyle="", label=name
                )
                drawn = True
    if drawn:
        axes.axhline(1.0, color="grey", linewidth=0.8)
        axes.set_xlabel("the sizes in their order")
        axes.set_ylabel("speed-up")
        axes.legend(fontsize=6, ncols=2)
    return drawn


def _bars(axes: Any, measured: Measured) -> bool:
    for subject in measured.subjects:
        rows = [(kind, row) for kind, of in measured.by_kind(subject).items() for row in of.values()]
        if rows:
            axes.bar([kind for kind, _ in rows], [row.tflops for _, row in rows])
            axes.tick_params(axis="x", rotation=30)
            axes.set_ylabel("TFLOP/s")
            return True
    return False


def _tolerance(axes: Any, measured: Measured) -> bool:
    known = times(measured.attempts)
    if known:
        counts = [len(set(chosen(known, tolerance).values())) for tolerance in TOLERANCES]
        axes.bar([f"{tolerance:.0%}" for tolerance in TOLERANCES], counts)
        axes.set_xlabel("tolerance")
        axes.set_ylabel("kernels")
    return bool(known)


def _formula(axes: Any, measured: Measured) -> bool:
    for name, curve in FORMULAS[measured.figure.formula]().items():
        axes.plot(list(curve), list(curve.values()), marker="o", markersize=3, label=name)
    axes.legend()
    return True
