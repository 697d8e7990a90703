"""Requests as the worker reads them: one object of JSON on a line, of which every part is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rise.data import brief, is_whole, parsed, shown
from rise.errors import UsageError

# the path of a term in a program
Where = tuple[int, ...]
KINDS: Mapping[type, str] = {str: "a text", dict: "an object", list: "a list", int: "a whole number"}


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


class Members:
    """The members of an object, each of a kind. UsageError R0063 names the one that is wrong."""

    def __init__(self, found: Any, what: str) -> None:
        if not isinstance(found, dict):
            raise malformed(f"{what} is {shown(found)}, and should be an object")
        self._found = found
        self._what = what

    def __contains__(self, name: str) -> bool:
        return self._found.get(name) is not None

    def text(self, name: str) -> str:
        return str(self._of(name, str))

    def number(self, name: str, least: int = 0) -> int:
        value = self._of(name, int)
        if not is_whole(value) or value < least:
            raise malformed(f"`{name}` is {shown(value)}, and should be a whole number from {least} on")
        return int(value)

    def members(self, name: str) -> Members:
        return Members(self._of(name, dict), f"`{name}`")

    def texts(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object of texts."""
        return tuple((key, self.members(name).text(key)) for key in self._of(name, dict))

    def numbers(self, name: str) -> tuple[tuple[str, int], ...]:
        """An object of natural numbers."""
        return tuple((key, self.members(name).number(key)) for key in self._of(name, dict))

    def path(self, name: str) -> Where:
        found = self._of(name, list)
        if not all(is_whole(index) for index in found):
            raise malformed(f"`{name}` is {shown(found)}, and should be a list of whole numbers")
        return tuple(found)

    def value(self, name: str) -> Any:
        return self._found.get(name)

    def _of(self, name: str, kind: type) -> Any:
        if name not in self._found:
            raise malformed(f"{self._what} has no `{name}`")
        found = self._found[name]
        if not isinstance(found, kind):
            raise malformed(f"`{brief(name)}` is {shown(found)}, and should be {KINDS[kind]}")
        return found


def read(line: bytes) -> Members:
    """The request of a line. UsageError R0063 where it is none."""
    try:
        return Members(parsed(line.decode("utf-8")), "the request")
    except ValueError as error:
        raise malformed(f"it is no JSON: {error}") from None


def asked(given: Members) -> Asked:
    """The definition that the parameters of a request name."""
    texts = tuple((Path(name), text) for name, text in given.texts("texts"))
    path, folder = Path(given.text("path")), Path(given.text("folder"))
    target = given.text("target") if "target" in given else ""
    return Asked(path, folder, texts, given.text("name"), given.numbers("sizes"), target)


def malformed(reason: str) -> UsageError:
    return UsageError("R0063", f"this is no request of the panel: {reason}")
