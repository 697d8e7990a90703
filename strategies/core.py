"""ELEVATE's combinators and traversals: one equation each, as in the ICFP'20 paper (section 3).

A strategy takes a term to a `Success` or a `Failure`. `a >> b` is sequence, `a | b` is left choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rewrites.result import Failure, Result, Success
from rise.expr import Apply, Expr, Lambda, Primitive, children, spine, with_children

Rewrite = Callable[[Expr], Result]
Predicate = Callable[[Expr], bool]


@dataclass(frozen=True)
class Strategy:
    """A named function from terms to results."""

    name: str
    function: Rewrite

    def __call__(self, term: Expr) -> Result:
        return self.function(term)

    def __rshift__(self, other: Rewrite) -> Strategy:
        return seq(self, other)

    def __or__(self, other: Rewrite) -> Strategy:
        return choice(self, other)


def strategy(function: Rewrite) -> Strategy:
    """A rule or a function as a strategy, so that `>>` and `|` apply."""
    if isinstance(function, Strategy):
        return function
    return Strategy(getattr(function, "name", getattr(function, "__name__", "strategy")), function)


def _then(first: Result, second: Rewrite) -> Result:
    if isinstance(first, Failure):
        return first
    result = second(first.term)
    if isinstance(result, Failure):
        # whoever got further came closer
        return replace(result, depth=result.depth + len(first.steps))
    return Success(result.term, first.steps + result.steps)


# --- combinators ----------------------------------------------------------------------------------------

id_ = Strategy("id", Success)
fail = Strategy("fail", lambda term: Failure("fail", term, "it always fails"))


def seq(*parts: Rewrite) -> Strategy:
    """a ; b: b after a, if both succeed."""

    def run(term: Expr) -> Result:
        result: Result = Success(term)
        for part in parts:
            result = _then(result, part)
        return result

    return Strategy("seq", run)


def choice(*parts: Rewrite) -> Strategy:
    """a <+ b: the first that succeeds; of the failures, the one that came closest."""

    def run(term: Expr) -> Result:
        closest: Failure | None = None
        for part in parts:
            result = part(term)
            if isinstance(result, Success):
                return result
            closest = result if closest is None else closest.closer(result)
        return closest or fail(term)

    return Strategy("choice", run)


def try_(s: Rewrite) -> Strategy:
    """try s = s <+ id"""
    return choice(s, id_)


def repeat(s: Rewrite, limit: int = 10_000) -> Strategy:
    """repeat s = try (s ; repeat s), as a loop; a strategy that never ends is a failure that says so."""

    def run(term: Expr) -> Result:
        result = Success(term)
        for _ in range(limit):
            following = _then(result, s)
            if isinstance(following, Failure):
                return result
            result = following
        return Failure("repeat", term, f"still applicable after {limit} repetitions")

    return Strategy("repeat", run)


def check(predicate: Predicate, name: str, reason: str = "the term is of another form") -> Strategy:
    """Succeeds unchanged where the predicate holds; fails with the reason elsewhere."""
    return Strategy(name, lambda t: Success(t) if predicate(t) else Failure(name, t, reason))


# --- one level --------------------------------------------------------------------------------------------


def at_child(index: int, s: Rewrite, term: Expr) -> Result:
    """s applied to one child."""
    below = children(term)
    result = s(below[index])
    if isinstance(result, Failure):
        return result.below(index)
    new = with_children(term, (*below[:index], result.term, *below[index + 1 :]))
    return Success(new, tuple(step.below(index) for step in result.steps))


def one(s: Rewrite) -> Strategy:
    """s at the first child where it succeeds."""

    def run(term: Expr) -> Result:
        closest: Failure | None = None
        for index in range(len(children(term))):
            result = at_child(index, s, term)
            if isinstance(result, Success):
                return result
            closest = result if closest is None else closest.closer(result)
        return closest or Failure("one", term, "the term has no parts")

    return Strategy("one", run)


def all_(s: Rewrite) -> Strategy:
    """s at every child; fails if it fails at one."""

    def run(term: Expr) -> Result:
        result: Result = Success(term)
        for index in range(len(children(term))):
            result = _then(result, lambda t, i=index: at_child(i, s, t))  # type: ignore[misc]
        return result

    return Strategy("all", run)


def some(s: Rewrite) -> Strategy:
    """s at every child where it succeeds; fails if there is none."""

    def run(term: Expr) -> Result:
        result, applied = Success(term), False
        for index in range(len(children(term))):
            following = _then(result, lambda t, i=index: at_child(i, s, t))  # type: ignore[misc]
            if isinstance(following, Success):
                result, applied = following, True
        return result if applied else Failure("some", term, "no part of the term is of the right form")

    return Strategy("some", run)


def recursive(name: str, equation: Callable[[Strategy], Strategy]) -> Strategy:
    """The fixed point s = equation(s)."""
    knot: list[Strategy] = []
    itself = Strategy(name, lambda term: knot[0](term))
    knot.append(equation(itself))
    return itself


# --- traversals --------------------------------------------------------------------------------------------


def top_down(s: Rewrite) -> Strategy:
    """topDown s = s <+ one (topDown s)"""
    return recursive("top_down", lambda itself: choice(s, one(itself)))


def bottom_up(s: Rewrite) -> Strategy:
    """bottomUp s = one (bottomUp s) <+ s"""
    return recursive("bottom_up", lambda itself: choice(one(itself), s))


def all_top_down(s: Rewrite) -> Strategy:
    """allTopDown s = s ; all (allTopDown s)"""
    return recursive("all_top_down", lambda itself: seq(s, all_(itself)))


def all_bottom_up(s: Rewrite) -> Strategy:
    """allBottomUp s = all (allBottomUp s) ; s"""
    return recursive("all_bottom_up", lambda itself: seq(all_(itself), s))


def normalize(s: Rewrite, limit: int = 10_000) -> Strategy:
    """normalize s = repeat (topDown s); a part in which s was found not to apply is not searched again."""

    def run(term: Expr) -> Result:
        settled: dict[int, Expr] = {}

        def first(part: Expr) -> Result:
            if id(part) in settled:
                return Failure("normalize", part, "nothing applies")
            result = s(part)
            if isinstance(result, Success):
                return result
            below = one(first)(part)
            if isinstance(below, Failure):
                settled[id(part)] = part  # kept alive, so that its id stays its own
            return below

        return repeat(first, limit)(term)

    return Strategy("normalize", run)


def everywhere(s: Rewrite) -> Strategy:
    """tryAll s: wherever s applies, top down, once."""
    return all_top_down(try_(s))


# --- traversals that know RISE ------------------------------------------------------------------------------


def body(s: Rewrite) -> Strategy:
    """Under a lambda."""
    return Strategy(
        "body",
        lambda t: at_child(0, s, t) if isinstance(t, Lambda) else Failure("body", t, "no lambda"),
    )


def function(s: Rewrite) -> Strategy:
    return Strategy(
        "function",
        lambda t: at_child(0, s, t) if isinstance(t, Apply) else Failure("function", t, "no application"),
    )


def argument(s: Rewrite) -> Strategy:
    return Strategy(
        "argument",
        lambda t: at_child(1, s, t) if isinstance(t, Apply) else Failure("argument", t, "no application"),
    )


def argument_of(name: str, s: Rewrite) -> Strategy:
    """The last argument of an application of the primitive."""

    def run(term: Expr) -> Result:
        head, applications = spine(term)
        if isinstance(head, Primitive) and head.name == name and applications:
            return at_child(1, s, term)
        return Failure("argument_of", term, f"no application of `{name}`")

    return Strategy("argument_of", run)


def outermost(predicate: Predicate, s: Rewrite) -> Strategy:
    """outermost p s = topDown (p ; s)"""
    return top_down(seq(check(predicate, "outermost"), s))


def innermost(predicate: Predicate, s: Rewrite) -> Strategy:
    """innermost p s = bottomUp (p ; s)"""
    return bottom_up(seq(check(predicate, "innermost"), s))


def applies(name: str) -> Predicate:
    """Whether a term is a full application of the primitive: data, not a function."""
    from rise.types import is_data

    def holds(term: Expr) -> bool:
        head, _ = spine(term)
        return isinstance(head, Primitive) and head.name == name and is_data(term.type)

    return holds
