"""Every schedule that `rise bench` has timed, beside the best of each library.

    python benchmarks/attempts.py FOLDER [FOLDER …]

Of each case the libraries' best, and all of ours that were timed, the fastest first: microseconds, and the
time of the best library over it. Above 1, ours is faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from bench.results import OURS, Attempt, read_attempts

FASTER = ("finalist", "timed")


def lines(attempts: list[Attempt]) -> Iterator[str]:
    """The attempts at a case."""
    timed = sorted((one for one in attempts if one.status in FASTER), key=lambda one: one.median_us)
    libraries = [one for one in timed if one.kind != OURS]
    for one in {one.kind: one for one in reversed(libraries)}.values():
        yield f"{one.median_us:10.2f}        {one.kind}, {one.name}"
    for one in (one for one in timed if one.kind == OURS):
        over = f"{libraries[0].median_us / one.median_us:.3f}" if libraries else ""
        yield f"{one.median_us:10.2f} {over:>6} {one.name.removeprefix('tensor_core ')}"
    for one in (one for one in attempts if one.status not in FASTER):
        yield f"{one.status:>10}        {one.name.removeprefix('tensor_core ')} {one.reason[:80]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="of `rise bench --out`")
    for folder in parser.parse_args().folders:
        for path in sorted(folder.rglob("*.attempts.csv")):
            for case, attempts in groupby(read_attempts(path), key=lambda one: one.case):
                print(f"## {case}", *lines(list(attempts)), sep="\n")


if __name__ == "__main__":
    main()
