"""Parts of a program as names, while a strategy works on the rest: no rule looks into a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rewrites.result import Failure, Result, Step, Success
from rise.expr import Expr, Identifier, children, fresh_name, substitute, with_children
from strategies.core import FunctionStrategy, Rewrite, Strategy, prints_as_call

Predicate = Callable[[Expr], bool]


def outermost_parts(term: Expr, predicate: Predicate) -> list[Expr]:
    """The parts for which the predicate holds and that are in no other such part, from left to right."""
    if predicate(term):
        return [term]
    return [part for child in children(term) for part in outermost_parts(child, predicate)]


@prints_as_call
def with_parts_abstracted(predicate: Predicate, make: Callable[[Mapping[str, Expr]], Rewrite]) -> Strategy:
    """The outermost parts for which the predicate holds are names while the strategy made for them works."""

    def run(term: Expr) -> Result:
        hidden: dict[str, Expr] = {}
        for part in outermost_parts(term, predicate):
            hidden[fresh_name("hidden", set(hidden) | term.free)] = part
        result = make(hidden)(_hidden(term, {id(part): name for name, part in hidden.items()}))
        if isinstance(result, Failure):
            return result
        shown = substitute(result.term, hidden)
        if escaped := shown.free - term.free:
            reason = f"a part of it was moved away from where `{min(escaped)}` is bound"
            return Failure("with_parts_abstracted", term, reason)
        return Success(shown, tuple(_shown(step, hidden) for step in result.steps))

    return FunctionStrategy("with_parts_abstracted", run)


def _hidden(term: Expr, names: Mapping[int, str]) -> Expr:
    name = names.get(id(term))
    if name is not None:
        return Identifier(name, term.type, term.origin)
    return with_children(term, tuple(_hidden(child, names) for child in children(term)))


def _shown(step: Step, hidden: Mapping[str, Expr]) -> Step:
    return replace(step, before=substitute(step.before, hidden), after=substitute(step.after, hidden))
