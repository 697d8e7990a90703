"""A batch of products with one B: the batch is the third dimension of the grid."""

from strategies.core import Strategy, seq
from strategies.matmul.grid import blocks, to_warps
from strategies.matmul.instructions import accumulate_fragments, prefetch_fragments, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, products, to_kernels
from strategies.matmul.staging import TileCopy, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction


def schedule() -> Strategy:
    """Swizzled tiles, and fragments that are fetched while others are multiplied."""
    sums = seq(tile_reduction(32), warp_tiles(32, 16), tensorise((16, 8, 16)), accumulate_fragments)
    tiles = seq(tile_output(64, 32), in_tile(seq(sums, prefetch_fragments, to_warps)), blocks)
    copies = TileCopy(threads=128, vector=8, padding=8, swizzled=True)
    return to_kernels(of_matrices(seq(products, tiles, stage(copies, slots=3))))
