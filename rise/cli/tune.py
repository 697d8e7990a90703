"""`rise tune`: the best parameters of a strategy for a program at its sizes, by a model, then by the clock.

The measuring is that of `rise bench`: a table of one case, whose candidates are those that the model ranks
first. So a kernel that takes the process with it is left out and named, and a call that was interrupted goes
on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rise import files
from rise.cli.arguments import pairs, sizes
from rise.cli.foreign import check_foreign, options
from rise.errors import LaunchError, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from bench.build import Built, Refused
    from bench.results import Attempt
    from bench.table import Candidate, Table
    from rise.cli.search import Search
    from strategies.search.space import Ranked
    from strategies.search.store import Record
    from strategies.search.trials import Trials

RIGHT, WRONG = 0, 1
FINALISTS = 4  # that take turns in the end
TRIED = 3  # times as many as are asked for, until so many build
LEAST = 24  # are tried before none is said to build
SCALAR = 1.5  # of an input that is a number
NO_GPU = "there is no GPU to time candidates on"


def run(arguments: argparse.Namespace) -> int:
    """Ranks, compiles, checks and times candidates; remembers the winner. 1 where none is right."""
    arguments.size = [part for text in arguments.size for part in text.split(",")]
    wanted = _search(arguments)
    if not arguments.dry_run:
        check_foreign(wanted.program, arguments.file, arguments.foreign)
    if arguments.worker is not None:
        return _work(_table(_read_candidates(arguments, wanted), arguments, wanted), arguments, wanted)
    trials = wanted.trials(arguments.top)
    if trials.none_is_left:
        raise UsageError("R0034", f"nothing is tried {wanted.described}", hint="choose parameters yourself")
    if not arguments.dry_run and _target(None) is None:
        raise LaunchError("R0822", NO_GPU, hint="`--dry-run` ranks and compiles them")
    found = _that_build(trials, arguments, wanted)
    if arguments.dry_run:
        return _dry_run(found, arguments, wanted)
    return _supervised(found, arguments, wanted)


def _search(arguments: argparse.Namespace) -> Search:
    from rise.cli.search import search

    target = _target(arguments.target) or "sm_90a"
    file = Path(arguments.file)
    return search(file, arguments.name, sizes(arguments.size), target, arguments.strategy, "")


def _target(given: str | None) -> str | None:
    from rise.cli.stages import present_target

    return given or present_target()


def _sizes(arguments: argparse.Namespace) -> str:
    return " ".join(arguments.size)


def _table(found: Sequence[Candidate], arguments: argparse.Namespace, wanted: Search) -> Table:
    """One program at one assignment of sizes."""
    from bench.interpreted import NAME
    from bench.operations import OPERATIONS
    from bench.table import Subject, Table
    from rise.check.specialise import inputs_of
    from rise.types import Array

    own = NAME if arguments.name not in OPERATIONS else arguments.name
    scalars = {name: SCALAR for name, type_ in inputs_of(wanted.program) if not isinstance(type_, Array)}
    scalars |= {name: _number(name, text) for name, text in pairs(arguments.scalar, "--scalar").items()}
    subject = Subject(
        Path(arguments.file), arguments.name, arguments.operation or own, (sizes(arguments.size),),
        tuple(found), tuple(arguments.against), scalars,
    )  # fmt: skip
    return Table(f"{wanted.identity}-{wanted.target}", f"{arguments.name} {_sizes(arguments)}", (subject,))


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError("R0005", f"--scalar {name}={text}: expected a number") from None


def folder(arguments: argparse.Namespace) -> Path:
    """What was measured: of `--out`, or in `$XDG_STATE_HOME/rise-lang/tune`."""
    if arguments.out:
        return Path(arguments.out)
    chosen = os.environ.get("XDG_STATE_HOME")
    return (Path(chosen) if chosen else Path("~/.local/state").expanduser()) / "rise-lang" / "tune"


# --- candidates that build --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Candidates that build, the best by the model first; and those that do not, with the reasons."""

    built: tuple[tuple[Ranked, Built], ...]
    refused: tuple[tuple[Ranked, str], ...]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(made.candidate for _, made in self.built)


def _that_build(trials: Trials, arguments: argparse.Namespace, wanted: Search) -> Found:
    """As many as are asked for, in the model's order. LaunchError R0035 where none builds."""
    from bench.build import Built, processes
    from strategies.search.trials import summary

    built: list[tuple[Ranked, Built]] = []
    tried = 0
    with processes(arguments.jobs, arguments.timeout) as pool:
        while len(built) < arguments.top and tried < max(TRIED * arguments.top, LEAST):
            batch = [one for _ in range(arguments.top - len(built)) if (one := trials.take()) is not None]
            for one, made in zip(batch, _built(batch, pool, arguments, wanted), strict=True):
                if isinstance(made, Built):
                    built.append((one, made))
                else:
                    trials.refuse(one, made.reason)
            tried += len(batch)
            if not batch:
                break
    if not built:
        message = f"of {tried} candidates none builds: {summary(reason for _, reason in trials.refused)}"
        raise LaunchError("R0035", message, hint="`--strategy default` of `rise run` lowers any program")
    return Found(tuple(built), tuple(trials.refused))


def _built(
    batch: list[Ranked], pool: Executor, arguments: argparse.Namespace, wanted: Search
) -> list[Built | Refused]:
    from bench.build import Builds
    from rise.cli.bench import derive
    from rise.cli.search import candidate

    table = _table([candidate(one.point) for one in batch], arguments, wanted)
    builds = Builds(pool, derive, wanted.target)
    builds.start(table.cases)
    return [each for case in table.cases for each in _with_bar(builds.each(case), len(batch))]


def _candidates_path(arguments: argparse.Namespace, wanted: Search) -> Path:
    return folder(arguments) / f"{wanted.identity}-{wanted.target}.candidates.json"


def _write_candidates(found: Found, arguments: argparse.Namespace, wanted: Search) -> None:
    """For the process that measures: which they are depends on what could be compiled in time."""
    path = _candidates_path(arguments, wanted)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, json.dumps([(c.strategy, c.settings) for c in found.candidates]))


def _read_candidates(arguments: argparse.Namespace, wanted: Search) -> tuple[Candidate, ...]:
    from bench.table import Candidate

    written = json.loads(_candidates_path(arguments, wanted).read_text(encoding="utf-8"))
    return tuple(Candidate(name, tuple((n, v) for n, v in settings)) for name, settings in written)


# --- without a GPU ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """A line of `--dry-run`: a candidate, what the model says of it, and what its kernels take."""

    candidate: str
    cycles: int
    bound: str
    registers: int
    shared_bytes: int
    spilled: int


def _dry_run(found: Found, arguments: argparse.Namespace, wanted: Search) -> int:
    from rise.cli.terminal import note
    from strategies.search.trials import summary

    lines = [_compiled(one, made, wanted.target) for one, made in found.built]
    if arguments.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        _show(lines)
    if found.refused:
        note(summary(reason for _, reason in found.refused))
    return RIGHT


def _with_bar(builds: Any, count: int) -> list[Built | Refused]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return list(track(builds, "compiling", count, console=console, disable=not console.is_terminal))


def _compiled(ranked: Ranked, made: Built, target: str) -> Compiled:
    from codegen.runtime import resources

    kernels = getattr(made.kernel, "kernels", (made.kernel,))
    taken = [resources(kernel.source, target)[kernel.name] for kernel in kernels]
    return Compiled(
        str(ranked.point), round(ranked.cost.cycles), ranked.cost.bound,
        max(each.registers for each in taken), max(kernel.launch.shared_bytes for kernel in kernels),
        sum(each.spill_stores for each in taken),
    )  # fmt: skip


def _show(lines: list[Compiled]) -> None:
    print(f"{'cycles':>10} {'bound':>8} {'registers':>9} {'shared':>7} {'spilled':>7}  candidate")
    for line in lines:
        taken = f"{line.registers:9} {line.shared_bytes:7} {line.spilled:7}"
        print(f"{line.cycles:10} {line.bound:>8} {taken}  {line.candidate}")


# --- with a GPU -------------------------------------------------------------------------------------------


def _work(table: Table, arguments: argparse.Namespace, wanted: Search) -> int:
    """In the process that has the GPU."""
    from rise.cli.bench import measure

    return measure(
        table,
        folder(arguments),
        arguments.worker,
        arguments.jobs,
        arguments.timeout,
        FINALISTS,
        wanted.target,
    )


def _supervised(found: Found, arguments: argparse.Namespace, wanted: Search) -> int:
    from bench.build import code
    from rise.cli.bench import supervised

    table, place = _table(found.candidates, arguments, wanted), folder(arguments)
    _write_candidates(found, arguments, wanted)
    status = supervised(table, place, _again(arguments), arguments.budget or inf)
    if not status and not arguments.json:
        for one, reason in found.refused:
            print(f"{'refused':>20}  rise {one.point}: {reason}")
    return status or conclude(table, place, code(), wanted, arguments.store, arguments.json)


def _again(arguments: argparse.Namespace) -> list[str]:
    """The command line of the process that measures."""
    made = ["tune", arguments.file, arguments.name, *options(arguments.foreign)]
    for option, values in (
        ("--size", arguments.size), ("--scalar", arguments.scalar), ("--against", arguments.against),
    ):  # fmt: skip
        made += [option, *values] if values else []
    for name in ("strategy", "top", "timeout", "jobs", "out", "operation", "target"):
        value = getattr(arguments, name)
        made += [f"--{name}", str(value)] if value is not None else []
    return made


def conclude(
    table: Table, place: Path, code: str, wanted: Search, store: str | None, as_json: bool = False
) -> int:
    """Says what was measured, and remembers the winner; 1, R0035, where nobody was right."""
    from bench.results import OURS, latest, read_attempts, read_rows
    from strategies.search.store import append, user_file

    (case,) = table.cases
    attempts = [a for a in read_attempts(place / f"{table.name}.attempts.csv") if a.code == code]
    rows = latest(r for r in read_rows(place / f"{table.name}.csv") if r.code == code)
    ours = next((row for row in rows if row.kind == OURS), None)
    if not as_json:
        _outcomes(attempts)
    if ours is None:
        if not any(a.status not in ("timed", "slow") for a in attempts):
            print("there was no time left for the last round; the same command goes on")
            return RIGHT
        raise LaunchError("R0035", f"of {len(case.subject.candidates)} candidates none is right")
    winner = next(c for c in case.subject.candidates if str(c) == ours.name)
    record = _record(winner, ours, case.sizes, wanted, table.title.split(" ", 1)[0])
    path = Path(store) if store else user_file()
    if wanted.is_news(record, path):
        append(path, record)
    for row in rows:
        if row is not ours and not as_json:
            print(f"{row.kind} {row.name}: {row.median_us:.2f} µs, {row.ratio:.3f} of the winner's time")
    print(record.line.rstrip() if as_json else f"remembered in {path}: {record}")
    return RIGHT


def _record(winner: Candidate, row: Any, of: Mapping[str, int], wanted: Search, name: str) -> Record:
    from strategies.search.store import Record

    return Record(
        wanted.identity, name, dict(of), wanted.target, row.device, winner.strategy, dict(winner.settings),
        round(row.median_us, 3), round(row.spread, 4), row.code, row.date,
    )  # fmt: skip


def _outcomes(attempts: list[Attempt]) -> None:
    """Everyone once, the fastest first; who failed with the reason."""
    last = {(a.kind, a.name): a for a in attempts}
    for a in sorted(last.values(), key=lambda a: (a.median_us == 0, a.median_us)):
        figure = f"{a.median_us:10.2f} µs ±{a.spread:5.1%}" if a.median_us else f"{a.status:>20}"
        print(f"{figure}  {a.kind} {a.name}{f': {a.reason}' if a.reason else ''}")
