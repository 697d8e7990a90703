"""Traversals of calls: into one argument, or the body of a function."""

from __future__ import annotations

from rewrites.result import Result, Success
from rise.expr import Expr, call
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

        def down(part: Expr, left: int) -> Result:
            return at_child(1, s, part) if left == 0 else at_child(0, lambda f: down(f, left - 1), part)

        return down(term, above)

    return FunctionStrategy("nth_operand", run)


@prints_as_call
def each_operand(s: Rewrite) -> Strategy:
    """In every argument that is data."""

    def run(term: Expr) -> Result:
        applied = call(term)
        if applied is None or not applied[2]:
            return Success(term)
        return seq(*(nth_operand(n, s) for n in range(len(applied[2]))))(term)

    return FunctionStrategy("each_operand", run)
