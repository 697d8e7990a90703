"""`rise tune`: the best parameters of a strategy for a program at its sizes, ranked and then measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from rise.check.specialise import inputs_of
from rise.cli.definitions import named
from rise.cli.foreign import check_foreign
from rise.cli.options import pairs, sizes, target_of
from rise.cli.terminal import note
from rise.errors import LaunchError, UsageError
from rise.progress import progress
from rise.types import Array

if TYPE_CHECKING:
    from bench.results import Attempt
    from bench.search import Search
    from bench.session import Session
    from bench.table import Source, Subject
    from bench.tune import Compiled, Found, Measured, Tuning
    from strategies.search.trials import InOrder

RIGHT = 0
SCALAR = 1.5  # of an input that is a number
NO_GPU = "there is no GPU to time candidates on"


def run(arguments: argparse.Namespace) -> int:
    """Ranks, compiles, checks and times candidates; remembers the winner. 1 where none is correct."""
    from bench.plots import drawing
    from bench.search import search
    from bench.tune import Tuning
    from codegen import execute

    named(arguments)
    target, settings = target_of(arguments), pairs(arguments.settings, "--set")
    source, given = _source(arguments), sizes(arguments.size)
    wanted = search(source, arguments.name, given, target, arguments.strategy, settings=settings)
    if not arguments.dry_run:
        check_foreign(wanted.program, arguments.file, arguments.foreign)
    tuning = Tuning(
        wanted, _subject(arguments, source, given, wanted), arguments.top, arguments.timeout, arguments.jobs
    )  # fmt: skip
    with progress("ranking"):
        trials = wanted.trials(arguments.top)
    if trials.none_is_left:
        raise UsageError("R0034", f"nothing is tried {wanted.described}", hint="choose parameters yourself")
    if arguments.plot:
        drawing()  # or else says at once what is missing
    if arguments.dry_run:
        found = tuning.build(trials)
        _plot(tuning, found, (), arguments.plot)
        return _dry_run(found, target, arguments.json)
    if execute.present_target() is None and not arguments.cluster:
        raise LaunchError("R0822", NO_GPU, hint="`--dry-run` ranks and compiles them")
    return _measured(trials, tuning, arguments)


def _source(arguments: argparse.Namespace) -> Source:
    from bench.table import Source

    return Source(Path(arguments.file), tuple(arguments.import_path), tuple(arguments.load))


def _subject(arguments: argparse.Namespace, source: Source, given: dict[str, int], wanted: Search) -> Subject:
    """The program at its sizes, and what its results are compared with."""
    from bench.interpreted import NAME
    from bench.operations import OPERATIONS
    from bench.table import Subject

    operation = arguments.operation or (arguments.name if arguments.name in OPERATIONS else NAME)
    scalars = {name: SCALAR for name, type_ in inputs_of(wanted.program) if not isinstance(type_, Array)}
    scalars |= {name: _number(name, text) for name, text in pairs(arguments.scalar, "--scalar").items()}
    baselines = tuple(arguments.against)
    return Subject(source, arguments.name, operation, (given,), (), baselines, scalars)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError("R0005", f"--scalar {name}={text}: expected a number") from None


def _dry_run(found: Found, target: str, as_json: bool) -> int:
    from bench.tune import Compiled
    from strategies.search.trials import summary

    lines = [Compiled.of(one, made, target) for one, made in found.built]
    if as_json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        _show(lines)
    if found.refused:
        note(summary(reason for _, reason in found.refused))
    return RIGHT


def _show(lines: list[Compiled]) -> None:
    print(f"{'cycles':>10} {'bound':>8} {'registers':>9} {'shared':>7} {'spilled':>7}  candidate")
    for line in lines:
        taken = f"{line.registers:9} {line.shared_bytes:7} {line.spilled:7}"
        print(f"{line.cycles or '-':>10} {line.bound:>8} {taken}  {line.candidate}")


def _measured(trials: InOrder, tuning: Tuning, arguments: argparse.Namespace) -> int:
    from bench.search import record, remember
    from bench.tune import Measured
    from strategies.search.store import written_to

    found, session, status = _run(trials, tuning, arguments)
    if status:
        return status
    measured = Measured.of(session)
    _plot(tuning, found, measured.attempts, arguments.plot)
    if not arguments.json:
        _show_attempts(found, measured)
    if (best := measured.best) is None:
        print("no time was left for the last round; run the command again to resume")
        return RIGHT
    (case,) = session.table.cases
    winner = record(tuning.search, case, best)
    path = written_to(arguments.store)
    remember(winner, path)
    if arguments.json:
        print(winner.line.rstrip())
        return RIGHT
    for row in measured.rows:
        if row is not best:
            print(f"{row.kind} {row.name}: {row.median_us:.2f} µs, {row.ratio:.3f} of the winner's time")
    print(f"remembered in {path}: {winner}")
    return RIGHT


def _run(trials: InOrder, tuning: Tuning, arguments: argparse.Namespace) -> tuple[Found, Session, int]:
    """Builds candidates, then measures them; GPUs of this host measure while others are built."""
    from bench.cluster import fleet
    from bench.tune import Found, default_folder

    folder = Path(arguments.out) if arguments.out else default_folder()
    shared, budget = fleet(arguments.gpus, arguments.cluster), arguments.budget or inf
    if not arguments.gpus:
        found = tuning.build(trials)
        session = tuning.session(found, folder, shared, arguments.progress)
        return found, session, session.run(budget)
    posted: list[Found] = []
    session = tuning.session(Found((), ()), folder, shared, arguments.progress)
    status = replace(session, feed=lambda board: posted.append(tuning.post(trials, board))).run(budget)
    (found,) = posted
    return found, tuning.session(found, folder, shared, arguments.progress), status


def _plot(tuning: Tuning, found: Found, attempts: Sequence[Attempt], file: str | None) -> None:
    if file is not None:
        from bench.search_plot import bars, draw

        draw(bars(found.built, attempts), tuning.title, Path(file))
        note(f"wrote {file}")


def _show_attempts(found: Found, measured: Measured) -> None:
    """Every candidate once: its time, or why it has none."""
    for one, reason in found.refused:
        print(f"{'refused':>20}  rise {one.point}: {reason}")
    for a in measured.attempts:
        figure = f"{a.median_us:10.2f} µs ±{a.spread:5.1%}" if a.median_us else f"{a.status:>20}"
        print(f"{figure}  {a.kind} {a.name}{f': {a.reason}' if a.reason else ''}")
