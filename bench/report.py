"""The measurements of a table as Markdown: one line a case, ours beside the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bench.machine import Machine
from bench.results import OURS, Attempt, Row, latest
from bench.table import Case, Subject, Table


def markdown(
    table: Table, rows: Sequence[Row], attempts: Sequence[Attempt], machine: Machine | None = None
) -> str:
    """Title, machine, a table for each program, and what was not measured, with reasons."""
    parts = [f"# {table.title}"]
    if machine is not None:
        parts.append(f"Measured on {machine}.")
    for subject in together(table.subjects):
        parts += _program(subject, latest(rows), attempts, table.name)
    return "\n\n".join(parts) + "\n"


def together(subjects: Sequence[Subject]) -> list[Subject]:
    """Each program once, where every case has candidates of its own."""
    found: dict[tuple[object, ...], Subject] = {}
    for each in subjects:
        key = (each.file, each.definition, each.operation, each.baselines)
        before = found.get(key)
        found[key] = each if before is None else replace(before, sizes=(*before.sizes, *each.sizes))
    return list(found.values())


def _program(subject: Subject, rows: Sequence[Row], attempts: Sequence[Attempt], name: str) -> Iterator[str]:
    cases = [Case(subject, sizes) for sizes in subject.sizes]
    keys = {case.key for case in cases}
    found: dict[tuple[str, str], Row] = {(row.case, row.kind): row for row in rows if row.case in keys}
    yield f"## {subject.definition}"
    measured = [case for case in cases if any((case.key, kind) in found for kind in subject.kinds)]
    if measured:
        yield "\n".join(_lines(subject, measured, found))
        yield from _means(subject, measured, found)
    if missing := [case for case in cases if case not in measured]:
        shown = ", ".join(_sizes(case) for case in missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        yield f"Not measured: {shown}{more}."
    yield from _refusals([a for a in attempts if a.case in keys], name)


def _lines(subject: Subject, cases: Sequence[Case], found: dict[tuple[str, str], Row]) -> Iterator[str]:
    """Our times, and the speed-ups over the others."""
    unit = "TFLOP/s" if subject.limit == "tensor" else "GB/s"
    kinds = subject.kinds
    yield _line([_names(cases[0]), "µs", "±", unit, "of the limit", *(k for k in kinds if k != OURS), "by"])
    yield _line(["---"] * (6 + len([k for k in kinds if k != OURS])))
    for case in cases:
        ours = found.get((case.key, OURS))
        others = [found.get((case.key, kind)) for kind in kinds if kind != OURS]
        if ours is None:
            yield _line([_sizes(case), *["–"] * 4, *(_time(other) for other in others), "–"])
            continue
        rate = ours.tflops if subject.limit == "tensor" else ours.gb_s
        fraction = f"{ours.fraction:.1%}" if ours.fraction else "–"
        figures = [f"{ours.median_us:.2f}", f"{ours.spread:.1%}", f"{rate:.1f}", fraction]
        ratios = [f"{other.ratio:.3f}" if other else "–" for other in others]
        yield _line([_sizes(case), *figures, *ratios, f"`{ours.name}`"])


def _means(subject: Subject, cases: Sequence[Case], found: dict[tuple[str, str], Row]) -> Iterator[str]:
    """Geometric means of the speed-ups over each baseline, and over the fastest one of each case."""
    ratios = {
        kind: {
            _sizes(case): row.ratio for case in cases if (row := found.get((case.key, kind))) and row.ratio
        }
        for kind in subject.baselines
    }
    if len(subject.baselines) > 1:
        measured = dict.fromkeys(size for of in ratios.values() for size in of)
        ratios["the fastest of them"] = {
            size: min(of[size] for of in ratios.values() if size in of) for size in measured
        }
    if means := [_mean(kind, of) for kind, of in ratios.items() if of]:
        yield f"Speed-ups (their time over ours), geometric means: {'; '.join(means)}."


def _mean(kind: str, ratios: Mapping[str, float]) -> str:
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    better = sum(ratio > 1 for ratio in ratios.values())
    worst = min(ratios, key=lambda size: ratios[size])
    least = f"least {ratios[worst]:.3f} at {worst}"
    return f"{kind} {mean:.3f} (ours is faster at {better} of {len(ratios)}; {least})"


def _refusals(attempts: Sequence[Attempt], table: str) -> Iterator[str]:
    """How many candidates were refused, and where the reasons are; of other failures the first reason."""
    reasons: dict[tuple[str, str, str], str] = {}
    counted: Counter[tuple[str, str, str]] = Counter()
    for a in attempts:
        if a.status not in ("finalist", "timed", "slow", "refused"):
            counted[a.kind, a.name, a.status] += 1
            reasons.setdefault((a.kind, a.name, a.status), a.reason)
    refused = sum(a.status == "refused" for a in attempts)
    if refused:
        file = f"{table}.attempts.csv"
        yield f"{refused} candidates were refused; [{file}]({file}) says why."
    if counted:
        yield "Not in the table:"
        yield "\n".join(
            f"* {status}: {kind} `{name}`{f' ({count} times, first' if count > 1 else ''}: "
            f"{reasons[kind, name, status]}{')' if count > 1 else ''}"
            for (kind, name, status), count in sorted(counted.items())
        )


def _time(row: Row | None) -> str:
    return f"{row.median_us:.2f} µs" if row else "–"


def _names(case: Case) -> str:
    return " ".join(case.sizes)


def _sizes(case: Case) -> str:
    return " ".join(map(str, case.sizes.values()))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
