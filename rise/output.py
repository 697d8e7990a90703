"""The standard output and error of a process that prints to whatever terminal there is."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def escape_what_cannot_be_encoded() -> None:
    """A character outside the terminal's encoding is printed as an escape, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
