"""The sides of the library's rules as earlier runs have checked them: reading one takes a tenth of the time.

They are kept beside the bytecode (`rise.kept`), and hold for one state of the sources that say what the texts
of rules mean; a rule is checked again if its text has changed, or how primitives are declared.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from rise.declaration import Declaration
from rise.kept import beside, keep, kept
from rise.primitives.declare import REGISTRY, primitive

T = TypeVar("T")
ROOT = Path(__file__).parents[1]
PACKAGES = ("rise", "rewrites")  # whose sources say what a text means
SOURCES = (".py", ".lark", ".rise")


def once(name: str, text: object, check: Callable[[], T]) -> T:
    """What checking a rule gives, or gave in an earlier run for the same text."""
    key = repr((text, _primitives()))
    before, content = _known().get(name, ("", b""))
    if before == key:
        with suppress(Exception):  # what cannot be read is made again
            found: T = read(content)
            return found
    made = check()
    _new()[name] = key, made
    return made


def _primitives() -> str:
    """A digest of how they are declared. A name of a rule that is none of a primitive stands for any term."""
    declared = (f"{name} {each.signature} {each.defaults}" for name, each in sorted(REGISTRY.items()))
    return hashlib.sha256("\n".join(declared).encode()).hexdigest()


# --- between runs ---------------------------------------------------------------------------------------


def _kept() -> Mapping[str, tuple[str, bytes]]:
    """By the names of rules, what they were made of, and the sides, which are read if they are needed."""
    content = kept(_place())
    with suppress(Exception):
        sources, found = pickle.loads(content or b"")
        if sources == _sources():
            return found  # type: ignore[no-any-return]  # as `_every` has written it
    return {}


_known = cache(_kept)


@cache
def _new() -> dict[str, tuple[str, Any]]:
    """What this run has checked, which is kept when it ends."""
    atexit.register(keep, _place(), _every)
    return {}


def _every() -> bytes:
    """What is kept, by runs that have ended meanwhile, too, and what is new."""
    every = {**_kept()}
    for name, (key, sides) in _new().items():
        with suppress(Exception):  # of what cannot be written, the next run makes its own
            every[name] = key, written(sides)
    return pickle.dumps((_sources(), every))


def _place() -> Path:
    return beside(__file__, f"rules-{sys.implementation.cache_tag}.checked")


@cache
def _sources() -> str:
    """A digest of what tells that bytecode is out of date, too: when sources changed, and their sizes."""
    found = [sys.version]
    for package in PACKAGES:
        found += sorted(f"{path} {at.st_mtime_ns} {at.st_size}" for path, at in _files(str(ROOT / package)))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SOURCES):
                yield entry.path, entry.stat()
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)


# --- as bytes -------------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Primitives by their names: their denotations are functions."""

    def persistent_id(self, found: Any) -> Any:
        return (found.name, found.given) if isinstance(found, Declaration) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, which: Any) -> Declaration:
        name, given = which
        return primitive(name).member(*given) if given else primitive(name)


def written(sides: object) -> bytes:
    into = BytesIO()
    _Pickler(into, pickle.HIGHEST_PROTOCOL).dump(sides)
    return into.getvalue()


def read(content: bytes) -> Any:
    return _Unpickler(BytesIO(content)).load()
