"""Matrices in shared memory, multiplied by threads: each computes a row of the result at a time."""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import views
from rewrites.runs import OUTER_PRODUCTS, OUTER_PRODUCTS_IN_TURN
from rise.expr import Expr
from rise.types import shape
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    choice,
    depending,
    normalize,
    prints_as_call,
    repeat,
    seq,
)
from strategies.default import written
from strategies.matmul.tiling import in_components
from strategies.memory_bound.blocks import in_groups, sequential
from strategies.normal_forms import fuse_once
from strategies.places import mapped

# all that is done with the rows of a matrix, as one map over them
one_map: Strategy = repeat(choice(fuse_once, argument(in_components)))


@prints_as_call
def rows_of_matrices(s: Rewrite) -> Strategy:
    """s for the map over the rows of several matrices.

    before: xs |> map(x => g(x) |> map(f(x)))
    after:  s(xs |> map(x => g(x) |> map(row => (x, row))) |> join |> map((x, row) => f(x)(row))) |> split(m)
    """

    def chosen(term: Expr) -> Rewrite:
        rows = shape(term.type)[0][1]
        return seq(mapped(one_map), views.JOIN_SPLIT_PAIR.with_sizes(n=rows), argument(seq(a.FLATTEN, s)))

    return depending(chosen)


@prints_as_call
def by_threads(threads: int, s: Rewrite) -> Strategy:
    """A map by the threads of a block, in turns.

    before: xs |> map(f)
    after:  xs |> split(threads) |> mapSeq(mapThreads(0)(s f)) |> join
    """
    turn = seq(mapped(s), low.MAP_THREADS.with_sizes(d=0))
    return in_groups(threads, seq(mapped(turn), low.MAP_SEQ))


@prints_as_call
def one_row(unrolled: bool = True) -> Strategy:
    """One row by one thread: a sum of rows where it is a product, its loop unrolled or not; all others are.

    before: ys |> map(y => zip(xs)(y) |> map(f) |> reduce(+, 0))
    after:  zip(xs)(ys |> transpose) |> reduceSeqUnroll(Local)((acc, (x, row)) => zip(acc)(row) |> …, zeros)
    """
    return seq(
        normalize(OUTER_PRODUCTS if unrolled else OUTER_PRODUCTS_IN_TURN),
        sequential,
        written(low.MAP_SEQ),
        normalize(choice(low.UNROLL_MAP, low.REDUCE_SEQ_UNROLL)) if unrolled else normalize(low.UNROLL_MAP),
    )
