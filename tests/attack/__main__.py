"""Runs the attack and prints what became of it. `make attack` runs all of it, for an hour at most.

    python -m tests.attack                               everything, with a new seed
    python -m tests.attack mutants --seed 7 --count 100  one kind
    python -m tests.attack --cluster tcp://10.0.0.1:8786 by the workers of a Dask cluster

Exits with 1 if any trial shows a defect. Each defect is printed with what reproduces it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from bench.cluster import connected
from rise.progress import said, stepwise, watching
from tests.attack import (
    attention,
    batches,
    differential,
    files,
    fused,
    groups,
    kernel_edits,
    mutants,
    schedules,
    variants,
    wrong_rules,
)
from tests.attack.outcome import Outcome, Verdict
from tests.attack.runner import Attack, Tally, run, run_on

SHOWN = 20  # defects of a kind that are printed


def _rules(_: int) -> Iterator[wrong_rules.Wrong]:
    return iter(wrong_rules.WRONG_RULES)


def _edits(seed: int) -> Iterator[kernel_edits.Edit]:
    """Those that do harm, a schedule after the other: each worker compiles a schedule once."""
    return (edit for edit in kernel_edits.edits(seed) if not edit.harmless)


ATTACKS = (
    Attack("mutants", mutants.mutants, mutants.outcome, count=3200, seconds=5),
    Attack("files", files.damaged, files.outcome, count=520, seconds=60),
    Attack("rules", _rules, wrong_rules.outcome, count=100, seconds=60),
    Attack("edits", _edits, kernel_edits.outcome, count=100, seconds=180),
    Attack("schedules", schedules.schedules, schedules.outcome, count=3000, seconds=120),
    Attack("differential", differential.programs, differential.outcome, count=1700, seconds=60),
    Attack("attention", attention.attentions, attention.outcome, count=400, seconds=120),
    Attack("fused", fused.fused, fused.outcome, count=400, seconds=240),
    Attack("batches", batches.batches, batches.outcome, count=400, seconds=120),
    Attack("groups", groups.groups, groups.outcome, count=200, seconds=120),
    Attack("variants", variants.variants, variants.outcome, count=2400, seconds=120),
)


Run = Callable[[Attack], Iterable[tuple[Any, Outcome]]]


def attacked(attack: Attack, run: Run) -> Tally:
    tally, started = Tally(), time.monotonic()
    for trial, outcome in stepwise(attack.name, run(attack), attack.count):
        tally.add(trial, outcome)
        if outcome.verdict.is_defect and len(tally.defects) <= SHOWN:
            said(f"  {outcome}\n    {trial}")
    verdicts = ", ".join(f"{count} {verdict.value}" for verdict, count in tally.verdicts.most_common())
    taken = time.monotonic() - started
    print(f"{attack.name}: {tally.verdicts.total()} trials in {taken:.0f} s: {verdicts}", flush=True)
    if tally.verdicts[Verdict.REFUSED]:
        codes = (
            f"{code or 'without a code'} {number}" for code, number in tally.codes.most_common() if number
        )
        print(f"  refused: {', '.join(codes)}", flush=True)
    if tally.kernels:
        print(f"  {len(tally.kernels)} different kernels", flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    names = [attack.name for attack in ATTACKS]
    parser.add_argument("names", nargs="*", metavar="KIND", help=f"of {', '.join(names)}; by default all")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="by default a new one")
    parser.add_argument("--count", type=int, help="trials of each kind")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, default=2)
    where.add_argument("--cluster", metavar="ADDRESS", help="by the workers of a Dask scheduler")
    given = parser.parse_args()
    if unknown := set(given.names) - set(names):
        parser.error(f"there is no kind {min(unknown)}; there are {', '.join(names)}")
    print(f"seed {given.seed}", flush=True)
    chosen = [each for each in ATTACKS if not given.names or each.name in given.names]
    defects = 0
    with ExitStack() as stack:
        by: Run = partial(run, seed=given.seed, jobs=given.jobs)
        if given.cluster:
            by = partial(run_on, stack.enter_context(connected(given.cluster)), seed=given.seed)
        for attack in chosen:
            defects += len(attacked(replace(attack, count=given.count or attack.count), by).defects)
    print(f"{defects} defects, seed {given.seed}")
    return 1 if defects else 0


if __name__ == "__main__":
    with watching():
        sys.exit(main())
