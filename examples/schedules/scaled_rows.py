"""Rows of X·W divided by the norms of X's rows: a kernel reduces the rows, the product's epilogue scales."""

from strategies.core import Strategy, seq
from strategies.matmul.schedule import Schedule
from strategies.matmul.schedules import by_warps, to_kernels
from strategies.matmul.separate import separate_kernels
from strategies.memory_bound.rows import rows
from strategies.places import in_inputs


def schedule() -> Strategy:
    """The scale of a row commutes with the sums of its products, so X is multiplied as it is."""
    product = by_warps(Schedule((32, 32, 32), (16, 16), (16, 8, 16), epilogue="direct"))
    return seq(in_inputs(separate_kernels), to_kernels(product, otherwise=rows(threads=32)))
