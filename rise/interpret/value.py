"""What terms denote, many at once: every leaf is an array with leading *batch* axes.

The body of `map f xs` runs once. There the first axis of xs is a batch axis, and a scalar of the
program is an array with one axis for each enclosing map: its *depth*. A value made outside has a
smaller depth; it is aligned where it meets a deeper one, by axes of extent 1 that NumPy broadcasts.
So a value that does not depend on a map is neither computed nor stored once for each of its turns.

Data is a tree: pairs are tuples, an array of pairs is a pair of arrays, and the leaves are `Leaf`,
or `Delayed` where an array is better not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Union

from rise.frozen import filled_at_once
from rise.interpret.lazily import np

Numbers = Any  # np.ndarray of any type; NumPy's own annotation would say no more than this


@filled_at_once
@dataclass(frozen=True, slots=True)
class Leaf:
    """An array whose first `depth` axes are batch axes, each as long as its map or of extent 1."""

    array: Numbers
    depth: int


Tree = Leaf | tuple["Tree", "Tree"]
Data = Union[Leaf, "Delayed", tuple["Data", "Data"]]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Scope:
    """Where a term is evaluated: the extents of the enclosing maps, and which of their turns count.

    `guard` is a truth value: where it is false the result is thrown away (the branch of a `select`
    that is not taken), so a division by zero there is none.
    """

    extents: tuple[int, ...] = ()
    guard: Leaf | None = None

    @property
    def depth(self) -> int:
        return len(self.extents)

    @property
    def turns(self) -> int:
        return prod(self.extents)

    def inside(self, *sizes: int) -> Scope:
        return Scope(self.extents + sizes, self.guard)

    def where(self, condition: Leaf) -> Scope:
        if self.guard is None:
            return Scope(self.extents, condition)
        return Scope(self.extents, pointwise(np.logical_and, self.guard, condition))


Function = Callable[[Scope, Any], Any]
Value = Data | Function


class Delayed:
    """An array that is not stored: its elements are computed together, or one when it is wanted.

    `some` computes the elements from a position up to another, one level deeper, and `one` a single
    element. A reduction that takes one element after another thus never holds the products of a whole
    matrix product. Whoever takes the elements a second time gets them stored, so that no chain of
    delayed arrays is computed more than twice.
    """

    __slots__ = ("_forced", "_one", "_opened", "_some", "_taken", "depth", "size")

    def __init__(
        self, size: int, depth: int, some: Callable[[int, int], Data], one: Callable[[int], Data]
    ) -> None:
        self.size = size
        self.depth = depth
        self._some: Callable[[int, int], Data] = some
        self._one: Callable[[int], Data] = one
        self._opened: Data | None = None
        self._forced: Tree | None = None
        self._taken = 0

    def opened(self) -> Data:
        """All elements, with the first axis as a batch axis: one level deeper."""
        if self._forced is not None:
            return opened(self._forced, self.depth)
        if self._opened is None:
            self._opened = self._some(0, self.size)
        return self._opened

    def opened_between(self, start: int, stop: int) -> Data:
        """The elements from a position up to another, one level deeper."""
        whole = stop - start == self.size or self._taken >= self.size
        if whole or self._forced is not None or self._opened is not None:
            return opened_between(self.forced(), self.depth, start, stop)
        self._taken += stop - start
        return self._some(start, stop)

    def forced(self) -> Tree:
        if self._forced is None:
            self._forced = closed(self.opened(), self.depth, self.size)
            self._opened = None
        return self._forced

    def picked(self, position: int) -> Data:
        if self._forced is None and self._opened is None and self._taken < self.size:
            self._taken += 1
            return self._one(position)
        return picked(self.forced(), position)


def aligned(leaf: Leaf, depth: int) -> Numbers:
    """The array seen from a greater depth: extent 1 for the maps that it does not depend on."""
    if leaf.depth == depth:
        return leaf.array
    shape = leaf.array.shape
    ones = (1,) * (depth - leaf.depth)
    return leaf.array.reshape(shape[: leaf.depth] + ones + shape[leaf.depth :])


def forced(data: Data) -> Tree:
    """The same data with every delayed array computed."""
    if isinstance(data, Leaf):
        return data
    if isinstance(data, Delayed):
        return data.forced()
    return forced(data[0]), forced(data[1])


def opened(data: Data, depth: int) -> Data:
    """The elements of an array, all at once, as they are seen inside a map at that depth."""
    if isinstance(data, Leaf):
        return Leaf(aligned(data, depth), depth + 1)
    if isinstance(data, Delayed):
        return data.opened() if data.depth == depth else opened(data.forced(), depth)
    return opened(data[0], depth), opened(data[1], depth)


def opened_between(data: Data, depth: int, start: int, stop: int) -> Data:
    """As `opened`, of the elements from a position up to another."""
    if isinstance(data, Leaf):
        return opened(
            Leaf(data.array[(slice(None),) * data.depth + (slice(start, stop),)], data.depth), depth
        )
    if isinstance(data, Delayed):
        same = data.depth == depth
        return data.opened_between(start, stop) if same else opened_between(data.forced(), depth, start, stop)
    return opened_between(data[0], depth, start, stop), opened_between(data[1], depth, start, stop)


def closed(data: Data, depth: int, size: int) -> Tree:
    """The inverse of `opened`: the batch axis of a map becomes the first axis of its result."""
    return each(lambda leaf: _closed(leaf, depth, size), data)


def _closed(leaf: Leaf, depth: int, size: int) -> Leaf:
    array = aligned(leaf, depth + 1)
    if array.shape[depth] != size:
        shape = array.shape
        array = np.broadcast_to(array, (*shape[:depth], size, *shape[depth + 1 :]))
    return Leaf(array, depth)


def picked(data: Data, position: int) -> Data:
    """One element of an array."""
    if isinstance(data, Leaf):
        return Leaf(data.array[(slice(None),) * data.depth + (position,)], data.depth)
    if isinstance(data, Delayed):
        return data.picked(position)
    return picked(data[0], position), picked(data[1], position)


def each(function: Callable[..., Leaf], *data: Data) -> Tree:
    """Applies a function to the leaves of trees of one shape."""
    trees = [forced(d) for d in data]
    if isinstance(trees[0], Leaf):
        return function(*trees)
    firsts, seconds = zip(*trees, strict=True)
    return each(function, *firsts), each(function, *seconds)


def together(*leaves: Leaf) -> tuple[int, list[Numbers]]:
    """The greatest depth, and all arrays seen from there."""
    depth = max(leaf.depth for leaf in leaves)
    return depth, [aligned(leaf, depth) for leaf in leaves]


def pointwise(function: Callable[..., Numbers], *operands: Data) -> Leaf:
    """Applies a NumPy function to scalars (or vectors) of any depths."""
    depth, arrays = together(*(leaf_of(o) for o in operands))
    return Leaf(np.asarray(function(*arrays)), depth)


def leaf_of(data: Data) -> Leaf:
    """The data, known from its type to be no pair."""
    tree = forced(data)
    return tree if isinstance(tree, Leaf) else leaf_of(tree[0])


def trailing(array: Numbers, axes: int) -> Numbers:
    """The array with that many further axes of extent 1 behind."""
    return array.reshape(array.shape + (1,) * axes)
