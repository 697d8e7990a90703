"""`rise derive`: how a strategy rewrites a definition, step by step.

Each step is evaluated with `--check`; `--save` and `--replay` keep derivations and apply them again,
`--html` writes a page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewrites.derivation import Replayed, SavedStep, read, replay
from rewrites.derivation import described as saved
from rewrites.proofs.marks import Mark, mark
from rewrites.result import Step, Success, one_line, show_path
from rewrites.rule import RULES
from rise import files
from rise.check.compare import Comparison
from rise.cli.checking import Trial, at_sizes, coverage, trials
from rise.cli.options import target_of
from rise.cli.stages import Subject, building, chosen_strategy, derived, subject
from rise.cli.terminal import note
from rise.expr import Expr
from rise.normal import data_flow
from rise.pretty import show
from strategies.auto import Auto
from strategies.core import Strategy

LARGEST = 256 * 2**20  # bytes of a saved derivation: some hundred thousand steps


def run(arguments: argparse.Namespace) -> int:
    """Prints the steps and the result; with --check stops at the first step that changes the meaning."""
    chosen = subject(arguments)
    program, strategy = data_flow(chosen.program), chosen_strategy(arguments)
    steps = None if arguments.replay is None else read(_text(arguments.replay))
    success = derived(program, strategy, building(chosen)) if steps is None else _replayed(program, steps)
    made = checked(chosen, success, strategy, steps, arguments.seed) if arguments.check else []
    if arguments.save:
        files.write(Path(arguments.save), json.dumps(saved(program, success), indent=1, ensure_ascii=False))
    if arguments.html:
        from rise.cli.view import write_page

        verdicts = made[0].verdicts if made else []
        write_page(Path(arguments.html), chosen, success, target_of(arguments), verdicts=verdicts)
    if arguments.json:
        print(json.dumps(described(program, success, made), indent=2))
    else:
        print_derivation(success, made)
    return 0 if all(trial.agrees for trial in made) else 1


def _replayed(program: Expr, steps: list[SavedStep]) -> Success:
    replayed = replay(program, steps)
    _warn(replayed)
    return replayed.success


def _text(file: str) -> str:
    return files.read_text(Path(file), LARGEST)


def _warn(replayed: Replayed) -> None:
    if replayed.changed:
        first, count = replayed.changed[0], len(replayed.changed)
        where = f"{count} of {len(replayed.success.steps)} steps, from step {first} on"
        note(f"the program has changed: {where}, applied to other terms than when they were saved")


# --- checking ---------------------------------------------------------------------------------------


def checked(
    chosen: Subject, success: Success, strategy: Strategy, steps: list[SavedStep] | None, seed: int
) -> list[Trial]:
    """The verdicts on all steps, at the sizes given and at others."""

    def again(program: Expr) -> Success | None:
        if isinstance(strategy, Auto) and steps is None:
            return None  # its parameters were chosen for these sizes
        result = strategy(program) if steps is None else replay(program, steps).success
        return result if isinstance(result, Success) else None

    return trials(chosen.definition, chosen.sizes, success, again, seed)


# --- showing ----------------------------------------------------------------------------------------


def print_derivation(success: Success, made: list[Trial]) -> None:
    """The steps, how often each rule was applied, what a check says, and the program."""
    first = made[0].verdicts if made else []
    for number, step in enumerate(success.steps, 1):
        _print_step(number, step, _mark(number, step, first))
        if 0 < len(first) <= number and not first[-1].agrees:
            break
    print()
    print(f"{plural(success.steps)}: {counts(success)}")
    if made:
        print(conclusion(made))
        _print_evidence(made)
        number = sum(map(is_proved, success.steps))
        print(f"  ∎ {number} of the {plural(success.steps)} by rules that are proved for all sizes")
    if all(trial.agrees for trial in made):
        print()
        print(show(success.term))


def _print_step(number: int, step: Step, mark: str) -> None:
    print(f"{number:4}. {step.rule}   at {show_path(step.path)}{mark}")
    print(f"        {one_line(show(step.before))}")
    print(f"      → {one_line(show(step.after))}")
    for constraint in step.constraints:
        print(f"        asks for {constraint}")


def _mark(number: int, step: Step, verdicts: list[Comparison]) -> str:
    if number > len(verdicts):
        return ""
    if verdicts[number - 1].agrees and is_proved(step):
        return "   ✓ ∎"
    return "   ✓" if verdicts[number - 1].agrees else "   ✗ CHANGES THE RESULT"


def conclusion(made: list[Trial]) -> str:
    """The result of the check, with the name of a wrong rule."""
    trial = made[-1]
    steps = trial.success.steps
    if trial.agrees:
        return f"checked by evaluation after each of the {plural(made[0].success.steps)}: all agree"
    where = f"{at_sizes(trial.sizes)}, " if len(made) > 1 else ""
    number, last = len(trial.verdicts), trial.verdicts[-1]
    if trial.guilty is None:
        return f"{where}the steps agree, but the derived program differs from the last of them: {last}"
    count = f"step {number} of {len(steps)}" if where else f"step {number}"
    return f"{where}{count}, `{trial.guilty.rule}`, changes the result: {last}"


def _print_evidence(made: list[Trial]) -> None:
    """The coverage of the check; or the inputs on which the first wrong step shows."""
    trial = made[-1]
    if trial.agrees:
        for line in coverage(made):
            print(f"  {line}")
        return
    if len(made) > 1 and trial.guilty is not None:
        _print_step(len(trial.verdicts), trial.guilty, "   ✗ CHANGES THE RESULT")
    for line in trial.shown_inputs():
        print(f"  {line}")


def plural(steps: Sequence[Step]) -> str:
    return f"{len(steps)} step{'' if len(steps) == 1 else 's'}"


def counts(success: Success) -> str:
    """Rule names with how often each was applied, in the order of first use."""
    names: dict[str, int] = {}
    for step in success.steps:
        names[step.rule] = names.get(step.rule, 0) + 1
    return ", ".join(name if n == 1 else f"{name} ({n})" for name, n in names.items())


def described(start: Expr, success: Success, made: list[Trial]) -> dict[str, Any]:
    """The derivation for a machine: as `--save` writes it, with the verdicts."""
    derivation = saved(start, success)
    for step, verdict in zip(derivation["steps"], made[0].verdicts if made else [], strict=False):
        step["agrees"] = verdict.agrees
    for step, made_by in zip(derivation["steps"] if made else [], success.steps, strict=False):
        step["proved"] = is_proved(made_by)
    if made:
        derivation["check"] = [trial.described() for trial in made]
        if not made[-1].agrees:
            derivation["conclusion"] = conclusion(made)
    return {**derivation, "agrees": all(trial.agrees for trial in made)}


def is_proved(step: Step) -> bool:
    """Whether its rule is proved for all sizes, if only up to the order of sums."""
    rule = RULES.get(step.rule)
    return rule is not None and mark(rule) is not Mark.TESTED
