"""Docstrings of this project as Sphinx reads them.

A paragraph of lines `name: meaning` becomes a list of parameters, `code` becomes a literal, and what is
indented by four spaces a block of code.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

NAMED = re.compile(r"^([\w*]+(?:, [\w*]+)*):( +)(\S.*)$")
CODE = re.compile(r"(`+)([^`\n]+)\1")


def adapt(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Called by Sphinx with the lines of each docstring."""
    lines[:] = adapted(lines)


def adapted(lines: list[str]) -> list[str]:
    paragraphs = [list(group) for blank, group in groupby(lines, lambda line: not line.strip()) if not blank]
    made: list[str] = []
    for paragraph in paragraphs:
        made += [*_paragraph(paragraph), ""]
    return made


def _paragraph(lines: list[str]) -> list[str]:
    if all(line.startswith("    ") for line in lines):
        return ["::", "", *lines]
    if NAMED.match(lines[0]):
        return [made for line in lines for made in _field(line)]
    return [_text(line) for line in lines]


def _field(line: str) -> list[str]:
    """A line of a list: a new name, or more on the one before; one without indentation is behind the list."""
    if found := NAMED.match(line):
        return [f":param {found[1]}: {_text(found[3])}"]
    return [_text(line)] if line.startswith(" ") else ["", _text(line)]


def _text(line: str) -> str:
    """Backticks are code; asterisks, bars and underscores outside of it are themselves."""
    parts: list[str] = []
    done = 0
    for found in CODE.finditer(line):
        parts += [_escaped(line[done : found.start()]), f"``{found[2].strip()}``"]
        done = found.end()
        if done < len(line) and line[done].isalnum():
            parts.append("\\ ")
    return "".join([*parts, _escaped(line[done:])])


def _escaped(text: str) -> str:
    return re.sub(r"([*|\\]|_(?!\w))", r"\\\1", text)
