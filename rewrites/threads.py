"""Rules for tiles by threads: which elements of a tile each has, and how it loads parts of operands."""

from __future__ import annotations

from rewrites.conditions import elements_are_numbers
from rewrites.rule import library_rule as rule

PARTS_OF_THREADS = rule(
    "tile, in parts of threads",
    "xss",
    "xss |> split(v) |> split(p) |> transpose"
    " |> map(fun(rows => rows |> map(fun(g => g |> map(fun(r => r |> split(w) |> split(q) |> transpose))"
    " |> transpose)) |> transpose))"
    " |> join |> split(q) |> map(fun(ts => ts |> transpose |> map(fun(g => g |> transpose"
    " |> map(fun(r => r |> transpose |> join |> join)))))) |> transpose |> join |> join",
    sizes=("v", "p", "w", "q"),
    meaning="A matrix by p × q threads in one list: each has every p-th group of v rows, and every q-th group"
    " of w columns.",
)


# of the part of an operand that a thread multiplies in several steps: xsss[step][group][row]
_IN_REGISTERS = "mapSeqUnroll(fun(xss => xss |> mapSeqUnroll(fun(xs => xs |> {0})))) |> toMem(Local)"
_BY_VECTORS = "asVector(v) |> mapSeqUnroll(fun(x => x)) |> asScalar"
LOAD_PART = rule(
    "part of an operand in registers",
    "xsss",
    f"xsss |> {_IN_REGISTERS.format('mapSeqUnroll(fun(x => x))')}",
    meaning="Elements that several multiplications use are loaded once.",
)
LOAD_PART_VECTORS = rule(
    "part of an operand in registers, vectors of rows",
    "xsss",
    f"xsss |> {_IN_REGISTERS.format(_BY_VECTORS)}",
    sizes=("v",),
    conditions=(elements_are_numbers("xsss"),),
    meaning="The same, v adjacent rows at once.",
)
LOAD_PART_STEPS = rule(
    "part of an operand in registers, vectors of steps",
    "xsss",
    f"xsss |> transpose |> map(fun(xss => xss |> transpose)) |> {_IN_REGISTERS.format(_BY_VECTORS)}"
    " |> map(fun(xss => xss |> transpose)) |> transpose",
    sizes=("v",),
    conditions=(elements_are_numbers("xsss"),),
    meaning="The same, the elements of v adjacent steps at once.",
)
PARTS_COPIED = rule(
    "**f, of nothing",
    "xs",
    "xs |> map(fun(ys => ys |> map(fun(y => y))))",
    meaning="An array of arrays is a map of the identity: a copy.",
)
_STORED = (
    "xssss |> mapSeqUnroll(fun(xsss => xsss |> mapSeqUnroll(fun(xss => xss"
    " |> mapSeqUnroll(fun(xs => xs |> {0}))))))"
)
STORE_PART = rule(
    "part of a result, stored",
    "xssss",
    _STORED.format("mapSeqUnroll(fun(x => x))"),
    meaning="What a thread has computed, element by element.",
)
STORE_PART_VECTORS = rule(
    "part of a result, stored by vectors",
    "xssss",
    _STORED.format("asVector(v) |> mapSeqUnroll(fun(x => x)) |> asScalar"),
    sizes=("v",),
    conditions=(elements_are_numbers("xssss"),),
    meaning="The same, v adjacent columns at once.",
)
