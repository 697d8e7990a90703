"""`rise bench`: tables of measurements on a GPU, against libraries.

The measuring is done in a process of its own, which `bench.supervise` begins again where a kernel
takes it with it; results, reports and plots are files of one folder.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rise import files
from rise.errors import UsageError

if TYPE_CHECKING:
    from bench.build import Built, Order, Refused
    from bench.campaign import Campaign
    from bench.table import Table
    from rise.check.program import Program

RIGHT, WRONG = 0, 1


def run(arguments: argparse.Namespace) -> int:
    """Lists tables; or compiles one, measures it, and reports. 1 where a kernel is wrong."""
    from bench import table as tables

    if arguments.table is None:
        for name in tables.known():
            found = tables.find(name)
            print(f"{name:14} {len(found.cases):4} cases  {found.title}")
        return RIGHT
    table = _table(arguments)
    if arguments.prepare:
        return _prepare(table, arguments)
    _check_foreign(table, arguments.foreign)
    if arguments.worker is not None:
        return _work(table, arguments)
    return _supervised(table, arguments)


def _table(arguments: argparse.Namespace) -> Table:
    """What is left of the table, with the candidates that are asked for."""
    from bench import table as tables
    from rise.cli.search import searched
    from rise.cli.stages import present_target

    found = tables.restrict(tables.find(arguments.table), arguments.sizes, arguments.only, arguments.limit)
    target = arguments.target if arguments.prepare else present_target() or arguments.target
    return searched(found, arguments.candidates, arguments.top, target, arguments.store or "")


def _check_foreign(table: Table, choice: str | None) -> None:
    from rise.cli.foreign import check_foreign
    from rise.expr import inline

    for subject in table.subjects:
        check_foreign(inline(_program(subject.file)[subject.definition].body), subject.file, choice)


# --- compiling ----------------------------------------------------------------------------------------------


def derive(order: Order) -> Any:
    """The kernel for an order, or the program of several; compiled, so that a GPU finds it in the cache."""
    from codegen.pipeline import assemble
    from codegen.runtime import check_spills, resources
    from rise.check.specialise import specialise
    from rise.cli.stages import derived
    from strategies.registry import find

    program = specialise(_program(order.file)[order.definition], dict(order.sizes))
    strategy = find(order.candidate.strategy).make(dict(order.candidate.settings))
    made = assemble(derived(program, strategy).term, f"{order.definition}_kernel")
    kernels = tuple(replace(kernel, stages=()) for kernel in made.kernels)
    for kernel in kernels:
        check_spills(resources(kernel.source, order.target)[kernel.name])
    return kernels[0] if len(kernels) == 1 else replace(made, kernels=kernels)


@cache
def _program(file: Path) -> Program:
    from rise.check.program import load

    return load(file)


def _prepare(table: Table, arguments: argparse.Namespace) -> int:
    """Compiles every candidate at every size into the cache, without a GPU, and says what is refused."""
    from bench.build import Builds, processes

    built, refused = 0, Counter[tuple[str, str]]()
    with processes(arguments.processes) as pool:
        builds = Builds(pool, derive, arguments.target)
        builds.start(table.cases)
        for case in table.cases:
            made: list[Built | Refused] = builds.of(case)
            reasons = [(str(each.candidate), getattr(each, "reason", None)) for each in made]
            built += sum(reason is None for _, reason in reasons)
            refused.update((name, reason) for name, reason in reasons if reason is not None)
            print(
                f"{case.key}: {sum(r is None for _, r in reasons)} of {len(reasons)} candidates", flush=True
            )
    print(f"{built} kernels for {arguments.target}, {refused.total()} refused")
    for (name, reason), count in refused.most_common():
        print(f"  {count:4} × {name}: {reason}")
    return RIGHT


# --- measuring ----------------------------------------------------------------------------------------------


class _Clock:
    def now(self) -> float:
        return monotonic()


def _work(table: Table, arguments: argparse.Namespace) -> int:
    return measure(table, Path(arguments.out), arguments.worker, arguments.processes)


def measure(
    table: Table,
    folder: Path,
    seconds: float,
    processes_: int | None,
    timeout: float | None = None,
    finalists: int | None = None,
    target: str | None = None,
) -> int:
    """In the process that has the GPU. Leaves at once where the GPU is lost: nothing can be tidied up.

    seconds: for everything; timeout: for compiling one candidate; target: by default the GPU's own
    """
    from rich.console import Console

    from bench.build import Builds, code, processes
    from bench.campaign import Campaign
    from bench.contest import FINALISTS, ContextLost
    from bench.gpu import Gpu
    from bench.progress import Shown
    from bench.supervise import LOST

    clock = _Clock()
    deadline = clock.now() + seconds
    gpu = Gpu()
    gpu.machine().write(_machine_path(table, folder))
    with processes(processes_, timeout) as pool, Shown(Console()) as progress:
        builds = Builds(pool, derive, target or gpu.target)
        campaign = Campaign(
            table, folder, gpu, builds, clock, progress, code(), deadline, finalists=finalists or FINALISTS
        )
        try:
            campaign.run()
        except ContextLost as error:
            print(f"the GPU answers no more: {error}", file=sys.stderr, flush=True)
            sys.stdout.flush()
            os._exit(LOST)
    _say_what_is_left(campaign)
    return RIGHT


def _say_what_is_left(campaign: Campaign) -> None:
    if campaign.left:
        print(f"no time left for {len(campaign.left)} cases; the same command goes on with them:")
        for case in campaign.left:
            print(f"  {case.key}")


def _supervised(table: Table, arguments: argparse.Namespace) -> int:
    from bench.build import code
    from bench.results import read_attempts

    folder = Path(arguments.out)
    status = supervised(table, folder, _again(arguments), arguments.time_budget or inf)
    if (folder / f"{table.name}.csv").exists():
        _report(table, folder, arguments.plot)
    if status:
        return status
    attempts = read_attempts(folder / f"{table.name}.attempts.csv")
    ours = [a for a in attempts if a.kind == "rise" and a.code == code()]
    return WRONG if any(a.status in ("wrong", "crashed") for a in ours) else RIGHT


def supervised(table: Table, folder: Path, again: Sequence[str], seconds: float) -> int:
    """The command `again` in a process of its own, for so many seconds; what it measures is in the folder."""
    from bench.build import code
    from bench.journal import Journal
    from bench.machine import read
    from bench.results import read_attempts, read_rows
    from bench.supervise import process, supervise

    clock = _Clock()
    deadline = clock.now() + seconds
    attempts = folder / f"{table.name}.attempts.csv"
    rows = folder / f"{table.name}.csv"
    read_rows(rows), read_attempts(attempts)  # files of another form are refused before anything is measured
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("R0004", f"cannot write to {folder}: {error.strerror}") from None
    return supervise(
        process(again),
        Journal(folder / f"{table.name}.running.json"),
        attempts,
        code(),
        lambda: read(_machine_path(table, folder)).device,
        lambda: deadline - clock.now(),
    )


def _again(arguments: argparse.Namespace) -> list[str]:
    """The command line of the process that measures."""
    from rise.cli.foreign import options

    made = ["bench", arguments.table, "--out", arguments.out, *options(arguments.foreign)]
    for option, values in (("--sizes", arguments.sizes), ("--only", arguments.only)):
        made += [option, *values] if values else []
    for option, value in (
        ("--limit", arguments.limit), ("--processes", arguments.processes),
        ("--candidates", arguments.candidates), ("--top", arguments.top), ("--store", arguments.store),
    ):  # fmt: skip
        made += [option, str(value)] if value is not None else []
    return made


def _machine_path(table: Table, folder: Path) -> Path:
    return folder / f"{table.name}.machine.json"


def _report(table: Table, folder: Path, plot: bool) -> None:
    """Markdown beside the results, and on the terminal; plots, if they are asked for."""
    from bench.machine import read
    from bench.report import markdown
    from bench.results import read_attempts, read_rows

    rows = read_rows(folder / f"{table.name}.csv")
    attempts = read_attempts(folder / f"{table.name}.attempts.csv")
    machine = _machine_path(table, folder)
    text = markdown(table, rows, attempts, read(machine) if machine.exists() else None)
    path = folder / f"{table.name}.md"
    files.write(path, text)
    print(text)
    if plot:
        from bench.plots import draw

        for picture in draw(table, rows, folder):
            print(picture)
