"""The message when this compiler itself fails: what happened, what to send, and to whom."""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from rise.errors import RiseError

TRACKER = "the project's issue tracker"


def explain(error: BaseException, arguments: Sequence[str]) -> str:
    """The message; the traceback goes to a file. `arguments` are those of the command line."""
    command = shlex.join(["rise", *arguments])
    what = f"{error.code}: {error.message}" if isinstance(error, RiseError) else _first_line(error)
    file = _written(report(error, command))
    attached = f"the file {file}, which has the traceback" if file else "what `--debug` prints"
    return "\n".join(
        [
            f"internal error: {what}",
            "This is a mistake of the compiler, not of your program.",
            f"Please report it to {TRACKER}, with your program and {attached}.",
            f"  version: {_version()}",
            f"  command: {command}",
        ]
    )


def report(error: BaseException, command: str) -> str:
    """All that is known, as text."""
    trace = "".join(traceback.format_exception(error))
    return f"{_version()}\n{command}\n\n{trace}"


def _first_line(error: BaseException) -> str:
    """Kind and reason of an exception of Python."""
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _version() -> str:
    from rise import __version__

    return f"rise {__version__}, Python {sys.version.split()[0]}, {sys.platform}"


def _written(text: str) -> Path | None:
    """The file that holds a text; None where no file can be written."""
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", prefix="rise-failure-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
            return Path(file.name)
    except OSError:
        return None
