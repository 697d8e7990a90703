"""Rules for many small matrices: an array of them is one run of numbers, and rows of products are sums of rows."""

from __future__ import annotations

from rewrites.conditions import numbers
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
    exact=False,
    meaning="A row of a product is the sum of the rows of the second factor, times the numbers of the first's.",
)
VECTORS_IN_REGISTERS = rule(
    "vectors in registers",
    "xs",
    "xs |> asVector(v) |> mapSeqUnroll(fun(x => x)) |> asScalar |> toMem(Local)",
    sizes=("v",),
    conditions=(numbers("xs"),),
    meaning="A thread loads an array, v adjacent elements at once.",
)
