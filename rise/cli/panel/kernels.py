"""A derivation and its kernels, part by part: what `auto` chose, the list of steps, one step, the CUDA."""

from __future__ import annotations

from typing import Any

from rewrites.derivation import part_at
from rise.cli.origins import explained
from rise.cli.panel.subjects import Derivation
from rise.cli.viewer.kernel import kernels
from rise.cli.viewer.story import extent_of, rule_told, step_told
from rise.reported import reported_place
from rise.requests import malformed
from rise.source import place
from rise.traced import Traced, traced

Data = dict[str, Any]


def listed(made: Derivation) -> Data:
    """What was chosen for each kernel, and the steps without the programs, which take long to print."""
    return {
        "target": made.target,
        "plan": [str(choice) for choice in made.plan.kernels],
        "steps": [
            {"rule": step.rule, "by": list(step.by), "place": reported_place(place(step.before.origin))}
            for step in made.success.steps
        ],
    }


def shown(made: Derivation, number: int) -> Data:
    """The whole program before and after a step, and its rule; of number 0 the program."""
    if number >= len(made.wholes):
        raise malformed(f"the derivation has {len(made.wholes) - 1} steps, and none of number {number}")
    after = traced(made.wholes[number])
    if number == 0:
        return {"number": 0, "after": _text(after, ())}
    step, before = made.success.steps[number - 1], traced(made.wholes[number - 1])
    return {
        "number": number,
        **step_told(step),
        "rule": {"name": step.rule, **rule_told(step.rule)},
        "place": reported_place(place(step.before.origin)),
        "before": _text(before, step.path),
        "after": _text(after, step.path),
    }


def _text(program: Traced, path: tuple[int, ...]) -> Data:
    """A program, and the lines and columns, from 0, of the term that a step rewrites."""
    return {"text": program.text, "extent": extent_of(program, path) if path else []}


def cuda(made: Derivation) -> Data:
    """The kernels as `rise view` has them; `places`: the place in the source of each part, by number."""
    known = explained(made.subject, made.success)
    parts = [part_at(made.success.term, path) or made.success.term for path in known.origins]
    places = [reported_place(place(part.origin)) for part in parts]
    return {"target": made.target, **kernels(known, made.target), "places": places}
