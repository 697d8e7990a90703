"""On a machine with a GPU, everything in one call: checks, compute-sanitizer, tables; what counts comes last.

python benchmarks/gpu_run.py --out DIR --seconds 560 [--tables T …] [--top N] [--no-checks] [--no-sanitizer]

Kernels are compiled while the checks run. What there is no time for is named; the same call goes on with it.
Everything that was written is also packed into DIR/results.tar.gz.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

from rise import files

TABLES = ("rise_gemm_bt", "volta_bias_relu", "layouts", "volta_half")
HERE = Path(__file__).parent
LEAST = 5.0  # seconds that a table is begun with
RISE = [sys.executable, "-m", "rise.cli"]


def written(command: Sequence[str], path: Path, seconds: float) -> int:
    """Its exit status; what it prints goes into a file. 124 where it took longer."""
    with path.open("w", encoding="utf-8") as file:
        try:
            return subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            return 124


def prepare(tables: Sequence[str], top: int, folder: Path) -> subprocess.Popen[bytes]:
    """Compiles all kernels, table by table, in the background: with all processors but two."""
    jobs = str(max(1, (os.cpu_count() or 2) - 2))
    options = ["--prepare", "--candidates", "model", "--top", str(top), "--jobs", jobs]
    script = " && ".join(" ".join([*RISE, "bench", table, *options]) for table in tables)
    with (folder / "prepare.txt").open("w", encoding="utf-8") as file:
        return subprocess.Popen(["sh", "-c", script], stdout=file, stderr=subprocess.STDOUT)


def check(folder: Path, sanitizer: bool, deadline: float) -> None:
    for what in ("check", "sanitize") if sanitizer else ("check",):
        path = folder / f"{what}.txt"
        command = [sys.executable, str(HERE / "gpu_check.py"), "--only", what]
        status = written(command, path, deadline - time.monotonic())
        lines = path.read_text(encoding="utf-8").splitlines()
        equal = sum("equal" in line for line in lines)
        print(f"{what}: exit {status}, {equal} lines say equal", flush=True)
        for line in lines:
            if what == "sanitize" and "exit" in line:
                print(f"  {line}", flush=True)


def measure(table: str, top: int, folder: Path, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left < LEAST:
        print(f"{table}: no time left", flush=True)
        return
    budget = ["--budget", str(int(left))]
    command = [
        *RISE,
        "bench",
        table,
        "--candidates",
        "model",
        "--top",
        str(top),
        "--out",
        str(folder),
        *budget,
    ]
    status = written(command, folder / f"{table}.log", left + 10)
    said = [line for line in (folder / f"{table}.log").read_text(encoding="utf-8").splitlines()
            if line.startswith(("Speed-ups", "no time was left"))]  # fmt: skip
    print(f"{table}: exit {status}", *said, sep="\n  ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("gpu-results"))
    parser.add_argument("--seconds", type=float, default=560.0)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--top", type=int, default=8)
    parser.add_argument("--no-checks", action="store_true")
    parser.add_argument("--no-sanitizer", action="store_true")
    given = parser.parse_args()
    deadline = time.monotonic() + given.seconds - 10
    given.out.mkdir(parents=True, exist_ok=True)
    preparing = prepare(given.tables, given.top, given.out)
    if not given.no_checks:
        check(given.out, not given.no_sanitizer, deadline)
    preparing.wait(max(1.0, deadline - time.monotonic()))
    for table in given.tables:
        measure(table, given.top, given.out, deadline)
    packed = files.replacing(given.out / "results.tar.gz")
    with packed as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for path in sorted(given.out.iterdir()):
            if path.name != "results.tar.gz" and not path.name.startswith(".partial-"):
                archive.add(path, path.name)


if __name__ == "__main__":
    main()
