"""What the user sees: messages with colours where a terminal shows them, plain text elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from rise.errors import RiseError, UsageError


def show_error(error: RiseError) -> None:
    """The message on stderr: place and reason, the caret, the hint."""
    text = error.render()
    if not sys.stderr.isatty():
        print(text, file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for number, line in enumerate(text.splitlines()):
        console.print(Text(line, style=_style(number, line)))


def _style(number: int, line: str) -> str:
    if number == 0:
        return "bold red"
    if line.startswith("hint: "):
        return "cyan"
    return "red" if set(line) <= set(" |^") else ""


def note(text: str) -> None:
    """A remark that is no part of the output."""
    print(f"note: {text}", file=sys.stderr)


def show_code(text: str, language: str, stream: TextIO | None = None) -> None:
    """A program text: coloured on a terminal, as it is in a pipe."""
    out = stream or sys.stdout
    if not out.isatty():
        out.write(text if text.endswith("\n") else text + "\n")
        return
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console(file=out)
    console.print(Syntax(text.rstrip("\n"), language, background_color="default", word_wrap=True))


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file; one that cannot be written is a UsageError."""
    try:
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError("R0004", f"cannot write {path}: {error.strerror}") from None
