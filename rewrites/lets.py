"""The lets and functions around a part of a term, and a part moved out of them."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.elements import names
from rewrites.typed import instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    alpha_equal,
    apply,
    call,
    children,
    fresh_name,
    with_children,
)

# a function around a term, and what it is applied to where that has a name by it
Around = tuple[Lambda, Expr | None]


def let_of(value: Expr, function: Lambda) -> Expr:
    """let x = value in e, for the function x => e"""
    let = instance("let", (value.type, function.body.type), function.origin)
    return apply(let, value, function, origin=function.origin)


def let_before(term: Expr, part: Expr, value: Expr, name: str) -> Expr:
    """let name = value in term, the name in place of every part equal to the given one.

    All binders of the term have to be distinct.
    """
    y = Identifier(fresh_name(name, names(term)), part.type, part.origin)
    return let_of(value, Lambda(y, _replaced(term, part, y), term.origin))


def _replaced(term: Expr, part: Expr, name: Identifier) -> Expr:
    if term is part or alpha_equal(term, part):
        return name
    return with_children(term, tuple(_replaced(child, part, name) for child in children(term)))


def named_value(term: Expr) -> tuple[Expr, Lambda] | None:
    """A value that `let`, or a function written in place, gives a name; and where the name stands for it."""
    match term:
        case Apply(Lambda() as body, value):
            return value, body
    match call(term):
        case "let", _, [value, Lambda() as body]:
            return value, body
        case _:
            return None


def parts_within(term: Expr, around: tuple[Around, ...]) -> Iterator[tuple[Expr, tuple[Around, ...]]]:
    """The parts of a term, a let's value before its body, each with the functions around it."""
    if (found := named_value(term)) is not None:
        value, function = found
        yield value, around
        yield function.body, (*around, (function, value))
    else:
        inner = (*around, (term, None)) if isinstance(term, Lambda) else around
        yield from ((child, inner) for child in children(term))


def with_lets(part: Expr, around: tuple[Around, ...]) -> Expr | None:
    """A part with the lets around it, as far as it uses them; None if it uses what a loop binds."""
    for function, named in reversed(around):
        if function.parameter.name not in part.free:
            continue
        if named is None:
            return None
        part = let_of(named, Lambda(function.parameter, part, function.origin))
    return part
