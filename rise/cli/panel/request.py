"""Requests as the worker reads them: one object of JSON on a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rise.data import parsed
from rise.requests import Members, malformed


@dataclass(frozen=True)
class Asked:
    """The definition that a request is about, with the texts that stand for files.

    target: the GPU that kernels are for; this machine's where it is empty
    """

    path: Path
    folder: Path
    texts: tuple[tuple[Path, str], ...]
    name: str
    sizes: tuple[tuple[str, int], ...]
    target: str = ""


def read(line: bytes) -> Members:
    """The request of a line. UsageError R0063 where it is none."""
    try:
        return Members(parsed(line.decode("utf-8")))
    except ValueError as error:
        raise malformed(f"it is no JSON: {error}") from None


def asked(given: Members) -> Asked:
    """The definition that the parameters of a request name."""
    texts = tuple((Path(name), text) for name, text in given.texts("texts"))
    path, folder = Path(given.text("path")), Path(given.text("folder"))
    target = given.text("target") if "target" in given else ""
    return Asked(path, folder, texts, given.text("name"), given.numbers("sizes"), target)
