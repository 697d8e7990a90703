"""`rise check`: the type of each definition, and what it asks of its sizes.

With `--json` the mistakes are part of the output, each with its place, for editors.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rise.check.program import Checked, Loader
from rise.cli.terminal import STANDARD_INPUT, show_error, standard_input
from rise.errors import RiseError, UsageError, together
from rise.expr import Definition
from rise.pretty import full_type
from rise.progress import stepwise
from rise.reported import reported
from rise.source import Source


def run(arguments: argparse.Namespace) -> int:
    """Checks every file, also after one that is wrong: all mistakes of a project are shown, each once."""
    loader = Loader(arguments.import_path)
    mistakes: list[RiseError] = []
    found: dict[str, list[dict[str, Any]]] = {}
    for file in each_file(arguments.files):
        checked = load(file, loader)
        known = set(map(id, mistakes))
        mistakes += [m for m in checked.mistakes if id(m) not in known]
        found[file] = [described(checked.definitions[name]) for name in checked.own]
        if not arguments.json:
            for definition in found[file]:
                _print(definition)
    if arguments.json:
        print(json.dumps({"definitions": found, "mistakes": [reported(m) for m in mistakes]}, indent=2))
    elif mistakes:
        sys.stdout.flush()
        show_error(together(mistakes))
    return max((2 if isinstance(m, UsageError) else 1 for m in mistakes), default=0)


def each_file(names: Sequence[str]) -> Iterable[str]:
    """The files, counted if there are several."""
    return stepwise("file", names, len(names)) if len(names) > 1 else names


def load(file: str, loader: Loader) -> Checked:
    """The file, or standard input; that it cannot be read is a mistake among others."""
    try:
        if file == STANDARD_INPUT:
            return loader.check(Source("<stdin>", standard_input()), Path())
        return loader.load(Path(file))
    except UsageError as error:
        return Checked(mistakes=[error])


def described(definition: Definition) -> dict[str, Any]:
    """Name, type and constraints as text."""
    constraints = [str(c) for c in definition.constraints]
    return {"name": definition.name, "type": full_type(definition), "constraints": constraints}


def _print(definition: dict[str, Any]) -> None:
    print(f"{definition['name']} : {definition['type']}")
    if definition["constraints"]:
        print(f"  where {', '.join(definition['constraints'])}")
