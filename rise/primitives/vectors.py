"""Vectors: a few numbers that are loaded, stored and computed with as one. Arithmetic lifts to them."""

from __future__ import annotations

from functools import partial

from rise.interpret import vectors
from rise.primitives import declare as declaring

declare = partial(declaring.declare, group="vectors", view=True)

FOUR = "makeArray(4)(1, 2, 3, 4)"

declare(
    "asVector",
    "(n: Nat) -> {m: Nat, t: DataType} -> (m*n).t -> m.Vec[n, t]",
    "Every n neighbours as a vector; n has to divide the size.",
    vectors.as_vector,
    example=(f"asVector(2)({FOUR})", "[[1, 2], [3, 4]]"),
)
declare(
    "asVectorAligned",
    "(n: Nat) -> {m: Nat, t: DataType} -> (m*n).t -> m.Vec[n, t]",
    "asVector of an array that starts at an address which is a multiple of a vector's size.",
    vectors.as_vector,
    example=(f"asVectorAligned(4)({FOUR})", "[[1, 2, 3, 4]]"),
    lowers="asVector",
)
declare(
    "asScalar",
    "{n: Nat, m: Nat, t: DataType} -> m.Vec[n, t] -> (m*n).t",
    "The numbers of the vectors one after the other; the inverse of asVector.",
    vectors.as_scalar,
    example=(f"asScalar(map(v => v * v)(asVector(2)({FOUR})))", "[1, 4, 9, 16]"),
)
declare(
    "vectorFromScalar",
    "{n: Nat, t: DataType} -> t -> Vec[n, t]",
    "A vector with one number everywhere.",
    vectors.vector_from_scalar,
    example=("vectorFromScalar(7) : Vec[4, i32]", "[7, 7, 7, 7]"),
)
declare(
    "mapVec",
    "{n: Nat, s: DataType, t: DataType} -> (s -> t) -> Vec[n, s] -> Vec[n, t]",
    "Applies a function on numbers to every element of a vector.",
    vectors.map_vector,
    example=("mapVec(x => f32(x) / 2.0)(vectorFromScalar(3): Vec[2, i32])", "[1.5, 1.5]"),
)
