"""Whose Python code raised an exception: this compiler's, or that of its user.

Strategies, rules, their conditions, primitives and translations may be a user's own. What goes wrong there is
shown with the line of the user's file, as a mistake in a program is.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rise.errors import RiseError, StrategyError
from rise.files import read_text
from rise.source import Note, Source, Span

HERE = Path(__file__).parents[1]
PACKAGES = ("rise", "rewrites", "strategies", "codegen", "bench")
_LOADED: set[str] = set()
NEAR = 60  # frames of the end of a recursion, among which those that call each other are


def own_mistake(error: BaseException) -> RiseError | None:
    """StrategyError R0630 for an exception that came through a file of the user's; else None.

    Such files are those that a strategy was loaded from, and what lies beside these or below.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, RecursionError):
        frames = traceback.StackSummary.from_list(frames[-NEAR:])
    own = [frame for frame in frames if _is_loaded(frame.filename)]
    if not own:
        return None
    last, innermost = own[-1], frames[-1]
    what = f"{error.code} {error.message}" if isinstance(error, RiseError) else described(error)
    message = f"{what} (in `{last.name}`, which is no part of this compiler)"
    notes: Sequence[Note] = ()
    if innermost is not last and innermost.filename.startswith(_ours()):
        file = Path(innermost.filename).relative_to(HERE)
        notes = (Note(f"`{innermost.name}` of this compiler raised it, {file}, line {innermost.lineno}"),)
    hint = "`--debug` shows the whole traceback"
    return StrategyError("R0630", message, line_of(last.filename, last.lineno), hint, notes=tuple(notes))


def loaded(file: str | None) -> None:
    """Notes that code of a user's own was loaded from a file."""
    if file is not None:
        _LOADED.add(os.path.abspath(file))


def _is_loaded(file: str) -> bool:
    folders = tuple(os.path.dirname(other) + os.sep for other in _LOADED)
    return file in _LOADED or (is_own(file) and file.startswith(folders))


def described(error: BaseException) -> str:
    """Type and text of an exception, on one line."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def is_own(file: str) -> bool:
    """Whether a file of Python code is neither this compiler's nor a library's."""
    return not file.startswith(("<", *_ours(), *_libraries()))


def place_of(error: BaseException) -> Span | None:
    """Where in a file of the user's an exception was raised, or where its text is no Python."""
    if isinstance(error, SyntaxError) and error.filename and is_own(error.filename):
        return line_of(error.filename, error.lineno)
    own = [f for f in traceback.extract_tb(error.__traceback__) if is_own(f.filename)]
    return line_of(own[-1].filename, own[-1].lineno) if own else None


def place_of_function(function: Callable[..., Any]) -> Span | None:
    """Where a function of the user's begins."""
    code = getattr(function, "__code__", None)
    if code is None or not is_own(code.co_filename):
        return None
    return line_of(code.co_filename, code.co_firstlineno)


def line_of(file: str, number: int | None) -> Span | None:
    """A line of a file, without its indentation; None where it cannot be read."""
    try:
        source = Source(os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file, _text(file))
    except (RiseError, OSError):
        return None
    text = source.line(number or 0)
    if not text.strip():
        return None
    return Span(source, number or 0, len(text) - len(text.lstrip()) + 1, number or 0, len(text.rstrip()) + 1)


def _text(file: str) -> str:
    return read_text(Path(file))


@cache
def _ours() -> tuple[str, ...]:
    return tuple(f"{HERE / package}{os.sep}" for package in PACKAGES)


@cache
def _libraries() -> tuple[str, ...]:
    """Of Python itself, and what is installed."""
    paths = sysconfig.get_paths()
    return tuple({f"{paths[name]}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
