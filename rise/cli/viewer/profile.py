"""A profile of kernels as a file of JSON, as docs/viewer.md describes it, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rise.data import is_whole, parsed, shown
from rise.errors import UsageError

FORMAT, VERSION = "rise profile", 1


@dataclass(frozen=True)
class Profile:
    """What was measured of a kernel: its time, figures by name, and samples by line of the CUDA text."""

    microseconds: float | None
    metrics: Mapping[str, float | str]
    lines: Mapping[int, float]


def read(text: str) -> dict[str, Profile]:
    """The profiles of kernels, by name. UsageError R0060 where the text is none."""
    try:
        found = parsed(text)
        if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != VERSION:
            raise ValueError(f"its format is not {FORMAT!r}, version {VERSION}")
        return {name: _profile(each) for name, each in _object(found, "kernels").items()}
    except ValueError as error:
        hint = "docs/viewer.md shows one"
        raise UsageError("R0060", f"this is not a profile: {error}", None, hint) from None


def _profile(found: Any) -> Profile:
    if not isinstance(found, dict):
        raise ValueError(f"a kernel is {shown(found)}, and should be an object")
    time, metrics, lines = found.get("microseconds"), _object(found, "metrics"), _object(found, "lines")
    if time is not None and not _is_number(time):
        raise ValueError(f"microseconds are {shown(time)}")
    for name, value in metrics.items():
        if not (_is_number(value) or isinstance(value, str)):
            raise ValueError(f"the metric {shown(name)} is {shown(value)}")
    for line, samples in lines.items():
        if not line.isdigit() or not _is_number(samples):
            raise ValueError(f"line {shown(line)} has {shown(samples)} samples")
    return Profile(time, metrics, {int(line): samples for line, samples in lines.items()})


def _object(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` is {shown(value)}, and should be an object")
    return value


def _is_number(value: Any) -> bool:
    return (is_whole(value) or isinstance(value, float)) and value >= 0
