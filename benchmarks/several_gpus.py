"""How much faster several GPUs are than one: tables of `rise bench`, and a search by `rise tune`.

    python benchmarks/several_gpus.py 0,1
    python benchmarks/several_gpus.py 0,1 --out RESULTS --only long

Each run is the command as a user gives it, in seconds from its start to its end; the first and the last
result are in seconds from the start, too. `fresh`: everything is derived and compiled by the run itself, as
it is for the tables; `cached`: it was before. The commands check their results, and fail where one is wrong.
The folder RESULTS, if one is given, keeps what all GPUs measured of the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.results import OURS, latest, read_rows

ROOT = Path(__file__).parents[1]
TABLES = (
    ("short", ("bench", "fresh8")),
    ("long", ("bench", "volta_two_products")),
    ("by the model", ("bench", "fresh8", "--candidates", "model", "--top", "3", "--limit", "20")),
)
SEARCH = (
    "tune", str(ROOT / "examples/gemm.rise"), "matmul", "--size", "m=2304", "n=2560", "k=1792",
    "--operation", "matmul", "--top", "16",
)  # fmt: skip
ALIKE = 0.03  # of the time: the same kernel differs by as much from run to run
SAID = 4  # lines of what a command that fails has said


@dataclass(frozen=True)
class Run:
    """seconds: of the command, until the first result, until the last. winners: by case, with their µs"""

    seconds: tuple[float, float, float]
    winners: dict[str, tuple[str, float]]

    def __str__(self) -> str:
        total, first, last = self.seconds
        return f"{total:6.1f} ({first:4.1f} {last:5.1f})"


def run(command: tuple[str, ...], gpus: str, cache: Path, results: str = "") -> Run:
    """Ends the program where the command fails. results: a folder that keeps what was measured"""
    with nullcontext(results) if results else tempfile.TemporaryDirectory() as folder:
        further = ["--store", str(Path(folder) / "store.jsonl"), "--json"] if command[0] == "tune" else []
        began, start = time.time(), time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "rise.cli", *command, "--gpus", gpus, "--out", folder, *further],
            capture_output=True, text=True, env={**os.environ, "RISE_CACHE_DIR": str(cache)}, cwd=ROOT,
            check=False,
        )  # fmt: skip
        seconds = time.monotonic() - start
        if done.returncode:
            sys.exit("\n".join((done.stdout + done.stderr).splitlines()[-SAID:]))
        (path,) = (path for path in Path(folder).glob("*.csv") if "attempts" not in path.name)
        rows = [row for row in latest(read_rows(path)) if row.kind == OURS]
    if command[0] == "tune":
        json.loads(done.stdout.splitlines()[-1])  # the record
    ends = sorted(datetime.fromisoformat(row.date).timestamp() - began for row in rows)
    return Run((seconds, ends[0], ends[-1]), {row.case: (row.name, row.median_us) for row in rows})


def compared(name: str, alone: Run, together: Run) -> str:
    same = alike = 0
    for case, (winner, microseconds) in alone.winners.items():
        other, others = together.winners.get(case, ("", float("inf")))
        same += winner == other
        alike += winner == other or abs(microseconds / others - 1) < ALIKE
    ratio = alone.seconds[0] / together.seconds[0]
    return f"{name:12} {alone} {together} {ratio:6.2f}  {same:3} {alike:3} of {len(alone.winners):3}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("gpus", nargs="?", default="0,1")
    parser.add_argument("--out", type=Path, help="a folder for what all GPUs measured of the tables")
    parser.add_argument("--only", nargs="+", choices=[name for name, _ in TABLES] + ["tune"])
    given = parser.parse_args()
    gpus, first = given.gpus, given.gpus.partition(",")[0]
    print("seconds until the end (first result, last result); winners that are the same, or as fast")
    print(f"{'':12} {'one GPU':>20} {'GPUs ' + gpus:>20} faster")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in TABLES:
            if given.only and name not in given.only:
                continue
            cache = Path(folder) / name
            alone = run(command, first, cache / first)
            kept = str(given.out / name.replace(" ", "-")) if given.out else ""
            print(compared(name, alone, run(command, gpus, cache / gpus, kept)), flush=True)
        if given.only and "tune" not in given.only:
            return
        search = Path(folder) / "search"
        fresh = run(SEARCH, gpus, search)
        alone, together = (run(SEARCH, which, search) for which in (first, gpus))
        print(compared("tune cached", alone, together))
        print(f"{'tune fresh':12} {'':20} {fresh}")


if __name__ == "__main__":
    main()
