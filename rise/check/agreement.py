"""Whether programs compute what a first one does, on several draws of inputs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rise.check.compare import Comparison, Tolerance, alike, compare, tolerance
from rise.check.draws import DIGITS, Draws, at, draws, literals, scale, work
from rise.check.specialise import inputs_of
from rise.errors import EvaluationError, RiseError
from rise.expr import Expr
from rise.interpret import call, call_many, random_inputs


@dataclass(frozen=True)
class Reference:
    """What a program computes.

    draws:    of inputs, those of them on which it is defined
    results:  one after the other along a first axis
    literals: of all programs that are compared
    """

    program: Expr
    draws: Draws
    results: Any
    literals: tuple[float, ...]
    allowed: Tolerance

    def results_of(self, program: Expr) -> Any:
        """Of another program; an error of evaluation is one of its results."""
        try:
            return call_many(program, self.draws.inputs, self.draws.count)
        except RiseError as error:
            return error

    def verdict(self, results: Any) -> Comparison:
        """Whether they agree with the program's own, each draw for itself."""
        if isinstance(results, RiseError):
            return Comparison(False, np.inf, 0, reason=f"it fails: {results.code}, {results.message}")
        if same(results, self.results):
            return Comparison(True, 0.0, 0.0)
        both = [(at(results, i), at(self.results, i), i) for i in self._exact]
        found = [(compare(a, b, self.allowed), i) for a, b, i in both]
        wrong = [replace(c, draw=i) for c, i in found if not c.agrees]
        return wrong[0] if wrong else max((c for c, _ in found), key=lambda c: c.error)

    @property
    def _exact(self) -> list[int]:
        """Floats with all their digits are for roundings; alone they have to do for all."""
        found = [i for i, kind in enumerate(self.draws.kinds) if kind != DIGITS]
        return found or list(range(self.draws.count))

    def rounds_alike(self, before: Any, after: Any) -> Comparison:
        """Whether two programs, which differ in no order of sums, round alike: bit by bit."""
        for i, kind in enumerate(self.draws.kinds):
            found = compare(at(after, i), at(before, i)) if kind == DIGITS else None
            if found is not None and not found.agrees:
                return replace(found, draw=i)
        return Comparison(True, 0.0, 0.0)


def reference(program: Expr, others: Sequence[Expr], seed: int) -> Reference:
    """Draws for a program at given sizes and for those that are compared with it, and its results."""
    parameters = inputs_of(program)
    numbers = literals([program, *others])
    cost = work(program, parameters)
    made = draws(parameters, seed, scale(program, numbers), cost)
    kept, results = _usable(program, made)
    if not kept.count:  # today's small numbers, zero among them; or the error that they give
        small = random_inputs(parameters, seed, exact=True)
        kept = Draws(tuple(_stack(value) for value in small), ("small",))
        results = _stack(call(program, *small))
    return Reference(program, kept, results, numbers, tolerance(program))


def _usable(program: Expr, made: Draws) -> tuple[Draws, Any]:
    """The draws on which the program is defined; without those that overflow, unless all do."""
    try:
        results = call_many(program, made.inputs, made.count)
    except EvaluationError:
        made = made.only([i for i in range(made.count) if _is_defined(program, made.one(i))])
        if not made.count:
            return made, None
        results = call_many(program, made.inputs, made.count)
    finite = [i for i in range(made.count) if _is_finite(at(results, i))]
    if 0 < len(finite) < made.count:
        return made.only(finite), at(results, finite)
    return made, results


def _is_defined(program: Expr, inputs: list[Any]) -> bool:
    try:
        call(program, *inputs)
    except EvaluationError:
        return False
    return True


def _is_finite(result: Any) -> bool:
    """No overflow, and some number at all: the rest may be undefined."""
    if isinstance(result, tuple):
        return all(_is_finite(part) for part in result)
    values = np.asarray(result)
    if values.dtype.kind in "iub" or not values.size:
        return True
    values = values.astype(np.float64)
    return not np.isinf(values).any() and bool(np.isfinite(values).any())


def _stack(value: Any) -> Any:
    return tuple(_stack(part) for part in value) if isinstance(value, tuple) else np.asarray(value)[None]


def same(left: Any, right: Any) -> bool:
    """Equal in all elements, those that are no numbers alike."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        both = isinstance(left, tuple) and isinstance(right, tuple)
        return both and all(same(a, b) for a, b in zip(left, right, strict=True))
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool((left == right).all() or alike(left, right).all())
