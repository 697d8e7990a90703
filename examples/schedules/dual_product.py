"""silu(X·W) * (X·V): one fold over tiles of X, W and V, which loads X once, with two sums."""

from strategies.core import Strategy, seq
from strategies.matmul.epilogue import direct_epilogue
from strategies.matmul.grid import blocks, to_warps
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, operands_named, products, to_kernels
from strategies.matmul.staging import TileCopy, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction, tupled

WARP, FRAGMENT = (16, 32), (16, 8, 16)


def schedule() -> Strategy:
    """Four warps a block, each with 16 × 32 of both products."""
    sums = seq(tile_reduction(32), warp_tiles(*WARP), tensorise(FRAGMENT), accumulate_fragments, load_once)
    tiles = seq(tile_output(32, 64), in_tile(direct_epilogue(sums, WARP, FRAGMENT, to_warps)), blocks, tupled)
    copies = stage(TileCopy(threads=128, vector=8, padding=8), slots=3)
    return to_kernels(of_matrices(seq(products, operands_named(tiles), copies)))
