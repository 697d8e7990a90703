"""Maps over rows, a block of threads for each: softmax, normalisations, matrix-vector products.

A block computes what belongs to one row. Reductions of the row are trees in shared memory; the row, and
arrays of its length that have a name, stay in registers, spread over the threads: a row is read once and
written once. Short rows are computed by a warp each, very short ones by a thread each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from rewrites import blocks as b
from rewrites import lowering as low
from rewrites.joint import AS_ONE
from rewrites.loops import HOIST_STORED
from rewrites.maps import MAP_LET
from rewrites.result import Failure, Result, Success
from rewrites.storing import APPLIED_AS_LET
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, application, call, children, subterms
from rise.nat import Nat
from rise.types import Array, Pair, Scalar, Type
from strategies.complete import complete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    all_,
    argument,
    at_children,
    check,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.default import lowered
from strategies.evaluation import has_array
from strategies.loops.nests import nearest
from strategies.memory_bound.blocks import (
    BY_THREADS,
    BY_WARPS,
    FAN,
    FEW_BYTES,
    KEPT,
    WARP,
    Block,
    at_least,
    block_of,
    by_warps,
    chosen_or,
    flattened,
    in_few_blocks,
    reduced_length,
    refuse,
)
from strategies.memory_bound.widths import reduces_numbers, widest, widest_of_rows
from strategies.operands import in_function, nth_operand
from strategies.places import in_inputs, mapped
from strategies.rounded import by_reciprocals, in_few_instructions
from strategies.settings import searched


@searched(
    threads=(0, 32, 64, 128, 256, 512, 1024), vector=(0, 1, 2, 4, 8), fan=(FAN, 2, 8, 32), keep=(True, False)
)
@prints_as_call
def rows(
    threads: int = 0, vector: int = 0, fan: int = FAN, keep: bool = True, few_blocks: int = 0
) -> Strategy:
    """A map over rows: a block of threads computes each row, and moves vectors of `vector` elements.

    threads: of a block; 0: as many as the rows need, for short rows a warp, or a thread, for each
    vector:  elements that a thread moves at once; 0: as many as 16 bytes hold, if they divide the rows
    fan:     how many results a thread combines at each level of a reduction's tree
    keep:    rows that are used more than once, and named arrays of their length, are kept in registers,
             as far as these suffice
    few_blocks: at most so many blocks, each of four warps, which compute several rows one after the other,
             with few registers: another kernel may run beside them; 0: as many as there are rows
    Of longer rows, a maximum or a mean and the sums that use it are one reduction, which reads them once.
    Rows whose length is known at launch only are read again where they are used again.
    """
    chosen_or("rows", threads=threads, vector=vector)
    at_least("rows", "fan", fan, 2)
    at_least("rows", "few_blocks", few_blocks, 0)

    def chosen(term: Expr) -> Rewrite:
        if isinstance(flattened(term), Success):
            return seq(flattened, argument(depending(chosen)))
        found = _row(term)
        if found is None:
            return refuse("rows", "expected a map over the rows of an array")
        if isinstance(computed_before(term), Success):
            return seq(computed_before, depending(chosen))
        row, length = found
        width, size = widest_of_rows(term), length.value
        by = vector if reduces_numbers(term) else 1
        block = block_of(length, width, "rows", threads=threads, vector=by, fan=fan)
        if size is None:
            return seq(mapped(seq(named, fewer, _computed(block, keep=False))), LOWERED)
        if not _fits(block, size, width) and isinstance(AS_ONE(term), Success):
            return seq(AS_ONE, depending(chosen))
        if few_blocks:
            read = block_of(length, widest(row), "rows", threads=WARP, vector=by, fan=fan)
            return in_few_blocks(term, _by_a_warp(row, read, size), few_blocks)
        if not threads and size * width <= BY_THREADS:
            return lowered
        if not threads and size * width <= BY_WARPS:
            return by_warps(term, _of_row(block.of_lanes(size), row, size, keep))
        return seq(mapped(_of_row(block, row, size, keep and _fits(block, size, width))), LOWERED)

    return FunctionStrategy("rows", complete(in_inputs(nearest(depending(chosen)))))


def _fits(block: Block, size: int, width: int) -> bool:
    return block.each(size) * block.vector * width <= KEPT


def _of_row(block: Block, row: Identifier, size: int, keep: bool) -> Strategy:
    """What is done for one row. All that a thread keeps of it is loaded before it computes."""
    block = replace(block, loads=block.each(size)) if keep else block.for_size(size)
    kept = _keeping(row, block) if keep else id_
    return seq(named, fewer, kept, _computed(block, keep))


def _by_a_warp(row: Identifier, block: Block, size: int) -> Strategy:
    """What a warp does for a row of which it keeps nothing: few registers, and a tree of one level."""
    lanes = block.of_lanes(size)
    loads = min(lanes.loads, max(1, FEW_BYTES // (lanes.vector * widest(row))))
    return seq(named, fewer, _computed(replace(lanes, loads=loads, fan=WARP), keep=False))


def _computed(block: Block, keep: bool) -> Strategy:
    return seq(in_block(block, keep), check(_all_lowered, "rows", LEFT))


named = try_(normalize(APPLIED_AS_LET))
fewer = seq(by_reciprocals, in_few_instructions)
LOWERED = low.MAP_BLOCK.with_sizes(d=0)
LEFT = (
    "in the function of the rows a reduction is left of what is computed for an element of an array; compute"
    " it by a map over the rows before, as in `X |> map(map(f)) |> map(softmax)`, or use `default`"
)


def _all_lowered(term: Expr) -> bool:
    """Whether no reduction is left, which would be stored nowhere."""
    return not any(isinstance(part, Primitive) and part.name == "reduce" for part in subterms(term))


def _computed_before(term: Expr) -> Result:
    """A row that is computed from another, under a name, is the row of a map over computed rows."""
    name = seq(mapped(try_(APPLIED_AS_LET)), MAP_LET)(term)
    if isinstance(name, Failure):
        return name
    rows_ = application(name.term)[2][1]
    is_row = isinstance(rows_.type, Array) and isinstance(rows_.type.element, Array)
    return name if is_row else Failure("rows", term, "what is named is not a row")


computed_before = FunctionStrategy("computed_before", _computed_before)


def _row(term: Expr) -> tuple[Identifier, Nat] | None:
    """The parameter of a map over rows, and their length."""
    applied = call(term)
    if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
        return None
    row = applied[2][0].parameter
    lengths = set(_lengths(row.type))
    return (row, lengths.pop()) if len(lengths) == 1 else None


def _lengths(type_: Type) -> Iterator[Nat]:
    """Of an array, or of each of a pair of arrays."""
    match type_:
        case Array(size, _):
            yield size
        case Pair(first, second):
            yield from _lengths(first)
            yield from _lengths(second)


# --- what a block computes --------------------------------------------------------------------------------


@prints_as_call
def in_block(block: Block, keep: bool = True) -> Strategy:
    """The result of a block: an array by all threads, a number by one of them, pairs by parts."""

    def run(term: Expr) -> Result:
        applied = call(term)
        if applied is not None and applied[0] == "let":
            value = seq(reductions(block), id_) if _by_element(applied[2][1]) else named_array
            return seq(nth_operand(0, value), nth_operand(1, in_function(run)))(term)
        if applied is not None and applied[0] == "pair" and has_array(term.type):
            return seq(nth_operand(0, run), nth_operand(1, run))(term)
        if reduced_length(term) is not None:
            return block.reduce(id_)(term)
        written = block.write if isinstance(term.type, Array) else by_one(block)
        return seq(reductions(block), written)(term)

    def named_array(term: Expr) -> Result:
        stored = keep and isinstance(term.type, Array) and isinstance(term.type.element, Scalar)
        return seq(reductions(block), block.keep_computed if stored else id_)(term)

    return FunctionStrategy("in_block", run)


def _by_element(function: Expr) -> bool:
    """Whether single elements of what a function is given are read: registers of one thread have them."""
    if not isinstance(function, Lambda):
        return False
    elements = (part for part in subterms(function.body) if _is_element(part))
    return any(function.parameter.name in part.free for part in elements)


def by_one(block: Block) -> Strategy:
    """A number, written by the first of all threads."""
    return seq(b.BY_ONE, nth_operand(1, in_function(argument(block.workers.level))))


@prints_as_call
def at_reductions(s: Rewrite) -> Strategy:
    """s at those reductions that do not depend on an element of an array."""

    def run(term: Expr) -> Result:
        if reduced_length(term) is not None:
            return s(term)
        inside = [n for n, c in enumerate(children(term)) if _is_let(term) or not isinstance(c, Lambda)]
        return at_children(inside, run, term)

    return FunctionStrategy("at_reductions", run)


def reductions(block: Block) -> Strategy:
    """Those of a row, each by all threads of the block."""
    return at_reductions(block.reduce())


def _is_let(term: Expr) -> bool:
    applied = call(term)
    return isinstance(term, Lambda) or (applied is not None and applied[0] == "let")


# --- what it keeps ----------------------------------------------------------------------------------------


def _keeping(row: Identifier, block: Block) -> Strategy:
    """The row, or the parts of a row of pairs, where it is used more than once, in registers."""

    def run(term: Expr) -> Result:
        uses = Counter(_uses(term, row.name))
        several = {part for part, count in uses.items() if count > 1}
        return seq(_each(several, row.name, block.keep), *[try_(HOIST_STORED)] * len(several))(term)

    return FunctionStrategy("keeping", run)


def _uses(term: Expr, name: str) -> Iterator[Expr]:
    """Where an array of numbers is used that is the variable, or a part of it; of single elements, not."""
    if _is_part(term, name):
        yield from [term] if isinstance(term.type, Array) and isinstance(term.type.element, Scalar) else []
    elif not _is_element(term):
        for child in children(term):
            yield from _uses(child, name)


def _each(parts: set[Expr], name: str, s: Rewrite) -> Strategy:
    """Applies s at every use of one of the parts."""

    def run(term: Expr) -> Result:
        if _is_part(term, name):
            return s(term) if term in parts else Success(term)
        return Success(term) if _is_element(term) else all_(run)(term)

    return FunctionStrategy("each", run)


def _is_part(term: Expr, name: str) -> bool:
    match term:
        case Identifier(other):
            return other == name
        case Apply(_, inner) if (applied := call(term)) is not None and applied[0] in ("fst", "snd"):
            return _is_part(inner, name)
        case _:
            return False


def _is_element(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "idx"
