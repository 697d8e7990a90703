"""Denotations of reductions and scans: left folds, one step for all turns of the enclosing maps.

Each step rounds to the accumulator's type. A fold over many elements, in few turns, is not run step by
step: `rise.interpret.steps` says how its function is taken apart, without a change in any bit.
"""

from __future__ import annotations

from collections.abc import Callable

from rise.interpret.inputs import elements
from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.patterns import map_
from rise.interpret.scalars import LeftToEvaluator
from rise.interpret.steps import Step
from rise.interpret.value import (
    Data,
    Function,
    Leaf,
    Numbers,
    Tree,
    aligned,
    closed,
    each,
    forced,
    leaf_of,
    opened_between,
    picked,
)

# so many elements are computed and kept at once: vectorising over them saves more time than storing
# them costs
SMALL = 1 << 20
# fewer elements are not worth taking the function of a fold apart
SHORT = 32
# in more turns than this, a step for all turns at once is faster than a loop for each
FEW = 32


def fold(call: Call, operator: Function, initial: Data, values: Data) -> Tree:
    return _fold(call, operator, 0, initial, values)[0]


def fold_loaded(call: Call, load: Function, operator: Function, initial: Data, values: Data) -> Tree:
    return fold(call, operator, initial, map_(call, load, values))


def scan(call: Call, operator: Function, initial: Data, values: Data) -> Tree:
    return _fold(call, operator, 0, initial, values, keep=True)[1]


def scan_sequentially(call: Call, step: Function, initial: Data, values: Data) -> Tree:
    """Its function has the element first."""
    return _fold(call, step, 1, initial, values, keep=True)[1]


def _fold(
    call: Call, function: Function, position: int, initial: Data, values: Data, keep: bool = False
) -> tuple[Tree, Tree]:
    """The last accumulator and, to `keep`, all of them; `position` is the function's parameter for it."""
    if call.size("n") >= SHORT and (step := getattr(function, "step", None)) is not None:
        found = _taken_apart(call, step(position), forced(initial), values, keep)
        if found is not None:
            return found
    return _step_by_step(call, function, position, forced(initial), values, keep)


def _step_by_step(
    call: Call, function: Function, position: int, result: Tree, values: Data, keep: bool
) -> tuple[Tree, Tree]:
    scope, size = call.scope, call.size("n")
    element = call.type("s" if "s" in call.instance.arguments else "t")
    if size * scope.turns * elements(element) <= SMALL:
        values = forced(values)
    kept: list[Tree] = []
    for i in range(size):
        x = picked(values, i)
        first, second = (result, x) if position == 0 else (x, result)
        result = forced(function(scope, first)(scope, second))
        if keep:
            kept.append(result)
    if not keep:
        return result, result
    return result, _stacked(kept, scope.depth) if kept else _none_of(result, scope.depth)


def _stacked(results: list[Tree], depth: int) -> Tree:
    """The results in a row, as an array of which the elements are they."""

    def on_leaves(*leaves: Leaf) -> Leaf:
        arrays = np.broadcast_arrays(*(aligned(leaf, depth) for leaf in leaves))
        return Leaf(np.stack(arrays, axis=depth), depth)

    return each(on_leaves, *results)


def _none_of(result: Tree, depth: int) -> Tree:
    """The array of no results that are like this one."""
    return each(lambda leaf: Leaf(np.expand_dims(aligned(leaf, depth), depth).take([], depth), depth), result)


# --- without a step for each element ----------------------------------------------------------------


def _taken_apart(
    call: Call, step: Step | None, initial: Tree, values: Data, keep: bool
) -> tuple[Tree, Tree] | None:
    """The same fold, many elements at a time; None where there is no way, or it would not be faster."""
    if step is None:
        return None
    depth, size = call.scope.depth, call.size("n")
    per_element = max(call.scope.turns, _width(initial))
    length = min(size, max(1, SMALL // per_element))
    run = _looped if step.accumulate is None else _accumulated
    if length < SHORT or (step.accumulate is None and call.scope.turns > FEW):
        return None
    kept: list[Tree] = []
    for start in range(0, size, length):
        stop = min(start + length, size)
        inside = call.scope.inside(stop - start)
        opened = opened_between(values, depth, start, stop)
        parts = [leaf for p in step.parts for leaf in _leaves(closed(p(inside, opened), depth, stop - start))]
        try:
            initial, all_ = run(step, initial, parts, depth, stop - start, keep)
        except LeftToEvaluator:
            return None
        kept.append(all_)
    joined = each(lambda *leaves: _concatenated(leaves, depth), *kept) if keep else initial
    return initial, joined


def _width(initial: Tree) -> int:
    return int(initial.array.size) if isinstance(initial, Leaf) else max(_width(part) for part in initial)


def _concatenated(leaves: tuple[Leaf, ...], depth: int) -> Leaf:
    return Leaf(np.concatenate([leaf.array for leaf in leaves], axis=depth), depth)


Run = Callable[[Step, Tree, list[Leaf], int, int, bool], tuple[Tree, Tree]]


def _accumulated(
    step: Step, initial: Tree, parts: list[Leaf], depth: int, size: int, keep: bool
) -> tuple[Tree, Tree]:
    """By an operator of NumPy, of which `accumulate` keeps the order and rounds each step."""
    first, rest = np.expand_dims(aligned(leaf_of(initial), depth), depth), parts[0].array
    shapes = [(*array.shape[:depth], 1, *array.shape[depth + 1 :]) for array in (first, rest)]
    shape = np.broadcast_shapes(*shapes)
    rest = np.broadcast_to(rest, (*shape[:depth], size, *shape[depth + 1 :]))
    steps = np.concatenate([np.broadcast_to(first, shape), rest], axis=depth)
    done = step.accumulate(steps, depth) if step.accumulate is not None else steps
    last = Leaf(_at(done, depth, -1).copy(), depth)
    return last, Leaf(_at(done, depth, slice(1, None)), depth) if keep else last


def _looped(
    step: Step, initial: Tree, parts: list[Leaf], depth: int, size: int, keep: bool
) -> tuple[Tree, Tree]:
    """By a loop over scalars of NumPy, for one turn after the other."""
    starts = [aligned(leaf, depth) for leaf in _leaves(initial)]
    batch = np.broadcast_shapes(*(a.shape for a in starts), *(p.array.shape[:depth] for p in parts))
    rows = [np.broadcast_to(p.array, (*batch, size)).reshape(-1, size) for p in parts]
    firsts = [np.broadcast_to(a, batch).reshape(-1) for a in starts]
    lasts = [np.empty(first.shape, first.dtype) for first in firsts]
    kept = [np.empty((*first.shape, size), first.dtype) for first in firsts]
    for turn in range(firsts[0].size):
        columns = [row[turn] for row in rows]
        last, all_ = step.loop(size, keep, [first[turn] for first in firsts], columns)
        for i, value in enumerate(last):
            lasts[i][turn] = value
            if keep:
                kept[i][turn] = all_[i]
    result = _tree(initial, [Leaf(a.reshape(batch), depth) for a in lasts])
    if not keep:
        return result, result
    return result, _tree(initial, [Leaf(a.reshape(*batch, size), depth) for a in kept])


def _leaves(tree: Tree) -> list[Leaf]:
    return [tree] if isinstance(tree, Leaf) else [*_leaves(tree[0]), *_leaves(tree[1])]


def _tree(shape: Tree, leaves: list[Leaf]) -> Tree:
    """The leaves, used up from the front, as a tree of that shape."""
    if isinstance(shape, Leaf):
        return leaves.pop(0)
    return _tree(shape[0], leaves), _tree(shape[1], leaves)


def _at(array: Numbers, axis: int, position: int | slice) -> Numbers:
    return array[(slice(None),) * axis + (position,)]
