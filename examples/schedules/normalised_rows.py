"""Rows divided by their norm, times W: one kernel makes the rows, another one the product."""

from strategies.core import Strategy, seq
from strategies.matmul.instructions import load_once
from strategies.matmul.schedules import by_warps, to_kernels
from strategies.matmul.separate import separate_kernels
from strategies.matmul.staging import TileCopy
from strategies.memory_bound.rows import rows
from strategies.places import in_inputs


def schedule() -> Strategy:
    """`rows` computes what the product reads."""
    copies = TileCopy(threads=128, vector=8, padding=8)
    product = by_warps((32, 32, 32), (16, 16), (16, 8, 16), 3, copies, load_once, "direct")
    return seq(in_inputs(separate_kernels), to_kernels(product, otherwise=rows(threads=32)))
