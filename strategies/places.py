"""Traversals of RISE programs: under maps, along a pipe, under the inputs of a definition."""

from __future__ import annotations

from rewrites.result import Failure, Result
from rise.expr import Apply, DependentApply, Expr, Lambda, call, children
from rise.normal import is_view
from strategies.core import (
    FunctionStrategy,
    Predicate,
    Rewrite,
    Strategy,
    apply_n_times,
    argument,
    at_child,
    prints_as_call,
)

RESHAPING = frozenset({"split", "join"})  # changes the shape of an array, and not the order of its elements
LONGER = frozenset({"padEmpty"})  # changes the form of data, too: what is past the end may be anything


@prints_as_call
def mapped(s: Rewrite) -> Strategy:
    """fmap s = function (argument (body s)): in the function of a map, or of any pattern over an array."""

    def run(term: Expr) -> Result:
        if not (isinstance(term, Apply) and isinstance(term.function, Apply)):
            return Failure("mapped", term, "expected a map")
        return at_child(0, lambda f: at_child(1, lambda g: _body(s, g), f), term)

    return FunctionStrategy("mapped", run)


def _body(s: Rewrite, term: Expr) -> Result:
    return (
        at_child(0, s, term) if isinstance(term, Lambda) else Failure("mapped", term, "expected a function")
    )


@prints_as_call
def arguments(count: int, s: Rewrite) -> Strategy:
    """s under `count` pipe steps: x of x |> f |> g for count = 2."""
    return apply_n_times(count, argument, s)


@prints_as_call
def dep_function(s: Rewrite) -> Strategy:
    """In what is applied to a size or a type."""
    return FunctionStrategy(
        "dep_function",
        lambda t: (
            at_child(0, s, t)
            if isinstance(t, DependentApply)
            else Failure("dep_function", t, "expected something applied to a size or a type")
        ),
    )


@prints_as_call
def in_inputs(s: Rewrite) -> Strategy:
    """s in the body of the definition, under the lambdas of its inputs."""

    def run(term: Expr) -> Result:
        return at_child(0, run, term) if isinstance(term, Lambda) else s(term)

    return FunctionStrategy("in_inputs", run)


def outermost_part(term: Expr, predicate: Predicate) -> Expr | None:
    """The first subterm, top down, for which a predicate holds; None if there is none."""
    if predicate(term):
        return term
    return next((f for c in children(term) if (f := outermost_part(c, predicate)) is not None), None)


def map_nest(depth: int) -> Predicate:
    """Whether a term is that many maps, each all that the one around it does."""

    def holds(term: Expr) -> bool:
        for _ in range(depth):
            applied = call(term)
            if applied is None or applied[0] != "map" or len(applied[2]) != 2:
                return False
            function = applied[2][0]
            if not isinstance(function, Lambda):
                return depth == 1
            term = function.body
        return True

    return holds


def computes(term: Expr) -> bool:
    """A map whose function does more than change the form of data."""
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return False
    function = applied[2][0]
    return not isinstance(function, Lambda) or not is_view(function.body, LONGER)


def as_one_array(term: Expr) -> Expr:
    """x of x |> split(n) |> …, or of x |> join |> …: its elements are in the same order."""
    applied = call(term)
    return as_one_array(applied[2][-1]) if applied is not None and applied[0] in RESHAPING else term


@prints_as_call
def below_shape(s: Rewrite) -> Strategy:
    """s for the array that is split into arrays of arrays, or whose arrays are joined.

    before: x |> split(n)
    after:  s(x) |> split(n)
    """

    def run(term: Expr) -> Result:
        return s(term) if as_one_array(term) is term else argument(run)(term)

    return FunctionStrategy("below_shape", run)
