"""Stencils: two-dimensional tiles, in which each thread computes a few rows and reuses their neighbours."""

from __future__ import annotations

from rewrites import blocks as b
from rise.expr import Expr
from rise.types import Array, Scalar
from strategies.complete import complete
from strategies.core import FunctionStrategy, Rewrite, Strategy, depending, prints_as_call
from strategies.evaluation import is_expression
from strategies.memory_bound.blocks import power_of_two, refuse
from strategies.memory_bound.transposition import tiled
from strategies.places import in_inputs


@prints_as_call
def stencil(threads: tuple[int, int] = (8, 32), rows: int = 4, vector: int = 4) -> Strategy:
    """Computes a matrix of independent elements in two-dimensional tiles; each thread computes a few rows.

    threads: of a block, in a column and in a row of it
    rows:    the rows that a thread computes; it reads the elements that they share once
    vector:  adjacent elements of a row that a thread computes at once
    Fails by name where a block's tile does not divide the matrix, and where an element takes a loop.
    """
    for name, value in (("threads", threads[0]), ("threads", threads[1]), ("rows", rows), ("vector", vector)):
        power_of_two("stencil", name, value, 1)
    by_threads = b.TILE_BY_THREAD_ROWS.with_sizes(v=vector, r=rows)

    def chosen(term: Expr) -> Rewrite:
        match term.type:
            case Array(_, Array(_, Scalar())) if is_expression(term):
                return tiled(threads[0] * rows, threads[1] * vector, by_threads)
            case _:
                return refuse("stencil", "expected a matrix whose elements are computed each by itself")

    return FunctionStrategy("stencil", complete(in_inputs(depending(chosen))))
