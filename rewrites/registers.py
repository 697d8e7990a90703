"""Products by warpgroups whose first operand is in registers, because a function is applied to it.

A bulk copy brings numbers as they are. So a function of the first operand is applied to the fragments,
when they have been loaded from shared memory; the second operand is only ever read from there.
"""

from __future__ import annotations

from rewrites.rule import library_rule as rule

FIRST_INSIDE = rule(
    "prologue, inside",
    "a |> map(fun(r => r |> map(g)))"
    " |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(f) |> reduce(+, 0)))))",
    "a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((p, q) => f((g(p), q)))) |> reduce(+, 0)))))",
    meaning="A function of the first operand of a product is applied where its elements are multiplied.",
)


LOAD_FIRST = rule(
    "loadFirst",
    "xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(g(x)) |> map(fun(r => zip(fst(r))(h(x)) |> map(fun(p => "
    "tensorMatMulAdd(snd(r) |> asFragment |> toMem(Local) |> mapFragment(f) |> toMem(Local))"
    "(snd(p) |> transpose |> asFragment)(fst(p))))))), z)",
    "xs |> map(fun(x => g(x) |> map(fun(t => t |> asFragment |> toMem(Local) |> mapFragment(f)))))"
    " |> toMem(Local) |> fun(fs => zip(fs)(xs) |> reduceSeq(Local)(fun(acc, y => "
    "zip(acc)(fst(y)) |> map(fun(r => zip(fst(r))(h(snd(y))) |> map(fun(p => "
    "tensorMatMulAdd(snd(r))(snd(p) |> transpose |> asFragment)(fst(p))))))), z))",
    meaning="The fragments of a step are all loaded before its first product, and once.",
)
