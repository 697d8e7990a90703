"""What takes far longer to make than to read, kept beside the bytecode between runs, as far to be trusted.

It is kept only where Python keeps bytecode. A file that is damaged, or that somebody else may have written,
is none.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

from rise.errors import UsageError
from rise.files import is_ours, write

CHECKSUM = 32  # bytes that a SHA-256 has


def beside(module: str, name: str) -> Path:
    """The file of that name in the folder of a module's bytecode. module: its `__file__`"""
    return Path(cache_from_source(module)).with_name(name)


def checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def kept(path: Path) -> bytes | None:
    """What is kept, if it is whole, and written by somebody who could as well write this module."""
    with suppress(OSError):
        content = path.read_bytes()
        status, ours = path.stat(), Path(__file__).stat()
        said, rest = content[:CHECKSUM], content[CHECKSUM:]
        trusted = is_ours(status) or (status.st_uid == ours.st_uid and not status.st_mode & 0o022)
        if trusted and checksum(rest) == said:
            return rest
    return None


def keep(path: Path, make: Callable[[], bytes]) -> None:
    """Writes what it makes, its checksum in front, where bytecode is written; if it cannot, no matter."""
    if sys.dont_write_bytecode:
        return
    content = make()
    with suppress(OSError, UsageError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, checksum(content) + content, durable=False)
