"""Leaving out the components of zipped arrays that a map does not use."""

from __future__ import annotations

from operator import eq

from rewrites.match import project
from rewrites.rule import computed
from rewrites.typed import array_type, instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Primitive,
    alpha_equal,
    call,
    children,
    fresh_name,
    map_children,
    substitute,
)
from rise.normal import simplify

# the projections that lead from a variable to a component of it, the innermost first
Chain = tuple[str, ...]


@computed(
    "dropUnused",
    "zip(a)(b) |> map((x, y) => f(x)) → a |> map(f), for any nest of zips",
    (
        "fun((xs: 5.i32, ys: 5.f32) => zip(xs)(ys) |> map(fun((x, y) => x + 1)))",
        "fun((xs: 3.i32, ys: 3.f32, zs: 3.i32) => zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => x * z)))",
    ),
    "Components of a zip that the mapped function does not use are left out.",
    head=("map", 2),
)
def DROP_UNUSED(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return "expected a map"
    _, head, (function, xs) = applied
    if not isinstance(function, Lambda):
        return "expected a map of a function"
    if _zip_parts(xs) is None:
        return "every component is used"
    components = _used(function.body, function.parameter.name)
    kept = _keep(xs, (), components)
    if kept is xs:
        return "every component is used"
    element = array_type(kept).element
    used = function.body.free - {function.parameter.name}
    parameter = Identifier(fresh_name(function.parameter.name, used), element, function.origin)
    body = _redirect(function, components, xs, kept, parameter)
    size = array_type(xs).size
    mapped = instance("map", (size, element, body.type), term.origin)
    return simplify(
        Apply(Apply(mapped, Lambda(parameter, body, function.origin), term.origin), kept, term.origin)
    )


def _zip_parts(term: Expr) -> tuple[Expr, Expr] | None:
    applied = call(term)
    if applied is not None and applied[0] == "zip" and len(applied[2]) == 2:
        return applied[2][0], applied[2][1]
    return None


def _used(body: Expr, name: str) -> set[Chain]:
    """The components of a variable that the body uses, each by its projections; () for the whole."""
    found: set[Chain] = set()
    rest = [body]
    while rest:
        part = rest.pop()
        if name in part.free:
            chain = _chain(part)
            if chain is None:
                rest += children(part)
            else:
                found.add(chain)
    return found


def _uses(used: set[Chain], place: Chain) -> bool:
    """Whether the component at a place is used: itself, a part of it, or a whole of which it is part."""
    return any(all(map(eq, chain, place)) for chain in used)


def _chain(term: Expr) -> Chain | None:
    """The projections from a variable, innermost first."""
    names: list[str] = []
    while isinstance(term, Apply):
        function = term.function
        if not isinstance(function, Primitive) or function.name not in ("fst", "snd"):
            return None
        names.append(function.name)
        term = term.argument
    return tuple(reversed(names)) if isinstance(term, Identifier) else None


def _keep(xs: Expr, place: Chain, used: set[Chain]) -> Expr:
    """xs with only the zipped arrays that are used; xs itself where all are."""
    parts = _zip_parts(xs)
    if parts is None:
        return xs
    first, second = (*place, "fst"), (*place, "snd")
    if not _uses(used, second):
        return _keep(parts[0], first, used)
    if not _uses(used, first):
        return _keep(parts[1], second, used)
    a, b = _keep(parts[0], first, used), _keep(parts[1], second, used)
    if a is parts[0] and b is parts[1]:
        return xs
    size = array_type(xs).size
    types = (size, array_type(a).element, array_type(b).element)
    return Apply(Apply(instance("zip", types, xs.origin), a, xs.origin), b, xs.origin)


def _redirect(function: Lambda, used: set[Chain], old: Expr, new: Expr, target: Expr) -> Expr:
    """The body, which reads the components of target, an element of new, instead of the parameter's."""
    pairs: list[tuple[Expr, Expr]] = []

    def collect(before: Expr, after: Expr, place: Chain, source: Expr, goal: Expr) -> None:
        parts = _zip_parts(before)
        if before is after or parts is None:
            pairs.append((source, goal))
            return
        first, second = project("fst", source), project("snd", source)
        if not _uses(used, (*place, "snd")):
            collect(parts[0], after, (*place, "fst"), first, goal)
        elif not _uses(used, (*place, "fst")):
            collect(parts[1], after, (*place, "snd"), second, goal)
        else:
            kept = _zip_parts(after)
            if kept is None:
                raise TypeError("a zip was lost")
            collect(parts[0], kept[0], (*place, "fst"), first, project("fst", goal))
            collect(parts[1], kept[1], (*place, "snd"), second, project("snd", goal))

    collect(old, new, (), function.parameter, target)
    return _replace_all(function.body, function.parameter.name, pairs)


def _replace_all(term: Expr, name: str, pairs: list[tuple[Expr, Expr]]) -> Expr:
    """The term with each first component of a pair, all of which are of that variable, as the second."""
    if name not in term.free:
        return term
    for old, new in pairs:
        if isinstance(old, Identifier) and isinstance(term, Identifier) and old.name == term.name:
            return new
        if not isinstance(old, Identifier) and alpha_equal(term, old):
            return new
    if isinstance(term, Lambda) and any(term.parameter.name in new.free for _, new in pairs):
        used = term.body.free.union(*(new.free for _, new in pairs))
        renamed = Identifier(
            fresh_name(term.parameter.name, used), term.parameter.type, term.parameter.origin
        )
        term = Lambda(renamed, substitute(term.body, {term.parameter.name: renamed}), term.origin)
    return map_children(term, lambda child: _replace_all(child, name, pairs))
