"""The lets and functions around a part of a term, and a part moved out of them."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.typed import instance
from rise.expr import Apply, Expr, Lambda, apply, call, children

# a function around a term, and what it is applied to where that has a name by it
Around = tuple[Lambda, Expr | None]


def let_of(value: Expr, function: Lambda) -> Expr:
    """let x = value in e, for the function x => e"""
    let = instance("let", (value.type, function.body.type), function.origin)
    return apply(let, value, function, origin=function.origin)


def parts_within(term: Expr, around: tuple[Around, ...]) -> Iterator[tuple[Expr, tuple[Around, ...]]]:
    """The parts of a term, a let's value before its body, each with the functions around it."""
    applied = call(term)
    if applied is not None and applied[0] == "let" and len(applied[2]) == 2:
        named, function = applied[2]
    elif isinstance(term, Apply) and isinstance(term.function, Lambda):
        function, named = term.function, term.argument
    else:
        inner = (*around, (term, None)) if isinstance(term, Lambda) else around
        yield from ((child, inner) for child in children(term))
        return
    yield named, around
    if isinstance(function, Lambda):
        yield function.body, (*around, (function, named))
    else:
        yield function, around


def with_lets(part: Expr, around: tuple[Around, ...]) -> Expr | None:
    """A part with the lets around it, as far as it uses them; None if it uses what a loop binds."""
    for function, named in reversed(around):
        if function.parameter.name not in part.free:
            continue
        if named is None:
            return None
        part = let_of(named, Lambda(function.parameter, part, function.origin))
    return part
