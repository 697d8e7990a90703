"""Files: written whole or not at all, appended to by many at once, read up to a bound, trusted or not.

A file that is written in place of another one is made beside it and moved there in one step. So whoever
reads meets the old file or the new one, and a full disk, an error or a crash leaves the old one as it was.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from rise.errors import UsageError
from rise.suggest import nearest

LARGEST_TEXT = 16 * 2**20  # bytes; a program of a hundred thousand lines has four millions
# what stands for an open file of this process: a pipe, a terminal, a file that the shell has opened
DESCRIPTORS = ("/dev/fd/", "/proc/", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty")


# --- writing --------------------------------------------------------------------------------------------


def write(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Writes a file, text as UTF-8, as `replacing` does. UsageError R0004 where that is not possible."""
    with replacing(path, durable=durable) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file to write in place of the one at a path, which changes only once everything is written.

    The new file has the mode and, where that is allowed, the owner of the old one; a symbolic link stays and
    what it names is replaced; a pipe or a device is written to as it is. UsageError R0004 where it cannot be
    written.

    durable: wait until the content is on the disk, so that not even a loss of power leaves half a file
    """
    try:
        if _is_stream(path):
            with path.open("ab" if is_file(path) else "wb") as file:
                yield file
        else:
            with _beside(Path(os.path.realpath(path)), durable) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError("R0004", f"cannot write {path}: {error.strerror or error}", hint=lambda: _instead(path))


def _instead(path: Path) -> str | None:
    """What to do about a file that cannot be written."""
    try:
        if path.is_dir():
            return f"it is a folder: name a file in it, such as `{path / 'FILE'}`"
        return None if path.parent.is_dir() else _no_folder(path.parent)
    except (OSError, ValueError):
        return None


def _no_folder(path: Path) -> str:
    return f"`{path}` is a file" if path.exists() else f"there is no folder `{path}`"


def folder_of(path: Path) -> None:
    """Makes the folder in which a file will be written. UsageError R0004 where that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None


def _is_stream(path: Path) -> bool:
    """Whether there is no file to replace: a pipe, a device, an open file of this process."""
    if _names_descriptor(path):
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _names_descriptor(path: Path) -> bool:
    """Whether a path, or a link that it goes through, stands for an open file of this process."""
    current = Path(os.path.abspath(path))
    for _ in range(40):
        if str(current).startswith(DESCRIPTORS):
            return True
        if not current.is_symlink():
            return False
        current = Path(os.path.abspath(current.parent / os.readlink(current)))
    return False


@contextmanager
def _beside(path: Path, durable: bool) -> Iterator[BinaryIO]:
    """A new file in the folder of the path, moved there in the end; removed if that is not reached."""
    old = path.stat() if path.exists() else None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(None, "Is a directory")
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(None, "Permission denied")
    temporary, handle = _new(path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if old is not None:
                _like(handle, old)
            yield file
            file.flush()
            if durable:
                os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _new(folder: Path) -> tuple[Path, int]:
    """A new empty file with a name that nothing has, and the mode that new files get."""
    path = folder / f".partial-{os.urandom(8).hex()}"
    return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)


def _like(handle: int, old: os.stat_result) -> None:
    """Owner and mode of the file that is replaced, as far as this user may give them."""
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(handle, old.st_uid, old.st_gid)
    with suppress(OSError):
        os.fchmod(handle, stat.S_IMODE(old.st_mode))


# --- appending ------------------------------------------------------------------------------------------


def append(path: Path, text: str, header: str = "") -> None:
    """Adds lines at the end of a file, all of them or none; others may append at the same time.

    header: stands above, where the file is new. UsageError R0004 where the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _append(handle, text, header)
        finally:
            os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from None


def _append(handle: int, text: str, header: str) -> None:
    content = text.encode("utf-8")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.write(handle, header.encode("utf-8") + content)
        return
    with _locked(handle):
        size = os.fstat(handle).st_size
        if size == 0:
            content = header.encode("utf-8") + content
        elif os.pread(handle, 1, size - 1) != b"\n":  # whoever was here before has not finished
            content = b"\n" + content
        try:
            written = os.write(handle, content)
            if written < len(content):
                raise OSError(None, "No space left on device")
        except OSError:
            os.ftruncate(handle, size)
            raise


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """While others who append wait; where files cannot be locked, an append is still one write."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
    except (ImportError, OSError):
        pass
    yield  # closing the file unlocks it


# --- reading --------------------------------------------------------------------------------------------


def read_text(path: Path, limit: int = LARGEST_TEXT) -> str:
    """The text of a file. UsageError R0001, R0002 where it is no UTF-8, R0015 where it is no regular file.

    The standard input and pipes of the shell, `/dev/stdin`, are read too. limit: in bytes, else R0015.
    """
    content = read_bytes(path, limit)
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise UsageError("R0002", f"{path} is no UTF-8 text") from None


def read_bytes(path: Path, limit: int) -> bytes:
    """What a file holds. UsageError R0001, R0015 as above."""
    try:
        with opened(path) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:  # a zero in the name
        raise UsageError("R0001", f"cannot read {str(path)!r}: {error}") from None
    if len(content) > limit:
        raise UsageError("R0015", f"{path} is too large: more than {limit // 2**20} MiB are no text to read")
    return content


def unreadable(path: Path, error: OSError) -> UsageError:
    message = f"cannot read {path}: {error.strerror or error}"
    return UsageError("R0001", message, hint=lambda: _beside_it(path))


def _beside_it(path: Path) -> str | None:
    """What may have been meant in place of a file that cannot be read."""
    try:
        if path.is_dir():
            found = next((name for name in sorted(path.iterdir()) if name.is_file()), path / "FILE")
            return f"it is a folder: name a file in it, such as `{found}`"
        if path.exists():
            return "its owner may let you read it: `chmod +r`"
        if not path.parent.is_dir():
            return _no_folder(path.parent)
        close = nearest(path.name, [other.name for other in path.parent.iterdir() if other.is_file()])
        return f"did you mean `{path.parent / close}`?" if close else f"the working directory is {Path.cwd()}"
    except (OSError, ValueError):
        return None


def is_file(path: Path) -> bool:
    """Whether there is a file; none has a name that the system does not take."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def opened(path: Path) -> IO[bytes]:
    """A regular file, or what the shell has opened for us, to read. OSError; UsageError R0015 for others."""
    if _names_descriptor(path):
        if not stat.S_ISCHR(path.stat().st_mode) or path.name in ("stdin", "tty", "0"):
            return path.open("rb")
        raise _irregular(path)
    # what is not regular may never answer: nothing is waited for before that is known
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(None, "Is a directory")
    raise _irregular(path)


def _irregular(path: Path) -> UsageError:
    return UsageError("R0015", f"{path} is no regular file", hint="only files and `/dev/stdin` are read")


# --- trust ----------------------------------------------------------------------------------------------


def is_ours(status: os.stat_result) -> bool:
    """Whether only this user and the superuser can have written a file, or what a folder holds."""
    if not hasattr(os, "geteuid"):
        return True
    writable = bool(status.st_mode & stat.S_IWOTH) or (
        bool(status.st_mode & stat.S_IWGRP) and not _is_private(status.st_gid)
    )
    return status.st_uid in (os.geteuid(), 0) and not writable


def _is_private(group: int) -> bool:
    """Whether a group has this user alone, as many systems make one for each user."""
    import grp
    import pwd

    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and user.pw_name == members.gr_name and not members.gr_mem
