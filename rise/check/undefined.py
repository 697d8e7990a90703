"""Results that a program leaves undefined: a kernel may have anything there.

The interpreter puts one number in the place of everything undefined (`padEmpty`, `prefixes`). Where results
change if it puts another one there, nothing defines them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rise.check.compare import alike
from rise.errors import EvaluationError
from rise.expr import Expr
from rise.interpret import call, other_undefined


def where_defined(program: Expr, inputs: list[Any], result: Any, expected: Any) -> Any:
    """A result, with what is expected in the places that are undefined.

    expected: what the interpreter computes from these inputs
    """
    try:
        with other_undefined():
            other = call(program, *inputs)
    except EvaluationError:  # an index that is undefined, say, which then is none
        return result
    return _merged(result, expected, other)


def _merged(result: Any, expected: Any, other: Any) -> Any:
    if isinstance(expected, tuple):
        if not isinstance(result, tuple) or len(result) != len(expected):
            return result
        return tuple(_merged(*each) for each in zip(result, expected, other, strict=True))
    found, wanted, another = (np.asarray(value) for value in (result, expected, other))
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return result
    return np.where(alike(wanted, another), found, wanted)
