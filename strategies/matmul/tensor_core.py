"""`tensor_core`: the schedules of matrix products by their parameters, for any program whose core is one.

The shape of a fragment selects the schedule: WMMA and `mma.sync` by warps, or Hopper's warpgroups. The
schedules are compositions of phases (`schedules`), which look for structure (`reduce` under two maps), not
for GEMM.
"""

from __future__ import annotations

from functools import cache, partial

from strategies.core import FunctionStrategy, Rewrite, Strategy, seq
from strategies.matmul import constraints
from strategies.matmul.beside import rows_reduced
from strategies.matmul.requirements import PROGRAMS, fulfils
from strategies.matmul.rest import first_and_rest
from strategies.matmul.schedule import WITHOUT_REST, Schedule
from strategies.matmul.schedules import by_warps, hopper, to_kernels
from strategies.matmul.short_tiles import needed_rows
from strategies.matmul.split_k import over_blocks
from strategies.matmul.tiling import in_tiles
from strategies.settings import parameters_from


@parameters_from(Schedule)
def tensor_core(s: Schedule) -> Strategy:
    """From products of matrices to tensor cores. Applies to definitions whose core is a product.

    Of several kernels it is for those with products; `default` lowers the others.

    Tiles need not divide the matrices: then longer ones are multiplied, with zeros behind their ends.
    """
    operand_bytes = 1 if s.fragment[2] == 32 else 2
    constraints.check(s, operand_bytes=operand_bytes)
    if s.rest != WITHOUT_REST:
        constraints.check(constraints.finer(s), operand_bytes=operand_bytes)
    composed = cache(lambda: _composed(s))  # a search makes a thousand strategies, and applies a few
    return FunctionStrategy("tensor_core", lambda term: composed()(term))


def _composed(s: Schedule) -> Rewrite:
    whole = hopper(s) if s.uses_wgmma else by_warps(s)
    if s.rest != WITHOUT_REST:
        whole = first_and_rest(s.rest[0], whole, hopper(constraints.finer(s)))
    if s.split_k > 1:
        whole = over_blocks(s.split_k, s.block[2], fulfils(s, PROGRAMS), whole, in_tiles)
    m, n, k = s.block
    rows = partial(rows_reduced, s.fragment[1], s.whole[1], swapped=s.swap_operands)
    m, n = (n, m) if s.swap_operands else (m, n)
    made = to_kernels(whole, (m, n, k * s.slices) if s.uses_wgmma else None, rows=rows)
    return seq(needed_rows, made) if s.short_tiles else made
