"""Products of tiles by instructions: who computes which part, fragments, and when they are loaded."""

from __future__ import annotations

from dataclasses import dataclass

from rewrites import lowering as low
from rewrites import tensor as t
from rewrites.algorithmic import REDUCE_SEQ_MAP
from rewrites.loops import HOIST_STORED, VIEW_OUT_OF_FOLD
from rewrites.memory import IN_LOCAL
from rewrites.result import Failure, Result, Success
from rewrites.rule import Rule
from rewrites.split_k import JOIN_MAPS, UNROLL_SUM
from rewrites.staging import PIPELINE
from rewrites.storing import EACH_IN_LOCAL, STORED_BEFORE_STEPS
from rewrites.tupling import is_fold
from rewrites.unused import DROP_UNUSED
from rewrites.views import MAP_SPLIT
from rise.errors import StrategyError
from rise.expr import Expr
from rise.instructions import Family, family, shapes
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    everywhere,
    function,
    id_,
    normalize,
    prints_as_call,
    seq,
    top_down,
)
from strategies.matmul.constraints import WARP, WARPGROUP
from strategies.matmul.epilogue import kept_shared
from strategies.matmul.products import at_products
from strategies.matmul.tiling import (
    at_folds,
    at_step,
    flatten,
    fragment_tiles,
    in_blocks,
    in_slices,
    in_tile,
    parts,
)
from strategies.normal_forms import form_outward, view_inward
from strategies.places import arguments, mapped

DEPTH = 16  # of operands of 16 bits
COMMON_WIDTH = 24  # columns of an accumulator that both warps and warpgroups have


@dataclass(frozen=True)
class Workers:
    """The workers that compute with fragments: warps, or warpgroups. Their threads know which rows they hold.

    threads: of one of them
    level:   of a map over them
    unit:    of columns that its operands are copied by
    """

    family: Family
    threads: int
    level: Rule
    unit: int

    def width(self, rows: int, columns: int) -> int:
        """The width of the narrowest fragment that has these columns; without one, the number of columns."""
        wide = range(-(-columns // self.unit) * self.unit, WIDEST + 1, self.unit)
        return next((n for n in wide if family((rows, n, DEPTH)) is self.family), columns)


WARPS = Workers(Family.MMA, WARP, low.MAP_WARP, 8)
WARPGROUPS = Workers(Family.WGMMA, WARPGROUP, low.MAP_WARP_GROUP, 16)
WIDEST = 256  # columns of a fragment


def workers_on(rows: int) -> Workers:
    """The workers that compute with fragments of so many rows. StrategyError R0605 if there are none."""
    found = family((rows, COMMON_WIDTH, DEPTH))
    for workers in (WARPS, WARPGROUPS):
        if workers.family is found:
            return workers
    raise StrategyError("R0605", f"no instruction has a fragment of {rows} rows; the shapes are {shapes()}")


@prints_as_call
def warp_tiles(rows: int, columns: int) -> Strategy:
    """The step of every fold by parts of rows × columns: what a warp adds up, or a warpgroup.

    before: … |> reduceSeq((acc, (a, b)) => acc + a·b, 0)
    after:  … |> reduceSeq((acc, (a, b)) => zip(acc |> …)(…) |> map((c, (a, b)) => c + a·b) |> …, 0)
    """
    return at_folds(at_step(parts(rows, columns)))


@prints_as_call
def _at_operands(first: Rewrite, second: Rewrite) -> Strategy:
    """Strategies at the two operands of a product of fragments, whose sums are a matrix.

    before: tensorMatMulAdd(a)(b)(c) |> asMatrix
    after:  tensorMatMulAdd(first(a))(second(b))(c) |> asMatrix
    """
    return argument(function(seq(argument(second), function(argument(first)))))


# one instruction: warps load both operands into registers, warpgroups those that are computed
_by_warp: Strategy = seq(t.TENSORISE, _at_operands(IN_LOCAL, IN_LOCAL))
_by_warpgroup: Strategy = choice(
    t.TENSORISE, seq(t.TENSORISE_COMPUTED, _at_operands(seq(argument(IN_LOCAL), IN_LOCAL), id_))
)


@prints_as_call
def by_instructions(fragment: tuple[int, int, int]) -> Strategy:
    """A part of a step by instructions of the shape m × n × k, in a loop over k.

    before: zip(c)(a) |> map((cs, row) => zip(cs)(b) |> map((x, column) => x + dot(row, column)))
    after:  … |> reduceSeq((c, (a, b)) => … tensorMatMulAdd(asFragment(a), asFragment(b), c) …, c)
    """
    m, n, k = fragment
    product = _by_warpgroup if family(fragment) is Family.WGMMA else _by_warp
    return seq(in_blocks(k), at_step(fragment_tiles(m, n)), at_step(top_down(product)))


@prints_as_call
def tensorise(fragment: tuple[int, int, int]) -> Strategy:
    """Every part of every fold's step by instructions; the shape and the types select their family.

    before: … |> reduceSeq((acc, (a, b)) => … |> map((c, (a, b)) => c + a·b) |> …, 0)
    after:  … |> reduceSeq((acc, (a, b)) => … |> map((c, (a, b)) => … tensorMatMulAdd …) |> …, 0)
    """
    return at_folds(at_step(in_tile(by_instructions(fragment))))


# a fold's sums are fragments from its first step to its last
accumulate_fragments: Strategy = at_folds(
    seq(form_outward, top_down(seq(check(is_fold, "a reduction"), view_inward, flatten)))
)
# the fragments of one operand that a map loads, as an array of fragments
_as_array: Strategy = seq(EACH_IN_LOCAL, normalize(DROP_UNUSED))
# fragments of the second operand as an array, in the step of a product
_second_as_array: Strategy = mapped(_as_array)
# those of the first operand that are computed, all of them before the first step
_first_before: Strategy = seq(
    at_step(_as_array), STORED_BEFORE_STEPS, argument(EACH_IN_LOCAL), REDUCE_SEQ_MAP
)

# fragments that several instructions use are loaded once
load_once: Strategy = everywhere(seq(mapped(seq(_as_array, HOIST_STORED)), HOIST_STORED))
# fragments of a computed operand are loaded once, before the first product of a step
load_first: Strategy = everywhere(_first_before)
# fragments are loaded once; those of the next instructions while these compute
prefetch_fragments: Strategy = everywhere(
    seq(at_step(seq(_second_as_array, _as_array)), STORED_BEFORE_STEPS, PIPELINE.with_sizes(s=2))
)


def _load_each(term: Expr) -> Result:
    if isinstance(top_down(_first_before)(term), Success):
        return Success(term)
    reason = "load_once changes nothing: no operand is computed, so none is loaded into registers"
    return Failure("tensor_core", term, reason, code="R0609", hint="leave `load_once` out")


# fragments of a computed operand are loaded for each instruction; fails where no operand is computed
load_each: Strategy = FunctionStrategy("load_each", _load_each)


@prints_as_call
def sliced(
    depth: int,
    slices: int,
    warp: tuple[int, int],
    fragment: tuple[int, int, int],
    loads: Rewrite,
    workers: Rewrite,
) -> Strategy:
    """Products with each step of k shared by `slices` times as many warps, whose sums are added at the end.

    before: a |> map(row => b |> map(column => dot(row, column)))
    after:  … |> reduceSeq(…) |> mapWarp(…) |> … |> toMem(Shared) |> … |> map(map(xs => xs[0] + xs[1]))

    depth:   of a step
    warp:    the part of the sums that a warp adds up
    loads:   when fragments are loaded
    workers: the level of the maps over parts
    """
    in_slice = mapped(seq(parts(*warp), arguments(4, mapped(by_instructions(fragment)))))
    fold = seq(check(is_fold, "a reduction"), view_inward, flatten)
    # the maps over slices and over warps as one, and the accumulator with it
    joined = seq(check(is_fold, "a reduction"), at_step(JOIN_MAPS), VIEW_OUT_OF_FOLD, argument(view_inward))
    product = seq(
        in_slices(depth, depth // slices),
        arguments(
            3,
            seq(
                at_step(in_slice), form_outward, top_down(fold), top_down(joined), top_down(MAP_SPLIT),
                loads, workers, kept_shared,
            ),
        ),
        normalize(UNROLL_SUM),
    )  # fmt: skip
    return at_products(product)
