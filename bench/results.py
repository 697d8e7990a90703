"""Results on disk: a line for the best of each kind at a case, and one for each variant tried."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from bench.statistics import Summary
from rise import files
from rise.data import shown
from rise.errors import UsageError

OURS = "rise"
LARGEST = 256 * 2**20  # bytes of a file of results


@dataclass(frozen=True)
class Row:
    """The best of one kind at one case, from the fine pass; times in microseconds.

    kind:     `rise`, or the name of a baseline. name: which of its kind
    fraction: of the limit of the table; 0 where that is not known
    ratio:    the time of this one over ours
    error, bound: the largest error among sampled elements of normal data, and its bound
    checked:  how the result was checked
    """

    date: str
    device: str
    code: str
    case: str
    kind: str
    name: str
    median_us: float
    lower_us: float
    upper_us: float
    spread: float
    samples: int
    tflops: float
    gb_s: float
    limit: str
    fraction: float
    ratio: float
    error: float
    bound: float
    checked: str
    sm_mhz: int
    watts: float


@dataclass(frozen=True)
class Attempt:
    """One candidate, or one variant of a baseline.

    status: `finalist`, `timed`, `slow` (a first sample was enough), `refused` (no kernel), `wrong`, `failed`,
            `crashed` (ended the process)
    """

    code: str
    device: str
    case: str
    kind: str
    name: str
    status: str
    median_us: float
    spread: float
    resources: str
    reason: str


STATUSES = ("finalist", "timed", "slow", "refused", "wrong", "failed", "crashed")


def append(path: Path, records: Sequence[Row] | Sequence[Attempt]) -> None:
    """Adds lines to a CSV file, which gets a header if it is new."""
    if not records:
        return
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [f.name for f in fields(records[0])])
    writer.writeheader()
    header = text.getvalue()
    writer.writerows(asdict(record) for record in records)
    files.append(path, text.getvalue().removeprefix(header), header)


def read_rows(path: Path) -> list[Row]:
    return [Row(**each) for each in _read(path, Row)]


def read_attempts(path: Path) -> list[Attempt]:
    return [Attempt(**each) for each in _read(path, Attempt)]


def _read(path: Path, record: type) -> list[dict[str, Any]]:
    """The lines of a file. UsageError R0864 where it has another format.

    None if the file does not exist, or is empty: another process has made it, and is about to write.
    """
    if not path.exists() or not (text := files.read_text(path, LARGEST)):
        return []
    hints = get_type_hints(record)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        if list(reader.fieldnames or ()) != list(hints):
            raise ValueError(f"the columns {shown(reader.fieldnames)}")
        return [_values(line, hints) for line in reader]
    except (ValueError, csv.Error) as error:
        raise UsageError(
            "R0864", f"{path} has another format: {error}", hint="choose another folder with --out"
        ) from None


def _values(line: Mapping[Any, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """ValueError where a column is missing, not a number, or superfluous."""
    if line.keys() != hints.keys() or None in line.values():
        raise ValueError(f"a line has not {len(hints)} columns: {shown(list(line.values()))}")
    return {name: hints[name](text) for name, text in line.items()}


def done(rows: Iterable[Row], code: str, device: str) -> set[str]:
    """The cases that were measured with this compiler on this device."""
    return {row.case for row in rows if row.code == code and row.device == device}


def latest(rows: Iterable[Row]) -> list[Row]:
    """The rows of the last measurement of each case."""
    last: dict[str, str] = {}
    found = list(rows)
    for row in found:
        last[row.case] = row.date
    return [row for row in found if last[row.case] == row.date]


def measured(
    attempts: Iterable[Attempt], code: str, device: str
) -> dict[str, dict[tuple[str, str], Summary]]:
    """For each case, by kind and name, the last result of the coarse pass."""
    found: dict[str, dict[tuple[str, str], Summary]] = {}
    for a in attempts:
        if a.status in ("timed", "slow") and (a.code, a.device) == (code, device):
            half = a.median_us * a.spread / 2
            summary = Summary(a.median_us, a.median_us - half, a.median_us + half, 1)
            found.setdefault(a.case, {})[a.kind, a.name] = summary
    return found


def crashed(attempts: Iterable[Attempt], code: str, device: str) -> set[tuple[str, str, str]]:
    """Case, kind and name of variants that must not run again."""
    return {
        (a.case, a.kind, a.name)
        for a in attempts
        if a.status == "crashed" and a.code == code and a.device == device
    }
