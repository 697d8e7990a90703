"""Rows divided by their norm, times W: one kernel makes the rows, another one the product."""

from strategies.core import Strategy, seq
from strategies.matmul.schedule import Schedule
from strategies.matmul.schedules import by_warps, to_kernels
from strategies.matmul.separate import separate_kernels
from strategies.memory_bound.rows import rows
from strategies.places import in_inputs


def schedule() -> Strategy:
    """`rows` computes what the product reads."""
    product = by_warps(Schedule((32, 32, 32), (16, 16), (16, 8, 16), epilogue="direct"))
    return seq(in_inputs(separate_kernels), to_kernels(product, otherwise=rows(threads=32)))
