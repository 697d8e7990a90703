"""(A·B)·C: what a block needs of A·B is more than it computes, so two kernels, each with its own tiles."""

from rise.frozen import changed
from strategies.core import Strategy, seq
from strategies.matmul.schedule import MMA_SYNC
from strategies.matmul.schedules import by_warps, to_kernels
from strategies.matmul.separate import separate_kernels
from strategies.places import in_inputs


def schedule() -> Strategy:
    """The cut is a step of the derivation: the first product goes to global memory."""
    product = by_warps(changed(MMA_SYNC, block=(32, 32, 32), warp=(16, 16)))
    return seq(in_inputs(separate_kernels), to_kernels(product))
