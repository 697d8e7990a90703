"""The definition that a command works on; those that there are, where none is named."""

from __future__ import annotations

import argparse

from rise.check.program import MOST_LISTED, Program, load
from rise.errors import ScopeError, UsageError
from rise.expr import Definition
from rise.pretty import full_type
from rise.source import Note


def named(arguments: argparse.Namespace) -> Definition:
    """The definition NAME of FILE. UsageError R0061 without NAME, ScopeError R0209 for an unknown one."""
    program = load(arguments.file, arguments.import_path)
    if arguments.name is None:
        raise unnamed(arguments, program)
    if "=" in arguments.name and arguments.name.partition("=")[0].isidentifier():
        message = f"there is no definition `{arguments.name}`"
        raise ScopeError("R0209", message, hint=f"sizes are given by `--size {arguments.name}`")
    return program[arguments.name]


def unnamed(arguments: argparse.Namespace, program: Program) -> UsageError:
    """The mistake of a command without NAME: its notes are the definitions of the file, with their types."""
    message = f"`rise {arguments.command}` needs the name of a definition"
    if not program.own:
        return UsageError("R0061", message, hint=f"{arguments.file} defines nothing itself")
    shown = [f"{name} : {full_type(program[name])}" for name in program.own[:MOST_LISTED]]
    more = len(program.own) - MOST_LISTED
    rest = [f"{more} more, which `rise check {arguments.file}` lists"] if more > 0 else []
    hint = f"`rise {arguments.command} {arguments.file} {program.own[0]}`"
    return UsageError("R0061", message, None, hint, notes=tuple(map(Note, [*shown, *rest])))
