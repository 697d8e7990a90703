"""Denotations of the patterns: map, generate, iterate, let, and the identity of many names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.value import (
    Data,
    Delayed,
    Function,
    Leaf,
    Tree,
    each,
    forced,
    opened_between,
    picked,
    together,
)
from rise.nat import Nat, constant

DependentFunction = Callable[[Nat], Function]


def map_(call: Call, function: Function, values: Data) -> Delayed:
    scope, size = call.scope, call.size("n")
    return Delayed(
        size,
        scope.depth,
        lambda start, stop: function(
            scope.inside(stop - start), opened_between(values, scope.depth, start, stop)
        ),
        lambda position: function(scope, picked(values, position)),
    )


def generate(call: Call, function: Function) -> Delayed:
    scope, size = call.scope, call.size("n")

    def indices(start: int, stop: int) -> Leaf:
        numbers = np.arange(start, stop, dtype=np.int64).reshape((1,) * scope.depth + (stop - start,))
        return Leaf(numbers, scope.depth + 1)

    return Delayed(
        size,
        scope.depth,
        lambda start, stop: function(scope.inside(stop - start), indices(start, stop)),
        lambda position: function(scope, Leaf(np.array(position, dtype=np.int64), 0)),
    )


def let(call: Call, value: Data, body: Function) -> Data:
    result: Data = body(call.scope, value)
    return result


def identity(call: Call, value: Data) -> Data:
    return value


def map_first(call: Call, function: Function, pair: tuple[Data, Data]) -> Data:
    return function(call.scope, pair[0]), pair[1]


def map_second(call: Call, function: Function, pair: tuple[Data, Data]) -> Data:
    return pair[0], function(call.scope, pair[1])


def foreign(call: Call, function: Function, *operands: Data) -> Data:
    applied: Any = function
    for operand in operands:
        applied = applied(call.scope, operand)
    result: Data = applied
    return result


def make_array(call: Call, *elements_: Data) -> Tree:
    """The elements, aligned to one shape, as a new first axis."""

    def stacked(*leaves: Leaf) -> Leaf:
        depth, arrays = together(*leaves)
        return Leaf(np.stack(np.broadcast_arrays(*arrays), axis=depth), depth)

    return each(stacked, *elements_)


def iterate(call: Call, step: DependentFunction, values: Data) -> Data:
    """The lengths go from m*n^(k-1) down to m."""
    for left in reversed(range(call.size("k"))):
        length = constant(call.size("m") * call.size("n") ** left)
        values = step(length)(call.scope, forced(values))
    return values
