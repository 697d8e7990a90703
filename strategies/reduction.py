"""Reductions in parallel: each block one, its threads a part each, their results as a tree in shared memory.

A grid has no barrier, so one kernel reduces rows: as many results as there are blocks. A reduction to one
number is two kernels, which `two_kernels` makes of its program: parts, and then their results.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewrites import algorithmic as a
from rewrites import loops as rules
from rewrites import lowering as low
from rewrites import memory
from rewrites import reductions as r
from rewrites.result import Failure
from rise.errors import StrategyError
from rise.expr import Apply, Expr, Identifier, Lambda, call, fresh_name, with_children
from rise.nat import Nat
from rise.normal import simplify
from rise.types import Array
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    id_,
    normalize,
    seq,
    try_,
)
from strategies.loops import nearest
from strategies.normal_forms import fuse_components, view_inward
from strategies.places import arguments, in_inputs, mapped

SHARED = next(made for made in memory.STORED if made.name == "toMem(Shared)")

# folds with the maps before them inside, in what each thread does
sequential: Strategy = normalize(choice(a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP))


def reduction(threads: int = 256) -> Strategy:
    """Rows of an array to a number each, by blocks of so many threads: sequential parts, then a tree.

    For any operator with its neutral element, and any map of the elements before. The threads are a power of
    two, and divide the length of the rows; neighbours read neighbours. Fails by name where they do not
    divide, and where the result is one number.
    """
    if threads < 1 or threads & (threads - 1):
        raise StrategyError("R0609", f"reduction: threads is {threads}, and must be a power of two")
    rows = nearest(seq(argument(view_inward), fuse_components, depending(lambda term: _rows(term, threads))))
    return Strategy("reduction", in_inputs(seq(check(_is_array, "reduction", ONE_NUMBER), rows)))


ONE_NUMBER = (
    "the result is one number, which one kernel cannot make of the results of its blocks; reduce rows, and "
    "their results by a second program (`strategies.reduction.two_kernels`)"
)


def _is_array(term: Expr) -> bool:
    return isinstance(term.type, Array)


def _rows(term: Expr, threads: int) -> Rewrite:
    """The strategy for a map of reductions, over the blocks of a grid."""
    length = _length_of_rows(term)
    if length is None:
        return _refuse("expected a map, whose function is a reduction")
    if length.value is None or length.value % threads:
        return _refuse(f"{threads} does not divide {length}, the length of the rows")
    stages = [threads >> level for level in range(threads.bit_length())]
    in_block = mapped(by_threads(len(stages)))
    return seq(mapped(tree(stages)), rules.REDUCE_ONE, argument(seq(in_block, low.MAP_BLOCK.with_sizes(d=0))))


def _length_of_rows(term: Expr) -> Nat | None:
    """How many elements the function of a map reduces; None where it does something else."""
    applied = call(term)
    if applied is None or applied[0] != "map" or not isinstance(applied[2][0], Lambda):
        return None
    inner = call(applied[2][0].body)
    if inner is None or inner[0] != "reduce" or len(inner[2]) != 3:
        return None
    array = inner[2][2].type
    return array.size if isinstance(array, Array) else None


def _refuse(reason: str) -> Strategy:
    return Strategy("reduction", lambda term: Failure("reduction", term, reason))


# --- in a block -------------------------------------------------------------------------------------------


def tree(stages: Sequence[int]) -> Strategy:
    """A reduction in stages of so many results each, the last of one; that one is still reduced after it."""
    return seq(*(r.REDUCE_TREE_STRIDED.with_sizes(n=results) for results in stages))


def by_threads(stages: int, space: Rewrite = id_) -> Strategy:
    """Each stage by threads, one after the other in each; all but the last into shared memory."""
    # xs |> split(n) |> transpose |> map(reduce): a stage is a map, and an earlier one three steps before it
    earlier = arguments(3, by_threads(stages - 1, SHARED)) if stages > 1 else first
    return seq(earlier, mapped(sequential), low.MAP_THREADS.with_sizes(d=0), space)


# maps before the first stage are done by the threads that reduce their results
first: Strategy = seq(argument(view_inward), try_(a.MAP_FUSION))


# --- two kernels ------------------------------------------------------------------------------------------


def two_kernels(program: Expr, part: int) -> tuple[Expr, Expr]:
    """Programs for the results of parts of `part` elements, and for what these are together.

    program: fun(inputs => xs |> reduce(op, z)), xs anything. The first has the same inputs and gives an
    array, of which the second makes the result: second(first(inputs)) is what the program is, since op is
    associative. Raises StrategyError R0606 where the program is no reduction, or the parts do not divide it.
    """
    result = in_inputs(r.REDUCE_TREE.with_sizes(n=part))(program)
    if isinstance(result, Failure):
        raise result.error("reduction")
    return _first(result.term), _second(result.term)


def _first(term: Expr) -> Expr:
    """What the outer reduction is of, under the inputs."""
    if isinstance(term, Lambda):
        return with_children(term, (_first(term.body),))
    return simplify(call(term)[2][2])  # type: ignore[index]  # made by the rule


def _second(term: Expr) -> Expr:
    """The outer reduction, of an input."""
    while isinstance(term, Lambda):
        term = term.body
    if not isinstance(term, Apply):
        raise TypeError(str(term))
    parts = Identifier(fresh_name("parts", term.free), term.argument.type, term.origin)
    return Lambda(parts, Apply(term.function, parts, term.origin), term.origin)
