"""`rise primitives`, `rules`, `strategies`, `explain`: what there is, read from the declarations."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rise.errors import UsageError
from rise.suggest import suggestion

Item = dict[str, Any]


def run(arguments: argparse.Namespace) -> int:
    """Lists everything, or shows one item."""
    items, show = _CATALOGUES[arguments.command]()
    chosen = items if arguments.name is None else [_find(arguments.command, arguments.name, items)]
    if getattr(arguments, "json", False):
        print(json.dumps(chosen, indent=2))
    else:
        for item in chosen:
            print(show(item))
    return 0


def _find(command: str, name: str, items: list[Item]) -> Item:
    known: Mapping[str, Item] = {item["name"]: item for item in items}
    wanted = name.upper() if command == "explain" else name
    if wanted not in known:
        hint = suggestion(wanted, known) or f"`rise {command}` lists what there is"
        raise UsageError("R0003", f"`rise {command}` knows no `{name}`", None, hint)
    return known[wanted]


# --- catalogues -------------------------------------------------------------------------------------


def _primitives() -> tuple[list[Item], Callable[[Item], str]]:
    from rise.primitives.declare import REGISTRY, lookup

    lookup("map")  # imports all that declares
    items = [
        {
            "name": d.name,
            "signature": " ".join(d.signature.split()),
            "meaning": d.meaning,
            "infix": d.infix,
            "lowers": d.lowers,
        }
        for d in REGISTRY.values()
    ]
    return items, _show_primitive


def _show_primitive(item: Item) -> str:
    sign = f" (`{item['infix']}`)" if item["infix"] else ""
    lowers = f" A way to execute `{item['lowers']}`." if item["lowers"] else ""
    return f"{item['name']}{sign} : {item['signature']}\n    {item['meaning']}{lowers}"


def _rules() -> tuple[list[Item], Callable[[Item], str]]:
    import strategies.tensor_core  # noqa: F401  # declares every rule that it uses
    from rewrites.rule import COMPUTED, RULES

    items: list[Item] = [
        {
            "name": r.name,
            "left": r.left,
            "right": r.right,
            "sizes": list(r.sizes),
            "meaning": r.meaning,
            "exact": r.exact,
        }
        for r in RULES.values()
    ]
    items += [
        {"name": c.name, "equation": c.equation, "meaning": c.meaning, "exact": c.exact}
        for c in COMPUTED.values()
    ]
    return items, _show_rule


def _show_rule(item: Item) -> str:
    lines = [item["name"] + (f"  (parameters: {', '.join(item['sizes'])})" if item.get("sizes") else "")]
    if "equation" in item:
        lines.append(f"    {item['equation']}")
    else:
        lines += [f"    {' '.join(item['left'].split())}", f"  → {' '.join(item['right'].split())}"]
    if item["meaning"]:
        lines.append(f"    {item['meaning']}")
    if not item["exact"]:
        lines.append("    Changes the order of sums: floats may be rounded differently.")
    return "\n".join(lines)


def _strategies() -> tuple[list[Item], Callable[[Item], str]]:
    from strategies.registry import catalogue, show_value

    items: list[Item] = [
        {
            "name": entry.name,
            "meaning": entry.meaning,
            "parameters": {
                s.name: {"type": s.type_name, "default": show_value(s.default)} for s in entry.settings
            },
        }
        for entry in catalogue()
    ]
    return items, _show_strategy


def _show_strategy(item: Item) -> str:
    parameters: Iterable[str] = (
        f"    --set {name}={p['default']}   ({p['type']})" for name, p in item["parameters"].items()
    )
    return "\n".join([item["name"], f"    {item['meaning']}", *parameters])


def _explanations() -> tuple[list[Item], Callable[[Item], str]]:
    from rise.cli.explanations import EXPLANATIONS

    items = [{"name": code, "meaning": meaning} for code, meaning in EXPLANATIONS.items()]
    return items, lambda item: f"{item['name']}: {item['meaning']}"


_CATALOGUES: Mapping[str, Callable[[], tuple[list[Item], Callable[[Item], str]]]] = {
    "primitives": _primitives,
    "rules": _rules,
    "strategies": _strategies,
    "explain": _explanations,
}
