"""Stencils: two-dimensional tiles, in which each thread computes a few rows and reuses their neighbours."""

from __future__ import annotations

from math import gcd

from rewrites import blocks as b
from rise.expr import Expr
from rise.types import Array, Scalar
from strategies.complete import complete
from strategies.core import FunctionStrategy, Rewrite, Strategy, depending, prints_as_call
from strategies.evaluation import is_expression
from strategies.memory_bound.blocks import at_least, chosen_or, refuse
from strategies.memory_bound.transposition import tiled
from strategies.memory_bound.widths import widest_vector
from strategies.places import in_inputs
from strategies.settings import searched


@searched(
    threads=((8, 32), (1, 128), (2, 64), (4, 32), (4, 64), (16, 16)), rows=(4, 1, 2, 8), vector=(0, 1, 2, 4)
)
@prints_as_call
def stencil(threads: tuple[int, int] = (8, 32), rows: int = 4, vector: int = 0) -> Strategy:
    """Computes a matrix of independent elements in two-dimensional tiles; each thread computes a few rows.

    threads: of a block, in a column and in a row of it
    rows:    the rows that a thread computes; it reads the elements that they share once
    vector:  adjacent elements of a row that a thread computes at once; 0: as many as 16 bytes hold, where
             they divide the rows
    Tiles at the border have fewer elements. Fails by name where an element takes a loop.
    """
    chosen_or("stencil", vector=vector)
    for name, value in (("threads", threads[0]), ("threads", threads[1]), ("rows", rows)):
        at_least("stencil", name, value, 1)

    def chosen(term: Expr) -> Rewrite:
        match term.type:
            case Array(_, Array(columns, Scalar())) if is_expression(term):
                by = vector or gcd(widest_vector(term), columns.value or 1)
                by_threads = b.TILE_BY_THREAD_ROWS.with_sizes(v=by, r=rows)
                return tiled(threads[0] * rows, threads[1] * by, by_threads)
            case _:
                return refuse("stencil", "expected a matrix whose elements are computed each by itself")

    return FunctionStrategy("stencil", complete(in_inputs(depending(chosen))))
