"""A cache of plain files, keyed by everything they are made from: compiled kernels for GPU and emulator.

An entry is two files. One has the content; the other, named by the key, has the SHA-256 of that content,
which names the first. Both are written next to their place and moved there atomically, so any number of
processes may fill the cache at once, and a process that dies half-way leaves nothing that looks like an
entry. An entry is used only if

* its content matches its checksum: an entry that is truncated, changed or missing is built again, and
* only this user or the superuser can have written it: files and folder belong to one of them, and nobody
  else may write to them. Otherwise the entry is left alone, and a folder private to this process is used.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree

from rise.errors import CompilationError
from rise.files import is_ours

Build = Callable[[Path], None]
LABEL = re.compile(rb"([0-9a-f]{64}) ([0-9]{1,15})\n")  # the checksum, and the number of bytes


def cached(key_parts: Sequence[str | bytes], suffix: str, build: Build) -> Path:
    """The file that `build` makes from the contents of the key; built only if there is no valid entry.

    key_parts: everything the content depends on: source text, flags, compiler version
    suffix:    of the file name, such as `.cubin`
    build:     writes the file to the given path. CompilationError R0810 if it writes nothing
    """
    key = digest(key_parts)
    directory = cache_directory()
    if not _is_trusted(directory):
        directory = fallback_directory()
    found = fetch(directory, key, suffix)
    if found is not None:
        return found
    try:
        return store(directory, key, suffix, build)
    except OSError:
        private = fallback_directory()
        return fetch(private, key, suffix) or store(private, key, suffix, build)


def digest(key_parts: Sequence[str | bytes]) -> str:
    """A hash of the parts and their boundaries: `("ab", "c")` and `("a", "bc")` differ."""
    state = hashlib.sha256()
    for part in key_parts:
        content = part.encode("utf-8") if isinstance(part, str) else part
        kind = b"s" if isinstance(part, str) else b"b"
        state.update(kind + len(content).to_bytes(8, "little") + content)
    return state.hexdigest()


# --- folders --------------------------------------------------------------------------------------------


def cache_directory() -> Path:
    """The directory of entries: `RISE_CACHE_DIR`, or `rise-lang` in the user's cache."""
    chosen = os.environ.get("RISE_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path("~/.cache").expanduser()) / "rise-lang"


@cache
def fallback_directory() -> Path:
    """A directory of this process only, private to its user, if the cache is not writable or trusted."""
    directory = Path(tempfile.mkdtemp(prefix="rise-lang-"))
    atexit.register(rmtree, directory, ignore_errors=True)
    return directory


def _is_trusted(directory: Path) -> bool:
    """Whether only this user can have written to the directory, or it does not exist yet."""
    try:
        return is_ours(directory.stat())
    except OSError:
        return True


# --- entries --------------------------------------------------------------------------------------------


def fetch(directory: Path, key: str, suffix: str) -> Path | None:
    """The file of an entry; None unless there is one that is complete and trusted."""
    label = LABEL.fullmatch(_content(_label(directory, key, suffix), at_most=100))
    if label is None:
        return None
    checksum, size = label[1].decode(), int(label[2])
    path = _place(directory, key, checksum, suffix)
    content = _content(path, at_most=size)
    return path if content and hashlib.sha256(content).hexdigest() == checksum else None


def store(directory: Path, key: str, suffix: str, build: Build) -> Path:
    """Builds an entry; a failed build leaves nothing behind. OSError if it cannot be written."""
    temporary = _reserve(directory, suffix)
    label = None
    try:
        build(temporary)
        content = temporary.read_bytes() if temporary.is_file() else b""
        if not content:
            raise CompilationError(
                "R0810",
                f"the compiler reports success, but has made no {suffix.removeprefix('.')} file",
                hint="the command called as compiler may not be one",
            )
        checksum = hashlib.sha256(content).hexdigest()
        path = _place(directory, key, checksum, suffix)
        label = _reserve(directory, ".sha256")
        label.write_text(f"{checksum} {len(content)}\n", encoding="ascii")
        temporary.chmod(0o644)
        _move(temporary, path)
        _move(label, _label(directory, key, suffix))
    finally:
        for left in (temporary, label):
            if left is not None:
                left.unlink(missing_ok=True)
    return path


def _move(new: Path, path: Path) -> None:
    """Moves a file into place. A folder of that name is not ours, and is moved aside."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f".folder-{os.urandom(8).hex()}"))
    os.replace(new, path)


def _label(directory: Path, key: str, suffix: str) -> Path:
    """The file that contains the checksum of an entry."""
    return directory / f"{key}{suffix}.sha256"


def _place(directory: Path, key: str, checksum: str, suffix: str) -> Path:
    """The file that contains the content of an entry."""
    return directory / f"{key}-{checksum[:16]}{suffix}"


def _content(path: Path, at_most: int) -> bytes:
    """The content of a trusted file of at most that size; empty if there is none."""
    with suppress(OSError, ValueError):
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode) and status.st_size <= at_most and is_ours(status):
                return file.read()
    return b""


def _reserve(directory: Path, suffix: str) -> Path:
    """A new empty file next to the entries, with an unused name."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix=".partial-", suffix=suffix, dir=directory)
    os.close(handle)
    return Path(path)
