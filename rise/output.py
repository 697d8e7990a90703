"""The standard streams of a process that prints to whatever terminal there is, or to none."""

from __future__ import annotations

import os
import sys
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from typing import TextIO


def escape_what_cannot_be_encoded() -> None:
    """A character outside the terminal's encoding is printed as an escape, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def replace_what_is_closed() -> None:
    """Standard streams that whoever started the process has closed; Python has None in their place."""
    sys.stdin = sys.stdin or _nothing("r")
    sys.stdout = sys.stdout or _nothing("w")
    sys.stderr = sys.stderr or _nothing("w")


def _nothing(mode: str) -> TextIO:
    raw = FileIO(os.devnull, mode)
    return TextIOWrapper(BufferedReader(raw) if mode == "r" else BufferedWriter(raw), encoding="utf-8")


def discard_the_rest() -> None:
    """What is still in the buffer of the standard output, which takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
