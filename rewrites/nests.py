"""Maps inside each other as one map over a list of what the inner ones are over."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.elements import all_zipped, divided, fresh, generated, joined, mapped, members, names, pair, put
from rewrites.match import project
from rewrites.rule import computed
from rewrites.typed import array_type
from rewrites.zips import components
from rise.expr import Expr, Identifier, Lambda, call, children, fresh_name, substitute
from rise.normal import simplify
from rise.types import Index, as_data


@computed(
    "*(*f), as one list",
    "xs |> map(x => g(x) |> map(y => f(x, y))) →"
    " zip(xs |> map(g) |> join)(xs |> map(x => generate(_ => x)) |> join) |> map((y, x) => f(x, y))"
    " |> split(m)",
    (
        "fun(a: 2.3.4.i32 => a |> map(fun(x => x |> map(fun(y => y |> reduce(+, 0))))))",
        "fun((a: 2.3.4.i32, b: 2.4.i32) => zip(a)(b) |> map(fun((x, v) => x |> map(fun(y =>"
        " zip(y)(v) |> map(fun((p, q) => p * q)) |> reduce(+, 0))))))",
        "fun((a: 2.3.4.i32, b: 2.3.i32, c: 2.i32) => zip(a)(zip(b)(c)) |> map(fun((x, (u, s)) => zip(x)(u)"
        " |> map(fun((y, t) => y |> map(fun(e => e * t + s)))))))",
        "fun(a: 2.4.3.i32 => a |> map(fun(x => transpose(x) |> map(fun(y => y |> reduce(+, 0))))))",
        "fun(a: 2.3.i32 => a |> map(fun(x => x |> map(fun(y => x |> map(fun(z => y - z)))))))",
    ),
    "A map for each of several arrays is one map over their elements, beside what it needs of the others.",
)
def NEST_AS_LIST(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "map", _, [Lambda(x, body), xs]:
            match call(body):
                case "map", _, [Lambda(y, each), ys] if x.name in ys.free:
                    taken = names(term)
                    outer, inner = fresh("x", as_data(x.type), taken), fresh("y", as_data(y.type), taken)
                    each = substitute(substitute(each, {y.name: inner}), {x.name: outer})
                    return _as_list(outer, xs, inner, each, substitute(ys, {x.name: outer}))
    return "expected a map of maps over what it is given"


def _as_list(x: Identifier, xs: Expr, y: Identifier, each: Expr, ys: Expr) -> Expr:
    own, used = list(components(ys)), list(dict.fromkeys(_paths(each, x.name)))
    arrays = [joined(_of(x, array, xs)) for array in (*own, *(_repeated(part, ys) for part in used))]
    together = all_zipped(arrays)
    z = Identifier(fresh_name("x", names(each, xs, ys)), as_data(array_type(together).element))
    parts = iter(members(z, len(arrays)))
    element = _zip_of(ys, parts)
    function = Lambda(z, put(each, {y: element} | dict(zip(used, parts, strict=True))), each.origin)
    return simplify(divided(array_type(ys).size, mapped(function, together)))


def _zip_of(ys: Expr, parts: Iterator[Expr]) -> Expr:
    """An element of an array, of the elements of those beside each other in it."""
    match call(ys):
        case "zip", _, [first, second]:
            return pair(_zip_of(first, parts), _zip_of(second, parts))
        case _:
            return next(parts)


def _paths(term: Expr, name: str) -> Iterator[Expr]:
    """The largest parts of a pair, or of an array, by that name that a term uses."""
    if _is_path(term, name):
        yield term
    elif name in term.free:
        for child in children(term):
            yield from _paths(child, name)


def _is_path(term: Expr, name: str) -> bool:
    match term:
        case Identifier(other):
            return other == name
    match call(term):
        case (("fst" | "snd"), _, [whole]):
            return _is_path(whole, name)
        case _:
            return False


def _repeated(part: Expr, like: Expr) -> Expr:
    """As many of a part as an array has elements."""
    index = Identifier(fresh_name("i", names(part)), Index(array_type(like).size))
    return generated(index, part)


def _of(x: Identifier, part: Expr, xs: Expr) -> Expr:
    """xs |> map(x => part), of the arrays that are needed alone."""
    while (split := _zipped(x, part, xs)) is not None:
        x, part, xs = split
    if part == x:
        return xs
    return mapped(Lambda(x, part, part.origin), xs)


def _zipped(x: Identifier, part: Expr, xs: Expr) -> tuple[Identifier, Expr, Expr] | None:
    """The same over one of two arrays that are zipped; None where both are needed."""
    match call(xs):
        case "zip", _, [first, second]:
            for name, array in (("fst", first), ("snd", second)):
                own = Identifier(fresh_name("x", names(part)), as_data(array_type(array).element))
                left = put(part, {project(name, x): own})
                if x.name not in left.free:
                    return own, left, array
    return None
