"""Smaller terms that still fail: whole subterms go, where Hypothesis can only change its draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from rise.expr import Expr, Identifier, Lambda, children, size, with_children
from rise.interpret.evaluate import free_identifiers
from rise.pretty import show
from rise.testing.operands import number_of
from rise.types import BOOL, Scalar, Type, is_data

Fails = Callable[[Expr], bool]
Scope = Mapping[str, Type]
TRIES = 600  # evaluations of what fails


class Counterexample(AssertionError):
    """A term for which a property fails. It is shrunk when it is shown, not each time it is met."""

    def __init__(self, message: str, term: Expr, fails: Fails, retype: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.term = term
        self.fails = fails
        self.retype = retype

    @cached_property
    def shrunk(self) -> Expr:
        return shrunk(self.term, self.fails, retype=self.retype)

    def __str__(self) -> str:
        return f"{self.message}\nthe same mistake shows in\n  {show(self.shrunk, annotate=True)}"


def shrunk(term: Expr, fails: Fails, *, retype: bool = False, tries: int = TRIES) -> Expr:
    """A term as small as can be found for which `fails` still holds; what raises does not fail.

    retype: the result of a function may become of another type, and unused parameters go
    """
    while True:
        for candidate in sorted(smaller(term, retype), key=size):
            tries -= 1
            if tries < 0:
                return term
            if _holds(fails, candidate):
                term = candidate
                break
        else:
            return term


def _holds(fails: Fails, term: Expr) -> bool:
    try:
        return fails(term)
    except Exception:
        return False


def smaller(term: Expr, retype: bool = False) -> Iterator[Expr]:
    """The term with one subterm replaced by a part of itself, a variable or a literal of its type."""
    free = {i.name: i.type for i in free_identifiers(term)}
    yield from _replaced(term, free)
    if retype:
        yield from _retyped(term, free)


def _replaced(term: Expr, scope: Scope) -> Iterator[Expr]:
    own = size(term)
    if own > 1:
        yield from (part for part in _candidates(term, scope) if size(part) < own)
    if isinstance(term, Lambda):
        inner = {**scope, term.parameter.name: term.parameter.type}
        yield from (with_children(term, (body,)) for body in _replaced(term.body, inner))
        return
    below = children(term)
    for i, child in enumerate(below):
        for new in _replaced(child, scope):
            yield with_children(term, (*below[:i], new, *below[i + 1 :]))


def _candidates(term: Expr, scope: Scope) -> Iterator[Expr]:
    """Of the same type, over the names in scope, each once."""
    yield from dict.fromkeys(p for p in _parts(term, scope) if p.type == term.type)
    if is_data(term.type):
        yield from (Identifier(name, t) for name, t in scope.items() if t == term.type)
    if isinstance(term.type, Scalar):
        yield number_of(term.type != BOOL and 0, term.type)


def _parts(term: Expr, scope: Scope) -> Iterator[Expr]:
    """Proper subterms whose free names mean something of their type in the scope."""
    for child in children(term):
        if all(scope.get(i.name) == i.type for i in free_identifiers(child)):
            yield child
        yield from _parts(child, scope)


def _retyped(term: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(term, Lambda):
        parameter = term.parameter
        inner = {**scope, parameter.name: parameter.type}
        yield from (with_children(term, (body,)) for body in _retyped(term.body, inner))
        if parameter.name not in term.body.free:
            yield term.body
    else:
        yield from dict.fromkeys(p for p in _parts(term, scope) if is_data(p.type))
