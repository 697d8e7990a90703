"""Fragments: tiles that a warp holds together, and the product of them (Listing 2)."""

from __future__ import annotations

from rise.interpret import fragments, patterns, views
from rise.primitives.declare import declare

declare(
    "asFragment",
    "{m: Nat, n: Nat, k: Nat, t: DataType, f: FragmKind} -> m.n.t -> Fragment[m, n, k, t, f]",
    "Loads a tile into a fragment.",
    patterns.identity,
)
declare(
    "asMatrix",
    "{m: Nat, n: Nat, k: Nat, t: DataType} -> Fragment[m, n, k, t, Accum] -> m.n.t",
    "Stores an accumulator as a tile.",
    patterns.identity,
)
declare(
    "generateFragment",
    "{m: Nat, n: Nat, k: Nat, t: DataType, f: FragmKind} -> t -> Fragment[m, n, k, t, f]",
    "A fragment with one value everywhere.",
    fragments.generate_fragment,
)
declare(
    "tensorMatMulAdd",
    "{m: Nat, n: Nat, k: Nat, s: DataType, t: DataType} -> Fragment[m, k, n, s, AMatrix]"
    " -> Fragment[k, n, m, s, BMatrix] -> Fragment[m, n, k, t, Accum]"
    " -> Fragment[m, n, k, t, Accum]",
    "a * b + c on tensor cores: products exact, sums in f32 or wider, rounded to t at the end.",
    fragments.multiply_add,
)
declare(
    "mapFragment",
    "{m: Nat, n: Nat, k: Nat, s: DataType, t: DataType, f: FragmKind} -> (s -> t)"
    " -> Fragment[m, n, k, s, f] -> Fragment[m, n, k, t, f]",
    "Applies a function to every element of a fragment.",
    fragments.map_fragment,
)
declare(
    "zipFragment",
    "{m: Nat, n: Nat, k: Nat, s: DataType, t: DataType, f: FragmKind} -> Fragment[m, n, k, s, f]"
    " -> Fragment[m, n, k, t, f] -> Fragment[m, n, k, (s, t), f]",
    "Pairs the elements of two fragments of one shape.",
    views.pair,
    view=True,
)
