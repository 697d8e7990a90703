"""Requests of other programs as data of JSON, every part of which is checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rise.data import brief, is_whole, shown
from rise.errors import UsageError

KINDS: Mapping[type, str] = {str: "a text", dict: "an object", list: "a list", int: "a whole number"}
MALFORMED = "R0063"


class Members:
    """The members of an object, each of a kind. UsageError R0063 names the one that is wrong."""

    def __init__(self, found: Any, what: str = "the request") -> None:
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
            raise malformed(
                f"`{brief(name)}` is {shown(value)}, and should be a whole number from {least} on"
            )
        return int(value)

    def members(self, name: str) -> Members:
        return Members(self._of(name, dict), f"`{name}`")

    def texts(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object of texts."""
        return tuple((key, self.members(name).text(key)) for key in self._of(name, dict))

    def numbers(self, name: str) -> tuple[tuple[str, int], ...]:
        """An object of natural numbers."""
        return tuple((key, self.members(name).number(key)) for key in self._of(name, dict))

    def path(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
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


def malformed(reason: str) -> UsageError:
    return UsageError(MALFORMED, f"this is no request of the panel: {reason}")
