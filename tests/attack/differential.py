"""Random programs, lowered by `default`, emulated, and compared with the interpreter bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.errors import EmulationError, EvaluationError, RiseError
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from rise.testing.choose import Drawn
from rise.testing.compare import difference
from rise.testing.data import awkward_input
from rise.testing.programs import parameters_of, program
from rise.testing.vocabulary import INEXACT, high_level
from strategies.default import default
from tests.attack.outcome import Outcome, Verdict

INPUTS = ("exact", "awkward", "awkward")


@dataclass(frozen=True)
class Program:
    """A program and its inputs, by their seed."""

    seed: int

    @property
    def term(self) -> Expr:
        return program(Drawn(self.seed), primitives=high_level())

    def __str__(self) -> str:
        return f"program {self.seed}: {show(self.term)}"


def programs(seed: int) -> Iterator[Program]:
    return (Program(seed * 1_000_000 + number) for number in count())


def outcome(trial: Program) -> Outcome:
    """All inputs of one program: the first that is not right decides."""
    term = trial.term
    if not parameters_of(term):
        return Outcome(Verdict.REFUSED, detail="it has no inputs")
    try:
        made = default()(data_flow(term))
        if isinstance(made, Failure):
            return Outcome(Verdict.UNBUILT, "R0606", made.story())
        kernel = assemble(made.term, "program")
    except RiseError as error:
        return Outcome(Verdict.UNBUILT, error.code, error.message)
    for number, kind in enumerate(INPUTS):
        found = _compared(term, kernel, trial.seed + number, kind)
        if found.verdict is not Verdict.RIGHT:
            return found
    return Outcome(Verdict.RIGHT)


def _compared(term: Expr, kernel: HostProgram, seed: int, kind: str) -> Outcome:
    """One run of the kernel. What the interpreter refuses, a division by zero, the emulator refuses too."""
    inputs = _inputs(term, seed, kind)
    try:
        wanted = call(term, *inputs)
    except EvaluationError as error:
        try:
            execute(kernel, inputs, "emulate", seed=seed)
        except EmulationError:
            return Outcome(Verdict.RIGHT)
        return Outcome(Verdict.WRONG, error.code, "only the interpreter refuses it")
    try:
        found = execute(kernel, inputs, "emulate", seed=seed)
    except RiseError as error:
        return Outcome(Verdict.WRONG, error.code, str(error))
    differs = difference(found, wanted)
    if differs is None or _is_rounding(term, found, wanted):
        return Outcome(Verdict.RIGHT)
    return Outcome(Verdict.WRONG, detail=f"{kind} inputs of seed {seed}: {differs}")


def _inputs(term: Expr, seed: int, kind: str) -> list[Any]:
    parameters = parameters_of(term)
    if kind == "awkward":
        return [awkward_input(p.type, seed + number) for number, p in enumerate(parameters)]
    return random_inputs([(p.name, p.type) for p in parameters], seed, exact=True)


def _is_rounding(term: Expr, found: Any, wanted: Any) -> bool:
    """Functions like `exp` and `rsqrt` are right within their rounding bound, all else in every bit."""
    names = {part.declaration.name for part in subterms(term) if isinstance(part, Primitive)}
    return bool(names & (INEXACT - {"div"})) and compare(found, wanted, tolerance(term)).agrees
