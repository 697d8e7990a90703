"""Parallel reductions: a block for each row, a part for each thread, and a tree in shared memory.

A grid has no barrier, so one kernel reduces rows: as many results as there are blocks. A reduction to one
number is two kernels: parts of it by blocks, kept in global memory, and then their results by one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from rewrites import blocks as b
from rewrites import lowering as low
from rewrites import memory
from rewrites import reductions as r
from rise.expr import Expr, Lambda, call
from rise.types import Array
from strategies.complete import complete
from strategies.core import FunctionStrategy, Rewrite, Strategy, argument, depending, id_, prints_as_call, seq
from strategies.default import lowered
from strategies.loops.nests import nearest
from strategies.memory_bound.blocks import (
    BY_THREADS,
    BY_WARPS,
    FAN,
    WARP,
    WIDEST,
    Block,
    at_least,
    block_of,
    by_warps,
    chosen_or,
    reduced_length,
    refuse,
    with_neutral,
)
from strategies.memory_bound.widths import widest
from strategies.normal_forms import fuse_components, view_inward
from strategies.operands import in_function, nth_operand
from strategies.places import in_inputs, mapped

GLOBAL = next(made for made in memory.STORED if made.name == "toMem(Global)")
PARTS = 4096  # of a reduction to one number, where each has enough elements
PART_THREADS, PART_LOADS = 256, 4


@prints_as_call
def reduction(threads: int = 0, vector: int = 0, loads: int = 0, fan: int = FAN, part: int = 0) -> Strategy:
    """Reduces each row of an array by a block of threads: sequential parts, then a tree.

    For any operator with its neutral element, and any map of the elements before.
    vector: elements that a thread loads at once; loads: how many such loads come before it computes
    fan:    how many results a thread combines at each level of the tree
    part:   where the result is one number: the elements of each block; their results are a second kernel
    All but fan are chosen where they are 0. Short rows are reduced by a warp, or a thread, each.
    """
    given = {"threads": threads, "vector": vector, "loads": loads, "part": part}
    chosen_or("reduction", **given)
    at_least("reduction", "fan", fan, 2)
    fused = seq(argument(view_inward), fuse_components)
    wanted = {**given, "fan": fan}

    def chosen(term: Expr) -> Rewrite:
        if isinstance(term.type, Array):
            return nearest(seq(fused, depending(lambda found: _rows(found, wanted))))
        return nearest(_in_parts(wanted))

    return FunctionStrategy("reduction", complete(in_inputs(depending(chosen))))


def _rows(term: Expr, given: Mapping[str, int]) -> Rewrite:
    """The strategy for a map of reductions, over the blocks of a grid."""
    applied = call(term)
    if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
        return refuse("reduction", "expected a map, whose function is a reduction")
    size = reduced_length(applied[2][0].body)
    if size is None:
        return refuse("reduction", "expected a map, whose function is a reduction")
    if size.value is None:
        return refuse("reduction", f"the length of the rows, {size}, is not known")
    width = widest(term)
    if not given["threads"] and size.value * width <= BY_THREADS:
        return lowered
    block = block_of(size.value, width, "reduction", **given)
    if not given["threads"] and size.value * width <= BY_WARPS:
        return by_warps(term, block.of_lanes(size.value).reduce(id_))
    return _by_blocks(block)


def _in_parts(given: Mapping[str, int]) -> Strategy:
    """Parts by blocks, stored for the whole grid; their results as one row, by one block."""

    def chosen(term: Expr) -> Rewrite:
        size = reduced_length(term)
        if size is None or size.value is None:
            return refuse("reduction", "expected a reduction of elements whose number is known")
        block = _of_part(size.value, widest(term), given)
        part = given["part"] or _part(size.value, block)
        count = -(-size.value // part)
        if count == 1:
            return seq(b.REDUCE_AS_ROW, argument(_by_blocks(block)))
        last = _by_blocks(block_of(count, widest(term), "reduction", fan=given["fan"]))
        return seq(
            with_neutral(size.value, part),
            r.REDUCE_TREE.with_sizes(n=part),
            argument(seq(_by_blocks(block), GLOBAL)),
            b.STORED_NAMED,
            nth_operand(1, in_function(seq(b.REDUCE_AS_ROW, argument(last)))),
        )

    return depending(chosen)


def _of_part(size: int, width: int, given: Mapping[str, int]) -> Block:
    """The block for a part: vectors where they divide parts, whose beginnings then are aligned."""
    vector = given["vector"] or gcd(given["part"], max(1, WIDEST // width))
    most = given["part"] or size
    threads = given["threads"] or min(PART_THREADS, -(-most // (vector * WARP)) * WARP)
    block = Block(threads, vector, 1, given["fan"], "reduction")
    return replace(block, loads=given["loads"] or min(PART_LOADS, block.each(most)))


def _part(size: int, block: Block) -> int:
    """The elements of each part: as many times what a block loads at once as leave PARTS of them."""
    turn = block.step * block.loads
    return turn * -(-size // (turn * PARTS))


def _by_blocks(block: Block) -> Strategy:
    return seq(mapped(block.reduce(id_)), low.MAP_BLOCK.with_sizes(d=0))
