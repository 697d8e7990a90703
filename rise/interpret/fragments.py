"""Denotations of the tensor core primitives: a fragment is its tile."""

from __future__ import annotations

from dataclasses import replace

from rise.interpret.folds import fold
from rise.interpret.inputs import dtype_of
from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.value import Data, Function, Leaf, Tree, closed, each, leaf_of, opened, together
from rise.types import Scalar


def generate_fragment(call: Call, value: Data) -> Tree:
    shape = (call.size("m"), call.size("n"))

    def on_leaf(leaf: Leaf) -> Leaf:
        spread = np.broadcast_to(leaf.array[..., None, None], leaf.array.shape + shape)
        return Leaf(spread, leaf.depth)

    return each(on_leaf, value)


def map_fragment(call: Call, function: Function, fragment: Data) -> Tree:
    rows, columns, depth = call.size("m"), call.size("n"), call.scope.depth
    inside = opened(opened(fragment, depth), depth + 1)
    result = function(call.scope.inside(rows, columns), inside)
    return closed(closed(result, depth + 1, columns), depth, rows)


def reduce_rows(call: Call, operator: Function, initial: Data, fragment: Data) -> Tree:
    """map(reduce(op)(z)), as a matrix of one column."""
    rows = call.size("m")
    inside = replace(call, scope=call.scope.inside(rows))
    column = closed(
        fold(inside, operator, initial, opened(fragment, call.scope.depth)), call.scope.depth, rows
    )
    return each(lambda leaf: Leaf(np.expand_dims(leaf.array, leaf.depth + 1), leaf.depth), column)


def repeat_column(call: Call, column: Data) -> Tree:
    def on_leaf(leaf: Leaf) -> Leaf:
        return Leaf(np.repeat(leaf.array, call.size("n"), axis=leaf.depth + 1), leaf.depth)

    return each(on_leaf, column)


def as_operands(call: Call, fragment: Data) -> Tree:
    """transpose ∘ map(split(k))"""
    rows, tiles, width = call.size("m"), call.size("c"), call.size("k")

    def on_leaf(leaf: Leaf) -> Leaf:
        outer = leaf.array.shape[: leaf.depth]
        tiled = leaf.array.reshape((*outer, rows, tiles, width))
        return Leaf(np.swapaxes(tiled, leaf.depth, leaf.depth + 1), leaf.depth)

    return each(on_leaf, fragment)


def multiply_add(call: Call, a: Data, b: Data, c: Data) -> Leaf:
    """Products exact, sums in a type as wide as f32 or wider, rounded to the accumulator's."""
    wide = dtype_of(_sum_type(call.scalar("s"), call.scalar("t")))
    depth, (left, right, start) = together(leaf_of(a), leaf_of(b), leaf_of(c))
    product = np.matmul(left.astype(wide), right.astype(wide))
    return Leaf((product + start.astype(wide)).astype(dtype_of(call.scalar("t"))), depth)


def _sum_type(operand: Scalar, accumulator: Scalar) -> Scalar:
    """Products of f16, bf16 and tf32 are exact in f32, those of f32 in f64; integers wrap at the end."""
    if not accumulator.is_float:
        return Scalar("i64")
    narrow = operand.name in ("f16", "bf16", "tf32", "i8", "u8") and accumulator.name != "f64"
    return Scalar("f32" if narrow else "f64")
