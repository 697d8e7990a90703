"""ELEVATE's combinators and traversals: one equation each, as in the ICFP'20 paper (section 3).

A strategy takes a term to a `Success` or a `Failure`. `a >> b` is sequence, `a | b` is left choice,
`s @ traversal` is the traversal of s: `s @ top_down`, `s @ body`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rewrites.result import Failure, Result, Step, Success, no_result
from rise.data import shown
from rise.errors import StrategyError
from rise.expr import Apply, Expr, Lambda, Primitive, alpha_equal, children, spine, with_children
from rise.pretty import show
from rise.types import is_data

Rewrite = Callable[[Expr], Result]
Predicate = Callable[[Expr], bool]
Head = tuple[str, int] | None
STRATEGIES = "a strategy is made of rules and of functions from a term to a Success or a Failure"


@dataclass(frozen=True)
class Strategy:
    """A named function from terms to results; `head` as of a rule: what a term has to apply, if anything."""

    name: str
    function: Rewrite
    head: Head = None

    def __call__(self, term: Expr) -> Result:
        result = self.function(term)
        if isinstance(result, (Success, Failure)):
            return result
        raise no_result(f"the strategy `{self.name}`", result, self.function)

    def __rshift__(self, other: Rewrite) -> Strategy:
        return seq(self, other)

    def __or__(self, other: Rewrite) -> Strategy:
        return choice(self, other)

    def __matmul__(self, traversal: Callable[[Rewrite], Strategy]) -> Strategy:
        return traversal(self)


def strategy(function: Rewrite) -> Strategy:
    """A rule or a function as a strategy, so that `>>`, `|` and `@` apply. StrategyError R0631 for others."""
    if isinstance(function, Strategy):
        return function
    if not callable(function):
        raise StrategyError("R0631", f"{shown(function)} is no strategy", hint=STRATEGIES)
    name = getattr(function, "name", getattr(function, "__name__", "strategy"))
    return Strategy(name, function, _head(function))


def _part(s: Rewrite) -> Rewrite:
    """What a combinator is given; functions of Python as strategies, which see to it what they return."""
    return s if callable(s) and hasattr(s, "name") else strategy(s)


def _named(traversal: str, s: Rewrite) -> str:
    return f"{traversal}({strategy(s).name})"


def _head(s: Rewrite) -> Head:
    return getattr(s, "head", None)


def _then(first: Result, second: Rewrite) -> Result:
    if isinstance(first, Failure):
        return first
    result = second(first.term)
    if isinstance(result, Failure):
        return result.following(first) if first.steps or first.missed else result
    return Success(result.term, first.steps + result.steps, _closest(first.missed, result.missed))


def _closest(first: Failure | None, second: Failure | None) -> Failure | None:
    return first.closer(second) if first else second


# --- combinators ----------------------------------------------------------------------------------------

id_ = Strategy("id", Success)
fail = Strategy("fail", lambda term: Failure("fail", term, "it always fails"))


def seq(*parts: Rewrite) -> Strategy:
    """a ; b: b after a, if both succeed."""

    parts = tuple(map(_part, parts))

    def run(term: Expr) -> Result:
        result: Result = Success(term)
        for part in parts:
            result = _then(result, part)
        return result

    return Strategy("seq", run, _head(parts[0]) if parts else None)


def choice(*parts: Rewrite) -> Strategy:
    """a <+ b: the first that succeeds; of the failures, the one that came closest.

    Rules that are for other primitives than a term applies are not tried. Where what succeeds does
    nothing, as in `try`, the success remembers what failed before it.
    """
    parts = tuple(map(_part, parts))
    by_head: dict[Head, tuple[list[Rewrite], list[Rewrite]]] = {}

    def candidates(head: Head) -> tuple[list[Rewrite], list[Rewrite]]:
        """Those that may apply, and those that are ruled out."""
        if head not in by_head:
            fits = [_head(part) in (None, head) for part in parts]
            by_head[head] = (
                [part for part, fit in zip(parts, fits, strict=True) if fit],
                [part for part, fit in zip(parts, fits, strict=True) if not fit],
            )
        return by_head[head]

    def run(term: Expr) -> Result:
        closest: Failure | None = None
        chosen, others = candidates(term.head if isinstance(term, Apply) else None)
        for part in chosen:
            result = part(term)
            if isinstance(result, Success):
                if closest is None or result.steps:
                    return result
                return Success(result.term, (), closest.closer(result.missed))
            closest = result if closest is None else closest.closer(result)
        if others and (closest is None or closest.depth < 0):
            ruled_out = others[0](term)
            closest = ruled_out.closer(closest) if isinstance(ruled_out, Failure) else closest
        return closest or fail(term)

    return Strategy("choice", run)


def try_(s: Rewrite) -> Strategy:
    """try s = s <+ id"""
    return choice(s, id_)


def repeat(s: Rewrite, limit: int = 10_000) -> Strategy:
    """repeat s = try (s ; repeat s), as a loop; a strategy that never ends is a failure that says so."""
    s = _part(s)

    def run(term: Expr) -> Result:
        steps: list[Step] = []
        current = term
        for count in range(limit):
            try:
                result = s(current)
            except RecursionError:
                return _endless("repeat", term, count, steps)
            if isinstance(result, Failure):
                return Success(current, tuple(steps))
            current = result.term
            steps += result.steps
        return _endless("repeat", term, limit, steps)

    return Strategy("repeat", run)


def _endless(name: str, term: Expr, limit: int, steps: Sequence[Step]) -> Failure:
    last = f", the last of them by `{steps[-1].rule}`" if steps else ""
    hint = "repeat only rules that do not apply to what they, or the others, make"
    return Failure(name, term, f"still applicable after {limit} repetitions{last}", hint=hint)


def repeat_n_times(n: int, s: Rewrite) -> Strategy:
    """s ; … ; s, n times"""
    return seq(*[s] * n)


def apply_n_times(n: int, traversal: Callable[[Rewrite], Strategy], s: Rewrite) -> Strategy:
    """traversal (… (traversal s)), n times"""
    return strategy(s) if n == 0 else traversal(apply_n_times(n - 1, traversal, s))


# --- predicates -------------------------------------------------------------------------------------------


def check(predicate: Predicate, name: str, reason: str = "") -> Strategy:
    """Succeeds unchanged where the predicate holds; fails with the reason elsewhere."""
    why = reason or f"expected {getattr(predicate, 'wanted', 'a term of another form')}"
    return Strategy(name, lambda t: Success(t) if predicate(t) else Failure(name, t, why))


def not_(s: Rewrite) -> Strategy:
    """Succeeds unchanged where s fails."""
    name = strategy(s).name
    return check(lambda t: isinstance(s(t), Failure), "not", f"`{name}` applies, and must not")


def if_then_else(condition: Rewrite, then: Rewrite, otherwise: Rewrite) -> Strategy:
    """then where the condition would succeed, otherwise elsewhere; the condition itself does nothing."""
    return depending(lambda t: then if isinstance(condition(t), Success) else otherwise)


def if_(condition: Rewrite, then: Rewrite) -> Strategy:
    """if c s = ifThenElse c s id"""
    return if_then_else(condition, then, id_)


def is_equal_to(wanted: Expr) -> Strategy:
    """Succeeds for that term, bound variables of any names."""
    return check(lambda t: alpha_equal(t, wanted), "is_equal_to", f"the term is not `{show(wanted)}`")


def contains(s: Rewrite) -> Strategy:
    """Succeeds unchanged where s would succeed somewhere in the term."""
    return if_then_else(top_down(s), id_, seq(top_down(s), fail))


def peek(look: Callable[[Expr], object]) -> Strategy:
    """id, that shows each term it meets: `peek(lambda term: print(show(term)))`."""
    return Strategy("peek", lambda t: (look(t), Success(t))[1])


def depending(make: Callable[[Expr], Rewrite]) -> Strategy:
    """The strategy that a term asks for."""
    return Strategy("depending", lambda term: make(term)(term))


# --- one level --------------------------------------------------------------------------------------------


def at_child(index: int, s: Rewrite, term: Expr) -> Result:
    """s applied to one child."""
    result = s(children(term)[index])
    if isinstance(result, Success):
        return _lifted(term, index, result)
    if isinstance(result, Failure):
        return result.below(index)
    raise no_result("the strategy", result, s)


def _lifted(term: Expr, index: int, result: Success) -> Success:
    """What happened to a child as what happened to the term."""
    below = children(term)
    if result.term is below[index] and not result.missed:
        return Success(term, tuple(step.below(index) for step in result.steps))
    new = with_children(term, (*below[:index], result.term, *below[index + 1 :]))
    missed = result.missed.below(index) if result.missed else None
    return Success(new, tuple(step.below(index) for step in result.steps), missed)


def at_children(indices: Iterable[int], s: Rewrite, term: Expr) -> Result:
    """s applied to some of the children, one after the other; fails if it fails at one."""
    result: Result = Success(term)
    for index in indices:
        result = _then(result, partial(at_child, index, s))
    return result


def one(s: Rewrite) -> Strategy:
    """s at the first child where it succeeds."""
    s = _part(s)

    def run(term: Expr) -> Result:
        closest: Failure | None = None
        for index, child in enumerate(children(term)):
            result = s(child)
            if isinstance(result, Success):
                return _lifted(term, index, result)
            if closest is None or closest.closer(result) is result:
                closest = result.below(index)
        return closest or Failure("one", term, "the term has no parts", -2)

    return Strategy("one", run)


def all_(s: Rewrite) -> Strategy:
    """s at every child; fails if it fails at one."""
    s = _part(s)
    return Strategy("all", lambda term: at_children(range(len(children(term))), s, term))


def some(s: Rewrite) -> Strategy:
    """s at every child where it succeeds; fails if there is none."""
    s = _part(s)

    def run(term: Expr) -> Result:
        result, closest = Success(term), Failure("some", term, "the term has no parts", -2)
        applied = False
        for index in range(len(children(term))):
            following = _then(result, partial(at_child, index, s))
            if isinstance(following, Success):
                result, applied = following, True
            else:
                closest = closest.closer(following)
        return result if applied else closest

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
    return recursive(_named("top_down", s), lambda itself: choice(s, one(itself)))


def bottom_up(s: Rewrite) -> Strategy:
    """bottomUp s = one (bottomUp s) <+ s"""
    return recursive(_named("bottom_up", s), lambda itself: choice(one(itself), s))


def all_top_down(s: Rewrite) -> Strategy:
    """allTopDown s = s ; all (allTopDown s)"""
    return recursive(_named("all_top_down", s), lambda itself: seq(s, all_(itself)))


def all_bottom_up(s: Rewrite) -> Strategy:
    """allBottomUp s = all (allBottomUp s) ; s"""
    return recursive(_named("all_bottom_up", s), lambda itself: seq(all_(itself), s))


def normalize(s: Rewrite, limit: int = 10_000) -> Strategy:
    """normalize s = repeat (topDown s); a part in which s was found not to apply is not searched again."""
    s = _part(s)

    def run(term: Expr) -> Result:
        settled: dict[int, Expr] = {}

        def first(part: Expr) -> Success | None:
            if id(part) in settled:
                return None
            result = s(part)
            if isinstance(result, Success):
                return result
            for index, child in enumerate(children(part)):
                below = first(child)
                if below is not None:
                    return _lifted(part, index, below)
            settled[id(part)] = part  # kept alive, so that its id stays its own
            return None

        nothing = Failure("normalize", term, "nothing applies")
        return repeat(lambda part: first(part) or nothing, limit)(term)

    return Strategy("normalize", run)


def everywhere(s: Rewrite) -> Strategy:
    """tryAll s: wherever s applies, top down, once."""
    return all_top_down(try_(s))


def downup(down: Rewrite, up: Rewrite | None = None) -> Strategy:
    """downup s = s ; all (downup s) ; s; with two strategies, the second on the way up"""
    return recursive(_named("downup", down), lambda itself: seq(down, all_(itself), up or down))


def alltd(s: Rewrite) -> Strategy:
    """alltd s = s <+ all (alltd s): the outermost place on every way down, where there is one"""
    return recursive(_named("alltd", s), lambda itself: choice(s, all_(itself)))


def sometd(s: Rewrite) -> Strategy:
    """sometd s = s <+ some (sometd s): the outermost places where s applies; fails if there is none"""
    return recursive(_named("sometd", s), lambda itself: choice(s, some(itself)))


def somebu(s: Rewrite) -> Strategy:
    """somebu s = some (somebu s) <+ s: the innermost places where s applies; fails if there is none"""
    return recursive(_named("somebu", s), lambda itself: choice(some(itself), s))


def position(n: int, s: Rewrite) -> Strategy:
    """s at the n-th node, from 0, top down."""
    s = _part(s)

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

    return Strategy("position", run)


def skip(n: int, s: Rewrite) -> Strategy:
    """s at the first place, top down, after n others where it would apply."""
    s = _part(s)

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

    return Strategy("skip", run)


# --- traversals that know RISE ------------------------------------------------------------------------------


def body(s: Rewrite) -> Strategy:
    """Under a lambda."""
    return Strategy(
        "body",
        lambda t: at_child(0, s, t) if isinstance(t, Lambda) else Failure("body", t, "expected a function"),
    )


def function(s: Rewrite) -> Strategy:
    return Strategy(
        "function",
        lambda t: (
            at_child(0, s, t) if isinstance(t, Apply) else Failure("function", t, "expected an application")
        ),
    )


def argument(s: Rewrite) -> Strategy:
    return Strategy(
        "argument",
        lambda t: (
            at_child(1, s, t) if isinstance(t, Apply) else Failure("argument", t, "expected an application")
        ),
    )


def argument_of(name: str, s: Rewrite) -> Strategy:
    """The last argument of an application of the primitive."""

    def run(term: Expr) -> Result:
        head, applications = spine(term)
        if isinstance(head, Primitive) and head.name == name and applications:
            return at_child(1, s, term)
        return Failure("argument_of", term, f"expected an application of `{name}`")

    return Strategy("argument_of", run)


def outermost(predicate: Predicate, s: Rewrite) -> Strategy:
    """outermost p s = topDown (p ; s)"""
    return top_down(seq(check(predicate, "outermost"), s))


def innermost(predicate: Predicate, s: Rewrite) -> Strategy:
    """innermost p s = bottomUp (p ; s)"""
    return bottom_up(seq(check(predicate, "innermost"), s))


@dataclass(frozen=True)
class Applies:
    """Whether a term is a full application of a primitive: data, not a function."""

    name: str

    def __call__(self, term: Expr) -> bool:
        head, _ = spine(term)
        return isinstance(head, Primitive) and head.name == self.name and is_data(term.type)

    @property
    def wanted(self) -> str:
        return f"an application of `{self.name}`"


def applies(name: str) -> Predicate:
    """The predicate that a term is a full application of the primitive."""
    return Applies(name)
