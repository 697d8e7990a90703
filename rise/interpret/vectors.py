"""Denotations of the vector primitives: a vector is the last axis of its array."""

from __future__ import annotations

from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.value import Data, Function, Leaf, Tree, closed, leaf_of, opened
from rise.interpret.views import join, reshaped


def as_vector(call: Call, values: Data) -> Tree:
    return reshaped(values, 1, (call.size("m"), call.size("n")))


def as_scalar(call: Call, vectors: Data) -> Tree:
    return join(call, vectors)


def vector_from_scalar(call: Call, value: Data) -> Leaf:
    leaf = leaf_of(value)
    spread = np.broadcast_to(leaf.array[..., None], (*leaf.array.shape, call.size("n")))
    return Leaf(spread, leaf.depth)


def map_vector(call: Call, function: Function, vector: Data) -> Tree:
    depth, size = call.scope.depth, call.size("n")
    return closed(function(call.scope.inside(size), opened(vector, depth)), depth, size)
