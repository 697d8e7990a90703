"""What there is to say of the primitives, read from their declarations: for a terminal, and for docs/."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rise.declaration import Declaration
from rise.primitives.declare import REGISTRY

Item = dict[str, Any]

HEADER = """\
# Primitives

Written by `rise primitives --markdown`, from the declarations in `rise/primitives/`.

Parameters in braces are inferred, those in parentheses are given; one that has a default may be left out.
"""


def items() -> list[Item]:
    """One item a primitive, in the order of declaration, those of a group together."""
    groups = list(dict.fromkeys(d.group for d in REGISTRY.values()))
    return [_item(d) for d in sorted(REGISTRY.values(), key=lambda d: groups.index(d.group))]


def _item(declaration: Declaration) -> Item:
    expression, value = declaration.example
    return {
        "name": declaration.name,
        "group": declaration.group,
        "signature": declaration.signature,
        "meaning": declaration.meaning,
        "infix": declaration.infix,
        "defaults": {name: str(value) for name, value in declaration.defaults},
        "lowers": declaration.lowers,
        "example": expression,
        "value": value,
    }


def _notes(item: Item) -> Iterator[str]:
    """What not every primitive has, a sentence each."""
    if item["infix"]:
        yield f"As an operator: `{item['infix']}`."
    for name, value in item["defaults"].items():
        yield f"Without {name}, it is `{value}`."
    if item["lowers"]:
        yield f"A way to execute `{item['lowers']}`."


def _signed(item: Item) -> str:
    """`name : scheme`; of a family `name(n) : scheme`."""
    is_family = item["signature"].startswith("(") and " : " in item["signature"]
    return f"{item['name']}{'' if is_family else ' : '}{item['signature']}"


def in_full(item: Item) -> str:
    """Everything about one primitive, for a terminal."""
    lines = [item["meaning"], *_notes(item), f"{item['example']} = {item['value']}"]
    return "\n    ".join([_signed(item), *lines])


def listed(all_items: list[Item]) -> str:
    """Name and scheme of each, grouped by the module that declares them."""
    blocks = []
    for group, members in groupby(all_items, key=lambda item: str(item["group"])):
        blocks.append("\n".join([f"{group}: {_purpose(group)}", *(f"    {_signed(m)}" for m in members)]))
    return "\n\n".join(blocks)


def markdown() -> str:
    """The reference page docs/primitives.md."""
    parts = [HEADER]
    for group, members in groupby(items(), key=lambda item: str(item["group"])):
        parts.append(f"## {group}\n\n{_purpose(group)}\n")
        parts += [_section(item) for item in members]
    return "\n".join(parts)


def _section(item: Item) -> str:
    text = "\n".join([item["meaning"], *_notes(item)])
    example = f"{item['example']}\n// {item['value']}"
    return f"### {item['name']}\n\n```\n{_signed(item)}\n```\n\n{text}\n\n```rise\n{example}\n```\n"


def _purpose(group: str) -> str:
    """The first line of the module's docstring."""
    documentation = sys.modules[f"rise.primitives.{group}"].__doc__ or ""
    return documentation.strip().split("\n\n")[0].replace("\n", " ")
