"""Leaving out the components of zipped arrays that a map does not use."""

from __future__ import annotations

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
    substitute,
    with_children,
)
from rise.normal import simplify


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
    kept = _keep(xs, function.parameter, function.body)
    if kept is xs:
        return "every component is used"
    element = array_type(kept).element
    used = function.body.free - {function.parameter.name}
    parameter = Identifier(fresh_name(function.parameter.name, used), element, function.origin)
    body = _redirect(function.body, function.parameter, xs, kept, parameter)
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


def _uses(body: Expr, place: Expr) -> bool:
    """Whether the body uses the component at place: itself, a part of it, or a whole of which it is part."""
    root, wanted = _root(place), _chain(place) or ()

    def within(term: Expr) -> bool:
        if root not in term.free:
            return False
        chain = _chain(term)
        if chain is None:
            return any(map(within, children(term)))
        shorter = min(len(chain), len(wanted))
        return chain[:shorter] == wanted[:shorter]

    return within(body)


def _chain(term: Expr) -> tuple[str, ...] | None:
    """The projections from a variable, innermost first."""
    names: list[str] = []
    while isinstance(term, Apply):
        function = term.function
        if not isinstance(function, Primitive) or function.name not in ("fst", "snd"):
            return None
        names.append(function.name)
        term = term.argument
    return tuple(reversed(names)) if isinstance(term, Identifier) else None


def _root(term: Expr) -> str | None:
    while isinstance(term, Apply):
        term = term.argument
    return term.name if isinstance(term, Identifier) else None


def _keep(xs: Expr, place: Expr, body: Expr) -> Expr:
    """xs with only the zipped arrays that the body uses; xs itself where it uses all."""
    parts = _zip_parts(xs)
    if parts is None:
        return xs
    first, second = (project(n, place) for n in ("fst", "snd"))
    if not _uses(body, second):
        return _keep(parts[0], first, body)
    if not _uses(body, first):
        return _keep(parts[1], second, body)
    a, b = _keep(parts[0], first, body), _keep(parts[1], second, body)
    if a is parts[0] and b is parts[1]:
        return xs
    size = array_type(xs).size
    types = (size, array_type(a).element, array_type(b).element)
    return Apply(Apply(instance("zip", types, xs.origin), a, xs.origin), b, xs.origin)


def _redirect(body: Expr, place: Expr, old: Expr, new: Expr, target: Expr) -> Expr:
    """The body, which reads the components of target, an element of new, instead of those of place."""
    pairs: list[tuple[Expr, Expr]] = []

    def collect(before: Expr, after: Expr, source: Expr, goal: Expr) -> None:
        parts = _zip_parts(before)
        if before is after or parts is None:
            pairs.append((source, goal))
            return
        first, second = project("fst", source), project("snd", source)
        if not _uses(body, second):
            collect(parts[0], after, first, goal)
        elif not _uses(body, first):
            collect(parts[1], after, second, goal)
        else:
            kept = _zip_parts(after)
            if kept is None:
                raise TypeError("a zip was lost")
            collect(parts[0], kept[0], first, project("fst", goal))
            collect(parts[1], kept[1], second, project("snd", goal))

    collect(old, new, place, target)
    return _replace_all(body, pairs)


def _replace_all(term: Expr, pairs: list[tuple[Expr, Expr]]) -> Expr:
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
    return with_children(term, tuple(_replace_all(c, pairs) for c in children(term)))
