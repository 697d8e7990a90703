"""The patterns over arrays that high-level programs are written in, and those that only reshape."""

from __future__ import annotations

from functools import partial

from rise.declaration import HostParameter
from rise.errors import ScopeError
from rise.interpret import folds, patterns, views
from rise.primitives import declare as declaring

declare_pattern = partial(declaring.declare, group="arrays")
declare = partial(declare_pattern, view=True)

ONE_TO_THREE = "makeArray(3)(1, 2, 3)"
ONE_TO_FOUR = "makeArray(4)(1, 2, 3, 4)"
TWO_ROWS = "makeArray(2)(makeArray(2)(1, 2), makeArray(2)(3, 4))"

# a program writes every value, so this is generous; each makes the type longer
MOST_VALUES = 1024


def _array_of(n: int) -> str:
    if not 1 <= n <= MOST_VALUES:
        raise ScopeError("R0204", f"`makeArray` takes 1 to {MOST_VALUES} values, not {n}")
    return f"{{t: DataType}} -> {'t -> ' * n}{n}.t"


# --- computation ----------------------------------------------------------------------------------

declare(
    "map",
    "{n: Nat, s: DataType, t: DataType} -> (s -> t) -> n.s -> n.t",
    "Applies a function to every element.",
    patterns.map_,
    example=(f"map(x => x * x)({ONE_TO_THREE})", "[1, 4, 9]"),
)
declare_pattern(
    "reduce",
    "{n: Nat, t: DataType} -> (t -> t -> t) -> t -> n.t -> t",
    "Combines all elements with an associative, commutative operator and its neutral element.",
    folds.fold,
    example=(f"reduce(+, 0)({ONE_TO_FOUR})", "10"),
)
declare_pattern(
    "scan",
    "{n: Nat, t: DataType} -> (t -> t -> t) -> t -> n.t -> n.t",
    "All reductions of beginnings, each with its own last element: with an associative operator and its"
    " neutral element.",
    folds.scan,
    example=(f"scan(+, 0)({ONE_TO_FOUR})", "[1, 3, 6, 10]"),
)
declare_pattern(
    "iterate",
    "{n: Nat, m: Nat} -> (k: Nat) -> {t: DataType} -> ((l: Nat) -> (l*n).t -> l.t) -> (m*n^k).t -> m.t",
    "Applies k times a function that makes an array n times shorter.",
    patterns.iterate,
    example=(
        f"iterate(2)((l: Nat) => (xs: (2*l).i32) => split(2)(xs) |> map(reduce(+, 0)))({ONE_TO_FOUR})",
        "[10]",
    ),
)
declare(
    "generate",
    "{n: Nat, t: DataType} -> (Idx[n] -> t) -> n.t",
    "The array whose element at an index is the function's value there.",
    patterns.generate,
    example=("generate((i: Idx[4]) => indexToInt(i) * 10)", "[0, 10, 20, 30]"),
)
declare(
    "makeArray",
    "(n) : {t: DataType} -> t -> … -> t -> n.t",
    "The array of n values, n a number.",
    patterns.make_array,
    example=("makeArray(3)(1, 2, 3)", "[1, 2, 3]"),
    host=(HostParameter("n", int),),
    member_signature=_array_of,
)
declare_pattern(
    "let",
    "{s: DataType, t: DataType} -> s -> (s -> t) -> t",
    "Names a value; `let x = e in b` is let(e)(x => b).",
    patterns.let,
    example=("let x = 2 + 3 in x * x", "25"),
)
declare("id", "{t: DataType} -> t -> t", "The identity.", patterns.identity, example=("id(1)", "1"))
declare(
    "promoted",
    "(bytes: Nat) -> {t: DataType} -> t -> t",
    "The identity. Where a bulk copy reads it, so many bytes are brought into the L2 cache at once: 64, 128"
    " or 256.",
    patterns.identity,
    example=("promoted(256)(1)", "1"),
)

# --- pairs ----------------------------------------------------------------------------------------

declare(
    "zip",
    "{n: Nat, s: DataType, t: DataType} -> n.s -> n.t -> n.(s, t)",
    "Pairs the elements of two arrays.",
    views.pair,
    example=(f"zip({ONE_TO_THREE})(makeArray(3)(4, 5, 6))", "[(1, 4), (2, 5), (3, 6)]"),
)
declare(
    "unzip",
    "{n: Nat, s: DataType, t: DataType} -> n.(s, t) -> (n.s, n.t)",
    "The inverse of zip.",
    views.unzip,
    example=("unzip(makeArray(2)((1, true), (2, false)))", "([1, 2], [true, false])"),
)
declare(
    "pair",
    "{s: DataType, t: DataType} -> s -> t -> (s, t)",
    "Two values as one, written `(x, y)`.",
    views.pair,
    example=("pair(1)(true)", "(1, true)"),
)
declare(
    "fst",
    "{s: DataType, t: DataType} -> (s, t) -> s",
    "The first of a pair.",
    views.first,
    example=("fst((1, 2))", "1"),
)
declare(
    "snd",
    "{s: DataType, t: DataType} -> (s, t) -> t",
    "The second of a pair.",
    views.second,
    example=("snd((1, 2))", "2"),
)
declare(
    "mapFst",
    "{r: DataType, s: DataType, t: DataType} -> (r -> s) -> (r, t) -> (s, t)",
    "Applies a function to the first of a pair.",
    patterns.map_first,
    example=("mapFst(x => x + 1)((1, 2))", "(2, 2)"),
)
declare(
    "mapSnd",
    "{r: DataType, s: DataType, t: DataType} -> (r -> s) -> (t, r) -> (t, s)",
    "Applies a function to the second of a pair.",
    patterns.map_second,
    example=("mapSnd(x => x + 1)((1, 2))", "(1, 3)"),
)

# --- shape ----------------------------------------------------------------------------------------

declare(
    "split",
    "(n: Nat) -> {m: Nat, t: DataType} -> (m*n).t -> m.n.t",
    "Cuts an array into rows of n; n has to divide its size.",
    views.split,
    example=(f"split(2)({ONE_TO_FOUR})", "[[1, 2], [3, 4]]"),
)
declare(
    "join",
    "{n: Nat, m: Nat, t: DataType} -> n.m.t -> (n*m).t",
    "Concatenates the rows; the inverse of split.",
    views.join,
    example=(f"join({TWO_ROWS})", "[1, 2, 3, 4]"),
)
declare(
    "transpose",
    "{n: Nat, m: Nat, t: DataType} -> n.m.t -> m.n.t",
    "Swaps the two outer dimensions.",
    views.transpose,
    example=(f"transpose({TWO_ROWS})", "[[1, 3], [2, 4]]"),
)
declare(
    "slide",
    "{n: Nat} -> (sz: Nat, sp: Nat) -> {t: DataType} -> (sp*n + sz).t -> (n + 1).sz.t",
    "Windows of sz elements, each sp after the one before.",
    views.slide,
    example=(f"slide(2, 1)({ONE_TO_FOUR})", "[[1, 2], [2, 3], [3, 4]]"),
)
declare(
    "take",
    "(n: Nat) -> {m: Nat, t: DataType} -> (n + m).t -> n.t",
    "The first n elements.",
    views.take,
    example=(f"take(1)({ONE_TO_THREE})", "[1]"),
)
declare(
    "drop",
    "(n: Nat) -> {m: Nat, t: DataType} -> (n + m).t -> m.t",
    "All but the first n elements.",
    views.drop,
    example=(f"drop(1)({ONE_TO_THREE})", "[2, 3]"),
)
declare(
    "concat",
    "{n: Nat, m: Nat, t: DataType} -> n.t -> m.t -> (n + m).t",
    "One array after the other.",
    views.concat,
    example=(f"concat({ONE_TO_THREE})(makeArray(1)(9))", "[1, 2, 3, 9]"),
)
declare(
    "padCst",
    "(l: Nat, r: Nat) -> {n: Nat, t: DataType} -> t -> n.t -> (l + n + r).t",
    "Adds l copies of a value in front and r behind.",
    views.pad_constant,
    example=(f"padCst(2, 1)(0)({ONE_TO_THREE})", "[0, 0, 1, 2, 3, 0]"),
)
declare(
    "padClamp",
    "(l: Nat, r: Nat) -> {n: Nat, t: DataType} -> (n + 1).t -> (l + n + 1 + r).t",
    "Repeats the first element l times in front and the last r times behind; there has to be one.",
    views.pad_clamp,
    example=(f"padClamp(2, 1)({ONE_TO_THREE})", "[1, 1, 1, 2, 3, 3]"),
)
declare_pattern(
    "padEmpty",
    "(r: Nat) -> {n: Nat, t: DataType} -> n.t -> (n + r).t",
    "Adds r elements behind that nothing defines and no program may depend on: the interpreter puts NaN"
    " there, and into integers the smallest there is.",
    views.pad_empty,
    example=("padEmpty(1)(makeArray(2)(1.0, 2.0))", "[1.0, 2.0, nan]"),
)

declare_pattern(
    "prefix",
    "{n: Nat, t: DataType} -> Idx[n + 1] -> n.t -> n.t",
    "The first elements of an array, as many as data say; the others are undefined, as with padEmpty, so that"
    " nobody has to compute them.",
    views.prefix,
    example=("prefix(2)(makeArray(3)(1.0, 2.0, 3.0))", "[1.0, 2.0, nan]"),
)
declare_pattern(
    "prefixes",
    "{n: Nat, m: Nat, t: DataType} -> n.Idx[m + 1] -> n.m.t -> n.m.t",
    "prefix of each row, with a number for each: rows that are full to different lengths, as one array. What"
    " is undefined may be written, with any values, where `prefix` writes nothing.",
    views.prefixes,
    example=(
        "prefixes(makeArray(2)(1, 2))(makeArray(2)(makeArray(2)(1.0, 2.0), makeArray(2)(3.0, 4.0)))",
        "[[1.0, nan], [3.0, 4.0]]",
    ),
)

# --- indices --------------------------------------------------------------------------------------

declare(
    "gather",
    "{n: Nat, m: Nat, t: DataType} -> m.Idx[n] -> n.t -> m.t",
    "The elements at the given indices.",
    views.gather,
    example=(f"gather(makeArray(2)(2, 0))({ONE_TO_THREE})", "[3, 1]"),
)
declare_pattern(
    "scatter",
    "{n: Nat, m: Nat, t: DataType} -> n.Idx[m] -> n.t -> m.t",
    "Puts each element at its index, no two at the same; what none is put at is undefined, as with padEmpty.",
    views.scatter,
    example=(f"scatter(makeArray(3)(2, 0, 1))({ONE_TO_THREE}) : 3.i32", "[2, 3, 1]"),
)
declare_pattern(
    "scatterBy",
    "{n: Nat, m: Nat, t: DataType} -> m.Idx[n] -> n.Idx[m] -> n.t -> m.t",
    "scatter, with the place of each element and, for each place, the element that owns it: an element is put"
    " at its place if it owns that. Then no two are put at one, whatever the indices are; a place whose owner"
    " belongs elsewhere is undefined, as with padEmpty.",
    views.scatter_by,
    example=(
        f"scatterBy(makeArray(2)(2, 0))(makeArray(3)(1, 1, 0))({ONE_TO_THREE})",
        "[3, 1]",
    ),
)
declare(
    "reorder",
    "(n: Nat, f: Nat2Nat, finv: Nat2Nat) -> {t: DataType} -> n.t -> n.t",
    "Its element at i is the one at f(i); f permutes the indices below n, and finv is its inverse.",
    views.reorder,
    example=(f"reorder(3, natFun(i => 2 - i), natFun(i => 2 - i))({ONE_TO_THREE})", "[3, 2, 1]"),
)
declare(
    "idx",
    "{n: Nat, t: DataType} -> Idx[n] -> n.t -> t",
    "The element at an index.",
    views.index,
    example=(f"idx(1)({ONE_TO_THREE})", "2"),
)
declare(
    "indexToInt",
    "{n: Nat} -> Idx[n] -> i32",
    "An index as a number.",
    views.index_to_int,
    example=("generate((i: Idx[3]) => 2 * indexToInt(i))", "[0, 2, 4]"),
)
declare(
    "indexAsNat",
    "{n: Nat} -> Idx[n] -> i32",
    "indexToInt under its other name: at run time the natural numbers are those of i32.",
    views.index_to_int,
    example=("generate((i: Idx[3]) => indexAsNat(i))", "[0, 1, 2]"),
)
declare(
    "natAsIndex",
    "(n: Nat) -> i32 -> Idx[n]",
    "A number as an index below n; one that is not below n is an error. The inverse of indexAsNat.",
    views.nat_as_index,
    example=(f"idx(natAsIndex(3)(1 + 1))({ONE_TO_THREE})", "3"),
)
