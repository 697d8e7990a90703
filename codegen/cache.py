"""A cache of plain files named by their content: compiled kernels, for the GPU and the emulator.

An entry is written beside its place and moved there in one step, so any number of processes may
fill the cache at once, and one that dies half-way leaves nothing that is taken for an entry.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from shutil import rmtree


def cached(key_parts: Sequence[str | bytes], suffix: str, build: Callable[[Path], None]) -> Path:
    """The file that `build` makes from what the key says; built only if it is not there yet.

    key_parts: everything the content depends on: source text, flags, compiler version
    suffix:    how the file name ends, `.cubin`
    build:     writes the file, at the path it is given
    """
    name = digest(key_parts) + suffix
    directory = cache_directory()
    if (directory / name).is_file():
        return directory / name
    try:
        temporary = reserve(directory, suffix)
    except OSError:
        directory = fallback_directory()
        if (directory / name).is_file():
            return directory / name
        temporary = reserve(directory, suffix)
    return complete(temporary, directory / name, build)


def digest(key_parts: Sequence[str | bytes]) -> str:
    """A hash of the parts and of where each ends: `("ab", "c")` and `("a", "bc")` differ."""
    state = hashlib.sha256()
    for part in key_parts:
        content = part.encode("utf-8") if isinstance(part, str) else part
        kind = b"s" if isinstance(part, str) else b"b"
        state.update(kind + len(content).to_bytes(8, "little") + content)
    return state.hexdigest()


def cache_directory() -> Path:
    """Where entries are kept: `RISE_CACHE_DIR`, or `rise-lang` in the user's cache."""
    chosen = os.environ.get("RISE_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path("~/.cache").expanduser()) / "rise-lang"


@cache
def fallback_directory() -> Path:
    """For this process only, and private to its user, when the cache cannot be written."""
    directory = Path(tempfile.mkdtemp(prefix="rise-lang-"))
    atexit.register(rmtree, directory, ignore_errors=True)
    return directory


def reserve(directory: Path, suffix: str) -> Path:
    """A new empty file beside the entries, with a name that no entry has."""
    directory.mkdir(parents=True, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix=".partial-", suffix=suffix, dir=directory)
    os.close(handle)
    return Path(path)


def complete(temporary: Path, entry: Path, build: Callable[[Path], None]) -> Path:
    """Builds, and puts the result in its place; a failed build leaves nothing behind."""
    try:
        build(temporary)
        os.replace(temporary, entry)
    finally:
        temporary.unlink(missing_ok=True)
    return entry
