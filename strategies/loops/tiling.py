"""Tiling, as in Halide: loops are split and reordered."""

from __future__ import annotations

from rewrites import reductions as r
from rewrites import views as v
from rewrites.result import Failure
from rise.errors import StrategyError
from rise.expr import Expr
from strategies.core import FunctionStrategy, Rewrite, Strategy, depending, prints_as_call, seq
from strategies.loops.nests import (
    FOLD,
    MAP,
    at_loop,
    inward,
    kinds,
    loop_sizes,
    missing,
    nearest,
    reform,
    reorder,
)


@prints_as_call
def split_loop(number: int, size: int, name: str = "split_loop") -> Strategy:
    """The loop of that number as two: over blocks of `size`, and, inside, over the elements of a block.

    A map's result is split and joined; a fold is nested in a fold, in the order that it had. Fails by name
    where `size` does not divide.
    """
    _positive(name, number, size)

    def chosen(term: Expr) -> Rewrite:
        found = kinds(term)
        if not 1 <= number <= len(found):
            return missing(name, number, len(found))
        refused = _remainder(name, term, number, size)
        if refused is not None:
            return refused
        if found[number - 1] == FOLD:
            return seq(at_loop(number, r.FOLD_IN_BLOCKS.with_sizes(n=size)), nearest(inward))
        return reform(found[: number - 1].count(MAP), v.SPLIT_JOIN_PAIR.with_sizes(n=size))

    return depending(chosen)


def _positive(name: str, number: int, size: int) -> None:
    if size < 1:
        raise StrategyError("R0609", f"{name}: the size {size} of loop {number} must be at least 1")


def _remainder(name: str, term: Expr, number: int, size: int) -> Strategy | None:
    """A failure where the size certainly does not divide the loop's."""
    loop = loop_sizes(term)[number - 1]
    if loop.value is None or loop.value % size == 0:
        return None
    reason = f"{size} does not divide {loop}, the size of loop {number}"
    return FunctionStrategy(name, lambda t: Failure(name, t, reason))


@prints_as_call
def tile(*sizes: int) -> Strategy:
    """The first loops of a nest, maps or folds, in tiles: tile(x, y) is the nest (m/x, n/y, x, y).

    Each of them is split, from inside so that the numbers of the others stay; then the loops over tiles are
    brought in front of those in tiles. Tiles of 1 are tiles as well. Fails by name where one does not divide.
    """
    splits = [split_loop(number, size, "tile") for number, size in reversed(list(enumerate(sizes, 1)))]
    outer, inner = range(1, 2 * len(sizes), 2), range(2, 2 * len(sizes) + 1, 2)
    return FunctionStrategy("tile", seq(*splits, reorder(*outer, *inner)))


@prints_as_call
def tile_nd(dimensions: int, size: int) -> Strategy:
    """Tiles of one size in so many dimensions."""
    return tile(*[size] * dimensions)


@prints_as_call
def block(number: int, size: int) -> Strategy:
    """A reduction in blocks: the loop of that number, a fold, as a loop over blocks and one in them."""
    return split_loop(number, size, "block")
