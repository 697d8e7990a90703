"""What a guided search found, as a Python module: a strategy that repeats it without searching."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from rewrites.library import places
from strategies.core import Strategy

# where the functions are that a schedule may call
MODULES = (
    "strategies.core",
    "strategies.places",
    "strategies.loops.nests",
    "strategies.loops.tiling",
    "strategies.loops.vectorise",
    "strategies.guided.moves",
    "strategies.complete",
)
# a name that is not the name of an argument, nor behind a point
NAME = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?!\w*=)")


def module_of(moves: tuple[Strategy, ...], meaning: str, lower: bool = False) -> str:
    """The text of a module with the strategy `found`, one line for each step of the search.

    lower: whether `found` also executes the loops that are left one step after the other, and checks that
           the program is complete
    """
    lines = [f"        {move!r}," for move in moves]
    opening, closing = "found = in_inputs(\n    seq(\n", "    )\n)\n"
    if lower:
        lines.append("        lowered(),")
        opening, closing = "found = complete(\n    in_inputs(\n        seq(\n", "        )\n    )\n)\n"
        lines = [f"    {line}" for line in lines]
    body = opening + "".join(f"{line}\n" for line in lines) + closing
    said = meaning.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{said}"""\n\n{"".join(imports(body))}\n{body}'


def imports(code: str) -> Iterator[str]:
    """The lines that import the rules and functions of a schedule."""
    found: dict[str, set[str]] = {}
    rules = {held.partition("[")[0]: f"rewrites.{module}" for module, held in places().values()}
    for name in set(NAME.findall(code)) - {"found"}:
        module = rules.get(name) or _defined_in(name)
        if module is not None:
            found.setdefault(module, set()).add(name)
    for module in sorted(found):
        yield f"from {module} import {', '.join(sorted(found[module]))}\n"


def _defined_in(name: str) -> str | None:
    """The module that has a function or a strategy of a name: what others import stands before them."""
    return next((m for m in MODULES if callable(getattr(import_module(m), name, None))), None)
