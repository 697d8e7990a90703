"""Parallel reductions: a block for each row, a part for each thread, and a tree in shared memory.

A grid has no barrier, so one kernel reduces rows: as many results as there are blocks. A reduction to one
number is two kernels: parts of it by blocks, kept in global memory, and then their results by one block.
"""

from __future__ import annotations

from rewrites import blocks as b
from rewrites import lowering as low
from rewrites import memory
from rewrites import reductions as r
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, call
from rise.types import Array
from strategies.complete import complete
from strategies.core import FunctionStrategy, Rewrite, Strategy, argument, depending, id_, prints_as_call, seq
from strategies.loops.nests import nearest
from strategies.memory_bound.blocks import Block, reduced_length, refuse
from strategies.normal_forms import fuse_components, view_inward
from strategies.operands import in_function, nth_operand
from strategies.places import in_inputs, mapped

GLOBAL = next(made for made in memory.STORED if made.name == "toMem(Global)")
ONE_NUMBER = (
    "the result is one number, which one kernel cannot make of the results of its blocks; set `part`, the"
    " number of elements of each block"
)


@prints_as_call
def reduction(threads: int = 256, vector: int = 1, loads: int = 1, fan: int = 2, part: int = 0) -> Strategy:
    """Reduces each row of an array by a block of threads: sequential parts, then a tree.

    For any operator with its neutral element, and any map of the elements before.
    vector: elements that a thread loads at once; loads: how many such loads come before it computes
    fan:    how many results a thread combines at each level of the tree
    part:   where the result is one number: the elements of each block; their results are a second kernel
    Fails by name where threads times vector times loads do not divide the rows, or the parts.
    """
    block = Block(threads, vector, loads, fan, "reduction")
    if part < 0:
        raise StrategyError("R0609", f"reduction: part is {part}, and must be at least 1, or 0 for rows")

    def chosen(term: Expr) -> Rewrite:
        if isinstance(term.type, Array):
            fused = seq(argument(view_inward), fuse_components)
            return nearest(seq(fused, depending(lambda rows: _rows(rows, block))))
        return nearest(_in_parts(block, part)) if part else refuse("reduction", ONE_NUMBER)

    return FunctionStrategy("reduction", complete(in_inputs(depending(chosen))))


def _rows(term: Expr, block: Block) -> Rewrite:
    """The strategy for a map of reductions, over the blocks of a grid."""
    applied = call(term)
    if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
        return refuse("reduction", "expected a map, whose function is a reduction")
    if reduced_length(applied[2][0].body) is None:
        return refuse("reduction", "expected a map, whose function is a reduction")
    return _by_blocks(block)


def _in_parts(block: Block, part: int) -> Strategy:
    """Parts by blocks, stored for the whole grid; their results as one row, by one block."""

    def chosen(term: Expr) -> Rewrite:
        size = reduced_length(term)
        if size is None:
            return refuse("reduction", "expected a reduction")
        if size.value is None or size.value % part:
            return refuse("reduction", f"{part} does not divide {size}, the number of elements")
        last = seq(b.REDUCE_AS_ROW, argument(_by_blocks(block.dividing(size.value // part))))
        parts = seq(r.REDUCE_TREE.with_sizes(n=part), argument(seq(_by_blocks(block), GLOBAL)))
        return seq(parts, b.STORED_NAMED, nth_operand(1, in_function(last)))

    return depending(chosen)


def _by_blocks(block: Block) -> Strategy:
    return seq(mapped(block.reduce(id_)), low.MAP_BLOCK.with_sizes(d=0))
