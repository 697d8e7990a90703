"""The evaluations of the papers, figure by figure: a page from files of results, with no GPU.

`rise bench papers --report benchmarks/results/papers > docs/papers.md` writes the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import machine
from bench.figures import Figure
from bench.formulas import FORMULAS
from bench.report import together
from bench.results import OURS, Attempt, Row, latest, read_attempts, read_rows
from bench.table import Case, Subject, Table, find, group
from bench.tolerance import TOLERANCES, chosen, drop, times
from rise.errors import UsageError

PAPERS: Mapping[str, str] = {
    "000": "Automatic kernel generation for Volta tensor cores",
    "001": "High-performance GPU code for matrix products on tensor cores with MLIR",
    "002": "Fast batched matrix multiplication for small sizes using half-precision arithmetic",
    "003": "Extending the RISE language with tensor cores",
}
INTRODUCTION = """\
# The papers' evaluations

`rise bench papers/000` to `rise bench papers/003` run the figures of the four papers that this project
follows, and `rise bench papers` runs all of them; the tables are in `benchmarks/tables/papers/`. This page is
generated from `benchmarks/results/papers/`. A speed-up is the time of a baseline over ours. The papers'
figures come from their texts, and were measured on other GPUs with other libraries; so only ratios can be
compared, and these with care.

    rise bench papers --quick --prepare                           # compile beforehand, without a GPU
    rise bench papers --quick --budget 480 --out results     # few sizes of each figure; again to resume
    rise bench papers --report results --plot > docs/papers.md    # this page and plots, without a GPU"""
NOTHING = "Not yet measured."


@dataclass(frozen=True)
class Measured:
    """A table with a figure, and what is known of it."""

    table: Table
    figure: Figure
    rows: Sequence[Row]
    attempts: Sequence[Attempt]
    machine: machine.Machine | None

    @classmethod
    def of(cls, table: Table, folder: Path) -> Measured:
        if table.figure is None:
            raise UsageError("R0861", f"the table `{table.name}` reproduces no figure of a paper")
        found = folder / f"{table.name}.machine.json"
        return cls(
            table,
            table.figure,
            latest(read_rows(folder / f"{table.name}.csv")),
            read_attempts(folder / f"{table.name}.attempts.csv"),
            machine.read(found) if found.exists() else None,
        )

    def by_kind(self, subject: Subject) -> dict[str, dict[int, Row]]:
        """For each series and baseline what was measured, by the places of its sizes in the table."""
        found = {(row.case, row.kind): row for row in self.rows}
        keys = [Case(subject, sizes).key for sizes in subject.sizes]
        return {
            kind: {place: found[key, kind] for place, key in enumerate(keys) if (key, kind) in found}
            for kind in subject.kinds
        }

    @property
    def subjects(self) -> list[Subject]:
        return together(self.table.subjects)


def evaluations(name: str, folder: Path) -> list[Measured]:
    """Of a group of tables, as `papers/001`."""
    return [Measured.of(find(each), folder) for each in group(name)]


def page(name: str, folder: Path, link: str) -> str:
    """The page in Markdown. link: where the plots are, as seen from it."""
    parts, paper = [INTRODUCTION], ""
    for each in evaluations(name, folder):
        if each.figure.paper != paper:
            paper = each.figure.paper
            parts.append(f"## {paper}: {PAPERS.get(paper, paper)}")
        parts += _figure(each, folder, link)
    return "\n\n".join(parts) + "\n"


def _figure(measured: Measured, folder: Path, link: str) -> Iterator[str]:
    figure, name = measured.figure, measured.table.name
    yield f"### {figure.number}: {measured.table.title}"
    yield f"*Stated by the paper.* {figure.stated}\n\n*What differs.* {figure.instead}"
    if (folder / f"{name}.svg").exists():
        yield f"![{figure.number}]({link}/{name}.svg)"
    lines = list(_results(measured))
    if not lines:
        yield NOTHING
        return
    if measured.machine is not None:
        yield f"Measured on {measured.machine}."
    yield from lines


def _results(measured: Measured) -> Iterator[str]:
    match measured.figure.form:
        case "formula":
            yield _formula(measured.figure)
        case "tolerance":
            yield from _tolerance(measured)
        case form:
            for subject in measured.subjects:
                yield from (_speed_ups if form == "speed-up" else _rates)(measured, subject)


# --- tables -------------------------------------------------------------------------------------------------


def speed_ups(measured: Measured, subject: Subject) -> dict[tuple[str, str], dict[int, float]]:
    """For each series and baseline, the time of the baseline over that of the series."""
    rows = measured.by_kind(subject)
    return {
        (series, baseline): {
            place: rows[baseline][place].median_us / row.median_us
            for place, row in rows[series].items()
            if place in rows[baseline] and row.median_us
        }
        for series in subject.series
        for baseline in subject.baselines
    }


def _speed_ups(measured: Measured, subject: Subject) -> Iterator[str]:
    """`rise` over every baseline; the other series over the first, which is the paper's."""
    found = {
        (series, baseline): ratios
        for (series, baseline), ratios in speed_ups(measured, subject).items()
        if ratios and (series == OURS or baseline == subject.baselines[0])
    }
    if not found:
        return
    yield f"`{subject.definition}`, {_counted(max(map(len, found.values())), len(subject.sizes))}:"
    rows = [
        [series, baseline, f"{mean(values):.3f}", f"{max(values):.2f}", f"{min(values):.2f}",
         f"{sum(v >= 1 for v in values)} of {len(values)}"]
        for (series, baseline), ratios in found.items()
        for values in [list(ratios.values())]
    ]  # fmt: skip
    yield _table(["", "over", "geometric mean", "most", "least", "at least as fast"], rows)


def _rates(measured: Measured, subject: Subject) -> Iterator[str]:
    """Rates of every kind at every case, and our speed-ups."""
    rows = measured.by_kind(subject)
    places = sorted({place for of in rows.values() for place in of})
    if not places:
        return
    yield f"TFLOP/s, {_counted(len(places), len(subject.sizes))}:"
    lines = [
        [
            " ".join(map(str, subject.sizes[place].values())),
            *(f"{of[place].tflops:.3g}" if place in of else "–" for of in rows.values()),
        ]
        for place in places
    ]
    yield _table([" ".join(subject.sizes[0]), *rows], lines)
    for (series, baseline), ratios in speed_ups(measured, subject).items():
        if series == OURS and ratios:
            values = list(ratios.values())
            span = f"{min(values):.2f} to {max(values):.2f}, geometric mean {mean(values):.3f}"
            yield f"Speed-up of `{series}` over {baseline}: {span}."


def _tolerance(measured: Measured) -> Iterator[str]:
    known = times(measured.attempts)
    if not known:
        return
    rows = []
    for tolerance in TOLERANCES:
        kernels = chosen(known, tolerance)
        rows.append([f"{tolerance:.0%}", str(len(set(kernels.values()))), f"{drop(known, kernels):.1%}"])
    yield f"Kernels for {_counted(len(known), len(measured.table.cases))}:"
    yield _table(["tolerance", "kernels", "largest loss"], rows)


def _formula(figure: Figure) -> str:
    curves = FORMULAS[figure.formula]()
    sizes = sorted({size for curve in curves.values() for size in curve})
    rows = [[str(n), *(f"{c[n]:.3g}" if n in c else "–" for c in curves.values())] for n in sizes]
    return _table(["size", *curves], rows)


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _counted(count: int, all_: int) -> str:
    return f"{count} of {all_} sizes"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows))
