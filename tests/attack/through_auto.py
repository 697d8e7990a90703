"""Programs through `auto`: what it chooses for each kernel, emulated, and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.expr import Expr
from rise.instructions import family
from rise.interpret import call
from rise.normal import data_flow
from strategies.auto import auto
from strategies.search.space import Point
from tests.attack.outcome import Outcome, Verdict


def way(point: Point) -> str:
    """The strategy of a kernel; of products, the family of its instructions."""
    fragment = dict(point.parameters).get("fragment")
    if point.strategy == "tensor_core" and fragment is not None:
        return str(family(fragment)).rpartition(".")[2].lower()
    return point.strategy


@dataclass(frozen=True)
class Chosen:
    """What `auto` makes of a program: the kernels, and the way in which each is computed."""

    term: Expr
    low: Expr
    ways: str

    def assembled(self) -> HostProgram:
        return assemble(self.low, "attack")

    def agrees(self, inputs: Sequence[Any], target: str) -> Outcome:
        """Right if the emulated kernels compute what the interpreter does, else wrong."""
        program = self.assembled()
        with np.errstate(all="ignore"):
            wanted, found = call(self.term, *inputs), execute(program, inputs, "emulate", target)
            agreement = compare(found, wanted, tolerance(self.term))
        verdict = Verdict.RIGHT if agreement.agrees else Verdict.WRONG
        return Outcome(verdict, "", f"{self.ways}: {agreement}"[:400], self.ways)


def definition(text: str, sizes: dict[str, int]) -> Expr:
    """The definition `f` of a program, at the sizes."""
    return data_flow(specialise(check_text(text)["f"], sizes))


def chosen(term: Expr, target: str, builds: Callable[[Expr, str], int] | None = None) -> Chosen | Outcome:
    """What `auto` makes of a program, or that it makes nothing of it. builds: compiles a candidate"""
    strategy = auto(target)
    if builds is not None:
        strategy = strategy.first_that(builds)
    made = strategy(term)
    if isinstance(made, Failure):
        return Outcome(Verdict.UNBUILT, "R0606", made.story())
    kernels = strategy.choice(term).kernels
    return Chosen(term, made.term, " ".join(way(kernel.point) for kernel in kernels))
