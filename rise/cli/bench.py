"""`rise bench`: tables of measurements on a GPU, against libraries."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rise.cli.foreign import check_foreign
from rise.cli.options import target_of
from rise.errors import UsageError
from rise.expr import inline
from rise.progress import said

if TYPE_CHECKING:
    from bench.session import Session
    from bench.table import Table

RIGHT, WRONG = 0, 1
FOLDER = "bench-results"
DOCS = Path("docs")  # where the page of the papers is, from which plots are linked


def run(arguments: argparse.Namespace) -> int:
    """Lists tables; or compiles one or several, measures and reports. 1 where a kernel is wrong."""
    from bench import table as tables

    if arguments.table is None:
        for name in [*tables.known(), *tables.group("papers")]:
            found = tables.find(name)
            print(f"{name:14} {len(found.cases):4} cases  {found.title}")
        return RIGHT
    if arguments.report is not None:
        return _page(arguments)
    several = tables.group(arguments.table)
    made = [_table(name, arguments) for name in several or [arguments.table]]
    if arguments.prepare:
        from bench.session import prepare

        for each in made:
            for line in prepare(each, target_of(arguments), arguments.jobs):
                said(line)
        return RIGHT
    for each in made:
        _check_foreign(each, arguments.foreign)
    return _all_measured(made, arguments) if several else _measured(made[0], arguments)


def _table(name: str, arguments: argparse.Namespace) -> Table:
    """The part of the table that is asked for, with the candidates that are asked for."""
    from bench import table as tables
    from bench.search import searched

    found = tables.find(name)
    if arguments.quick and found.figure is not None:
        found = tables.restrict(found, found.figure.quick)
    if found.cases:
        found = tables.restrict(found, arguments.case, arguments.only, arguments.limit)
    target, store = target_of(arguments), arguments.store or ""
    if arguments.remember and not Path(store).is_file():
        store = ""  # it is to be written
    return searched(found, arguments.candidates, arguments.top, target, store, arguments.jobs)


def _check_foreign(table: Table, choice: str | None) -> None:
    from bench.derive import program

    for subject in table.subjects:
        check_foreign(inline(program(subject.source)[subject.definition].body), subject.file, choice)


def _measured(table: Table, arguments: argparse.Namespace) -> int:
    session = _session(table, arguments)
    status = session.run(arguments.budget or inf)
    if arguments.remember:
        _remember(session, target_of(arguments), arguments.store)
    if (text := session.report()) is not None:
        print(text)
        if arguments.plot:
            from bench.plots import draw

            for picture in draw(table, session.rows(), session.folder):
                print(picture)
    return status or (WRONG if session.incorrect() else RIGHT)


def _remember(session: Session, target: str, store: str | None) -> None:
    from bench.search import remember, winners
    from strategies.search.store import written_to

    path, found = written_to(store), list(winners(session.table, session.rows(), target))
    news = sum(remember(record, path) for record in found)
    print(f"{news} of {len(found)} cases remembered anew in {path}")


def _session(table: Table, arguments: argparse.Namespace) -> Session:
    from bench.cluster import fleet
    from bench.session import Session

    shared = fleet(arguments.gpus, arguments.cluster)
    target = arguments.target if arguments.cluster else target_of(arguments)
    return Session(
        table, Path(arguments.out or FOLDER), arguments.jobs, target=target, fleet=shared,
        progress=arguments.progress,
    )  # fmt: skip


# --- the figures of papers ----------------------------------------------------------------------------------


def _all_measured(made: Sequence[Table], arguments: argparse.Namespace) -> int:
    """One table after the other; each may take its share of the time that is left."""
    deadline = monotonic() + (arguments.budget or inf)
    waiting = [table for table in made if table.cases]
    status = RIGHT
    for position, table in enumerate(waiting):
        print(f"{table.name}: {table.title}", flush=True)
        session = _session(table, arguments)
        found = session.run((deadline - monotonic()) / (len(waiting) - position))
        session.report()
        status = status or found or (WRONG if session.incorrect() else RIGHT)
    return status


def _page(arguments: argparse.Namespace) -> int:
    """Prints the page of the papers, and draws their plots, from results that are there."""
    from bench import table as tables
    from bench.papers import evaluations, page

    folder = Path(arguments.report)
    if not tables.group(arguments.table):
        hint = "for example `rise bench papers --report benchmarks/results/papers`"
        raise UsageError("R0860", f"there are no papers' figures `{arguments.table}`", None, hint)
    if arguments.plot:
        from bench.paper_plots import draw

        folder.mkdir(parents=True, exist_ok=True)
        draw(evaluations(arguments.table, folder), folder)
    print(page(arguments.table, folder, Path(os.path.relpath(folder, DOCS)).as_posix()), end="")
    return RIGHT
