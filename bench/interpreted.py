"""The interpreter as reference, for programs without an operation in `operations`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bench import columns, evaluations, fused, nested, operations, pairs
from bench.data import Pattern
from bench.derive import program
from bench.operations import Expected, Inputs, Mesh, Operation
from bench.table import Case, Source
from rise.check.compare import Tolerance, tolerance
from rise.check.specialise import specialise
from rise.errors import UsageError
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call
from rise.suggest import suggestion

NAME = "interpreter"
ROUNDING = 2.0**-23  # of f32, in which `operations.bound` counts
# these map whole numbers to whole numbers, whatever the order of a sum
EXACT = set(
    "add sub mul neg lt le gt ge eq ne and or not min max fma abs floor ceil round cast select".split()
)


def operation_of(case: Case) -> Operation:
    """The operation that a table names; or `interpreter`: the program itself."""
    if case.subject.operation != NAME:
        return operation(case.subject.operation)
    return interpreted(case.subject.source, case.subject.definition, tuple(case.sizes.items()))


def operation(name: str) -> Operation:
    """UsageError R0861 where there is none of that name."""
    known = {
        **operations.OPERATIONS, **fused.OPERATIONS, **nested.OPERATIONS, **columns.OPERATIONS,
        **pairs.OPERATIONS, **evaluations.OPERATIONS,
    }  # fmt: skip
    if name not in known:
        listed = ", ".join(f"`{n}`" for n in known)
        hint = suggestion(name, known) or f"there are {listed}"
        raise UsageError("R0861", f"there is no operation `{name}`", None, hint)
    return known[name]


@cache
def interpreted(source: Source, definition: str, sizes: tuple[tuple[str, int], ...]) -> Operation:
    """The operation of a program at its sizes. How many floating-point operations it takes is not known."""
    term = specialise(program(source)[definition], dict(sizes))
    allowed = tolerance(term)
    terms = max(1, round(allowed.sums / ROUNDING))
    kept = _Evaluated(term, allowed, terms)
    return Operation(lambda _: 0, lambda _: terms, kept.expected, exact(term))


def exact(program: Expr) -> bool:
    computing = (p for p in subterms(program) if isinstance(p, Primitive) and p.declaration.elementwise)
    return all(part.name in EXACT for part in computing)


@dataclass(frozen=True)
class _Evaluated:
    program: Expr
    allowed: Tolerance
    terms: int

    def expected(self, inputs: Inputs, mesh: Mesh) -> Expected:
        """The elements; a magnitude for which `operations.bound` allows what two orders of sums differ by."""
        result = np.asarray(call(self.program, *map(_array, inputs))).astype(np.float64)
        values = result[mesh] if result.ndim else result.reshape(1)
        largest = np.abs(result).max(initial=0.0)
        apart = self.allowed.relative * np.abs(values) + self.allowed.sums * largest
        return Expected(values, apart / ((min(self.terms, 2**14) + 4) * ROUNDING))


def _array(given: Any) -> Any:
    """All elements of a pattern; a number as one of f32."""
    if isinstance(given, Pattern):
        return np.resize(given.numbers, given.shape)
    return np.float32(given)
