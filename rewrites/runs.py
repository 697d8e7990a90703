"""Rules for arrays of small matrices: of tuples as zipped arrays, of rows of products as sums of rows."""

from __future__ import annotations

from rewrites.rule import library_rule as rule

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
