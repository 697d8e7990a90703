"""A derivation as data for a page: programs as differences of lines, with types, changes and loops.

Everything that repeats is kept once, in tables; a step only has numbers of lines. So two thousand steps of
a program of three hundred lines are some megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain
from typing import Any, Generic, TypeVar

from rewrites.derivation import programs, rule_named, written
from rewrites.proofs.marks import mark
from rewrites.result import Step, Success
from rise.check.compare import Comparison
from rise.cli.rules import doc_entry, equation
from rise.cli.viewer.nests import Box, nest
from rise.expr import Expr
from rise.notation import show_type
from rise.progress import stepwise
from rise.source import place
from rise.traced import Part, Path, Traced, traced
from rise.types import Type

T = TypeVar("T", bound=Hashable)
Data = dict[str, Any]
Advance = Callable[[int, int], None]


@dataclass
class Table(Generic[T]):
    """What repeats, by number."""

    numbers: dict[T, int] = field(default_factory=dict)

    def of(self, item: T) -> int:
        return self.numbers.setdefault(item, len(self.numbers))

    @property
    def items(self) -> list[T]:
        return list(self.numbers)


@dataclass
class Tables:
    """Types; lines, each a text and for its terms column, length and type; boxes of loop nests."""

    types: Table[Type] = field(default_factory=Table)
    lines: Table[tuple[str, tuple[int, ...]]] = field(default_factory=Table)
    boxes: Table[tuple[int, str, str, str]] = field(default_factory=Table)


def story(
    name: str,
    start: Expr,
    success: Success,
    verdicts: Sequence[Comparison] = (),
) -> Data:
    """The derivation of a definition, as the page reads it."""
    tables, steps = Tables(), success.steps
    before = traced(start)
    lines, boxes = _lines(before, tables), _boxes(start, tables)
    first = {"lines": lines, "boxes": boxes}
    told = []
    whole_programs = zip(steps, programs(start, success), strict=True)
    for number, (step, whole) in enumerate(stepwise(f"writing {name}", whole_programs, len(steps)), 1):
        after = traced(whole)
        new_lines, new_boxes = _lines(after, tables), _boxes(whole, tables)
        verdict = verdicts[number - 1] if number <= len(verdicts) else None
        told.append(
            step_told(step, verdict)
            | {
                "lines": list(difference(lines, new_lines)),
                "boxes": list(difference(boxes, new_boxes)),
                "before": extent_of(before, step.path),
                "after": extent_of(after, step.path),
            }
        )
        before, lines, boxes = after, new_lines, new_boxes
    return {
        "name": name,
        "types": [show_type(type_) for type_ in tables.types.items],
        "table": tables.lines.items,
        "boxes": tables.boxes.items,
        "start": first,
        "steps": told,
        "rules": {rule: rule_told(rule) for rule in dict.fromkeys(step.rule for step in steps)},
    }


def step_told(step: Step, verdict: Comparison | None = None) -> Data:
    """What there is to say of a step besides the programs before and after it."""
    origin = place(step.before.origin)
    return {
        "rule": step.rule,
        "by": list(step.by),
        "parameters": written(step.parameters),
        "path": list(step.path),
        "asks": [str(c) for c in step.constraints],
        "source": str(origin) if origin is not None else "",
        "agrees": None if verdict is None else verdict.agrees,
    }


def rule_told(name: str) -> Data:
    rule = rule_named(name)
    return {
        "equation": equation(rule),
        "meaning": rule.meaning,
        "known": mark(rule).value,
        "exact": rule.exact,
        "entry": doc_entry(rule),
    }


# --- programs ---------------------------------------------------------------------------------------------


def _lines(program: Traced, tables: Tables) -> list[int]:
    """The numbers of a program's lines."""
    types: dict[int, list[Part]] = {}
    for part in program.parts:
        if part.start[0] == part.end[0]:
            types.setdefault(part.start[0], []).append(part)
    return [
        tables.lines.of((line, tuple(chain.from_iterable(_typed(types.get(number, []), tables)))))
        for number, line in enumerate(program.text.split("\n"))
    ]


def _typed(parts: list[Part], tables: Tables) -> Iterator[tuple[int, int, int]]:
    """Column, length and type of each term that is on one line, the inner ones first."""
    for part in parts:
        column = part.start[1]
        yield column, part.end[1] - column, tables.types.of(part.term.type)


def _boxes(program: Expr, tables: Tables) -> list[int]:
    return [tables.boxes.of(_flat(box)) for box in nest(program)]


def _flat(box: Box) -> tuple[int, str, str, str]:
    return box.depth, box.kind, box.name, box.extent


def extent_of(program: Traced, path: Path) -> list[int]:
    """Line and column where a term starts, and where it ends; empty where nothing is printed of it."""
    found = program.range_of(path)
    return [] if found is None else [*found[0], *found[1]]


# --- differences ------------------------------------------------------------------------------------------


def difference(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[int, int, list[int]]]:
    """What turns one list into the other, from the end to the start: where, how many go, and what comes."""
    for tag, a, b, c, d in reversed(SequenceMatcher(None, old, new, autojunk=False).get_opcodes()):
        if tag != "equal":
            yield a, b - a, list(new[c:d])
