"""The normal form in which terms are rewritten: gentle β, and projections of pairs.

An argument is put in place of a parameter where that repeats no work: where it only rearranges data
(views cost nothing), or where the parameter occurs once and not under another function. A function is
never data, so one that is an argument is always put in place, and so is a size.
"""

from __future__ import annotations

from rise.bounds import check_term
from rise.expr import (
    Apply,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    children,
    fresh_name,
    map_children,
    renamed,
    spine,
    substitute,
    substitute_sizes,
    with_children,
)
from rise.types import Dependent, Function, Parameter


def is_view(term: Expr, also: frozenset[str] = frozenset()) -> bool:
    """Whether a term only rearranges data that exists: it may be repeated at no cost.

    also: the names of further primitives that a caller regards as views
    """
    match term:
        case Identifier() | Literal():
            return True
        case Primitive():
            return term.declaration.view or term.name in also
        case _:
            return all(is_view(c, also) for c in children(term))


def occurrences(term: Expr, name: str, under: bool = False) -> tuple[int, bool]:
    """How often a variable occurs, and whether under a function."""
    count, inside = 0, False
    rest = [(term, under)]
    while rest:
        part, within = rest.pop()
        if name not in part.free:
            continue
        if isinstance(part, Identifier):
            count, inside = count + 1, inside or within
        within = within or isinstance(part, Lambda)
        rest += [(child, within) for child in children(part)]
    return count, inside


def beta(function: Lambda, argument: Expr) -> Expr | None:
    """(fun(x => e))(argument) with the argument in place, or None where that would repeat work."""
    count, under = occurrences(function.body, function.parameter.name)
    free = isinstance(argument.type, Function | Dependent) or is_view(argument)
    if free or count == 0 or (count == 1 and not under):
        return in_place(function, argument, count)
    parts = _pair_parts(argument)
    if parts is None:
        return None
    return _beta_pair(function, *parts)


def in_place(function: Lambda, argument: Expr, count: int) -> Expr:
    """The body of a function with the argument in place of its parameter, which occurs so many times."""
    check_term(function.body.extent + count * argument.extent, function)
    return substitute(function.body, {function.parameter.name: argument})


def _pair_parts(term: Expr) -> tuple[Expr, Expr] | None:
    head, applications = spine(term)
    if isinstance(head, Primitive) and head.name == "pair" and len(applications) == 2:
        return applications[0].argument, applications[1].argument
    return None


def _beta_pair(function: Lambda, first: Expr, second: Expr) -> Expr | None:
    """(fun(p => e))((a, b)) as (fun(x => fun(y => e[x, y])(b)))(a), if e uses p by projections only."""
    taken = set(function.body.free | first.free | second.free)
    x = Identifier(fresh_name(function.parameter.name, taken), first.type, function.origin)
    y = Identifier(fresh_name(function.parameter.name, taken | {x.name}), second.type, function.origin)
    body = _replace_projections(function.body, function.parameter.name, {"fst": x, "snd": y})
    if function.parameter.name in body.free and function.parameter.name not in (x.name, y.name):
        return None
    inner = Apply(Lambda(y, body, function.origin), second, function.origin)
    return simplify(Apply(Lambda(x, inner, function.origin), first, function.origin))


def _replace_projections(term: Expr, name: str, parts: dict[str, Identifier]) -> Expr:
    if name not in term.free:
        return term
    match term:
        case Apply(Primitive(declaration, _), Identifier(n)) if n == name and declaration.name in parts:
            return parts[declaration.name]
        case Lambda():
            inner = renamed(term, {part.name for part in parts.values()})
            return with_children(inner, (_replace_projections(inner.body, name, parts),))
        case _:
            return with_children(term, tuple(_replace_projections(c, name, parts) for c in children(term)))


def _project(term: Apply) -> Expr | None:
    function = term.function
    if isinstance(function, Primitive) and function.name in ("fst", "snd"):
        parts = _pair_parts(term.argument)
        if parts is not None:
            return parts[0] if function.name == "fst" else parts[1]
    if isinstance(function, Primitive) and function.name == "id":
        return term.argument
    return None


def simplify(term: Expr) -> Expr:
    """Bottom up, until nothing changes: gentle β, `fst((a, b))` is a, `snd((a, b))` is b."""
    if isinstance(term, ATOMS) or SIMPLE in term.__dict__:
        return term
    new = _simplified(term)
    new.__dict__[SIMPLE] = True
    return new


ATOMS = (Identifier, Literal, Primitive)
# marks the terms that are simplified: most parts of what a rule makes were before
SIMPLE = "_simple"


def _simplified(term: Expr) -> Expr:
    new = map_children(term, simplify)
    if isinstance(new, DependentApply) and isinstance(new.function, DependentLambda):
        return simplify(_at_argument(new.function, new))
    if isinstance(new, Apply):
        projection = _project(new)
        if projection is not None:
            return projection
        if isinstance(new.function, Lambda):
            reduced = beta(new.function, new.argument)
            if reduced is not None:
                return simplify(reduced)
        curried = _apply_inside(new)
        if curried is not None:
            return simplify(curried)
    return new


def _at_argument(function: DependentLambda, term: DependentApply) -> Expr:
    """depFun((n: Nat) => e) of a size is e at that size."""
    parameter = Parameter(function.name, function.kind, False)
    return substitute_sizes(function.body, {parameter.key: term.argument})


def _apply_inside(term: Apply) -> Expr | None:
    """(fun(x => f))(a)(b) as (fun(x => f(b)))(a): so that f's parameter can get its argument too."""
    inner = term.function
    if not (isinstance(inner, Apply) and isinstance(inner.function, Lambda)):
        return None
    function = inner.function
    x = function.parameter
    if x.name in term.argument.free:
        name = fresh_name(x.name, term.argument.free | function.body.free)
        renamed = Identifier(name, x.type, x.origin)
        function = Lambda(renamed, substitute(function.body, {x.name: renamed}), function.origin)
    body = Apply(function.body, term.argument, term.origin)
    return Apply(Lambda(function.parameter, body, function.origin), inner.argument, inner.origin)


def eta_expand(term: Expr) -> Expr:
    """Writes every function that is an argument as a lambda, so that rules meet one form only."""
    new = map_children(term, eta_expand)
    if (
        isinstance(new, Apply)
        and isinstance(new.argument.type, Function)
        and not isinstance(new.argument, Lambda)
    ):
        return Apply(new.function, with_inputs(new.argument), new.origin)
    return new


def with_inputs(function: Expr) -> Expr:
    """A function as lambdas, one for each input: `map(f)` is `fun(x => map(f)(x))`."""
    type_ = function.type
    if isinstance(function, Lambda):
        return with_children(function, (with_inputs(function.body),))
    if not isinstance(type_, Function):
        return function
    parameter = Identifier(fresh_name("x", function.free), type_.parameter, function.origin)
    applied = Apply(function, parameter, function.origin)
    return Lambda(parameter, with_inputs(applied), function.origin)


def data_flow(term: Expr) -> Expr:
    """The normal form that strategies start from: simplified, every function a lambda, its inputs named."""
    return simplify(with_inputs(eta_expand(simplify(term))))
