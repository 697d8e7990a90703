"""Whether two terms compute the same, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rise.expr import Expr
from rise.interpret import Closure, evaluate, random_inputs
from rise.pretty import show
from rise.testing.data import Inputs, exact_inputs
from rise.types import arguments


def difference(left: Any, right: Any, place: str = "result") -> str | None:
    """The first place where two results differ, with both values; None where they are equal."""
    import numpy as np

    if isinstance(left, tuple) or isinstance(right, tuple):
        if not (isinstance(left, tuple) and isinstance(right, tuple)):
            return f"{place}: a pair on one side only"
        both = zip(left, right, strict=True)
        found = (difference(a, b, f"{place}.{i}") for i, (a, b) in enumerate(both))
        return next((f for f in found if f), None)
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{place}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    if equal.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~equal)[0]) if a.ndim else ()
    where = "".join(f"[{i}]" for i in index)
    return f"{place}{where}: {a[index]} and {b[index]}, {int((~equal).sum())} of {a.size} differ"


def assert_equivalent(
    left: Expr, right: Expr, environment: Inputs | None = None, *, seeds: Sequence[int] = (0, 1, 2)
) -> None:
    """Both terms have one type and compute the same, bit by bit.

    Free identifiers get the values of the environment, or random ones for each seed; so do the
    parameters, where the terms are functions.
    """
    assert left.type == right.type, f"the types differ: {left.type} and {right.type}"
    for seed in seeds:
        values = {**exact_inputs(left, seed), **exact_inputs(right, seed), **(environment or {})}
        found = difference(*(_result(term, values, seed) for term in (left, right)))
        if found is not None:
            raise AssertionError(f"{found} (seed {seed})\n  {show(left)}\n  {show(right)}")


def differ(left: Expr, right: Expr, *, seeds: Sequence[int] = (0, 1, 2)) -> bool:
    """Whether two terms are of different types or compute something different."""
    try:
        assert_equivalent(left, right, seeds=seeds)
    except AssertionError:
        return True
    return False


def _result(term: Expr, values: Inputs, seed: int) -> Any:
    result = evaluate(term, values)
    if not isinstance(result, Closure):
        return result
    parameters, _ = arguments(term.type)
    named = [(f"argument {i}", t) for i, t in enumerate(parameters, 1)]
    return result(*random_inputs(named, seed, exact=True))
