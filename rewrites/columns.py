"""Numbers for each row of a tile, beside products of the tile: on fragments, a column.

    zip(cs)(a) |> map((c, row) => op(c, row |> map(f) |> reduce(op, z)))   →
      zipFragment(c)(a |> asFragment |> mapFragment(f) |> reduceRows(op, z)) |> mapFragment(op) |> asColumn

A column is in the registers of the threads that hold the rows of an accumulator, so a function of both is
one of an accumulator's elements.
"""

from __future__ import annotations

from rewrites.build import build
from rewrites.elements import as_map, names
from rewrites.rows import Rows
from rewrites.rule import computed, library_rule
from rise.expr import Expr, Lambda, call
from rise.nat import Nat
from rise.types import Array, Scalar


@computed(
    "elements as a map",
    "generate(i => f(xs[i], ys[i])) → zip(xs)(ys) |> map(f)",
    (
        "fun((xs: 5.i32, ys: 5.i32, c: i32) => generate(fun(i => idx(i)(xs) * c - idx(i)(ys) * idx(i)(xs))))",
        "fun(xs: 4.f32 => generate(fun(i => idx(i)(xs) + cast(indexToInt(i)))))",
    ),
    "An array whose elements are functions of those of others is a map over these.",
    head=("generate", 1),
)
def ELEMENTS_AS_MAP(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "generate", _, [Lambda(index, body)]:
            pass
        case _:
            return "expected a generated array"
    made = as_map(index, body)
    found = call(made)
    return made if found is not None and found[0] == "map" else "no array is selected from"


@computed(
    "column on fragments",
    "e → e' |> asColumn |> join, where e' is e on fragments: numbers and reductions of the rows of a tile",
    (
        "fun((c: 16.f32, a: 16.8.f16) => zip(c)(a) |> map(fun((s, r) =>"
        " s + (r |> map(fun(x => f32(x) * f32(x))) |> reduce(+, 0)))))",
        "fun((c: 16.f32, a: 16.24.f32) => zip(a)(c) |> map(fun((r, s) =>"
        " max(r |> reduce(max, -1000.0))(s) * 2)))",
    ),
    "A number for each row of a tile is computed by the threads that hold the row.",
    exact=False,
    sizes={"k": 16},
)
def COLUMN_ON_FRAGMENTS(term: Expr, k: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    match term.type:
        case Array(rows, Scalar()):
            pass
        case _:
            return "expected a number for each row"
    return build("x |> asColumn |> join", x=Rows(rows, k, names(term)).value(term, stored=False))


STORED_COLUMN = library_rule(
    "asColumn >> asFragment >> toMem",
    "f |> asColumn |> asFragment |> toMem(Local)",
    "f",
    meaning="A column shown and loaded again is the same column.",
)
