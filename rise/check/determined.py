"""Which types the text of a definition leaves open: found by inferring them from it again."""

from __future__ import annotations

from collections.abc import Iterator

from rise.check.program import check_definition
from rise.errors import RiseError
from rise.expr import (
    Apply,
    Definition,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Reference,
    children,
    spine,
    subterms,
)
from rise.source import Source
from rise.syntax.parser import parse_file


def undetermined(definition: Definition, text: str) -> list[Expr]:
    """Subterms of the body, by identity, that have another type where the text is checked anew.

    The outermost ones, since what they are determines what is in them; functions, whose parameters
    would have to show their types, where nothing else differs. Where the text does not check at all,
    functions below a dependent function that is an argument: nothing else says of which sizes they are.
    """
    try:
        [syntax] = parse_file(Source("printed", text)).definitions
        again = check_definition(syntax, _mentioned(definition.body))
    except RecursionError:
        return []
    except RiseError:
        return list(_of_dependent_arguments(definition.body))
    return list(_differing(definition.body, again.body)) or list(_parameters(definition.body, again.body))


def _mentioned(body: Expr) -> dict[str, Definition]:
    return {term.name: term.definition for term in subterms(body) if isinstance(term, Reference)}


def _of_dependent_arguments(body: Expr) -> Iterator[Expr]:
    for term in subterms(body):
        if isinstance(term, Apply) and isinstance(term.argument, DependentLambda):
            function: Expr = term.argument
            while isinstance(function, DependentLambda):
                function = function.body
            if isinstance(function, Lambda):
                yield function


def _differing(left: Expr, right: Expr) -> Iterator[Expr]:
    match left:
        case Lambda(body=body) if isinstance(right, Lambda):
            yield from _differing(body, right.body)
        case DependentLambda(body=body) if isinstance(right, DependentLambda):
            yield from _differing(body, right.body)
        case Identifier() | Lambda() | DependentLambda():
            pass
        case _ if left.type != right.type:
            yield left
        case _:
            operands = zip(spine(left)[1], spine(right)[1], strict=False)
            for one, other in operands:
                yield from _differing(one.argument, other.argument)


def _parameters(left: Expr, right: Expr) -> Iterator[Expr]:
    if isinstance(left, Lambda) and isinstance(right, Lambda) and left.parameter.type != right.parameter.type:
        yield left
        return
    for one, other in zip(children(left), children(right), strict=False):
        yield from _parameters(one, other)
