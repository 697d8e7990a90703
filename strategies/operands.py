"""Traversals of calls: into one argument, or the body of a function."""

from __future__ import annotations

from rewrites.result import Failure, Result, Success
from rise.expr import Apply, Expr, call
from strategies.core import FunctionStrategy, Rewrite, Strategy, at_child, prints_as_call, seq


@prints_as_call
def in_function(s: Rewrite) -> Strategy:
    """In the body of a function, of data or of a size."""
    return FunctionStrategy("in_function", lambda term: at_child(0, s, term))


@prints_as_call
def operand(s: Rewrite) -> Strategy:
    """In the last argument."""
    return FunctionStrategy("operand", lambda term: at_child(1, s, term))


@prints_as_call
def nth_operand(position: int, s: Rewrite) -> Strategy:
    """In an argument of a primitive, by number."""

    def run(term: Expr) -> Result:
        applied = call(term)
        above = len(applied[2]) - 1 - position if applied is not None else 0
        return _at_argument_below(above, s, term)

    return FunctionStrategy("nth_operand", run)


def _at_argument_below(above: int, s: Rewrite, term: Expr) -> Result:
    """s at the argument of the application that is so many functions down."""
    if not isinstance(term, Apply):
        return Failure("nth_operand", term, "nothing is applied to so many arguments")
    if above == 0:
        return at_child(1, s, term)
    return at_child(0, lambda function: _at_argument_below(above - 1, s, function), term)


@prints_as_call
def each_operand(s: Rewrite) -> Strategy:
    """In every argument that is data."""

    def run(term: Expr) -> Result:
        applied = call(term)
        if applied is None or not applied[2]:
            return Success(term)
        return seq(*(nth_operand(n, s) for n in range(len(applied[2]))))(term)

    return FunctionStrategy("each_operand", run)
