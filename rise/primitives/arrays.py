"""The patterns over arrays that high-level programs are written in, and those that only reshape."""

from __future__ import annotations

from functools import partial

from rise.interpret import patterns, views
from rise.primitives import declare as declaring

declare = partial(declaring.declare, view=True)

# --- computation ----------------------------------------------------------------------------------

declare(
    "map",
    "{n: Nat, s: DataType, t: DataType} -> (s -> t) -> n.s -> n.t",
    "Applies a function to every element.",
    patterns.map_,
)
declaring.declare(
    "reduce",
    "{n: Nat, t: DataType} -> (t -> t -> t) -> t -> n.t -> t",
    "Combines all elements with an associative, commutative operator and its neutral element.",
    patterns.fold,
)
declare(
    "generate",
    "{n: Nat, t: DataType} -> (Idx[n] -> t) -> n.t",
    "The array whose element at an index is the function's value there.",
    patterns.generate,
)
declaring.declare(
    "let",
    "{s: DataType, t: DataType} -> s -> (s -> t) -> t",
    "Names a value; `let x = e in b` is let(e)(fun(x => b)).",
    patterns.let,
)
declare("id", "{t: DataType} -> t -> t", "The identity.", patterns.identity)

# --- pairs ----------------------------------------------------------------------------------------

declare(
    "zip",
    "{n: Nat, s: DataType, t: DataType} -> n.s -> n.t -> n.(s, t)",
    "Pairs the elements of two arrays.",
    views.pair,
)
declare(
    "unzip",
    "{n: Nat, s: DataType, t: DataType} -> n.(s, t) -> (n.s, n.t)",
    "The inverse of zip.",
    views.unzip,
)
declare("pair", "{s: DataType, t: DataType} -> s -> t -> (s, t)", "Two values as one.", views.pair)
declare("fst", "{s: DataType, t: DataType} -> (s, t) -> s", "The first of a pair.", views.first)
declare("snd", "{s: DataType, t: DataType} -> (s, t) -> t", "The second of a pair.", views.second)

# --- shape ----------------------------------------------------------------------------------------

declare(
    "split",
    "(n: Nat) -> {m: Nat, t: DataType} -> (m*n).t -> m.n.t",
    "Cuts an array into rows of n; n has to divide its size.",
    views.split,
)
declare(
    "join",
    "{n: Nat, m: Nat, t: DataType} -> n.m.t -> (n*m).t",
    "Concatenates the rows; the inverse of split.",
    views.join,
)
declare(
    "transpose",
    "{n: Nat, m: Nat, t: DataType} -> n.m.t -> m.n.t",
    "Swaps the two outer dimensions.",
    views.transpose,
)
declare(
    "slide",
    "{n: Nat} -> (sz: Nat, sp: Nat) -> {t: DataType} -> (sp*n + sz).t -> (n + 1).sz.t",
    "Windows of sz elements, each sp after the one before.",
    views.slide,
)
declare(
    "take",
    "(n: Nat) -> {m: Nat, t: DataType} -> (n + m).t -> n.t",
    "The first n elements.",
    views.take,
)
declare(
    "drop",
    "(n: Nat) -> {m: Nat, t: DataType} -> (n + m).t -> m.t",
    "All but the first n elements.",
    views.drop,
)
declare(
    "concat",
    "{n: Nat, m: Nat, t: DataType} -> n.t -> m.t -> (n + m).t",
    "One array after the other.",
    views.concat,
)
declare(
    "padCst",
    "(l: Nat, r: Nat) -> {n: Nat, t: DataType} -> t -> n.t -> (l + n + r).t",
    "Adds l copies of a value in front and r behind.",
    views.pad_constant,
)
declare(
    "padClamp",
    "(l: Nat, r: Nat) -> {n: Nat, t: DataType} -> n.t -> (l + n + r).t",
    "Repeats the first element l times in front and the last r times behind.",
    views.pad_clamp,
)

# --- indices --------------------------------------------------------------------------------------

declare(
    "gather",
    "{n: Nat, m: Nat, t: DataType} -> m.Idx[n] -> n.t -> m.t",
    "The elements at the given indices.",
    views.gather,
)
declare(
    "idx",
    "{n: Nat, t: DataType} -> Idx[n] -> n.t -> t",
    "The element at an index.",
    views.index,
)
declare("indexToInt", "{n: Nat} -> Idx[n] -> i32", "An index as a number.", views.index_to_int)
