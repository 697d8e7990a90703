"""A convolution as the product of patches and weights; patches are views of the image, never stored."""

from strategies.core import Strategy, seq
from strategies.matmul.grid import blocks, to_warps
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, products, to_kernels
from strategies.matmul.staging import TileCopy, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction


def schedule(channels: int = 32) -> Strategy:
    """A step of the sum is a pixel's channels, so that the rows of a tile are contiguous in the image."""
    sums = seq(tile_reduction(channels), warp_tiles(16, 16), tensorise((16, 16, 16)), accumulate_fragments)
    tiles = seq(tile_output(32, 32), in_tile(seq(sums, load_once, to_warps)), blocks)
    return to_kernels(of_matrices(seq(products, tiles, stage(TileCopy(128, vector=8, padding=8), slots=2))))
