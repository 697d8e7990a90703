"""What the searches of examples/guided_gemm.py find, so that tests need not search for all of it."""

from __future__ import annotations

from collections.abc import Mapping

from rewrites.lowering import MAP_GLOBAL, MAP_SEQ, REDUCE_SEQ_UNROLL
from rewrites.sliding import SLIDE_BEFORE_SPLIT
from rewrites.tensor import TENSORISE
from rewrites.views import TRANSPOSE_PAIR
from strategies.core import Strategy, seq
from strategies.guided.moves import at, folds, lift_fold, packed, sums_in_blocks, tidied
from strategies.loops.nests import at_loop, in_elements, interchange
from strategies.loops.tiling import split_loop
from strategies.loops.vectorise import vectorize

FOUND: Mapping[str, Strategy] = {
    "baseline": seq(
        folds(),
        at_loop(1, MAP_SEQ),
        at_loop(2, MAP_SEQ),
    ),
    "blocking": seq(
        folds(),
        split_loop(2, 32),
        split_loop(1, 32),
        split_loop(5, 4),
        interchange(4),
        interchange(5),
        interchange(2),
        interchange(3),
        interchange(4),
    ),
    "vectorization": seq(
        folds(),
        split_loop(2, 32),
        split_loop(1, 32),
        split_loop(5, 4),
        interchange(4),
        interchange(5),
        interchange(2),
        interchange(3),
        interchange(4),
        vectorize(4),
    ),
    "loop_perm": seq(
        folds(),
        split_loop(2, 32),
        split_loop(1, 32),
        split_loop(5, 4),
        interchange(4),
        interchange(5),
        interchange(2),
        interchange(3),
        vectorize(4),
    ),
    "array_packing": seq(
        folds(),
        split_loop(2, 32),
        split_loop(1, 32),
        split_loop(5, 4),
        interchange(4),
        interchange(5),
        interchange(2),
        interchange(3),
        vectorize(4),
        packed(1, 3, MAP_SEQ, in_elements(1, TRANSPOSE_PAIR)),
    ),
    "cache_blocks": seq(
        folds(),
        split_loop(2, 32),
        split_loop(1, 32),
        split_loop(5, 4),
        interchange(4),
        interchange(5),
        interchange(2),
        interchange(3),
        vectorize(4),
        packed(1, 3, MAP_SEQ, in_elements(1, TRANSPOSE_PAIR)),
        at_loop(5, REDUCE_SEQ_UNROLL),
    ),
    "par": seq(
        folds(),
        split_loop(2, 32),
        split_loop(1, 32),
        split_loop(5, 4),
        interchange(4),
        interchange(5),
        interchange(2),
        interchange(3),
        packed(1, 3, MAP_GLOBAL.with_sizes(d=0), in_elements(1, TRANSPOSE_PAIR)),
        vectorize(4),
        at_loop(1, MAP_GLOBAL.with_sizes(d=0)),
        at_loop(5, REDUCE_SEQ_UNROLL),
    ),
    "tiles in 1 dimension": seq(
        split_loop(1, 5),
    ),
    "tiles in 2 dimensions": seq(
        split_loop(2, 3),
        split_loop(1, 5),
        interchange(2),
    ),
    "tiles in 3 dimensions": seq(
        split_loop(3, 2),
        split_loop(2, 3),
        split_loop(1, 5),
        interchange(2),
        interchange(4),
        interchange(3),
    ),
    "a stencil in overlapping tiles": seq(
        folds(),
        split_loop(1, 32),
        at((1, 1), SLIDE_BEFORE_SPLIT) >> tidied(),
    ),
    "a tensor-core product of tiles": seq(
        split_loop(2, 16),
        split_loop(1, 16),
        interchange(2),
        sums_in_blocks(16),
        lift_fold(),
        lift_fold(),
        at((1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0), TENSORISE),
    ),
}
