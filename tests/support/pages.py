"""Reading pages of documentation: their blocks, the commands that they show, and what these print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def blocks(page: Path, language: str) -> list[str]:
    """The contents of all fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@dataclass(frozen=True)
class File:
    """A file that a page shows; its name is the last one in the text before the block."""

    name: str
    content: str


@dataclass(frozen=True)
class Command:
    """A command that a page shows, and what it prints."""

    text: str
    expected: str


SUFFIXES = {"rise": "rise", "python": "py"}
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def in_order(page: Path) -> Iterator[File | Command]:
    """The files and the commands of a page, one after the other."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"```(rise|python|console)\n(.*?)```", text, re.DOTALL):
        if found[1] == "console":
            for command, expected in COMMAND.findall(found[2]):
                yield Command(command.replace("\\\n", ""), expected)
        else:
            before = text[: found.start()].rpartition("```")[2]
            yield File(re.findall(rf"`([\w.]+\.{SUFFIXES[found[1]]})`", before)[-1], found[2])


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
