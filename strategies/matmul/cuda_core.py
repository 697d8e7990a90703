"""`cuda_core`: reductions of all pairs of rows by threads, each of which has a part of a tile in registers.

A product of f32 numbers is such a reduction, and so are sums of distances, and minima of sums: what is done
with two elements, and how the results are reduced, may be any function and any operator. Tiles of operands
come to shared memory through a ring, as for tensor cores. Each element is reduced in the program's order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from rise.expr import Expr
from strategies.abstraction import outermost_parts
from strategies.core import Rewrite, Strategy, check, depending, id_, seq
from strategies.matmul.constraints import WARP
from strategies.matmul.grid import blocks
from strategies.matmul.products import (
    NO_PRODUCT,
    Product,
    bring_prologue,
    contains,
    is_product,
    separate_prologue,
)
from strategies.matmul.rounding import ANY_REDUCTION, ZEROS, rounded_up
from strategies.matmul.schedules import of_matrices, operands_named, products, to_kernels
from strategies.matmul.split_k import over_blocks
from strategies.matmul.staging import stage
from strategies.matmul.thread_tiles import Layout, Operand, copies_of, most_at_once
from strategies.matmul.tiling import in_tile, in_tiles, raster, tile_output
from strategies.settings import Law, Parameters, parameter, parameters_from, searched

MOST_WARPS = 32  # of a block


def _divides(reason: str, part: str, whole: str, dimension: int) -> Law:
    """A part of a tile divides it."""

    def holds(tile: Tile) -> bool:
        size: int = tile.values[part][dimension]
        return size > 0 and bool(tile.values[whole][dimension] % size == 0)

    name = f"{{{part}[{dimension}]}} does not divide {{{whole}[{dimension}]}}"
    return Law(holds, f"{reason}: {name}", code="R0604")


@dataclass(frozen=True, repr=False)
class Tile(Parameters):
    """The parameters of `cuda_core`."""

    block: tuple[int, int, int] = parameter(
        (128, 128, 16),
        "the part of the result that a block computes (m, n), and how much of k at a time", always=True,
    )  # fmt: skip
    warp: tuple[int, int] = parameter((64, 32), "the part of that which a warp computes", always=True)
    thread: tuple[int, int] = parameter((8, 8), "the part of that which a thread computes", always=True)
    stages: int = parameter(3, "how many tiles of operands are in shared memory, or being loaded", least=2)
    padding: int = parameter(
        16, "bytes added to rows in shared memory, so that columns are in different banks",
        values=(0, 16, 32),
    )  # fmt: skip
    vector: int = parameter(
        0,
        "elements that a thread copies at once; 0: as many as divide the rows of operands",
        values=(0, 1, 2, 4, 8, 16),
    )
    split_k: int = parameter(
        1, "how many blocks share the reductions of a tile; a second kernel combines their results", least=1
    )
    cp_async: bool = parameter(
        True, "asynchronous copies to shared memory (sm_80 and later); else tiles go through registers"
    )
    raster_group: int = parameter(
        8, "blocks in groups of so many rows of tiles, for reuse in the L2 cache; 0: row by row", least=0
    )

    LAWS: ClassVar[tuple[Law, ...]] = (
        Law(lambda s: s.block[2] > 0, "block k is {block[2]}, and must be at least 1", code="R0604"),
        _divides("block m by warp m", "warp", "block", 0),
        _divides("block n by warp n", "warp", "block", 1),
        _divides("warp m by thread m", "thread", "warp", 0),
        _divides("warp n by thread n", "thread", "warp", 1),
        Law(lambda s: s.lanes == WARP,
            "a warp has 32 lanes, and {warp[0]}×{warp[1]} by {thread[0]}×{thread[1]} are another number",
            "use `warp=64,32 thread=8,8`, or `warp=32,16 thread=4,4`"),
        Law(lambda s: s.warps <= MOST_WARPS,
            "a block has at most 32 warps, and {block[0]}×{block[1]} by {warp[0]}×{warp[1]} are more"),
    )  # fmt: skip

    @property
    def lanes(self) -> int:
        """The threads that a warp's part is for."""
        return (self.warp[0] // self.thread[0]) * (self.warp[1] // self.thread[1])

    @property
    def warps(self) -> int:
        """Of a block."""
        return (self.block[0] // self.warp[0]) * (self.block[1] // self.warp[1])


@searched(
    block=(
        (128, 128, 16),
        (128, 256, 16),
        (64, 128, 16),
        (32, 128, 16),
        (64, 64, 16),
        (32, 64, 16),
        (32, 32, 32),
    ),
    warp=((64, 32), (32, 128), (32, 64), (32, 16)),
    thread=((8, 8), (16, 8), (4, 4)),
    stages=(3, 2, 4),
    split_k=(1, 2, 4, 8, 16),
)
@parameters_from(Tile)
def cuda_core(tile: Tile) -> Strategy:
    """From products of matrices to threads, for elements and operators that tensor cores do not have.

    For any reduction of all pairs of rows of two matrices, and of each pair in arrays of matrices. Tiles need
    not divide the matrices. Of several kernels it is for those with such reductions; `default` lowers the
    others.
    """
    return to_kernels(depending(lambda kernel: _by_threads(tile, tile.vector or most_at_once(kernel))))


def _by_threads(tile: Tile, most: int) -> Strategy:
    """A kernel, in which a thread copies so many elements at once, at most."""
    in_tiles_ = depending(lambda matrix: _in_tiles(tile, most, matrix))
    whole = of_matrices(seq(products, separate_prologue, _named, in_tiles_))
    return over_blocks(tile.split_k, tile.block[2], id_, whole, in_tiles) if tile.split_k > 1 else whole


_named: Strategy = check(contains(is_product), "cuda_core", NO_PRODUCT)


def _in_tiles(tile: Tile, most: int, matrix: Expr) -> Rewrite:
    """A matrix around products by blocks, whose threads compute parts of a tile."""
    m, n, depth = tile.block
    copies = copies_of(matrix, tile.block, WARP * tile.warps, tile.padding, most)
    copies = replace(copies, asynchronous=copies.asynchronous and tile.cp_async)
    first = Product.of(outermost_parts(matrix, is_product)[0])
    layout = Layout(depth, tile.warp, tile.thread, *map(Operand.of, first.operands))
    tiles = seq(tile_output(m, n, in_list=True), in_tile(layout.finished), raster(tile.raster_group), blocks)
    schedule = seq(operands_named(tiles), stage(copies, tile.stages), bring_prologue)
    return rounded_up(tile.block, None, schedule, ZEROS, ANY_REDUCTION)
