"""Reading pages of documentation: their blocks, the commands that they show, and what these print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path


def blocks(page: Path, language: str) -> list[str]:
    """The contents of all fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def files(page: Path) -> Iterator[tuple[str, str]]:
    """Names and contents of files: a block of code belongs to the last file name in the text before it."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"```(rise|python)\n(.*?)```", text, re.DOTALL):
        suffix = {"rise": "rise", "python": "py"}[found[1]]
        before = text[: found.start()].rpartition("```")[2]
        yield re.findall(rf"`([\w.]+\.{suffix})`", before)[-1], found[2]


def calls(page: Path, program: str = "rise") -> Iterator[tuple[str, str]]:
    """The commands that a page shows, each with what it prints."""
    for block in blocks(page, "console"):
        for command, expected in re.findall(
            rf"^\$ {program} ?((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE
        ):
            yield command.replace("\\\n", ""), expected


def assert_printed(expected: str, printed: str) -> None:
    """`…` stands for lines, or a part of a line, that are left out."""
    parts = (re.escape(part).replace("…", ".*") for part in expected.split("…\n"))
    assert re.fullmatch("(?:.*\n)*?".join(parts), printed), f"{expected}\nis not what was printed:\n{printed}"
