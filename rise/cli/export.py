"""`rise export`: a folder with a definition's kernels, a launcher in C, and a test, which needs no Python."""

from __future__ import annotations

import argparse
from pathlib import Path

from codegen.export import Example, export
from rewrites.result import Success
from rise.check.compare import tolerance
from rise.check.draws import work
from rise.check.specialise import inputs_of
from rise.cli.comparing import telling_trials
from rise.cli.options import target_of
from rise.cli.stages import Subject, building, chosen_strategy, derived, program_of, subject
from rise.cli.terminal import note
from rise.progress import progress

MOST_WORK = 1 << 27  # elements that the interpreter computes for the test


def run(arguments: argparse.Namespace) -> int:
    """Derives the kernels, computes what the test expects, and writes the folder."""
    chosen, strategy = subject(arguments), chosen_strategy(arguments)
    success = derived(chosen.program, strategy, building(chosen))
    made = program_of(chosen, success)
    with progress("the interpreter computes what the test expects"):
        example = _example(chosen, success, arguments.seed)
    if example is None:
        note("there is no test: it would take the interpreter too long; smaller sizes have one")
    folder = Path(arguments.out or f"{chosen.definition.name}-export")
    target = target_of(arguments)
    written = export(made, chosen.definition.name, folder, target, example, cubin=arguments.cubin)
    print(f"{len(written)} files in {folder}; its README.md says how to build it")
    return 0


def _example(chosen: Subject, success: Success, seed: int) -> Example | None:
    program = chosen.program
    if work(program, inputs_of(program)) > MOST_WORK:
        return None
    trial = next(telling_trials(program, success.term, None, seed, 1))
    return Example(tuple(trial.inputs), trial.expected, tolerance(program))
