"""`rise derive`: how a strategy rewrites a definition, step by step.

Each step is evaluated with `--check`; `--save` and `--replay` keep derivations and apply them again,
`--html` writes a page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewrites.derivation import Replayed, programs, read, replay
from rewrites.derivation import described as saved
from rewrites.result import Step, Success, one_line, show_path
from rise.check.compare import Comparison, Tolerance, compare, tolerance
from rise.check.specialise import inputs_of
from rise.cli.stages import Subject, building, chosen_strategy, derived, subject
from rise.cli.terminal import note, write_file
from rise.errors import UsageError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show


def run(arguments: argparse.Namespace) -> int:
    """Prints the steps and the result; with --check stops at the first step that changes the meaning."""
    chosen = subject(arguments)
    program = data_flow(chosen.program)
    success = _success(chosen, program, arguments)
    verdicts = list(checked(program, success, arguments.seed)) if arguments.check else []
    if arguments.save:
        write_file(Path(arguments.save), json.dumps(saved(program, success), indent=1, ensure_ascii=False))
    if arguments.html:
        from rise.cli.derivation_page import page

        write_file(Path(arguments.html), page(arguments.name, program, success, verdicts))
    if arguments.json:
        print(json.dumps(described(program, success, verdicts), indent=2))
    else:
        _print(success, verdicts)
    return 0 if all(v.agrees for v in verdicts) else 1


def _success(chosen: Subject, program: Expr, arguments: argparse.Namespace) -> Success:
    """By the strategy, or by the steps of a file."""
    strategy = chosen_strategy(arguments)
    if arguments.replay is None:
        return derived(program, strategy, building(chosen))
    replayed = replay(program, read(_text(arguments.replay)))
    _warn(replayed)
    return replayed.success


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("R0001", f"cannot read {file}: {getattr(error, 'strerror', error)}") from None


def _warn(replayed: Replayed) -> None:
    if replayed.changed:
        first, count = replayed.changed[0], len(replayed.changed)
        where = f"{count} of {len(replayed.success.steps)} steps, from step {first} on"
        note(f"the program has changed: {where}, applied to other terms than when they were saved")


# --- checking ---------------------------------------------------------------------------------------


def checked(start: Expr, success: Success, seed: int) -> Iterator[Comparison]:
    """The verdict on each step, up to and including the first bad one: by evaluation on small numbers."""
    inputs = random_inputs(inputs_of(start), seed, exact=True)
    reference, allowed = call(start, *inputs), tolerance(start)
    for whole in programs(start, success):
        verdict = compare(call(whole, *inputs), reference, allowed)
        yield verdict
        if not verdict.agrees:
            return
    yield final(success, inputs, reference, allowed)


def final(success: Success, inputs: list[Any], reference: Any, allowed: Tolerance) -> Comparison:
    """The verdict on the program that the strategy gives, which is the last of the steps."""
    return compare(call(success.term, *inputs), reference, allowed)


# --- showing ----------------------------------------------------------------------------------------


def _print(success: Success, verdicts: list[Comparison]) -> None:
    for number, step in enumerate(success.steps, 1):
        print(f"{number:4}. {step.rule}   at {show_path(step.path)}{_mark(number, verdicts)}")
        print(f"        {one_line(show(step.before))}")
        print(f"      → {one_line(show(step.after))}")
        for constraint in step.constraints:
            print(f"        asks for {constraint}")
        if 0 < len(verdicts) <= number and not verdicts[-1].agrees:
            break
    print()
    print(f"{plural(success.steps)}: {counts(success)}")
    if verdicts:
        print(conclusion(success, verdicts))
    if all(v.agrees for v in verdicts):
        print()
        print(show(success.term))


def _mark(number: int, verdicts: list[Comparison]) -> str:
    if number > len(verdicts):
        return ""
    return "   ✓" if verdicts[number - 1].agrees else "   ✗ CHANGES THE RESULT"


def conclusion(success: Success, verdicts: list[Comparison]) -> str:
    """What the check found, the guilty rule by name."""
    if all(v.agrees for v in verdicts):
        return f"checked by evaluation after each of the {plural(success.steps)}: all agree"
    number, last = len(verdicts), verdicts[-1]
    if number > len(success.steps):
        return f"the steps agree, but the derived program differs from the last of them: {last}"
    return f"step {number}, `{success.steps[number - 1].rule}`, changes the result: {last}"


def plural(steps: Sequence[Step]) -> str:
    return f"{len(steps)} step{'' if len(steps) == 1 else 's'}"


def counts(success: Success) -> str:
    """Rule names with how often each was applied, in the order of first use."""
    names: dict[str, int] = {}
    for step in success.steps:
        names[step.rule] = names.get(step.rule, 0) + 1
    return ", ".join(name if n == 1 else f"{name} ({n})" for name, n in names.items())


def described(start: Expr, success: Success, verdicts: list[Comparison]) -> dict[str, Any]:
    """The derivation for a machine: as `--save` writes it, with the verdicts."""
    derivation = saved(start, success)
    for step, verdict in zip(derivation["steps"], verdicts, strict=False):
        step["agrees"] = verdict.agrees
    return {**derivation, "agrees": all(v.agrees for v in verdicts)}
