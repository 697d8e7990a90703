"""Zips in reductions of all pairs of rows: what is of rows apart from what is of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewrites.elements import all_zipped, fresh, mapped, members, names, pair, zipped
from rewrites.match import project
from rewrites.rule import computed
from rewrites.typed import array_type
from rise.expr import Apply, Expr, Lambda, apply, call
from rise.normal import simplify


@computed(
    "members of rows and of columns, apart",
    "xs |> map(r => ys |> map(c => zip(u)(zip(v(r))(w(c))) |> map(f) |> reduce(op, z)))"
    " → xs |> map(r => ys |> map(c => zip(zip(u)(v(r)))(w(c)) |> map(((a, b), c) => f(a, (b, c)))"
    " |> reduce(op, z))), for zips in any nesting",
    (
        "fun((xss: 2.3.i32, yss: 4.3.i32, w: 3.i32) => xss |> map(fun(xs => yss |> map(fun(ys =>"
        " zip(w)(zip(xs)(ys)) |> map(fun((c, (x, y)) => c * x - y)) |> reduce(+, 0))))))",
        "fun((xss: 2.3.f32, yss: 4.3.(f32, i32), w: 3.f32) => xss |> map(fun(xs => yss |> map(fun(ys =>"
        " zip(zip(ys)(xs))(w) |> map(fun((((a, b), x), c) => c * x + a * f32(b))) |> reduce(max, -100))))))",
    ),
    "What all pairs of rows are reduced of stands beside its row, or beside its column.",
    head=("map", 2),
)
def MEMBERS_APART(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    match call(term):
        case "map", _, [Lambda(row, body), xs]:
            pass
        case _:
            return "expected a map"
    match call(body):
        case "map", _, [Lambda(column, reduction), ys]:
            pass
        case _:
            return "expected a map of maps"
    match call(reduction):
        case "reduce", head, [operator, zero, of_pairs]:
            pass
        case _:
            return "expected reductions of all pairs"
    match call(of_pairs):
        case "map", _, [Lambda() as function, (Apply() as zips)]:
            pass
        case _:
            return "expected reductions of pairs"
    arrays = list(arrays_of(zips))
    of_columns = [x for x in arrays if column.name in x.free]
    of_rows = [x for x in arrays if column.name not in x.free]
    both_names = {row.name, column.name}
    if any(both_names <= x.free for x in arrays) or not _is_mixed(zips, both_names):
        return "no member of a zip is of a row and of a column"
    pairs = zipped(all_zipped(of_rows), all_zipped(of_columns))
    element = fresh("element", array_type(pairs).element, names(term))
    both = (
        *members(project("fst", element), len(of_rows)),
        *members(project("snd", element), len(of_columns)),
    )
    member = dict(zip(map(id, (*of_rows, *of_columns)), both, strict=True))
    given = Apply(function, _as_zipped(zips, member), function.origin)
    each = mapped(Lambda(element, given, function.origin), pairs)
    reduced = apply(head, operator, zero, each, origin=reduction.origin)
    inner = mapped(Lambda(column, reduced, body.origin), ys)
    return simplify(mapped(Lambda(row, inner, term.origin), xs))


def arrays_of(term: Expr) -> Iterator[Expr]:
    """The arrays of nested zips, from left to right."""
    match call(term):
        case "zip", _, [first, second]:
            yield from arrays_of(first)
            yield from arrays_of(second)
        case _:
            yield term


def _is_mixed(zips: Expr, both: set[str]) -> bool:
    """Whether a member of a zip is of a row and of a column."""
    match call(zips):
        case "zip", _, parts:
            return any(both <= part.free for part in parts) or any(_is_mixed(part, both) for part in parts)
    return False


def _as_zipped(term: Expr, member: Mapping[int, Expr]) -> Expr:
    """The tuple of the members of an element, as the zips nest them."""
    match call(term):
        case "zip", _, [first, second]:
            return pair(_as_zipped(first, member), _as_zipped(second, member))
        case _:
            return member[id(term)]
