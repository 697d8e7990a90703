"""The page of rules in full, from what `rise rules NAME` prints."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.library import modules
from rise.cli.rules import LEGEND, escaped, in_full, items, purpose


def page() -> str:
    return "\n\n".join([
        "# Rules in full",
        "The [list of rules](../rules.md) has a line for each. Here is what `rise rules NAME` prints.",
        LEGEND,
        *(part for name in modules() for part in section(name)),
    ]) + "\n"  # fmt: skip


def section(file: str) -> Iterator[str]:
    """The rules of a file."""
    yield f"## {file}"
    yield purpose(file)
    for item in items():
        if item["group"] == file:
            _, *lines = in_full(item).splitlines()
            shown = "\n".join(line.removeprefix("    ") for line in lines)
            yield f"### {escaped(item['name'])}"
            yield f"```text\n{shown}\n```"
