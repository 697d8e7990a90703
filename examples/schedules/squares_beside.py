"""Rows of X·W divided by the norms of X's rows: the loop of the product squares the tiles that it loads."""

from strategies.core import Strategy, seq
from strategies.matmul.columns import reduced_rows, rows_inside
from strategies.matmul.epilogue import direct_epilogue
from strategies.matmul.grid import blocks, to_warps
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, operands_named, products, to_kernels
from strategies.matmul.staging import TileCopy, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction, tupled

WARP, FRAGMENT = (16, 32), (16, 8, 16)


def schedule() -> Strategy:
    """Two warps a block, each with all columns of its rows, whose squares are in its registers, too."""
    sums = seq(tile_reduction(32), warp_tiles(*WARP), tensorise(FRAGMENT), accumulate_fragments, load_once)
    tile = direct_epilogue(sums, WARP, FRAGMENT, to_warps, rows=reduced_rows(32, WARP[0], FRAGMENT[0]))
    tiles = seq(rows_inside, tile_output(32, 32), in_tile(tile), blocks, tupled)
    ring = stage(TileCopy(threads=64, vector=8, padding=8), slots=3)
    return to_kernels(of_matrices(seq(products, operands_named(tiles), ring)))
