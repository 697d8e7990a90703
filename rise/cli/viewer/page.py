"""The page of a derivation and its kernel: one file of HTML with its data, style and script in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

Data = dict[str, Any]
# in a script no text may look like the end of the script, or like a comment of HTML
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(stories: Sequence[Data], kernel: Data | None = None) -> str:
    """The page of a derivation, or of two side by side, and of the kernel that the first one ends in."""
    title = " and ".join(
        f"Derivation of {story['name']}" if not n else story["name"] for n, story in enumerate(stories)
    )
    return Template(_part("page.html")).substitute(
        title=escape(title),
        style=_part("page.css"),
        script=_part("page.js"),
        data=embedded({"stories": list(stories), "kernel": kernel}),
    )


def embedded(data: Data) -> str:
    """The data as JSON that may stand inside of a script of HTML."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return "".join(ESCAPES.get(character, character) for character in text)


def _part(name: str) -> str:
    return files("rise.cli.viewer").joinpath(name).read_text(encoding="utf-8")
