"""Strategies: functions from a term to a `Success` or a `Failure`, composed by `>>`, `|` and `@`.

Rules are strategies. `strategies.core` has the other combinators, and the traversals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import ParamSpec, TypeVar

from rewrites.result import ELLIPSIS, Combination, Failure, Result, Step, Success, no_result, shown
from rise.data import shown as words
from rise.errors import StrategyError
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive
from rise.frozen import cached_property, filled_at_once

Rewrite = Callable[[Expr], Result]
Attempt = Callable[[Expr], Success | None]
Head = tuple[str, int] | None
P = ParamSpec("P")
S = TypeVar("S", bound="Strategy")
STRATEGIES = "a strategy is made of rules and of functions from a term to a Success or a Failure"
# strategies that steps are listed under print with at most so many characters
LONGEST_TITLE = 60
# how sequence and choice print: their operator, and what they are without parts
OPERATORS = {"seq": (" >> ", "id_"), "choice": (" | ", "fail")}


class Strategy:
    """A named function from terms to results. It prints as the expression that makes it."""

    name: str

    def __call__(self, term: Expr) -> Result:
        raise NotImplementedError

    def attempt(self, term: Expr) -> Success | None:
        """The success, or None where the strategy fails and nobody will ask why: no reason is made up."""
        result = self(term)
        return result if isinstance(result, Success) else None

    def __rshift__(self, other: Rewrite) -> Strategy:
        return seq(self, other)

    def __rrshift__(self, other: Rewrite) -> Strategy:
        return seq(other, self)

    def __or__(self, other: Rewrite) -> Strategy:
        return choice(self, other)

    def __ror__(self, other: Rewrite) -> Strategy:
        return choice(other, self)

    def __matmul__(self, traversal: Callable[[Rewrite], Strategy]) -> Strategy:
        return traversal(self)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that makes a strategy."""

    function: str
    given: tuple[object, ...]
    named: Mapping[str, object]

    @property
    def is_glue(self) -> bool:
        """Whether nobody looks for steps under it: an operator, or a function of a module alone."""
        return self.function in OPERATORS or self.function.startswith("_")

    def __str__(self) -> str:
        if self.function in OPERATORS:
            operator, empty = OPERATORS[self.function]
            loose = self.function == "seq" and len(self.given) > 1
            return operator.join(_operand(part, loose) for part in self.given) or empty
        named = (f"{name}={_argument(value)}" for name, value in self.named.items())
        return f"{self.function}({', '.join((*map(_argument, self.given), *named))})"


def _operand(part: object, tight: bool) -> str:
    """A part of a sequence or a choice; choices among the parts of a sequence are in parentheses."""
    if not isinstance(part, Strategy):
        return f"strategy({_argument(part)})"
    made = part.made if isinstance(part, FunctionStrategy) else None
    looser = made is not None and made.function == "choice" and len(made.given) > 1
    return f"({part!r})" if looser and tight else repr(part)


def _argument(value: object) -> str:
    match value:
        case Strategy():
            return repr(value)
        case Apply() | Lambda() | Identifier() | Literal() | Primitive():
            return f"`{shown(value)}`"
        case _ if callable(value) and hasattr(value, "__name__"):
            return str(value.__name__).replace("<lambda>", "…")
        case _:
            return repr(value)


@filled_at_once
@dataclass(frozen=True, repr=False, slots=True)
class FunctionStrategy(Strategy):
    """The strategy that a function is.

    first: what a term has to apply, if anything, as for a rule; or a strategy that says so, once it is asked
    quiet: what `attempt` does, where that costs less than the function
    """

    name: str
    function: Rewrite
    first: Head | Strategy = None
    quiet: Attempt | None = field(default=None, compare=False)
    made: Call | None = field(default=None, compare=False)

    def __call__(self, term: Expr) -> Result:
        result = self.function(term)
        if isinstance(result, Success):
            return within(self.title, result) if self.is_phase else result
        if isinstance(result, Failure):
            return result
        raise no_result(f"the strategy `{self.name}`", result, self.function)

    def attempt(self, term: Expr) -> Success | None:
        if self.quiet is None:
            return Strategy.attempt(self, term)  # a class with slots is another one than `super` finds
        result = self.quiet(term)
        return within(self.title, result) if result is not None and self.is_phase else result

    @property
    def head(self) -> Head:
        return head_of(self.first) if isinstance(self.first, Strategy) else self.first

    @cached_property
    def is_phase(self) -> bool:
        """Whether it is more than how other strategies are combined: none of them is an argument."""
        if self.made is None or self.made.is_glue:
            return False
        return not any(map(callable, (*self.made.given, *self.made.named.values())))

    @cached_property
    def title(self) -> str:
        """The call that made it, or only the name of the function where that is long."""
        whole = repr(self)
        return (
            whole if self.made is None or len(whole) <= LONGEST_TITLE else f"{self.made.function}{ELLIPSIS}"
        )

    def __repr__(self) -> str:
        return self.name if self.made is None else str(self.made)


def prints_as_call(make: Callable[P, S]) -> Callable[P, S]:
    """Lets the strategies that a function makes print as its calls, `top_down(MAP_FUSION)`."""

    @wraps(make)
    def factory(*given: P.args, **named: P.kwargs) -> S:
        result = make(*given, **named)
        if not isinstance(result, FunctionStrategy):
            return result
        return replace(result, made=Call(make.__name__, given, named))

    return factory


def strategy(function: Rewrite) -> Strategy:
    """A function from a term to a result as a strategy. StrategyError R0631 for anything else."""
    if isinstance(function, Strategy):
        return function
    if not callable(function):
        raise StrategyError("R0631", f"{words(function)} is not a strategy", hint=STRATEGIES)
    name = getattr(function, "name", getattr(function, "__name__", "strategy"))
    made = Call("strategy", (function,), {})
    return FunctionStrategy(name, function, head_of(function), made=made)


def head_of(s: Rewrite) -> Head:
    """The primitive that a term has to apply for a strategy to succeed, and to how many arguments."""
    return getattr(s, "head", None)


def within(title: str, result: Success) -> Success:
    """The success of a part of a strategy as one of the strategy with that title."""
    if not result.steps:
        return result
    return Success(result.term, tuple(step.within(title) for step in result.steps), result.missed)


def part_of_sequence(part: Strategy, result: Result) -> Result:
    """A combination that is written as a part of a sequence is what its steps are listed under."""
    if not isinstance(result, Success) or not isinstance(part, FunctionStrategy) or part.is_phase:
        return result
    if part.made is None or part.made.is_glue:
        return result
    steps = tuple(step.combined(Combination(part.title)) for step in result.steps)
    return Success(result.term, steps, result.missed)


def then(first: Result, second: Rewrite) -> Result:
    """What a strategy makes of the result of another one."""
    if isinstance(first, Failure):
        return first
    result = second(first.term)
    if isinstance(result, Failure):
        return result.following(first) if first.steps or first.missed else result
    return Success(result.term, first.steps + result.steps, _closest(first.missed, result.missed))


def _closest(first: Failure | None, second: Failure | None) -> Failure | None:
    return first.closer(second) if first else second


# succeeds, and changes nothing
id_: Strategy = FunctionStrategy("id_", Success)
# fails for every term
fail: Strategy = FunctionStrategy("fail", lambda term: Failure("fail", term, "it always fails"))


@prints_as_call
def seq(*parts: Rewrite) -> Strategy:
    """a ; b: b after a, if both succeed."""

    strategies = tuple(map(strategy, parts))

    def run(term: Expr) -> Result:
        result: Result = Success(term)
        for part in strategies:
            result = then(result, lambda term, part=part: part_of_sequence(part, part(term)))  # type: ignore[misc]  # by value
        return result

    def quiet(term: Expr) -> Success | None:
        steps: tuple[Step, ...] = ()
        for part in strategies:
            result = part.attempt(term)
            if result is None:
                return None
            made = part_of_sequence(part, result)
            term, steps = result.term, steps + made.steps  # type: ignore[union-attr]  # of a success
        return Success(term, steps)

    return FunctionStrategy("seq", run, strategies[0] if strategies else None, quiet)


@prints_as_call
def choice(*parts: Rewrite) -> Strategy:
    """a <+ b: the first that succeeds; of the failures, the one that came closest.

    Rules that are for other primitives than a term applies are not tried. Where what succeeds does
    nothing, as in `try`, the success remembers what failed before it.
    """
    strategies = tuple(map(strategy, parts))
    by_head: dict[Head, tuple[list[Strategy], list[Strategy]]] = {}

    def candidates(term: Expr) -> tuple[list[Strategy], list[Strategy]]:
        """Those that may apply, and those that are ruled out."""
        head = term.head if isinstance(term, Apply) else None
        if head not in by_head:
            fits = [head_of(part) in (None, head) for part in strategies]
            by_head[head] = (
                [part for part, fit in zip(strategies, fits, strict=True) if fit],
                [part for part, fit in zip(strategies, fits, strict=True) if not fit],
            )
        return by_head[head]

    def run(term: Expr) -> Result:
        closest: Failure | None = None
        chosen, others = candidates(term)
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

    def quiet(term: Expr) -> Success | None:
        for part in candidates(term)[0]:
            result = part.attempt(term)
            if result is not None:
                return result
        return None

    return FunctionStrategy("choice", run, quiet=quiet)
