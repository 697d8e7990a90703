"""Products by warpgroups whose first operand is in registers, because a function is applied to it.

A bulk copy brings numbers as they are. So a function of the first operand is applied to the fragments,
when they have been loaded from shared memory; the second operand is only ever read from there.
"""

from __future__ import annotations

from rewrites.prologue import changes_an_operand, keeps_types
from rewrites.rule import library_rule as rule
from rewrites.tensor import by_warpgroup, has_instruction

FIRST_INSIDE = rule(
    "prologue, inside",
    "a |> map(fun(r => r |> map(g)))"
    " |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(f) |> reduce(+, 0)))))",
    "a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((p, q) => f((g(p), q)))) |> reduce(+, 0)))))",
    meaning="A function of the first operand of a product is applied where its elements are multiplied.",
)


def _tensorise(name: str, product: str) -> tuple[str, str, str]:
    return (
        name,
        "zip(c)(a) |> map(fun((cr, r) => zip(cr)(b) |> map(fun((x, col) => "
        f"x + (zip(r)(col) |> map(fun((p, q) => {product})) |> reduce(+, 0))))))",
        "tensorMatMulAdd(a |> asFragment |> toMem(Local) |> mapFragment(g) |> toMem(Local))"
        "(b |> transpose |> asFragment)(c |> asFragment) |> asMatrix",
    )


CONDITIONS = (changes_an_operand, keeps_types, has_instruction, by_warpgroup)
TENSORISE_REGISTERS = rule(
    *_tensorise("tensoriseRegisters", "f32(g(p)) * f32(q)"),
    meaning="A product by a warpgroup whose first operand is loaded into registers, and changed there.",
    exact=False,
    conditions=CONDITIONS,
)
TENSORISE_REGISTERS_SAME = rule(
    *_tensorise("tensoriseRegistersSame", "g(p) * q"),
    meaning="The same where operands and accumulator have one type.",
    exact=False,
    conditions=CONDITIONS,
)
TENSORISE_REGISTERS_WHOLE = rule(
    *_tensorise("tensoriseRegistersWhole", "i32(g(p)) * i32(q)"),
    meaning="The same of bytes, and sums of whole numbers.",
    conditions=CONDITIONS,
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
