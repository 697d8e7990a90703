"""Reductions of the parts of rows, moved to the fragments that compute these parts.

What arranges tiles (`join`, `split`, `transpose`, `reorder`, maps over levels) moves whole rows, or whole
parts of them, so a function of each part goes inward, from the matrix to the tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rewrites.build import build
from rewrites.elements import NotPointwise
from rewrites.epilogue import fragment_type
from rewrites.rows import reduced_on_fragments, reduces
from rewrites.rule import computed
from rewrites.typed import array_type
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Primitive,
    alpha_equal,
    apply,
    call,
    distinct_binders,
)
from rise.nat import Nat
from rise.normal import is_view
from rise.types import Array, Data, Pair, Type, as_data


@dataclass
class _Inward:
    """Moves a function of the parts of rows to the tiles that the rows consist of.

    width:   of a part
    element: the type of its result
    tile:    the matrix of the results of a tile whose rows are one part each
    depths:  by the variables of the maps around a place: under how many dimensions of what a variable stands
             for the rows are; None where it is not what the rows consist of
    """

    width: Nat
    element: Data
    tile: Callable[[Expr], Expr | None]
    depths: dict[str, int | None] = field(default_factory=dict)

    def at(self, depth: int, term: Expr) -> Expr:
        """A term in which each part of the rows, which are under so many dimensions, is one element."""
        if depth == 1 and (tile := self.tile(term)) is not None:
            return tile
        match term, call(term):
            case Identifier(name), _ if name in self.depths:
                self.depths[name] = depth
                return Identifier(name, self.type(depth, term.type), term.origin)
            case Apply(Lambda(x, body), value), _:
                return Apply(Lambda(x, self.at(depth, body)), value)
            case _, ("let", head, [value, Lambda(x, body)]):
                body = self.at(depth, body)
                return apply(_retyped(head, as_data(body.type)), value, Lambda(x, body))
            case _, ("join", _, [xs]):
                return build("xs |> join", xs=self.at(depth + 1, xs))
            case _, ("transpose", _, [xs]) if depth == 1 and (inner := call(xs)) and inner[0] == "transpose":
                return self.at(depth, inner[2][0])
            case _, ("transpose", head, [Apply(Lambda(x, body), value)]) if depth == 1:
                return self.at(depth, Apply(Lambda(x, apply(head, body)), value))
            case _, ("transpose", head, [xs]) if depth == 1 and (named := call(xs)) and named[0] == "let":
                return self.at(depth, _in_let(head, named[1], *named[2]))
            case _, ("transpose", _, [xs]) if depth >= 2:
                return build("xs |> transpose", xs=self.at(depth, xs))
            case _, ("split", head, [xs]) if depth >= 2:
                xs = self.at(depth - 1, xs)
                return apply(_retyped(head, array_type(xs).element), xs)
            case _, (("take" | "reorder"), head, [xs]) if depth >= 1:
                xs = self.at(depth, xs)
                return apply(_retyped(head, array_type(xs).element), xs)
            case _, ("pingPong", head, [x]):
                x = self.at(depth, x)
                return apply(_retyped(head, as_data(x.type)), x)
            case _, (name, head, [Lambda(x, body), xs]) if depth >= 1:
                if name == "map" or head.declaration.group == "levels":
                    return self.mapped(depth, head, x, body, xs)
        raise NotPointwise("rows are not in tiles of as many columns as a part has", term)

    def mapped(self, depth: int, head: Primitive, x: Identifier, body: Expr, xs: Expr) -> Expr:
        self.depths[x.name] = None
        body = self.at(depth - 1, body)
        inside = self.depths.pop(x.name)
        if inside is not None:
            xs = self.at(inside + 1, xs)
            x = Identifier(x.name, array_type(xs).element, x.origin)
        return apply(_retyped(head, as_data(x.type), as_data(body.type)), Lambda(x, body), xs)

    def type(self, depth: int, type_: Type) -> Data:
        if not isinstance(type_, Array):
            raise NotPointwise("expected rows", Identifier("rows", as_data(type_)))
        if depth:
            return Array(type_.size, self.type(depth - 1, type_.element))
        count = type_.size.exact_quotient(self.width)
        if count is None:
            raise NotPointwise("parts do not divide a row", Identifier("row", type_))
        return Array(count, self.element)


def _in_let(view: Expr, let: Primitive, value: Expr, function: Expr) -> Expr:
    """let x = value in view(e), of view(let x = value in e)."""
    match function:
        case Lambda(x, body):
            inside = apply(view, body)
            return apply(_retyped(let, as_data(inside.type)), value, Lambda(x, inside))
        case _:
            raise NotPointwise("expected a function written in place", function)


def _retyped(head: Primitive, *types: Data) -> Primitive:
    """A primitive whose last arguments are these types."""
    return replace(head, arguments=(*head.arguments[: -len(types)], *types))


def _fragment(term: Expr) -> Expr | None:
    """The fragment whose matrix a term is, however that is stored and cut on the way."""
    match call(term):
        case "asMatrix", _, [fragment]:
            return fragment
        case (("toMem" | "bulkStore" | "split" | "join" | "transpose"), _, [inner]):
            return _fragment(inner)
        case "map", _, [Lambda(_, body), inner] if is_view(body):
            return _fragment(inner)
        case _:
            return None


def _reduced(part: Expr, reduction: Expr, width: Nat) -> Callable[[Expr], Expr | None]:
    """What a function of a part makes of the rows of a fragment's matrix, as a matrix of one column."""

    def column(term: Expr) -> Expr | None:
        fragment = _fragment(term)
        if fragment is None or fragment_type(fragment).columns != width:
            return None
        match call(reduction):
            case "reduce", _, [operator, start, elements] if alpha_equal(elements, part):
                return build(
                    "f |> reduceRows(op, z) |> toMem(Local) |> asColumn", f=fragment, op=operator, z=start
                )
        return reduced_on_fragments(fragment, part, reduction)

    return column


def _itself(part: Expr, reduction: Expr, width: Nat) -> Callable[[Expr], Expr | None]:
    """The same beside the matrix itself."""
    column = _reduced(part, reduction, width)

    def both(term: Expr) -> Expr | None:
        numbers = column(term)
        return None if numbers is None else build("zip(xs)(ys |> join) |> split(1)", xs=term, ys=numbers)

    return both


def _beside(part: Expr, reduction: Expr, width: Nat) -> Callable[[Expr], Expr | None]:
    """The same of the second members of pairs, beside the first ones."""
    column = _reduced(part, reduction, width)

    def both(term: Expr) -> Expr | None:
        match call(term):
            case "split", head, [zipped] if head.arguments[0] == width:
                match call(zipped):
                    case "zip", _, [stored, reduced] if (numbers := column(reduced)) is not None:
                        return build(
                            "zip(xs |> split($w))(ys |> join) |> split(1)",
                            {"w": width},
                            xs=stored,
                            ys=numbers,
                        )
        return None

    return both


@computed(
    "reductions of rows, inward",
    "e |> map(split(w) >> map(reduce(op, z))) → e, whose tiles f |> asMatrix are f |> reduceRows(op, z)"
    " |> asColumn; and zip2D(a, f |> asMatrix) both, where what is stored is beside what is reduced",
    (
        "fun((a: 32.16.f32) => a |> split(16) |> map(fun(r => r |> map(split(8)) |> transpose"
        " |> map(fun(t => t |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f) |> toMem(Local)"
        " |> asMatrix)) |> transpose |> map(join))) |> join"
        " |> map(fun(r => r |> split(8) |> map(fun(p => p |> reduce(+, 0))))))",
        "fun((a: 16.8.f32) => a |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f)"
        " |> toMem(Local) |> fun(f => zip(f |> asMatrix |> join)(f |> asMatrix |> join) |> split(8))"
        " |> map(fun(r => r |> split(8) |> map(fun(p => (p |> map(fun(x => fst(x))),"
        " p |> map(fun(x => snd(x))) |> reduce(max, -1000.0)))))))",
        "fun((a: 16.8.f32) => a |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f)"
        " |> toMem(Local) |> asMatrix |> map(fun(r =>"
        " r |> split(8) |> map(fun(p => (p, p |> reduce(+, 0)))))))",
        "fun((a: 16.8.f32, b: 16.8.f32) => (let c = a |> toMem(Global) in c |> asFragment"
        " |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f) |> toMem(Local) |> asMatrix |> transpose)"
        " |> transpose |> map(fun(r => r |> split(8) |> map(fun(p => p |> reduce(+, 0))))))",
        "fun((a: 16.8.f32) => a |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f)"
        " |> toMem(Local) |> asMatrix |> map(fun(r => r |> split(8)"
        " |> map(fun(p => p |> map(fun(x => x * x + 1)) |> reduce(+, 0))))))",
        "fun((a: 16.8.f32) => a |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f)"
        " |> toMem(Local) |> asMatrix |> map(fun(r => r |> split(8) |> map(fun(p => p |> reduce(max, -1000.0)"
        " |> fun(m => (m, p |> map(fun(x => exp2(x - m))) |> reduce(+, 0))))))))",
        "fun((a: 16.8.f32) => a |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f)"
        " |> toMem(Local) |> asMatrix |> map(fun(r => r |> split(8) |> map(fun(p =>"
        " (p, (p |> reduce(+, 0), p |> map(fun(x => x * x)) |> reduce(+, 0))))))))",
    ),
    "What reduces parts of rows reduces the rows of the fragments that compute them.",
    exact=False,
)
def REDUCTIONS_INWARD(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    found = _parts_of(term)
    if found is None:
        return "expected the reductions of parts of rows"
    rows, width, result, tile = found
    return _Inward(width, as_data(result.type), tile).at(1, distinct_binders(rows))


def reduces_parts(term: Expr) -> bool:
    """Whether a term is a matrix of the reductions of parts of rows."""
    return _parts_of(term) is not None


def _parts_of(term: Expr) -> tuple[Expr, Nat, Expr, Callable[[Expr], Expr | None]] | None:
    """The matrix, the width of a part, what is made of a part, and how tiles do it."""
    match call(term):
        case "map", _, [Lambda(row, body), rows]:
            pass
        case _:
            return None
    match call(body):
        case "map", _, [Lambda(part, result), cut] if (split := call(cut)) is not None:
            pass
        case _:
            return None
    width = split[1].arguments[0]
    if split[0] != "split" or split[2] != [row] or not isinstance(width, Nat):
        return None
    match call(result):
        case "pair", _, [stored, reduction] if stored == part and reduces(reduction, part):
            return rows, width, result, _itself(part, reduction, width)
        case "pair", _, [_, reduction] if isinstance(array_type(part).element, Pair):
            second = build("p |> map(x => snd(x))", p=part)
            if reduces(reduction, second):
                return rows, width, result, _beside(second, reduction, width)
        case _ if reduces(result, part):
            return rows, width, result, _reduced(part, result, width)
    return None
