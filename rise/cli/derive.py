"""`rise derive`: how a strategy rewrites a definition, step by step; each step evaluated with `--check`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from rewrites.result import Step, Success
from rise.check.compare import Comparison, Tolerance, compare, tolerance
from rise.check.specialise import inputs_of
from rise.cli.stages import chosen_strategy, derived, subject
from rise.errors import StrategyError
from rise.expr import Expr, children, with_children
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show

WIDTH = 92


def run(arguments: argparse.Namespace) -> int:
    """Prints the steps and the result; with --check stops at the first step that changes the meaning."""
    chosen = subject(arguments)
    strategy = chosen_strategy(arguments)
    program = data_flow(chosen.program)
    success = derived(program, strategy)
    verdicts = list(checked(program, success, arguments.seed)) if arguments.check else []
    if arguments.json:
        print(json.dumps(described(success, verdicts), indent=2))
    else:
        _print(success, verdicts)
    return 0 if all(v.agrees for v in verdicts) else 1


# --- checking ---------------------------------------------------------------------------------------


def programs(start: Expr, success: Success) -> Iterator[Expr]:
    """The whole program after each step."""
    whole = start
    for step in success.steps:
        whole = replaced(whole, step.path, step.after)
        yield whole


def replaced(term: Expr, path: tuple[int, ...], new: Expr) -> Expr:
    """The term with another subterm at a path. R0607 where the path leads nowhere."""
    if not path:
        return new
    below = children(term)
    if path[0] >= len(below):
        raise StrategyError("R0607", "a step of the derivation is at a place that the program has not")
    inner = replaced(below[path[0]], path[1:], new)
    return with_children(term, (*below[: path[0]], inner, *below[path[0] + 1 :]))


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
        print(f"{number:4}. {step.rule}   at {show_path(step)}{_mark(number, verdicts)}")
        print(f"        {short(step.before)}")
        print(f"      → {short(step.after)}")
        for constraint in step.constraints:
            print(f"        asks for {constraint}")
        if 0 < len(verdicts) <= number and not verdicts[-1].agrees:
            break
    print()
    print(f"{len(success.steps)} steps: {counts(success)}")
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
        return f"checked by evaluation after each of the {len(success.steps)} steps: all agree"
    number, last = len(verdicts), verdicts[-1]
    if number > len(success.steps):
        return f"the steps agree, but the derived program differs from the last of them: {last}"
    return f"step {number}, `{success.steps[number - 1].rule}`, changes the result: {last}"


def counts(success: Success) -> str:
    """Rule names with how often each was applied, in the order of first use."""
    names: dict[str, int] = {}
    for step in success.steps:
        names[step.rule] = names.get(step.rule, 0) + 1
    return ", ".join(name if n == 1 else f"{name} ({n})" for name, n in names.items())


def show_path(step: Step) -> str:
    return ".".join(map(str, step.path)) or "the top"


def short(term: Expr) -> str:
    """A term on one line, cut where it gets long."""
    text = " ".join(show(term).split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def described(success: Success, verdicts: list[Comparison]) -> dict[str, Any]:
    """The derivation for a machine."""
    steps: list[dict[str, Any]] = [
        {
            "rule": step.rule,
            "path": list(step.path),
            "before": show(step.before),
            "after": show(step.after),
            "constraints": [str(c) for c in step.constraints],
        }
        for step in success.steps
    ]
    for step, verdict in zip(steps, verdicts, strict=False):
        step["agrees"] = verdict.agrees
    return {"steps": steps, "result": show(success.term), "agrees": all(v.agrees for v in verdicts)}
