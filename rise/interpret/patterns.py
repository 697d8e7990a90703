"""Denotations of the patterns: map, reduction, generate, let, and the identity of many names."""

from __future__ import annotations

from rise.interpret.inputs import elements
from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.value import (
    Data,
    Delayed,
    Function,
    Leaf,
    Numbers,
    Tree,
    forced,
    opened,
    picked,
    together,
)

# a reduction computes its whole input first if that is at most so many elements: vectorising over
# the elements then saves more time than storing them costs
SMALL = 1 << 20


def map_(call: Call, function: Function, values: Data) -> Delayed:
    scope, size = call.scope, call.size("n")
    return Delayed(
        size,
        scope.depth,
        lambda: function(scope.inside(size), opened(values, scope.depth)),
        lambda position: function(scope, picked(values, position)),
    )


def generate(call: Call, function: Function) -> Delayed:
    scope, size = call.scope, call.size("n")

    def everything() -> Data:
        indices = np.arange(size, dtype=np.int64).reshape((1,) * scope.depth + (size,))
        return function(scope.inside(size), Leaf(indices, scope.depth + 1))  # type: ignore[no-any-return]

    def one(position: int) -> Data:
        return function(scope, Leaf(np.array(position, dtype=np.int64), 0))  # type: ignore[no-any-return]

    return Delayed(size, scope.depth, everything, one)


def let(call: Call, value: Data, body: Function) -> Data:
    return body(call.scope, value)  # type: ignore[no-any-return]


def identity(call: Call, value: Data) -> Data:
    return value


# --- reduction ------------------------------------------------------------------------------------


def fold(call: Call, operator: Function, initial: Data, values: Data) -> Tree:
    """A left fold, one step for all turns of the enclosing maps."""
    scope, size = call.scope, call.size("n")
    element = call.type("s" if "s" in call.instance.arguments else "t")
    if size * scope.turns * elements(element) <= SMALL:
        values = forced(values)
    result = forced(initial)
    quick = _fold_in_numpy(getattr(operator, "ufunc", None), result, values, size)
    if quick is not None:
        return quick
    for position in range(size):
        result = forced(operator(scope, result)(scope, picked(values, position)))
    return result


def _fold_in_numpy(name: str | None, initial: Tree, values: Data, size: int) -> Leaf | None:
    """The same fold for an operator of NumPy: `accumulate` keeps the order and rounds each step."""
    if name is None or size < 2 or not isinstance(initial, Leaf) or not isinstance(values, Leaf):
        return None
    depth, (first, array) = together(initial, values)
    first = getattr(np, name)(first, _at(array, depth, 0))
    shape = (*first.shape[:depth], size - 1, *first.shape[depth:])
    if size * first.size > SMALL:
        return None
    rest = np.broadcast_to(_at(array, depth, slice(1, None)), shape)
    steps = np.concatenate([np.expand_dims(first, depth), rest], axis=depth)
    done = getattr(np, name).accumulate(steps, axis=depth, dtype=array.dtype)
    return Leaf(_at(done, depth, -1).copy(), depth)


def _at(array: Numbers, axis: int, position: int | slice) -> Numbers:
    return array[(slice(None),) * axis + (position,)]
