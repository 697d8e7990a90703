"""`rise primitives`, `rules`, `strategies`, `explain`: what there is, read from the declarations."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rise.errors import UsageError
from rise.progress import stepwise
from rise.suggest import suggestion

Item = dict[str, Any]
Items = Mapping[str, Callable[[], Item]]  # by name; made when asked for, as a rule's item takes milliseconds
Show = Callable[[list[Item]], str]


def run(arguments: argparse.Namespace) -> int:
    """Lists everything, or shows one item."""
    if getattr(arguments, "markdown", False):
        from rise.primitives.reference import markdown

        print(markdown(), end="")
        return 0
    if getattr(arguments, "prove", False):
        from rise.cli.proving import run as prove

        return prove(arguments)
    items, show = _CATALOGUES[arguments.command](arguments.name or "")
    names = items if arguments.name is None else [_find(arguments.command, arguments.name, items)]
    chosen = [items[name]() for name in stepwise("reading", names, len(names))]
    if arguments.json:
        print(json.dumps(chosen, indent=2))
    else:
        print(show(chosen))
    return 0


def _find(command: str, name: str, known: Items) -> str:
    wanted = name.upper() if command == "explain" else name
    if wanted not in known:
        hint = suggestion(wanted, known) or f"`rise {command}` lists what there is"
        raise UsageError("R0003", f"`rise {command}` knows no `{name}`", None, hint)
    return wanted


def _made(items: Iterable[Item]) -> Items:
    """Those that take no time."""
    return {item["name"]: partial(dict, item) for item in items}


# --- catalogues -------------------------------------------------------------------------------------


def _primitives(_: str) -> tuple[Items, Show]:
    """One in full, several by their names and schemes."""
    from rise.primitives.reference import in_full, items, listed

    return _made(items()), lambda chosen: in_full(chosen[0]) if len(chosen) == 1 else listed(chosen)


def _rules(_: str) -> tuple[Items, Show]:
    """One in full, several by their names and equations."""
    from rewrites.library import rules
    from rise.cli.rules import in_full, item, listed

    items = {name: partial(item, rule) for name, rule in rules().items()}
    return items, lambda chosen: in_full(chosen[0]) if len(chosen) == 1 else listed(chosen)


def _strategies(own: str) -> tuple[Items, Show]:
    """All of ours, or one of a user's own, `F.py:NAME`."""
    from strategies.registry import catalogue, find, show_value

    items: list[Item] = [
        {
            "name": entry.name,
            "meaning": entry.meaning,
            "parameters": {
                s.name: {
                    "type": s.type_name,
                    "default": show_value(s.default),
                    "meaning": s.meaning,
                    "tried": [show_value(value) for value in s.tried],
                }
                for s in entry.settings
            },
        }
        for entry in ([find(own)] if ":" in own else catalogue())
    ]
    return _made(items), lambda chosen: "\n".join(_show_strategy(item, len(chosen) == 1) for item in chosen)


def _show_strategy(item: Item, in_full: bool) -> str:
    """Name, meaning and parameters, with their defaults; in full also what each parameter means."""
    lines = [item["name"], f"    {item['meaning']}"]
    for name, parameter in item["parameters"].items():
        values = "true or false" if in_full and parameter["type"] == "bool" else parameter["type"]
        lines.append(f"    --set {name}={parameter['default']}   ({values})")
        if in_full and parameter["meaning"]:
            lines += [f"        {line}" for line in textwrap.wrap(parameter["meaning"], 88)]
        if in_full and parameter["tried"]:
            lines.append(f"        `rise tune` tries {' '.join(v or '(none)' for v in parameter['tried'])}")
    return "\n".join(lines)


def _explanations(_: str) -> tuple[Items, Show]:
    """One in full, with an example; several by their first lines."""
    from rise.cli.explanations import EXPLANATIONS
    from rise.cli.mistakes import EXAMPLES, explained

    items: list[Item] = [{"name": code, "meaning": meaning} for code, meaning in EXPLANATIONS.items()]
    for item in items:
        if example := EXAMPLES.get(item["name"]):
            item |= {"wrong": example.wrong, "right": example.right}

    def show(chosen: list[Item]) -> str:
        if len(chosen) == 1:
            return explained(chosen[0]["name"], chosen[0]["meaning"])
        return "\n".join(f"{item['name']}: {item['meaning']}" for item in chosen)

    return _made(items), show


_CATALOGUES: Mapping[str, Callable[[str], tuple[Items, Show]]] = {
    "primitives": _primitives,
    "rules": _rules,
    "strategies": _strategies,
    "explain": _explanations,
}
