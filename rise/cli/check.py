"""`rise check`: the type of each definition, and what it asks of its sizes."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rise.check.program import load
from rise.cli.terminal import show_error
from rise.errors import RiseError, UsageError
from rise.expr import Definition
from rise.pretty import show_type
from rise.types import Dependent, Type


def run(arguments: argparse.Namespace) -> int:
    """Checks every file, also after one that is wrong: all mistakes of a project are shown at once."""
    status = 0
    found: dict[str, list[dict[str, Any]]] = {}
    for file in arguments.files:
        try:
            program = load(file)
        except RiseError as error:
            show_error(error)
            status = max(status, 2 if isinstance(error, UsageError) else 1)
            continue
        found[file] = [described(program[name]) for name in program.own]
        if not arguments.json:
            for definition in found[file]:
                _print(definition)
    if arguments.json:
        print(json.dumps(found, indent=2))
    return status


def described(definition: Definition) -> dict[str, Any]:
    """Name, type and constraints as text."""
    constraints = [str(c) for c in definition.constraints]
    return {"name": definition.name, "type": full_type(definition), "constraints": constraints}


def full_type(definition: Definition) -> str:
    """The type with the inferred parameters in front, as a program would state it."""
    type_: Type = definition.body.type
    for parameter in reversed(definition.parameters):
        type_ = Dependent(parameter.name, parameter.kind, type_, parameter.implicit)
    return show_type(type_)


def _print(definition: dict[str, Any]) -> None:
    print(f"{definition['name']} : {definition['type']}")
    if definition["constraints"]:
        print(f"  where {', '.join(definition['constraints'])}")
