"""A·B with tiles in an order of one's own: rows of tiles alternately from the left and from the right."""

from rewrites.rule import rule
from strategies.core import Strategy, seq, top_down
from strategies.matmul.grid import blocks, to_warps
from strategies.matmul.instructions import accumulate_fragments, load_once, tensorise, warp_tiles
from strategies.matmul.schedules import of_matrices, products, to_kernels
from strategies.matmul.staging import TileCopy, stage
from strategies.matmul.tiling import in_tile, tile_output, tile_reduction

# every second row of c tiles the other way round, twice is the identity
SNAKE = "natFun(i => i / c * c + (i % c) * (1 - i / c % 2) + (c - 1 - i % c) * (i / c % 2))"
IN_TURNS = rule(
    "rows of tiles in turns",
    "xs |> map(f)",
    f"xs |> reorder(r*c, {SNAKE}, {SNAKE}) |> map(f) |> reorder(r*c, {SNAKE}, {SNAKE})",
    sizes=("r", "c"),
)


def schedule(rows: int = 2, columns: int = 3) -> Strategy:
    """Of so many rows and columns of tiles."""
    sums = seq(
        tile_reduction(32), warp_tiles(16, 16), tensorise((16, 8, 16)), accumulate_fragments, load_once
    )
    tiles = seq(tile_output(32, 32, in_list=True), top_down(IN_TURNS.with_sizes(r=rows, c=columns)))
    ring = stage(TileCopy(threads=128, vector=8, padding=8), slots=3)
    return to_kernels(of_matrices(seq(products, tiles, in_tile(seq(sums, to_warps)), blocks, ring)))
