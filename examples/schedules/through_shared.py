"""max(A·B + bias, 0) + R in two steps: sums to shared memory, then whole rows by threads."""

from strategies.core import Strategy, depending, seq
from strategies.matmul.epilogue import Stored, kept_shared, shared_epilogue
from strategies.matmul.grid import blocks, to_warps
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, products, to_kernels
from strategies.matmul.staging import TileCopy, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction

COPIES = TileCopy(threads=128, vector=4, padding=8)


def schedule() -> Strategy:
    """Threads read R and the bias, and store, four numbers at once."""
    sums = seq(
        tile_reduction(32), warp_tiles(16, 16), tensorise((16, 16, 16)), accumulate_fragments, load_once
    )
    in_rows = depending(
        lambda tile: shared_epilogue(seq(sums, to_warps, kept_shared), COPIES, Stored.of(tile))
    )
    tiles = seq(tile_output(32, 32), in_tile(in_rows), blocks)
    return to_kernels(of_matrices(seq(products, tiles, stage(COPIES, slots=2))))
