"""`rise bench`: tables of measurements on a GPU, against libraries."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from rise.cli.foreign import check_foreign
from rise.expr import inline

if TYPE_CHECKING:
    from bench.table import Table

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
        from bench.session import prepare

        for line in prepare(table, arguments.target, arguments.jobs):
            print(line, flush=True)
        return RIGHT
    _check_foreign(table, arguments.foreign)
    return _measured(table, arguments)


def _table(arguments: argparse.Namespace) -> Table:
    """The part of the table that is asked for, with the candidates that are asked for."""
    from bench import table as tables
    from bench.search import searched
    from codegen.execute import present_target

    found = tables.restrict(tables.find(arguments.table), arguments.size, arguments.only, arguments.limit)
    target = arguments.target if arguments.prepare else present_target() or arguments.target
    return searched(found, arguments.candidates, arguments.top, target, arguments.store or "")


def _check_foreign(table: Table, choice: str | None) -> None:
    from bench.derive import program

    for subject in table.subjects:
        check_foreign(inline(program(subject.file)[subject.definition].body), subject.file, choice)


def _measured(table: Table, arguments: argparse.Namespace) -> int:
    from bench.session import Session

    session = Session(table, Path(arguments.out), arguments.jobs, gpus=arguments.gpus)
    status = session.run(arguments.budget or inf)
    if (text := session.report()) is not None:
        print(text)
        if arguments.plot:
            from bench.plots import draw

            for picture in draw(table, session.rows(), session.folder):
                print(picture)
    return status or (WRONG if session.incorrect() else RIGHT)
