"""Operators of reductions that are not what a reduction asks of them: associative and commutative.

`reduce` combines elements in any order, so with another operator its result depends on the schedule. No types
say which operators are lawful; here they are tried on small whole numbers, of which many are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rise.errors import RiseError
from rise.expr import Expr, Primitive, subterms
from rise.expr import call as applied
from rise.interpret import call, random_inputs
from rise.source import Origin
from rise.types import arguments

TRIALS = 40


def unlawful(program: Expr, seed: int) -> Iterator[tuple[Origin, str]]:
    """The reductions whose operators break a law, each with its place and the law."""
    for part in subterms(program):
        match applied(part):
            case "reduce", Primitive() as head, [operator] if not operator.free:
                law = _broken(operator, seed)
                if law is not None:
                    yield head.origin or part.origin, law


def _broken(operator: Expr, seed: int) -> str | None:
    """The law that an operator breaks on some numbers; None if it breaks none, or is not defined there."""
    (type_, *_), _ = arguments(operator.type)
    for trial in range(seed, seed + TRIALS):
        a, b, c = random_inputs([(name, type_) for name in "abc"], trial, exact=True)
        try:
            if not _close(call(operator, a, b), call(operator, b, a)):
                return "commutative"
            left, right = call(operator, call(operator, a, b), c), call(operator, a, call(operator, b, c))
        except RiseError:
            return None
        if not _close(left, right):
            return "associative"
    return None


def _close(left: Any, right: Any) -> bool:
    """Whether two results are equal but for roundings."""
    if isinstance(left, tuple):
        return all(map(_close, left, right))
    one, other = np.asarray(left, np.float64), np.asarray(right, np.float64)
    return bool(np.allclose(one, other, rtol=1e-2, atol=1e-2, equal_nan=True))
