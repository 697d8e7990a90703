"""ELEVATE's combinators and traversals: one equation each, as in the ICFP'20 paper (section 3).

A strategy takes a term to a `Success` or a `Failure`. `a >> b` is sequence, `a | b` is left choice,
`s @ traversal` is the traversal of s: `s @ top_down`, `s @ body`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rewrites.result import Failure, Result, Step, Success, no_result
from rewrites.strategy import (
    FunctionStrategy,
    Head,
    Rewrite,
    Strategy,
    choice,
    fail,
    id_,
    prints_as_call,
    seq,
    strategy,
    then,
)
from rise.expr import (
    Apply,
    DependentLambda,
    Expr,
    Lambda,
    Primitive,
    alpha_equal,
    children,
    spine,
    with_children,
)
from rise.pretty import show
from rise.types import is_data

__all__ = [
    "Applies", "FunctionStrategy", "Head", "Predicate", "Rewrite", "Strategy", "all_", "all_bottom_up",
    "all_top_down", "alltd", "applies", "apply_n_times", "argument", "argument_of", "at_child",
    "at_children", "body", "bottom_up", "check", "choice", "contains", "depending", "downup",
    "everywhere", "fail", "function", "id_", "if_", "if_then_else", "innermost", "is_equal_to",
    "normalize", "not_", "one", "outermost", "peek", "position", "prints_as_call", "recursive", "repeat",
    "repeat_n_times", "seq", "skip", "some", "somebu", "sometd", "strategy", "top_down", "try_",
]  # fmt: skip

Predicate = Callable[[Expr], bool]


# --- combinators ----------------------------------------------------------------------------------------


@prints_as_call
def try_(s: Rewrite) -> Strategy:
    """try s = s <+ id"""
    return choice(s, id_)


@prints_as_call
def repeat(s: Rewrite, limit: int = 10_000) -> Strategy:
    """repeat s = try (s ; repeat s), as a loop; fails where the strategy never ends."""
    s = strategy(s)

    def run(term: Expr) -> Result:
        steps: list[Step] = []
        current = term
        for count in range(limit):
            try:
                result = s.attempt(current)
            except RecursionError:
                return _endless("repeat", term, count, steps)
            if result is None:
                return Success(current, tuple(steps))
            current = result.term
            steps += result.steps
        return _endless("repeat", term, limit, steps)

    return FunctionStrategy("repeat", run)


def _named(traversal: str, s: Rewrite) -> str:
    return f"{traversal}({strategy(s).name})"


def _endless(name: str, term: Expr, limit: int, steps: Sequence[Step]) -> Failure:
    last = f", the last of them by `{steps[-1].rule}`" if steps else ""
    hint = "repeat only rules that do not apply to what they, or the others, make"
    return Failure(name, term, f"still applicable after {limit} repetitions{last}", hint=hint)


@prints_as_call
def repeat_n_times(n: int, s: Rewrite) -> Strategy:
    """s ; … ; s, n times"""
    return seq(*[s] * n)


@prints_as_call
def apply_n_times(n: int, traversal: Callable[[Rewrite], Strategy], s: Rewrite) -> Strategy:
    """traversal (… (traversal s)), n times"""
    return strategy(s) if n == 0 else traversal(apply_n_times(n - 1, traversal, s))


# --- predicates -------------------------------------------------------------------------------------------


@prints_as_call
def check(predicate: Predicate, name: str, reason: str = "") -> Strategy:
    """Succeeds unchanged where the predicate holds; fails with the reason elsewhere."""
    why = reason or f"expected {getattr(predicate, 'wanted', 'a term of another form')}"
    return FunctionStrategy(name, lambda t: Success(t) if predicate(t) else Failure(name, t, why))


@prints_as_call
def not_(s: Rewrite) -> Strategy:
    """Succeeds unchanged where s fails."""
    name = strategy(s).name
    return check(lambda t: isinstance(s(t), Failure), "not", f"`{name}` applies, but must not")


@prints_as_call
def if_then_else(condition: Rewrite, then: Rewrite, otherwise: Rewrite) -> Strategy:
    """then where the condition would succeed, otherwise elsewhere; the condition itself does nothing."""
    return depending(lambda t: then if isinstance(condition(t), Success) else otherwise)


@prints_as_call
def if_(condition: Rewrite, then: Rewrite) -> Strategy:
    """if c s = ifThenElse c s id"""
    return if_then_else(condition, then, id_)


@prints_as_call
def is_equal_to(wanted: Expr) -> Strategy:
    """Succeeds for that term, bound variables of any names."""
    return check(lambda t: alpha_equal(t, wanted), "is_equal_to", f"the term is not `{show(wanted)}`")


@prints_as_call
def contains(s: Rewrite) -> Strategy:
    """Succeeds unchanged where s would succeed somewhere in the term."""
    return if_then_else(top_down(s), id_, seq(top_down(s), fail))


@prints_as_call
def peek(look: Callable[[Expr], object]) -> Strategy:
    """id, which first passes the term to a function: `peek(lambda term: print(show(term)))`."""
    return FunctionStrategy("peek", lambda t: (look(t), Success(t))[1])


@prints_as_call
def depending(make: Callable[[Expr], Rewrite]) -> Strategy:
    """The strategy that a function chooses for a term."""
    return FunctionStrategy("depending", lambda term: make(term)(term))


# --- one level --------------------------------------------------------------------------------------------


def at_child(index: int, s: Rewrite, term: Expr) -> Result:
    """s applied to one child."""
    child = children(term)[index]
    result = _for_all_sizes(term, child, s(child))
    if isinstance(result, Success):
        return _lifted(term, index, result)
    if isinstance(result, Failure):
        return result.below(index)
    raise no_result("the strategy", result, s)


def _for_all_sizes(term: Expr, child: Expr, result: Result) -> Result:
    """The result at a child; a failure if it is right for some only of the sizes that a child is applied to.

    `iterate` applies its argument to sizes of its own. What a step asks of these sizes cannot become part of
    the type of the program, since no caller chooses them.
    """
    if not (isinstance(child, DependentLambda) and isinstance(term, Apply) and isinstance(result, Success)):
        return result
    for step in result.steps:
        if any(child.name in asked.variables for asked in step.constraints):
            asked = ", ".join(f"`{each}`" for each in step.constraints)
            reason = f"it asks for {asked}, and the function is applied to sizes that no caller chooses"
            return Failure(step.rule, step.before, reason, path=step.path)
    return result


def _lifted(term: Expr, index: int, result: Success) -> Success:
    """What happened to a child as what happened to the term."""
    below = children(term)
    if result.term is below[index] and not result.missed:
        return Success(term, tuple([step.below(index) for step in result.steps]))
    new = with_children(term, (*below[:index], result.term, *below[index + 1 :]))
    missed = result.missed.below(index) if result.missed else None
    return Success(new, tuple([step.below(index) for step in result.steps]), missed)


def at_children(indices: Iterable[int], s: Rewrite, term: Expr) -> Result:
    """s applied to some of the children, one after the other; fails if it fails at one."""
    result: Result = Success(term)
    for index in indices:
        result = then(result, partial(at_child, index, s))
    return result


@prints_as_call
def one(s: Rewrite) -> Strategy:
    """s at the first child where it succeeds."""
    s = strategy(s)

    def run(term: Expr) -> Result:
        closest: Failure | None = None
        for index, child in enumerate(children(term)):
            result = _for_all_sizes(term, child, s(child))
            if isinstance(result, Success):
                return _lifted(term, index, result)
            if closest is None or closest.closer(result) is result:
                closest = result.below(index)
        return closest or Failure("one", term, "the term has no parts", -2)

    def quiet(term: Expr) -> Success | None:
        for index, child in enumerate(children(term)):
            result = s.attempt(child)
            if result is not None and _for_all_sizes(term, child, result) is result:
                return _lifted(term, index, result)
        return None

    return FunctionStrategy("one", run, quiet=quiet)


@prints_as_call
def all_(s: Rewrite) -> Strategy:
    """s at every child; fails if it fails at one."""
    s = strategy(s)
    return FunctionStrategy("all", lambda term: at_children(range(len(children(term))), s, term))


@prints_as_call
def some(s: Rewrite) -> Strategy:
    """s at every child where it succeeds; fails if there is none."""
    s = strategy(s)

    def run(term: Expr) -> Result:
        result, closest = Success(term), Failure("some", term, "the term has no parts", -2)
        applied = False
        for index in range(len(children(term))):
            following = then(result, partial(at_child, index, s))
            if isinstance(following, Success):
                result, applied = following, True
            else:
                closest = closest.closer(following)
        return result if applied else closest

    return FunctionStrategy("some", run)


def recursive(name: str, equation: Callable[[Strategy], Strategy]) -> Strategy:
    """The fixed point s = equation(s)."""
    knot: list[Strategy] = []
    itself = FunctionStrategy(name, lambda term: knot[0](term), quiet=lambda term: knot[0].attempt(term))
    knot.append(equation(itself))
    return itself


# --- traversals --------------------------------------------------------------------------------------------


@prints_as_call
def top_down(s: Rewrite) -> Strategy:
    """topDown s = s <+ one (topDown s)"""
    return recursive(_named("top_down", s), lambda itself: choice(s, one(itself)))


@prints_as_call
def bottom_up(s: Rewrite) -> Strategy:
    """bottomUp s = one (bottomUp s) <+ s"""
    return recursive(_named("bottom_up", s), lambda itself: choice(one(itself), s))


@prints_as_call
def all_top_down(s: Rewrite) -> Strategy:
    """allTopDown s = s ; all (allTopDown s)"""
    return recursive(_named("all_top_down", s), lambda itself: seq(s, all_(itself)))


@prints_as_call
def all_bottom_up(s: Rewrite) -> Strategy:
    """allBottomUp s = all (allBottomUp s) ; s"""
    return recursive(_named("all_bottom_up", s), lambda itself: seq(all_(itself), s))


@prints_as_call
def normalize(s: Rewrite, limit: int = 10_000) -> Strategy:
    """normalize s = repeat (topDown s); a part in which s was found not to apply is not searched again."""
    first = partial(_first_unsettled, strategy(s), next(NORMAL_FORMS))

    def run(term: Expr) -> Result:
        nothing = Failure("normalize", term, "nothing applies")
        rule = FunctionStrategy("first", lambda part: first(part) or nothing, quiet=first)
        return repeat(rule, limit)(term)

    return FunctionStrategy("normalize", run)


NORMAL_FORMS = itertools.count()  # numbers of normal forms, by which terms remember in which ones they are
REMEMBERED = 7  # besides the last one: strategies that are made anew for each term are asked once


def _first_unsettled(s: Strategy, form: int, part: Expr) -> Success | None:
    """The first place, top down, where s applies; what is searched in vain remembers that it has the form."""
    known = part.__dict__
    settled = known.get("settled", ())
    if form in settled:
        return None
    result = s.attempt(part)
    if result is not None:
        return result
    for index, child in enumerate(children(part)):
        below = _first_unsettled(s, form, child)
        if below is not None and _for_all_sizes(part, child, below) is below:
            return _lifted(part, index, below)
    known["settled"] = (*settled[-REMEMBERED:], form)
    return None


@prints_as_call
def everywhere(s: Rewrite) -> Strategy:
    """tryAll s: wherever s applies, top down, once."""
    return all_top_down(try_(s))


@prints_as_call
def downup(down: Rewrite, up: Rewrite | None = None) -> Strategy:
    """downup s = s ; all (downup s) ; s; with two strategies, the second on the way up"""
    return recursive(_named("downup", down), lambda itself: seq(down, all_(itself), up or down))


@prints_as_call
def alltd(s: Rewrite) -> Strategy:
    """alltd s = s <+ all (alltd s): the outermost place on every way down, where there is one"""
    return recursive(_named("alltd", s), lambda itself: choice(s, all_(itself)))


@prints_as_call
def sometd(s: Rewrite) -> Strategy:
    """sometd s = s <+ some (sometd s): the outermost places where s applies; fails if there is none"""
    return recursive(_named("sometd", s), lambda itself: choice(s, some(itself)))


@prints_as_call
def somebu(s: Rewrite) -> Strategy:
    """somebu s = some (somebu s) <+ s: the innermost places where s applies; fails if there is none"""
    return recursive(_named("somebu", s), lambda itself: choice(some(itself), s))


@prints_as_call
def position(n: int, s: Rewrite) -> Strategy:
    """s at the n-th node, from 0, top down."""
    s = strategy(s)

    def run(term: Expr) -> Result:
        seen = -1

        def here(part: Expr) -> Result:
            nonlocal seen
            seen += 1
            return s(part) if seen == n else Failure("position", part, "it is at another position", -1)

        result = top_down(here)(term)
        if isinstance(result, Failure) and seen < n:
            return Failure(
                "position", term, f"the term has {seen + 1} parts, none of which has the number {n}"
            )
        return result

    return FunctionStrategy("position", run)


@prints_as_call
def skip(n: int, s: Rewrite) -> Strategy:
    """s at the first place, top down, after n others where it would apply."""
    s = strategy(s)

    def run(term: Expr) -> Result:
        left = n

        def here(part: Expr) -> Result:
            nonlocal left
            result = s(part)
            if isinstance(result, Success) and left > 0:
                left -= 1
                return Failure("skip", part, "it is skipped")
            return result

        result = top_down(here)(term)
        if isinstance(result, Failure) and left < n:
            count = f"{n - left} place{'s' if n - left > 1 else ''}"
            return Failure("skip", term, f"`{strategy(s).name}` applies at {count}, all of which are skipped")
        return result

    return FunctionStrategy("skip", run)


# --- traversals that know RISE ------------------------------------------------------------------------------


@prints_as_call
def body(s: Rewrite) -> Strategy:
    """s in the body of a lambda."""
    return FunctionStrategy(
        "body",
        lambda t: at_child(0, s, t) if isinstance(t, Lambda) else Failure("body", t, "expected a function"),
    )


@prints_as_call
def function(s: Rewrite) -> Strategy:
    """s at the function of an application."""
    return FunctionStrategy(
        "function",
        lambda t: (
            at_child(0, s, t) if isinstance(t, Apply) else Failure("function", t, "expected an application")
        ),
    )


@prints_as_call
def argument(s: Rewrite) -> Strategy:
    """s at the argument of an application; of `x |> f` that is x."""
    return FunctionStrategy(
        "argument",
        lambda t: (
            at_child(1, s, t) if isinstance(t, Apply) else Failure("argument", t, "expected an application")
        ),
    )


@prints_as_call
def argument_of(name: str, s: Rewrite) -> Strategy:
    """s at the last argument of an application of the primitive."""

    def run(term: Expr) -> Result:
        head, applications = spine(term)
        if isinstance(head, Primitive) and head.name == name and applications:
            return at_child(1, s, term)
        return Failure("argument_of", term, f"expected an application of `{name}`")

    return FunctionStrategy("argument_of", run)


@prints_as_call
def outermost(predicate: Predicate, s: Rewrite) -> Strategy:
    """outermost p s = topDown (p ; s)"""
    return top_down(seq(check(predicate, "outermost"), s))


@prints_as_call
def innermost(predicate: Predicate, s: Rewrite) -> Strategy:
    """innermost p s = bottomUp (p ; s)"""
    return bottom_up(seq(check(predicate, "innermost"), s))


@dataclass(frozen=True, repr=False)
class Applies:
    """Whether a term is a full application of a primitive: data, not a function."""

    name: str

    def __repr__(self) -> str:
        return f'applies("{self.name}")'

    def __call__(self, term: Expr) -> bool:
        head, _ = spine(term)
        return isinstance(head, Primitive) and head.name == self.name and is_data(term.type)

    @property
    def wanted(self) -> str:
        return f"an application of `{self.name}`"


def applies(name: str) -> Predicate:
    """The predicate that a term is a full application of the primitive."""
    return Applies(name)
