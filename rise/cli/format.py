"""`rise fmt`: sets files in the one layout, keeping meaning and comments."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path

from rise import files
from rise.check.program import read
from rise.cli.check import each_file
from rise.cli.terminal import STANDARD_INPUT, show_error, standard_input
from rise.errors import RiseError, UsageError
from rise.progress import progress
from rise.source import Source
from rise.syntax.format import format_text


def run(arguments: argparse.Namespace) -> int:
    """Formats every file, also after one that does not parse, which is left alone."""
    status = 0
    for name in each_file(arguments.files or [STANDARD_INPUT]):
        try:
            changed = _format(name, arguments.check, arguments.diff)
        except RiseError as error:
            if error.code.endswith("99"):
                raise
            show_error(error)
            status = max(status, 2 if isinstance(error, UsageError) else 1)
            continue
        if changed and arguments.check:
            status = max(status, 1)
    return status


def _format(name: str, check: bool, diff: bool) -> bool:
    """Whether the text changes. Written is where nothing else is asked for."""
    source = Source("<stdin>", standard_input()) if name == STANDARD_INPUT else read(Path(name))
    with progress(f"formatting {source.name}"):
        text = format_text(source)
    changed = text != source.text
    if diff:
        sys.stdout.writelines(_difference(source, text))
    elif check:
        if changed:
            print(source.name)
    elif name == STANDARD_INPUT:
        _standard_output(text)
    elif changed:
        files.write(Path(name), text)
    return changed


def _standard_output(text: str) -> None:
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def _difference(source: Source, text: str) -> Iterable[str]:
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, source.name, f"{source.name}, formatted"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
