"""Rules for arrays of small matrices: of tuples as zipped arrays, of rows of products as sums of rows."""

from __future__ import annotations

from rewrites.lets import let_before
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rise.expr import Expr, Identifier, distinct_binders, subterms
from rise.nat import Nat
from rise.types import Array

BY_MEMBERS = rule(
    "zip of members",
    "xs",
    "zip(xs |> map(fun(x => fst(x))))(xs |> map(fun(x => snd(x))))",
    meaning="An array of pairs is the zip of the array of their first members and that of their second ones.",
)
OUTER_PRODUCTS = rule(
    "dot products as a sum of rows",
    "ys |> map(fun(y => zip(xs)(y) |> map(f) |> reduce(op, z)))",
    "zip(xs)(ys |> transpose) |> reduceSeqUnroll(Local)(fun(acc, (x, row) =>"
    " zip(acc)(row) |> map(fun((a, y) => op(a, f((x, y)))))), generate(fun(i => z)))",
    meaning="A row of a product is a sum of rows of its second factor, each times a number of the first's.",
)
OUTER_PRODUCTS_IN_TURN = rule(
    "dot products as a sum of rows, in a loop",
    "ys |> map(fun(y => zip(xs)(y) |> map(f) |> reduce(op, z)))",
    "zip(xs)(ys |> transpose) |> reduceSeq(Local)(fun(acc, (x, row) =>"
    " zip(acc)(row) |> map(fun((a, y) => op(a, f((x, y)))))), generate(fun(i => z)))",
    meaning="The same, of so many rows that the loop over them is not unrolled.",
)


def arrays_read(term: Expr) -> list[Identifier]:
    """The arrays that are free in a term, in the order in which it reads them."""
    parts = (part for part in subterms(distinct_binders(term)) if isinstance(part, Identifier))
    free = (part for part in parts if part.name in term.free)
    return list(dict.fromkeys(part for part in free if isinstance(part.type, Array)))


@computed(
    "let, of an array",
    "e(xs) → let y = xs in e(y), for the i-th array xs that e reads as a whole",
    (
        "fun((xs: 4.3.i32, ys: 2.3.i32) => xs |> map(fun(x => ys |> map(fun(y => zip(x)(y) |>"
        " map(fun((a, b) => a * b)) |> reduce(+, 0))))))",
        "fun((xs: 4.i32, ys: 2.3.i32, zs: 5.3.i32) => xs |> map(fun(x =>"
        " (ys |> map(fun(r => r |> map(fun(y => x + y)))), ys |> transpose, zs))))",
    ),
    "What is read in several places, or for all elements of an array, has a name: it may be stored once.",
    sizes={"i": 1},
)
def ARRAY_NAMED(term: Expr, i: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    if not isinstance(term.type, Array):
        return "expected an array"
    known, number = arrays_read(term), i.value or 0
    if number >= len(known):
        return f"only {len(known)} arrays are read"
    return let_before(distinct_binders(term), known[number], known[number], known[number].name)
