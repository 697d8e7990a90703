"""Many small products: blocks take several matrices each."""

from __future__ import annotations

from rewrites.pointwise import POINTWISE_EACH
from rise.expr import Expr
from strategies.batches.runs import several, staged, through_shared
from strategies.batches.sizes import Sizes
from strategies.batches.threads import by_threads, one_row, rows_of_matrices
from strategies.complete import complete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    depending,
    prints_as_call,
    seq,
    try_,
)
from strategies.memory_bound.blocks import chosen_or, refuse
from strategies.places import in_inputs

NO_BATCH = "expected a map over a batch of arrays of known sizes"


@prints_as_call
def batch(count: int = 0, threads: int = 0) -> Strategy:
    """A map over small matrices: each block copies several of them to shared memory and multiplies them there.

    count:   matrices of a block; 0: as many as are about 16 KiB, with their results
    threads: of a block; 0: as many as the rows of these matrices occupy
    """
    chosen_or("batch", count=count, threads=threads)

    def chosen(term: Expr) -> Rewrite:
        sizes = Sizes.of(term)
        if sizes is None:
            return refuse("batch", NO_BATCH)
        best = sizes.chosen()
        matrices, workers = count or best[0], threads or best[1]
        compute = seq(argument(staged(workers)), rows_of_matrices(by_threads(workers, one_row)))
        return several(matrices, through_shared(workers, compute))

    return FunctionStrategy("batch", complete(in_inputs(seq(try_(POINTWISE_EACH), depending(chosen)))))
