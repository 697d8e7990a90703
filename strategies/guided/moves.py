"""Steps of a guided search that are more than one rule: a rule with the normal form that it needs.

All of them are for the body of a definition, below its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import memory
from rewrites.loops import HOIST_STORED, STORING
from rewrites.result import Failure, Path, Result
from rise.expr import Apply, Expr, Identifier, Lambda, call, children
from rise.normal import is_view
from rise.types import Array
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    at_child,
    bottom_up,
    normalize,
    prints_as_call,
    seq,
)
from strategies.loops.nests import fused, inward, nearest, to_loops
from strategies.loops.tvm_gemm import copy, in_form
from strategies.loops.vectorise import aligned
from strategies.normal_forms import view_inward

# --- normal forms -----------------------------------------------------------------------------------------


@prints_as_call
def folds() -> Strategy:
    """The form in which loops are split and reordered: maps fused, reductions as folds."""
    return nearest(fused)


@prints_as_call
def tidied() -> Strategy:
    """Views next to the arrays that they rearrange, maps fused with them."""
    return nearest(inward)


@prints_as_call
def lowered() -> Strategy:
    """Every loop whose execution is open as a sequential one, vectors loaded as one: what compiles."""
    return seq(aligned, to_loops)


# --- places -----------------------------------------------------------------------------------------------


@prints_as_call
def at(path: Path, s: Rewrite) -> Strategy:
    """s at a place of a term: the children to follow, from the top."""

    def run(term: Expr, rest: Path = path) -> Result:
        if not rest:
            return s(term)
        if not 0 <= rest[0] < len(children(term)):
            return Failure("at", term, "the term has no such part")
        return at_child(rest[0], lambda child: run(child, rest[1:]), term)

    return FunctionStrategy("at", run)


@prints_as_call
def at_view(number: int, s: Rewrite) -> Strategy:
    """s at the view of that number of an input, 1 the first one: see `views_of_inputs`."""

    def run(term: Expr) -> Result:
        views = views_of_inputs(term)
        if not 1 <= number <= len(views):
            return Failure(
                "at_view", term, f"there is no view {number}: inputs are read in {len(views)} views"
            )
        return at(views[number - 1][0], s)(term)

    return FunctionStrategy("at_view", run)


def views_of_inputs(term: Expr) -> tuple[tuple[Path, Expr], ...]:
    """The largest views of free variables, of two dimensions or more, each with its place; no stored ones."""
    return tuple(_views(term, frozenset(), ()))


def _views(term: Expr, bound: frozenset[str], path: Path) -> Iterator[tuple[Path, Expr]]:
    if isinstance(term, Apply) and dimensions(term) > 1 and is_view(term) and term.free.isdisjoint(bound):
        if _rearranges_a_variable(term):
            yield path, term
        return
    applied = call(term)
    if applied is not None and applied[0] in STORING:
        return
    inner = bound | {term.parameter.name} if isinstance(term, Lambda) else bound
    for number, child in enumerate(children(term)):
        yield from _views(child, inner, (*path, number))


def _rearranges_a_variable(view: Expr) -> bool:
    while isinstance(view, Apply):
        view = view.argument
    return isinstance(view, Identifier)


def dimensions(term: Expr) -> int:
    """How many an array has."""
    type_, count = term.type, 0
    while isinstance(type_, Array):
        type_, count = type_.element, count + 1
    return count


# --- memory -----------------------------------------------------------------------------------------------


@prints_as_call
def packed(number: int, depth: int, level: Rewrite, *form: Rewrite) -> Strategy:
    """The view of that number of an input, in a form, in global memory, copied by `depth` loops before."""
    stored = seq(copy(level, *[low.MAP_SEQ] * (depth - 1)), memory.IN_GLOBAL)
    return seq(at_view(number, in_form(stored, *form)), HOIST_STORED, tidied())


# --- products of tiles ------------------------------------------------------------------------------------


@prints_as_call
def sums_in_blocks(size: int) -> Strategy:
    """Every reduction in blocks of a size, each added to the result of those before."""
    blocks = bottom_up(a.BLOCK_REDUCE.with_sizes(n=size))
    return seq(blocks, nearest(view_inward), normalize(a.REDUCE_FROM))


@prints_as_call
def lift_fold() -> Strategy:
    """The innermost map of folds as a fold of maps."""
    return seq(bottom_up(a.LIFT_REDUCE), nearest(view_inward))
