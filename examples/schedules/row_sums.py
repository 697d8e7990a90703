"""f16(A·B) and the squares of its rows, summed: each fragment of the result reduces its part of them."""

from strategies.core import Strategy, seq
from strategies.matmul.beside import rows_reduced
from strategies.matmul.epilogue import direct_epilogue
from strategies.matmul.grid import blocks, to_warpgroups
from strategies.matmul.instructions import accumulate_fragments, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, operands_in_bulk, products, to_kernels
from strategies.matmul.staging import TileCopy, specialise, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction

PART, FRAGMENT = (64, 64), (64, 64, 16)


def schedule() -> Strategy:
    """Two warpgroups reduce rows of 64 columns each; a second kernel adds the parts of a row."""
    sums = seq(tile_reduction(64), warp_tiles(*PART), tensorise(FRAGMENT), accumulate_fragments)
    tiles = seq(tile_output(128, 64), in_tile(direct_epilogue(sums, PART, FRAGMENT, to_warpgroups)), blocks)
    copies = TileCopy(threads=256, vector=8, padding=0, bulk=True)
    ring = seq(stage(copies, slots=2), specialise(slots=2, consumers=2))
    matrix = of_matrices(seq(products, operands_in_bulk, tiles, ring))
    return to_kernels(rows_reduced(64, 64, matrix))
