"""Denotations of what only rearranges: pairs, shapes, windows, padding, indexing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rise.interpret.indexing import on_indices
from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.operations import counts
from rise.interpret.value import (
    Data,
    Delayed,
    Leaf,
    Numbers,
    Tree,
    aligned,
    each,
    forced,
    leaf_of,
    picked,
    pointwise,
    together,
    trailing,
)
from rise.types import NatFunction

# --- pairs ----------------------------------------------------------------------------------------


def pair(call: Call, left: Data, right: Data) -> tuple[Data, Data]:
    """Also zip: an array of pairs is a pair of arrays."""
    return left, right


def unzip(call: Call, pairs: Data) -> Data:
    return forced(pairs) if isinstance(pairs, Delayed) else pairs


def first(call: Call, pair_: tuple[Data, Data]) -> Data:
    return pair_[0]


def second(call: Call, pair_: tuple[Data, Data]) -> Data:
    return pair_[1]


# --- shape ----------------------------------------------------------------------------------------


def split(call: Call, values: Data) -> Tree:
    return reshaped(values, 1, (call.size("m"), call.size("n")))


def join(call: Call, values: Data) -> Tree:
    return reshaped(values, 2, (call.size("n") * call.size("m"),))


def reshaped(values: Data, axes: int, sizes: tuple[int, ...]) -> Tree:
    """Replaces that many outer axes by axes of the given sizes."""

    def on_leaf(leaf: Leaf) -> Leaf:
        shape = leaf.array.shape
        new = shape[: leaf.depth] + sizes + shape[leaf.depth + axes :]
        return Leaf(leaf.array.reshape(new), leaf.depth)

    return each(on_leaf, values)


def transpose(call: Call, values: Data) -> Tree:
    return each(lambda x: Leaf(np.swapaxes(x.array, x.depth, x.depth + 1), x.depth), values)


def slide(call: Call, values: Data) -> Tree:
    windows, size, step = call.size("n") + 1, call.size("sz"), call.size("sp")

    def on_leaf(leaf: Leaf) -> Leaf:
        array, axis = leaf.array, leaf.depth
        shape = (*array.shape[:axis], windows, size, *array.shape[axis + 1 :])
        jump = array.strides[axis]
        strides = (*array.strides[:axis], step * jump, jump, *array.strides[axis + 1 :])
        view = np.lib.stride_tricks.as_strided(array, shape, strides, writeable=False)
        return Leaf(view, axis)

    return each(on_leaf, values)


def take(call: Call, values: Data) -> Tree:
    return each(lambda x: Leaf(_cut(x.array, x.depth, slice(call.size("n"))), x.depth), values)


def drop(call: Call, values: Data) -> Tree:
    part = slice(call.size("n"), None)
    return each(lambda x: Leaf(_cut(x.array, x.depth, part), x.depth), values)


def concat(call: Call, left: Data, right: Data) -> Tree:
    return each(_concatenated, left, right)


def pad_constant(call: Call, value: Data, values: Data) -> Tree:
    def on_leaf(constant: Leaf, leaf: Leaf) -> Leaf:
        front, back = (_repeated(constant, call.size(name)) for name in ("l", "r"))
        return _concatenated(front, leaf, back)

    return each(on_leaf, value, values)


def pad_clamp(call: Call, values: Data) -> Tree:
    last = call.size("n")
    clamped = np.arange(-call.size("l"), last + 1 + call.size("r")).clip(0, last)
    return each(lambda x: Leaf(np.take(x.array, clamped, axis=x.depth), x.depth), values)


def pad_empty(call: Call, values: Data) -> Tree:
    def on_leaf(leaf: Leaf) -> Leaf:
        array, axis = leaf.array, leaf.depth
        tail = undefined((*array.shape[:axis], call.size("r"), *array.shape[axis + 1 :]), array.dtype)
        return Leaf(np.concatenate([array, tail], axis=axis), axis)

    return each(on_leaf, values)


_other: ContextVar[bool] = ContextVar("other undefined numbers", default=False)


@contextmanager
def other_undefined() -> Iterator[None]:
    """Within this context other numbers are undefined ones: what is computed from none of them stays."""
    token = _other.set(True)
    try:
        yield
    finally:
        _other.reset(token)


def undefined(shape: tuple[int, ...], dtype: Any) -> Numbers:
    """What no program may depend on, and is noticed if one does: NaN, the smallest integer, true."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.full(shape, limits.max if _other.get() else limits.min, dtype)
    if dtype.kind == "b":
        return np.full(shape, not _other.get(), dtype)
    return np.full(shape, 0 if _other.get() else np.nan, dtype)


def _cut(array: Numbers, axis: int, part: slice) -> Numbers:
    return array[(slice(None),) * axis + (part,)]


def _repeated(leaf: Leaf, size: int) -> Leaf:
    array = np.expand_dims(leaf.array, leaf.depth)
    shape = (*array.shape[: leaf.depth], size, *array.shape[leaf.depth + 1 :])
    return Leaf(np.broadcast_to(array, shape), leaf.depth)


def _concatenated(*leaves: Leaf) -> Leaf:
    depth, arrays = together(*leaves)
    batch = np.broadcast_shapes(*(a.shape[:depth] for a in arrays))
    spread = [np.broadcast_to(a, batch + a.shape[depth:]) for a in arrays]
    return Leaf(np.concatenate(spread, axis=depth), depth)


# --- indices --------------------------------------------------------------------------------------


def gather(call: Call, indices: Data, values: Data) -> Tree:
    return _looked_up(call, leaf_of(indices), values, 1)


def index(call: Call, position: Data, values: Data) -> Data:
    leaf = leaf_of(position)
    if leaf.array.ndim == 0:
        return picked(values, int(_checked(call, leaf).array))
    return _looked_up(call, leaf, values, 0)


def index_to_int(call: Call, position: Data) -> Leaf:
    leaf = leaf_of(position)
    if call.size("n") > 1 << 31:
        large = leaf.array >= 1 << 31
        if counts(call.scope, large, leaf.depth).any():
            raise call.error("R0504", f"index {leaf.array[large].flat[0]} is beyond the range of i32")
    return pointwise(lambda i: i.astype(np.int32), leaf)


def nat_as_index(call: Call, number: Data) -> Leaf:
    return _checked(call, pointwise(lambda i: i.astype(np.int64), number))


def reorder(call: Call, values: Data) -> Tree:
    """The functions are checked to be permutations, one the inverse of the other."""
    size = call.size("n")
    indices = np.arange(size)
    there, back = (indices_of(call, name, indices) for name in ("f", "finv"))
    wrong = np.flatnonzero(back[there] != indices)
    if wrong.size:
        i = wrong[0]
        message = f"f({i}) is {there[i]}, but finv({there[i]}) is {back[there[i]]}: they are no inverses"
        raise call.error("R0510", message)
    return each(lambda x: Leaf(np.take(x.array, there, axis=x.depth), x.depth), values)


def indices_of(call: Call, name: str, indices: Numbers) -> Numbers:
    """A function on sizes at many indices; its results have to be indices too."""
    function = call.instance.arguments[name]
    if not isinstance(function, NatFunction):
        raise call.error("R0506", f"`{function}` is no function on sizes yet")
    found = on_indices(function, indices)
    wrong = np.flatnonzero((found < 0) | (found >= indices.size))
    if wrong.size:
        i = wrong[0]
        message = (
            f"index {found[i]}, which {name} gives for {i}, is out of range of an array of {indices.size}"
        )
        raise call.error("R0503", message)
    return found


def scatter(call: Call, indices: Data, values: Data) -> Tree:
    size = call.size("m")
    positions = _checked(call, leaf_of(indices), size)
    _distinct(call, positions)
    return each(lambda x: _scattered(positions, x, size), values)


def _distinct(call: Call, positions: Leaf) -> None:
    """Refuses two equal indices in one scatter: which of the elements is kept would depend on chance."""
    ordered = np.sort(positions.array, axis=-1)
    same = ordered[..., 1:] == ordered[..., :-1]
    bad = counts(call.scope, same, positions.depth)
    if bad.any():
        deeper = positions.depth + bad.ndim - same.ndim
        repeated = np.broadcast_to(aligned(Leaf(ordered[..., 1:], positions.depth), deeper), bad.shape)[bad]
        raise call.error("R0510", f"two elements are put at index {repeated.flat[0]}")


def _scattered(positions: Leaf, leaf: Leaf, size: int) -> Leaf:
    depth, (where, array) = together(positions, leaf)
    batch = np.broadcast_shapes(where.shape[:depth], array.shape[:depth])
    array = np.broadcast_to(array, batch + array.shape[depth:])
    result = undefined((*batch, size, *array.shape[depth + 1 :]), array.dtype)
    where = np.broadcast_to(trailing(where, array.ndim - where.ndim), array.shape)
    np.put_along_axis(result, where, array, axis=depth)
    return Leaf(result, depth)


def scatter_by(call: Call, owners: Data, places: Data, values: Data) -> Tree:
    """At each place the element that owns it, if that belongs there."""
    size = call.size("m")
    owner = _checked(call, leaf_of(owners))
    place = _taken(owner, _checked(call, leaf_of(places), size), 1)
    mine = Leaf(place.array == np.arange(size), place.depth)
    return each(lambda x: _defined(mine, _taken(owner, x, 1)), values)


def prefix(call: Call, count: Data, values: Data) -> Tree:
    size = call.size("n")
    leaf = _checked(call, leaf_of(count), size + 1)
    first = Leaf(np.arange(size) < np.expand_dims(leaf.array, -1), leaf.depth)
    return each(lambda x: _defined(first, x), values)


def prefixes(call: Call, counts: Data, values: Data) -> Tree:
    size = call.size("m")
    leaf = _checked(call, leaf_of(counts), size + 1)
    first = Leaf(np.arange(size) < np.expand_dims(leaf.array, -1), leaf.depth)
    return each(lambda x: _defined(first, x), values)


def _defined(chosen: Leaf, leaf: Leaf) -> Leaf:
    """The elements that are chosen; the others are undefined."""
    depth, (which, array) = together(chosen, leaf)
    which = trailing(which, array.ndim - which.ndim)
    return Leaf(np.where(which, array, undefined((), array.dtype)), depth)


def _looked_up(call: Call, positions: Leaf, values: Data, axes: int) -> Tree:
    """Elements at positions, which are arrays of that many axes (or scalars) under the batch."""
    checked = _checked(call, positions)
    if checked.depth == 0:
        return each(lambda x: Leaf(np.take(x.array, checked.array, axis=x.depth), x.depth), values)
    return each(lambda x: _taken(checked, x, axes), values)


def _taken(positions: Leaf, leaf: Leaf, axes: int) -> Leaf:
    depth, (where, array) = together(positions, leaf)
    where = trailing(where, array.ndim - where.ndim)
    found = np.take_along_axis(array, where, axis=depth)
    return Leaf(found if axes else found.squeeze(depth), depth)


def _checked(call: Call, positions: Leaf, size: int | None = None) -> Leaf:
    """Refuses an index out of range; where the result is thrown away, puts one in range."""
    size = call.size("n") if size is None else size
    wrong = (positions.array < 0) | (positions.array >= size)
    if not wrong.any():
        return positions
    depth = positions.depth
    bad = counts(call.scope, wrong, depth)
    if bad.any():
        deeper = max(depth, call.scope.guard.depth) if call.scope.guard else depth
        values = np.broadcast_to(aligned(positions, deeper), bad.shape)[bad]
        raise call.error("R0503", f"index {values.flat[0]} is out of range of an array of {size}")
    return Leaf(positions.array.clip(0, max(size - 1, 0)), depth)
