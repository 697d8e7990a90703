"""What was found to be best, remembered: one line of JSON for a program at its sizes and a target.

Three sources, each of which wins over the one before: what ships with the package, the user's own file, a
file that is named. In one file the last line about a program and a target counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from rise import files
from rise.data import brief, is_whole, parsed, shown
from rise.errors import UsageError
from strategies.search.space import Point

VERSION = 1
SHIPPED = Path(__file__).parent / "remembered.jsonl"
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "sizes": dict, "parameters": dict, "microseconds": (int, float), "spread": (int, float),
}  # fmt: skip


@dataclass(frozen=True)
class Record:
    """The winner of a search.

    program:      its identity, with the sizes in it (`identity`); name, sizes: for people
    parameters:   of the strategy, as `--set` takes them
    microseconds: the median; spread: the interquartile range over it
    compiler:     a digest of the compiler that it was measured with
    """

    program: str
    name: str
    sizes: Mapping[str, int]
    target: str
    gpu: str
    strategy: str
    parameters: Mapping[str, str]
    microseconds: float
    spread: float
    compiler: str
    date: str
    version: int = VERSION

    @property
    def line(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":")) + "\n"

    def __str__(self) -> str:
        point = " ".join([self.strategy, *(f"{name}={value}" for name, value in self.parameters.items())])
        return f"{point} ({self.microseconds:.1f} µs on {self.gpu}, {self.date[:10]})"


def user_file() -> Path:
    """`$XDG_CONFIG_HOME/rise-lang/tuned.jsonl`."""
    chosen = os.environ.get("XDG_CONFIG_HOME")
    return (Path(chosen) if chosen else Path("~/.config").expanduser()) / "rise-lang" / "tuned.jsonl"


def written_to(named: str | Path | None = None) -> Path:
    """The file that new records go to: the one that is named, or the user's own."""
    return Path(named) if named else user_file()


def sources(named: str | Path | None = None) -> list[Path]:
    """The files that there are, the strongest last. R0001 where the one that is named is not there."""
    if named and not files.is_file(Path(named)):
        raise UsageError(
            "R0001", f"cannot read {named}: there is no such file", hint="`rise tune` writes one"
        )
    return [path for path in (SHIPPED, user_file(), *([Path(named)] if named else [])) if files.is_file(path)]


def lookup(program: str, target: str, named: str | Path | None = None) -> Record | None:
    """What is remembered of a program, by its identity, for a target."""
    found = [r for path in sources(named) for r in read(path) if (r.program, r.target) == (program, target)]
    return found[-1] if found else None


def append(path: Path, record: Record) -> None:
    """One more line, all of it or nothing: others may append at the same time. UsageError R0004."""
    files.append(path, record.line)


def read(path: Path) -> list[Record]:
    """All records of a file. UsageError R0033, with file and line, where a line is none."""
    return list(_read(path, files.read_text(path)))


@lru_cache(maxsize=8)
def _read(path: Path, text: str) -> tuple[Record, ...]:
    """The same of its text, which a process asks for with every kernel."""
    return tuple(_records(path, text))


def _records(path: Path, text: str) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _record(parsed(line))
        except ValueError as error:
            raise UsageError(
                "R0033", f"{path}:{number}: this is not a record: {error}", hint="delete the line"
            ) from None


def _record(content: Any) -> Record:
    """ValueError where it has another form."""
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    version = content.get("version")
    if version != VERSION or not is_whole(version):
        raise ValueError(f"it is of version {shown(version)}, and this compiler reads {VERSION}")
    names = [field.name for field in fields(Record)]
    for name in names:
        value = content.get(name)
        if name != "version" and (isinstance(value, bool) or not isinstance(value, KINDS.get(name, str))):
            raise ValueError(f"`{name}` is {shown(value)}")
    for name, right in (("sizes", is_whole), ("parameters", lambda value: isinstance(value, str))):
        for key, value in content[name].items():
            if not right(value):
                raise ValueError(f"`{brief(key)}` of `{name}` is {shown(value)}")
    for name in content:
        if name not in names:
            raise ValueError(f"`{brief(name)}` means nothing here")
    return Record(**content)


def point_of(record: Record) -> Point:
    """Its strategy with its parameters, read as `--set` would."""
    return Point.read(record.strategy, record.parameters)
