"""`rise view`: a page of a derivation and the kernel that it ends in, or of two derivations side by side."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from rewrites.derivation import read_with_program, replay
from rewrites.result import Success
from rise import files
from rise.check.compare import Comparison
from rise.check.program import check_text
from rise.cli.options import target_of
from rise.cli.origins import explained
from rise.cli.stages import Subject, building, chosen_strategy, derived, subject, told
from rise.cli.terminal import note
from rise.cli.viewer import profile
from rise.cli.viewer.kernel import kernels
from rise.cli.viewer.page import page
from rise.cli.viewer.story import Data, story
from rise.errors import RiseError
from rise.normal import data_flow
from strategies.registry import find

LARGEST = 256 * 2**20  # bytes of a file that is read
SAVED = ".json"


def run(arguments: argparse.Namespace) -> int:
    """Writes the page, and opens it if asked to."""
    target = Path(arguments.out or f"{_stem(arguments)}.html")
    if arguments.file.endswith(SAVED):
        find(arguments.strategy)  # a module of the user's own may declare rules
        _write_saved(target, [arguments.file, *([arguments.name] if arguments.name else [])])
    else:
        chosen = subject(arguments)
        strategy = told(chosen, chosen_strategy(arguments))
        success = derived(chosen.program, strategy, building(chosen))
        write_page(target, chosen, success, target_of(arguments), arguments.profile)
    note(f"wrote {target}")
    if arguments.open:
        webbrowser.open(target.resolve().as_uri())
    return 0


def _stem(arguments: argparse.Namespace) -> str:
    saved = arguments.file.endswith(SAVED)
    return Path(arguments.file).stem if saved or not arguments.name else str(arguments.name)


def write_page(
    target: Path,
    chosen: Subject,
    success: Success,
    architecture: str,
    profiled: str | None = None,
    verdicts: Sequence[Comparison] = (),
) -> None:
    """The page of a derivation, with its kernel if it ends in one."""
    start = data_flow(chosen.program)
    measured = profile.read(files.read_text(Path(profiled), LARGEST)) if profiled else {}
    told = story(chosen.definition.name, start, success, verdicts)
    try:
        made: Data | None = kernels(explained(chosen, success), architecture, measured)
    except RiseError:  # a derivation need not end in a program that is a kernel
        if profiled:
            raise
        made = None
    files.write(target, page([told], made))


def _write_saved(target: Path, names: list[str]) -> None:
    """The page of one or two saved derivations, whose steps are applied again."""
    told = []
    for name in names:
        text, steps = read_with_program(files.read_text(Path(name), LARGEST))
        start = data_flow(check_text(f"def program = {text}", name)["program"].body)
        replayed = replay(start, steps)
        told.append(story(Path(name).stem, start, replayed.success))
    files.write(target, page(told))
