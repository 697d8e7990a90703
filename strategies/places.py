"""Where strategies go in RISE programs: under maps, down a pipe, under a definition's inputs; and hiding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewrites.result import Failure, Result, Step, Success
from rise.expr import Apply, Expr, Identifier, Lambda, call, children, substitute, with_children
from rise.normal import is_view
from strategies.core import Rewrite, Strategy, argument, at_child, strategy


def mapped(s: Rewrite) -> Strategy:
    """s in the body of the function of a map (or of any pattern over an array)."""

    def run(term: Expr) -> Result:
        if not (isinstance(term, Apply) and isinstance(term.function, Apply)):
            return Failure("mapped", term, "expected a map")
        return at_child(0, lambda f: at_child(1, lambda g: _body(s, g), f), term)

    return Strategy("mapped", run)


def _body(s: Rewrite, term: Expr) -> Result:
    return (
        at_child(0, s, term) if isinstance(term, Lambda) else Failure("mapped", term, "expected a function")
    )


def arguments(count: int, s: Rewrite) -> Strategy:
    """s under `count` pipe steps: x of x |> f |> g for count = 2."""
    return strategy(s) if count == 0 else argument(arguments(count - 1, s))


def in_inputs(s: Rewrite) -> Strategy:
    """s in the body of the definition, under the lambdas of its inputs."""

    def run(term: Expr) -> Result:
        return at_child(0, run, term) if isinstance(term, Lambda) else s(term)

    return Strategy("in_inputs", run)


def hiding(predicate: Callable[[Expr], bool], s: Rewrite) -> Strategy:
    """s while the outermost part for which the predicate holds is a name that no rule looks into."""

    def run(term: Expr) -> Result:
        found = outermost_part(term, predicate)
        if found is None:
            return Failure("hiding", term, "there is nothing to hide")
        hidden = Identifier("hidden", found.type, found.origin)
        result = s(_replace(term, found, hidden))
        if isinstance(result, Failure):
            return result
        return Success(_unhide(result.term, found), tuple(_unhide_step(step, found) for step in result.steps))

    return Strategy("hiding", run)


def outermost_part(term: Expr, predicate: Callable[[Expr], bool]) -> Expr | None:
    if predicate(term):
        return term
    return next((f for c in children(term) if (f := outermost_part(c, predicate)) is not None), None)


def _replace(term: Expr, old: Expr, new: Expr) -> Expr:
    return new if term is old else with_children(term, tuple(_replace(c, old, new) for c in children(term)))


def _unhide(term: Expr, found: Expr) -> Expr:
    return substitute(term, {"hidden": found})


def _unhide_step(step: Step, found: Expr) -> Step:
    return replace(step, before=_unhide(step.before, found), after=_unhide(step.after, found))


def computes(term: Expr) -> bool:
    """A map whose function does more than change the form of data."""
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return False
    function = applied[2][0]
    return not isinstance(function, Lambda) or not is_view(function.body)
