"""Fragments: tiles that a warp holds together, and the product of them (Listing 2)."""

from __future__ import annotations

from functools import partial

from rise.interpret import fragments, patterns, views
from rise.primitives import declare as declaring

declare = partial(declaring.declare, group="tensor")

TWO_ROWS = "makeArray(2)(makeArray(2)(1.0, 2.0), makeArray(2)(3.0, 4.0))"
TILE = f"asFragment({TWO_ROWS})"
ONES = "generateFragment(1.0)"

declare(
    "asFragment",
    "{m: Nat, n: Nat, k: Nat, t: DataType, f: FragmKind} -> m.n.t -> Fragment[m, n, k, t, f]",
    "Loads a tile into a fragment.",
    patterns.identity,
    example=(f"asMatrix({TILE} : Fragment[2, 2, 2, f32, Accum])", "[[1.0, 2.0], [3.0, 4.0]]"),
)
declare(
    "asMatrix",
    "{m: Nat, n: Nat, k: Nat, t: DataType} -> Fragment[m, n, k, t, Accum] -> m.n.t",
    "Stores an accumulator as a tile.",
    patterns.identity,
    example=("asMatrix(generateFragment(0.5) : Fragment[1, 2, 4, f32, Accum])", "[[0.5, 0.5]]"),
)
declare(
    "generateFragment",
    "{m: Nat, n: Nat, k: Nat, t: DataType, f: FragmKind} -> t -> Fragment[m, n, k, t, f]",
    "A fragment with one value everywhere.",
    fragments.generate_fragment,
    example=("asMatrix(generateFragment(7) : Fragment[2, 1, 4, i32, Accum])", "[[7], [7]]"),
)
declare(
    "tensorMatMulAdd",
    "{m: Nat, n: Nat, k: Nat, s: DataType, t: DataType} -> Fragment[m, k, n, s, AMatrix]"
    " -> Fragment[k, n, m, s, BMatrix] -> Fragment[m, n, k, t, Accum]"
    " -> Fragment[m, n, k, t, Accum]",
    "a * b + c on tensor cores: products exact, sums in f32 or wider, rounded to t at the end.",
    fragments.multiply_add,
    example=(f"asMatrix(tensorMatMulAdd({TILE})({TILE})({ONES}))", "[[8.0, 11.0], [16.0, 23.0]]"),
)
declare(
    "mapFragment",
    "{m: Nat, n: Nat, k: Nat, s: DataType, t: DataType, f: FragmKind} -> (s -> t)"
    " -> Fragment[m, n, k, s, f] -> Fragment[m, n, k, t, f]",
    "Applies a function to every element of a fragment.",
    fragments.map_fragment,
    example=(
        f"asMatrix(mapFragment(x => x * x)({TILE}) : Fragment[2, 2, 2, f32, Accum])",
        "[[1.0, 4.0], [9.0, 16.0]]",
    ),
)
declare(
    "zipFragment",
    "{m: Nat, n: Nat, k: Nat, s: DataType, t: DataType, f: FragmKind} -> Fragment[m, n, k, s, f]"
    " -> Fragment[m, n, k, t, f] -> Fragment[m, n, k, (s, t), f]",
    "Pairs the elements of two fragments of one shape.",
    views.pair,
    view=True,
    example=(
        f"asMatrix(mapFragment((x, y) => x + y)(zipFragment({TILE})({ONES}))"
        " : Fragment[2, 2, 2, f32, Accum])",
        "[[2.0, 3.0], [4.0, 5.0]]",
    ),
)

# --- rows of accumulators -------------------------------------------------------------------------

declare(
    "reduceRows",
    "{m: Nat, n: Nat, k: Nat, t: DataType} -> (t -> t -> t) -> t -> Fragment[m, n, k, t, Accum]"
    " -> Fragment[m, 1, k, t, Column]",
    "Combines the elements of each row with an associative, commutative operator and its neutral element.",
    fragments.reduce_rows,
    example=(f"asColumn(reduceRows(+, 0)({TILE} : Fragment[2, 2, 2, f32, Accum]))", "[[3.0], [7.0]]"),
)
declare(
    "repeatColumn",
    "{m: Nat, n: Nat, k: Nat, t: DataType} -> Fragment[m, 1, k, t, Column] -> Fragment[m, n, k, t, Accum]",
    "An accumulator whose columns are all the same.",
    fragments.repeat_column,
    view=True,
    example=(
        "asMatrix(mapFragment(x => x)(repeatColumn(generateFragment(0.5))) : Fragment[1, 2, 4, f32, Accum])",
        "[[0.5, 0.5]]",
    ),
)
declare(
    "asColumn",
    "{m: Nat, k: Nat, t: DataType} -> Fragment[m, 1, k, t, Column] -> m.1.t",
    "Stores a column.",
    patterns.identity,
    example=("asColumn(generateFragment(0.5) : Fragment[2, 1, 4, f32, Column])", "[[0.5], [0.5]]"),
)
declare(
    "asOperands",
    "{m: Nat, n: Nat, k: Nat, c: Nat, t: DataType} -> Fragment[m, c*k, k, t, Accum]"
    " -> c.Fragment[m, k, n, t, AMatrix]",
    "An accumulator as first operands of other products: its columns in tiles of k. Each thread keeps the"
    " elements that it holds.",
    fragments.as_operands,
    example=(
        "asOperands(mapFragment(x => x)(generateFragment(7)) : Fragment[1, 4, 2, i32, Accum])"
        " |> map(tile => asMatrix(tensorMatMulAdd(tile)(generateFragment(1))(generateFragment(0))"
        " : Fragment[1, 1, 2, i32, Accum]))",
        "[[[14]], [[14]]]",
    ),
)
