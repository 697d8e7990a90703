"""`rise completion`: a script by which a shell completes commands, options, files and known names."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from rise.cli.arguments import parser
from rise.errors import UsageError
from rise.targets import TARGETS


def run(arguments: argparse.Namespace) -> int:
    """Prints the script. UsageError R0041 where the extra is not installed."""
    if find_spec("shtab") is None:
        hint = "install the extra: pip install 'rise-lang[completion]'"
        raise UsageError("R0041", "completion needs shtab", None, hint)
    import shtab

    made = parser()
    for action, command in _actions(made):
        if action.metavar in ("FILE", "PATH", "F.cu", "IN.npz", "F.json", "F.jsonl", "F.html", "TABLE"):
            action.complete = shtab.FILE
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY
        elif (names := _names(action, command)) is not None:
            action.choices = list(names)
    print(shtab.complete(made, arguments.shell))
    return 0


def _actions(made: argparse.ArgumentParser) -> Iterator[tuple[Any, str]]:
    """The options and arguments of all commands, each with the name of its command."""
    for subparsers in made._actions:
        if isinstance(subparsers, argparse._SubParsersAction):
            for name, command in subparsers.choices.items():
                yield from ((action, name) for action in command._actions)


def _names(action: argparse.Action, command: str) -> Iterable[str] | None:
    """What an argument may be, as the registries say."""
    if action.dest == "strategy" or (command, action.dest) == ("strategies", "name"):
        from strategies.registry import MODULES

        return MODULES
    if (command, action.dest) == ("search", "rules"):
        from rewrites.library import modules
        from strategies.guided.rules import NAMES

        return (*NAMES, *modules())
    if action.dest == "target":
        return TARGETS
    if (command, action.dest) == ("primitives", "name"):
        from rise.primitives.declare import REGISTRY

        return sorted(REGISTRY)
    if (command, action.dest) == ("explain", "name"):
        from rise.cli.explanations import EXPLANATIONS

        return EXPLANATIONS
    return None
