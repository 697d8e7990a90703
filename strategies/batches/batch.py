"""Many small products: blocks take several matrices each."""

from __future__ import annotations

from rewrites.pointwise import POINTWISE_EACH
from strategies.batches.runs import staged, several, through_shared
from strategies.batches.threads import by_threads, one_row, rows_of_matrices
from strategies.complete import complete
from strategies.core import FunctionStrategy, Strategy, argument, prints_as_call, seq, try_
from strategies.places import in_inputs


@prints_as_call
def batch(count: int = 64, threads: int = 128) -> Strategy:
    """A map over small matrices: each block takes several of them.

    count: matrices of a block
    threads: of a block
    """
    compute = seq(argument(staged(threads)), rows_of_matrices(by_threads(threads, one_row)))
    tile = through_shared(threads, compute)
    return FunctionStrategy("batch", complete(in_inputs(seq(try_(POINTWISE_EACH), several(count, tile)))))
