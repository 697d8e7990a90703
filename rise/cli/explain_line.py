"""`rise explain-line`: the term and the rewrite step that a line of CUDA comes from.

`rise compile … -o F.cu --lines` writes F.cu.lines.json, so that a line of the file can be explained later,
without the program: `rise explain-line F.cu:42`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewrites.result import Success, show_path
from rise import files
from rise.cli.origins import Explained, Origin, explained
from rise.cli.stages import Subject, building, chosen_strategy, derived, subject
from rise.cli.stages import told as told_expected
from rise.data import is_whole, parsed
from rise.errors import UsageError

SUFFIX, PROGRAM = ".lines.json", ".rise"
FORMAT, VERSION = "rise lines", 1
LARGEST = 64 * 2**20
WRITES_THEM = "`rise compile … -o F.cu --lines` writes it"
NOWHERE = "no term: it is around the kernels, or declares one"


def run(arguments: argparse.Namespace) -> int:
    """Prints where a line comes from. UsageError R0061, R0062."""
    text, origin = _from_file(arguments.file) if _is_text(arguments) else _from_program(arguments)
    if arguments.json:
        print(json.dumps({"line": text, "origin": origin}, indent=2))
        return 0
    print(text)
    print(f"  from {NOWHERE}" if origin is None else told(origin))
    return 0


def _is_text(arguments: argparse.Namespace) -> bool:
    return arguments.name is None and not arguments.file.endswith(PROGRAM)


def told(origin: Mapping[str, Any]) -> str:
    """An origin in lines."""
    line, column = origin["low"]
    lines = [f"from `{origin['term']}`"]
    lines.append(f"at {line}:{column} of the low-level program, path {show_path(tuple(origin['path']))}")
    if origin["step"]:
        meaning = f": {origin['meaning']}" if origin["meaning"] else ""
        lines.append(f"made by step {origin['step']}, `{origin['rule']}`{meaning}")
        lines.append(f"in {' › '.join(origin['by'])}" if origin["by"] else "")
    else:
        lines.append("as it stands in the program")
    lines.append(f"source: {origin['source']}" if origin["source"] else "")
    return "\n".join(f"  {line}" for line in lines if line)


def _from_program(arguments: argparse.Namespace) -> tuple[str, Mapping[str, Any] | None]:
    """A line as `rise compile` prints it, under its header."""
    from rise.cli.compile import header

    chosen = subject(arguments)
    if arguments.line is None:
        raise _unclear("a line", "--line N says which one")
    strategy = told_expected(chosen, chosen_strategy(arguments))
    success = derived(chosen.program, strategy, building(chosen))
    made = explained(chosen, success)
    lines = table(made, header(chosen, made.program, arguments))["lines"]
    if arguments.line > len(lines):
        raise UsageError("R0061", f"the text has {len(lines)} lines, and none of number {arguments.line}")
    text = [*header(chosen, made.program, arguments), *made.text.split("\n")][arguments.line - 1]
    return text, _described(made.of_line(arguments.line - len(header(chosen, made.program, arguments))))


def _described(origin: Origin | None) -> Mapping[str, Any] | None:
    return None if origin is None else origin.described()


# --- files ------------------------------------------------------------------------------------------------


def write_lines(
    arguments: argparse.Namespace, chosen: Subject, success: Success, header: Sequence[str]
) -> None:
    """Where the lines of the text come from, beside the file that `-o` names, else UsageError R0061."""
    if not arguments.out:
        raise _unclear("a file for the text", "-o F.cu names it; the lines are written beside it")
    target = Path(arguments.out + SUFFIX)
    files.write(target, json.dumps(table(explained(chosen, success), header), indent=1, ensure_ascii=False))


def table(made: Explained, header: Sequence[str]) -> dict[str, Any]:
    """A digest of the text, its origins, and for each line the number of one; -1 where there is none."""
    numbers = {path: number for number, path in enumerate(made.origins)}
    text = "\n".join([*header, made.text])
    of_lines = [-1 if path is None else numbers[path] for path in made.paths]
    return {
        "format": FORMAT,
        "version": VERSION,
        "digest": _digest(text),
        "origins": [origin.described() for origin in made.origins.values()],
        "lines": [-1] * len(header) + of_lines,
    }


def _digest(text: str) -> str:
    return sha256(text.rstrip("\n").encode()).hexdigest()


def _from_file(named: str) -> tuple[str, Mapping[str, Any] | None]:
    file, _, number = named.rpartition(":")
    if not file or not number.isdigit():
        raise _unclear("a line", "`rise explain-line F.cu:LINE`, or `rise explain-line F.rise NAME --line N`")
    text = files.read_text(Path(file), LARGEST)
    beside = Path(file + SUFFIX)
    if not beside.exists():
        raise UsageError("R0062", f"there is no {beside.name} beside {file}", None, WRITES_THEM)
    found = _read(files.read_text(beside, LARGEST))
    if found["digest"] != _digest(text):
        raise UsageError("R0062", f"{file} is not the text that {beside.name} is about", None, WRITES_THEM)
    lines = text.split("\n")
    if not 1 <= int(number) <= len(found["lines"]):
        raise UsageError("R0061", f"the text has {len(found['lines'])} lines, and none of number {number}")
    which = found["lines"][int(number) - 1]
    return lines[int(number) - 1], None if which < 0 else found["origins"][which]


def _read(text: str) -> dict[str, Any]:
    try:
        found = parsed(text)
        if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise ValueError("it has another format or version")
        lines, origins = found.get("lines"), found.get("origins")
        if not isinstance(lines, list) or not isinstance(origins, list) or "digest" not in found:
            raise ValueError("it has no lines, no origins or no digest")
        if not all(is_whole(line) and -1 <= line < len(origins) for line in lines):
            raise ValueError("a line has an origin that is not there")
        if not all(isinstance(each, dict) and each.keys() >= MEMBERS for each in origins):
            raise ValueError("an origin has not all of its parts")
    except ValueError as error:
        raise UsageError(
            "R0062", f"this does not say where lines come from: {error}", None, WRITES_THEM
        ) from None
    return found


MEMBERS = frozenset(Origin.__dataclass_fields__)


def _unclear(what: str, hint: str) -> UsageError:
    return UsageError("R0061", f"the command needs {what}", None, hint)
