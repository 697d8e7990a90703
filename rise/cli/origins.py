"""Where each line of a kernel comes from: the term of the low-level program, and the step that made it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from codegen.host.program import HostProgram
from codegen.host.text import cuda_origins, cuda_text
from codegen.pipeline import assemble
from rewrites.derivation import part_at, rule_named
from rewrites.provenance import makers
from rewrites.result import Success, one_line
from rise.check.symbolic import OpenProgram
from rise.cli.stages import Subject
from rise.expr import located
from rise.normal import data_flow
from rise.pretty import show
from rise.source import path_of, place
from rise.traced import Path, Traced, traced

# lines that do nothing: braces, the preprocessor's, empty ones
TRIVIAL = re.compile(r"\s*([{}();]*|#.*|//.*)\s*")


@dataclass(frozen=True)
class Origin:
    """The origin of a line.

    term:    of the low-level program, on one line
    path:    its place there; `low`: line and column in the text of that program, counted from 1
    step:    the number of the step that made it, 0 for what stands in the source program; `rule`: of the step
    by:      the strategies that the step belongs to
    source:  the place in the source file that it goes back to
    """

    term: str
    path: Path
    low: tuple[int, int]
    step: int
    rule: str
    meaning: str
    by: tuple[str, ...]
    source: str

    def described(self) -> Mapping[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Explained:
    """The CUDA text of a program, and the path of the term that each line comes from, if there is one."""

    program: HostProgram
    text: str
    paths: tuple[Path | None, ...]
    origins: Mapping[Path, Origin]
    low: Traced

    def of_line(self, number: int) -> Origin | None:
        """The origin of a line, counted from 1."""
        path = self.paths[number - 1] if 1 <= number <= len(self.paths) else None
        return None if path is None else self.origins[path]


def explained(chosen: Subject, success: Success) -> Explained:
    """The kernels of a derived program, with the origins of all their lines."""
    of = chosen.open
    program = assemble(
        OpenProgram(located(success.term), of.sizes, of.constraints), f"{chosen.definition.name}_kernel"
    )
    paths = tuple(map(path_of, cuda_origins(program)))
    low, made = traced(success.term), makers(data_flow(chosen.program), success)

    def origin(path: Path) -> Origin:
        part = part_at(success.term, path) or success.term
        number = made.step_of(part)
        step = success.steps[number - 1] if number else None
        span = place(part.origin)
        return Origin(
            one_line(show(part)),
            path,
            _start(low, path),
            number,
            step.rule if step else "",
            rule_named(step.rule).meaning if step else "",
            step.by if step else (),
            str(span) if span is not None else "",
        )

    known = {path: origin(path) for path in dict.fromkeys(paths) if path is not None}
    return Explained(program, cuda_text(program), paths, known, low)


def _start(low: Traced, path: Path) -> tuple[int, int]:
    found = low.range_of(path)
    return (found[0][0] + 1, found[0][1] + 1) if found else (1, 1)


def is_trivial(line: str) -> bool:
    """Whether a line of CUDA does nothing by itself."""
    return TRIVIAL.fullmatch(line) is not None


def bodies(text: str) -> set[int]:
    """The numbers of the lines inside of the kernels of a text, counted from 1."""
    inside, found = False, set()
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith('extern "C"'):
            inside = True
        elif inside and line == "}":
            inside = False
        elif inside and line.startswith(" "):
            found.add(number)
    return found
