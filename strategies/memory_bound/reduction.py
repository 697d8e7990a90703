"""Parallel reductions: a block for each row, a part for each thread, and a tree in shared memory.

A grid has no barrier, so one kernel reduces rows: as many results as there are blocks. A reduction to one
number is two kernels: parts of it by blocks, kept in global memory, and then their results by one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd

from rewrites import blocks as b
from rewrites import lowering as low
from rewrites import reductions as r
from rewrites.maps import MAP_LAST_FISSION
from rewrites.memory import IN_GLOBAL
from rewrites.result import Result, Success
from rewrites.storing import GLOBAL_FIRST
from rise.expr import Expr, Lambda, call, subterms
from rise.nat import Nat, constant
from rise.types import Array
from strategies.complete import complete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    choice,
    depending,
    id_,
    prints_as_call,
    seq,
)
from strategies.default import lowered
from strategies.evaluation import is_expression
from strategies.loops.nests import nearest
from strategies.memory_bound.blocks import (
    BY_THREADS,
    BY_WARPS,
    FAN,
    OPEN_LOADS,
    WARP,
    WIDEST,
    Block,
    at_least,
    block_of,
    by_warps,
    chosen_or,
    flattened,
    reduced_length,
    refuse,
    with_neutral,
)
from strategies.memory_bound.rows import at_reductions, in_block
from strategies.memory_bound.widths import reduces_numbers, widest, widest_of_rows
from strategies.normal_forms import fuse_components, view_inward
from strategies.operands import in_function, nth_operand
from strategies.places import in_inputs, mapped
from strategies.settings import searched

PARTS = 4096  # of a reduction to one number, where each has enough elements
PART_THREADS, PART_LOADS = 256, 4
FEW = 256  # rows, which are too few blocks
LONG = 1 << 18  # bytes of a row that is worth a second kernel


@searched(
    threads=(0, 64, 128, 256, 512, 1024), vector=(0, 1, 2, 4, 8), loads=(0, 1, 2, 4, 8), fan=(FAN, 2, 8, 32)
)
@prints_as_call
def reduction(threads: int = 0, vector: int = 0, loads: int = 0, fan: int = FAN, part: int = 0) -> Strategy:
    """Reduces each row of an array by a block of threads: sequential parts, then a tree.

    For any operator with its neutral element, and any map of the elements before.
    threads: of a block
    vector:  elements that a thread loads at once
    loads:   how many such loads come before it computes
    fan:     how many results a thread combines at each level of the tree
    part:    where the result is one number: the elements of each block; their results are a second kernel
    All but fan are chosen where they are 0. Short rows are reduced by a warp, or a thread, each.
    """
    given = {"threads": threads, "vector": vector, "loads": loads, "part": part}
    chosen_or("reduction", **given)
    at_least("reduction", "fan", fan, 2)
    fused = seq(argument(view_inward), fuse_components)
    wanted = {**given, "fan": fan}

    def of_rows(term: Expr) -> Rewrite:
        if isinstance(flattened(term), Success):
            return seq(flattened, argument(depending(of_rows)))
        return seq(fused, depending(lambda found: _rows(found, wanted)))

    def chosen(term: Expr) -> Rewrite:
        return nearest(depending(of_rows)) if isinstance(term.type, Array) else _number(term, wanted)

    return FunctionStrategy("reduction", complete(in_inputs(depending(chosen))))


def _rows(term: Expr, given: Mapping[str, int]) -> Rewrite:
    """The strategy for a map of reductions, over the blocks of a grid."""
    applied = call(term)
    if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
        return refuse("reduction", "expected a map, whose function is a reduction")
    size = reduced_length(applied[2][0].body)
    if size is None:
        return refuse("reduction", "expected a map, whose function is a reduction")
    width, known = widest_of_rows(term), size.value
    if known is not None and not given["threads"] and known * width <= BY_THREADS:
        return lowered
    given = _vectors(term, given)
    block = block_of(size, width, "reduction", **given)
    if known is None:
        return _by_blocks(block)
    rows = term.type.size.value if isinstance(term.type, Array) else None
    if not given["threads"] and rows is not None and rows < FEW and known * width >= LONG:
        return choice(_rows_in_parts(rows, known, width, given), _by_blocks(block))
    if not given["threads"] and known * width <= BY_WARPS:
        return by_warps(term, block.of_lanes(known).reduce(id_))
    return _by_blocks(block)


def _rows_in_parts(rows: int, size: int, width: int, given: Mapping[str, int]) -> Strategy:
    """Few long rows: each in parts, by blocks, and the results of these by a kernel of its own."""
    vector = given["vector"] or gcd(size, max(1, WIDEST // width))
    block = _of_part(size, width, {**given, "vector": vector})
    turn = block.step * block.loads
    part = turn * -(-size // (turn * -(-PARTS // rows)))
    split = seq(with_neutral(constant(size), part), r.REDUCE_TREE.with_sizes(n=part))
    parts = seq(MAP_LAST_FISSION, flattened, argument(_by_blocks(block)), IN_GLOBAL)
    rest = nth_operand(1, in_function(depending(lambda term: _rows(term, given))))
    return seq(mapped(split), MAP_LAST_FISSION, argument(parts), GLOBAL_FIRST, rest)


# --- to one number ----------------------------------------------------------------------------------------


def _number(term: Expr, given: Mapping[str, int]) -> Strategy:
    """A number computed from reductions: each is reduced in parts, and one block computes the rest."""
    lengths = [n for part in subterms(term) if (n := reduced_length(part)) is not None]
    sizes = [n.value for n in lengths if n.value is not None]
    if not lengths:
        return refuse("reduction", "expected a reduction")
    given, width = _vectors(term, given), widest(term)
    if len(sizes) < len(lengths):
        return _number_of_open(lengths, given, width)
    block = _of_part(max(sizes), width, given)
    part = given["part"] or _part(max(sizes), block)
    count = constant(-(-max(sizes) // part))
    if count.value == 1:
        return _by_one_block(block)
    last = block_of(count, width, "reduction", fan=given["fan"], vector=1 if given["vector"] == 1 else 0)
    return in_kernels(at_reductions(_in_parts(part, block)), _by_one_block(last))


def _number_of_open(lengths: Sequence[Nat], given: Mapping[str, int], width: int) -> Strategy:
    """The same where lengths are known at launch only: parts of one size, as many as there are then."""
    block = _of_part(WARP * PART_THREADS * PART_LOADS, width, given)
    part = given["part"] or block.step * block.loads * OPEN_LOADS
    several = next(n for n in lengths if n.value is None)
    last = block_of(several, width, "reduction", fan=given["fan"], vector=1)
    return in_kernels(at_reductions(_in_parts(part, block)), _by_one_block(last))


@prints_as_call
def in_kernels(parts: Rewrite, rest: Rewrite) -> Strategy:
    """`parts` stores what other kernels read; `rest` is the last kernel of a number, which may use others."""

    def run(term: Expr) -> Result:
        applied = call(term)
        if applied is not None and applied[0] == "let" and not is_expression(applied[2][0]):
            return seq(nth_operand(0, seq(run, IN_GLOBAL)), nth_operand(1, in_function(run)))(term)
        return seq(parts, after_stored)(term)

    def after_stored(term: Expr) -> Result:
        first = GLOBAL_FIRST(term)
        if isinstance(first, Success):
            return seq(GLOBAL_FIRST, nth_operand(1, in_function(after_stored)))(term)
        return seq(rest)(term)

    return FunctionStrategy("in_kernels", run)


@prints_as_call
def _in_parts(part: int, block: Block) -> Strategy:
    """Parts by blocks, stored for the whole grid, and the reduction of their results, which is left."""

    def chosen(term: Expr) -> Rewrite:
        size = reduced_length(term)
        if size is None:
            return refuse("reduction", "expected a reduction")
        parts = argument(seq(_by_blocks(block), IN_GLOBAL))
        return seq(with_neutral(size, part), r.REDUCE_TREE.with_sizes(n=part), parts)

    return depending(chosen)


def _by_one_block(block: Block) -> Strategy:
    """What one block computes, of reductions by all its threads."""
    row = seq(mapped(in_block(block, keep=False)), low.MAP_BLOCK.with_sizes(d=0))
    return seq(b.ONE_ROW, argument(row))


def _vectors(term: Expr, given: Mapping[str, int]) -> dict[str, int]:
    """The parameters, without vectors where what is reduced is not numbers."""
    return {**given} if reduces_numbers(term) else {**given, "vector": 1}


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
