"""The schedule of products of matrices: each of its parameters with its meaning, and the laws between them.

This is the one description that strategies, constraints, the search and the pages read. A new parameter is a
field here, and a phase in `schedules` that does something with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, lcm
from typing import ClassVar

from rise.frozen import cached_property, filled_at_once, hashed_once
from rise.instructions import Family, family, shapes
from strategies.settings import Idle, Law, Parameters, parameter

WITHOUT_REST = (0, 0, 0)
PROMOTED = 128  # bytes that the copying unit brings into the L2 cache at once, if nothing else is said
# where copies by threads change nothing
NOT_COPIED: tuple[Idle, ...] = (
    (lambda s: s.uses_wgmma, "the copying unit brings the tiles that warpgroups read, swizzled"),
    (lambda s: not s.stages, "no tile goes through shared memory, with `stages=0`"),
)


def _nor_stored(where: Callable[[Schedule], bool], why: str) -> Idle:
    """Where threads store no rows either."""
    reason = f"{why}, and lanes store the result, with `epilogue={{epilogue}}`"
    return lambda s: where(s) and s.epilogue != "shared", reason


def _divides(reason: str, sizes: Callable[[Schedule], tuple[int, int]]) -> Law:
    """The first of two positive sizes divides the second."""

    def holds(s: Schedule) -> bool:
        part, whole = sizes(s)
        return part > 0 and whole > 0 and whole % part == 0

    return Law(holds, reason, code="R0604")


def _loaded_ahead(reason: str, holds: Callable[[Schedule], bool], hint: str) -> Law:
    """Of matrices that the warpgroup that loads brings for the epilogue."""
    return Law(lambda s: not s.ahead or holds(s), f"ahead is {{ahead}}: {reason}", f"use `{hint}`")


def _of_cluster(reason: str, holds: Callable[[Schedule], bool], hint: str) -> Law:
    """Of sums that the blocks of a cluster share."""
    whole = f"split_cluster is {{split_cluster}}: the sums that a cluster shares {reason}"
    return Law(lambda s: s.split_cluster == 1 or holds(s), whole, f"use `{hint}`")


def _rest(reason: str, holds: Callable[[Schedule], bool], hint: str) -> Law:
    """Of the last matrices of an array, which have other tiles."""
    whole = f"rest is {{rest[0]}},{{rest[1]}},{{rest[2]}}: it {reason}"
    return Law(lambda s: s.rest == WITHOUT_REST or holds(s), whole, f"use `rest={hint}`")


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True, repr=False)
class Schedule(Parameters):
    """The parameters of `tensor_core`; the defaults are a schedule for WMMA."""

    block: tuple[int, int, int] = parameter(
        (128, 128, 64),
        "the part of the result that a block computes (m, n), and how much of k at a time", always=True,
    )  # fmt: skip
    warp: tuple[int, int] = parameter(
        (64, 64), "the part of that which a warp computes, or a warpgroup", always=True
    )
    fragment: tuple[int, int, int] = parameter(
        (16, 16, 16),
        "the shape (m, n, k) of an instruction, which determines its family: 64 × n is a warpgroup's",
        always=True,
    )
    stages: int = parameter(
        3, "how many tiles of operands are in shared memory, or being loaded; 0: operands bypass it",
        least=0, always=True,
    )  # fmt: skip
    padding: int = parameter(
        8, "elements added to rows in shared memory, so that columns are in different banks",
        least=0, idle=NOT_COPIED,
    )  # fmt: skip
    swizzled: bool = parameter(
        False, "rows in shared memory of 32, 64 or 128 bytes are swizzled instead of padded", idle=NOT_COPIED
    )
    vector: int = parameter(
        8, "elements that a thread copies at once, up to 16 bytes",
        values=(1, 2, 4, 8, 16), idle=[_nor_stored(*each) for each in NOT_COPIED],
    )  # fmt: skip
    cp_async: bool = parameter(
        True, "asynchronous copies to shared memory (sm_80 and later); else tiles are prefetched into"
        " registers", idle=NOT_COPIED,
    )  # fmt: skip
    load_once: bool = parameter(
        True, "fragments that several instructions use are loaded once",
        idle=[(lambda s: s.prefetch_fragments, "`prefetch_fragments` loads them once, too")],
    )  # fmt: skip
    prefetch_fragments: bool = parameter(
        False, "fragments of the next instructions are loaded while these compute",
        idle=[(lambda s: s.uses_wgmma, "operands of warpgroups' products stay in shared memory")],
    )  # fmt: skip
    raster_group: int = parameter(
        0, "blocks in groups of so many rows of tiles, for reuse in the L2 cache; 0: row by row."
        " The last group has the rows that are left; where these are known at launch only, tiles behind the"
        " end of the result complete it", least=0,
    )  # fmt: skip
    raster_matrices: int = parameter(
        1, "of an array of matrices, persistent blocks take so many at a time, a tile, or a cluster of tiles,"
        " of each in turn; it divides their number", least=1,
        idle=[(lambda s: not s.persistent_blocks, "all matrices of an array are computed at once")],
    )  # fmt: skip
    epilogue: str = parameter(
        "shared", "`direct`: finished on fragments; `shared`: through shared memory, in whole rows;"
        " `bulk`: finished on fragments of warpgroups, then through shared memory by bulk stores;"
        " `rows`: the same by the threads of warpgroups, a row at whatever place",
        values=("direct", "shared", "bulk", "rows"),
    )  # fmt: skip
    slice_k: int = parameter(1, "how many sets of warps share a step of k")
    split_k: int = parameter(
        1, "how many blocks share the sums of a tile; a second kernel adds their parts", least=1
    )
    warp_specialised: bool = parameter(False, "one more warpgroup only loads, for those that compute")
    persistent_blocks: int = parameter(
        0, "so many blocks, each of which computes several tiles; 0: a block for each tile", least=0
    )
    cluster: int = parameter(
        1, "so many blocks, neighbours in raster order, load the operands that they share by multicast:"
        " tiles of the first operand with `raster_group=1`, else of the second", least=1,
    )  # fmt: skip
    ping_pong: int = parameter(
        1, "so many warpgroups compute a block's tiles alternately: one multiplies, another runs its"
        " epilogue", least=1,
    )  # fmt: skip
    swap_operands: bool = parameter(
        False, "the transposed result is computed, from the transposed operands in the other order;"
        " `block` (m, n) is a part of that. Warpgroups have multiples of 64 rows, and any multiple of 8"
        " columns: so either dimension of the result may have the finer tiles. Bulk stores turn it in shared"
        " memory; with `epilogue=direct`, lanes store it turned",
        idle=[(lambda s: not s.uses_wgmma, "any rows and columns are as good for instructions of warps")],
    )  # fmt: skip
    split_cluster: int = parameter(
        1, "how many blocks, a cluster, share the sums of a tile; they add its parts in each other's shared"
        " memory (warpgroups)",
    )  # fmt: skip
    ahead: int = parameter(
        0, "slots for the tiles of matrices that only the epilogue reads, which the warpgroup that loads"
        " fills ahead; 0: lanes read them once the products are complete",
        least=0,
    )  # fmt: skip
    promoted: int = parameter(
        PROMOTED, "bytes of operands that the copying unit brings into the L2 cache at once",
        values=(64, 128, 256),
        idle=[(lambda s: not s.uses_wgmma, "threads copy the tiles that warps read, line by line")],
    )  # fmt: skip
    short_tiles: bool = parameter(
        False, "of tiles of the first operand of which data say how many rows are needed (`prefixes`), half"
        " is loaded where that is enough",
        idle=[(lambda s: not s.uses_wgmma, "threads copy whole tiles"),
              (lambda s: not s.has_halves, "half a tile is fewer rows than a warpgroup multiplies at once")],
    )  # fmt: skip
    rest: tuple[int, int, int] = parameter(
        WITHOUT_REST, "of an array of matrices all but the first so many have tiles of m × n, in a kernel of"
        " their own, which warpgroups compute with 64 rows each; 0,0,0: all have the same tiles",
        idle=[(lambda s: not s.uses_wgmma, "any tile is as good for instructions of warps")],
    )  # fmt: skip

    LAWS: ClassVar[tuple[Law, ...]] = (
        _divides("block m by warp m: {warp[0]} does not divide {block[0]}",
                 lambda s: (s.warp[0], s.block[0])),
        _divides("block n by warp n: {warp[1]} does not divide {block[1]}",
                 lambda s: (s.warp[1], s.block[1])),
        _divides("warp m by fragment m: {fragment[0]} does not divide {warp[0]}",
                 lambda s: (s.fragment[0], s.warp[0])),
        _divides("warp n by fragment n: {fragment[1]} does not divide {warp[1]}",
                 lambda s: (s.fragment[1], s.warp[1])),
        _divides("block k by fragment k: {fragment[2]} does not divide {block[2]}",
                 lambda s: (s.fragment[2], s.block[2])),
        _divides("block k by slice_k times fragment k: {slice_k}×{fragment[2]} does not divide {block[2]}",
                 lambda s: (s.slice_k * s.fragment[2], s.block[2])),
        _divides("block m by split_cluster: {split_cluster} does not divide {block[0]}",
                 lambda s: (s.split_cluster, s.block[0])),
        Law(lambda s: family(s.fragment) is not None,
            f"there is no fragment {{fragment[0]}}×{{fragment[1]}}×{{fragment[2]}}; there are {shapes()}",
            code="R0605"),
        Law(lambda s: s.slice_k == 1 or s.epilogue == "shared",
            "slice_k is {slice_k}: partial sums are added in shared memory", "use `epilogue=shared`"),
        Law(lambda s: s.raster_group or (not s.persistent_blocks and s.cluster == 1),
            "persistent blocks and clusters need a raster order of tiles", "use `raster_group=1` or more"),
        Law(lambda s: s.cluster == 1 or s.split_k == 1,
            "cluster is {cluster}: slices of sums are a dimension of the grid in no cluster",
            "use `cluster=1`, or `split_k=1`"),
        _of_cluster("are added in whole rows, through shared memory", lambda s: s.epilogue == "shared",
                    "epilogue=shared"),
        _of_cluster("are those of warpgroups", lambda s: s.uses_wgmma, "fragment=64,128,16"),
        _of_cluster("are of tiles in a raster order", lambda s: s.raster_group > 0, "raster_group=1"),
        _of_cluster("are of one tile", lambda s: not s.persistent_blocks and s.ping_pong == 1,
                    "persistent_blocks=0 ping_pong=1"),
        _of_cluster("take all blocks of a cluster", lambda s: s.cluster == 1, "cluster=1"),
        _of_cluster("are shared in one way", lambda s: s.split_k == s.slice_k == 1, "split_k=1 slice_k=1"),
        _loaded_ahead("a warpgroup that only loads brings them", lambda s: s.warp_specialised,
                      "warp_specialised=true"),
        _loaded_ahead("they are read where the sums of a tile are, on fragments",
                      lambda s: s.epilogue != "shared", "epilogue=bulk"),
        _loaded_ahead("another kernel reads them, which adds the sums", lambda s: s.split_k == 1,
                      "split_k=1"),
        Law(lambda s: s.persistent_blocks % s.cluster == 0,
            "persistent_blocks is {persistent_blocks}, not a multiple of cluster, {cluster}"),
        Law(lambda s: s.ping_pong == 1 or
            (s.warp_specialised and s.persistent_blocks and s.warp == s.block[:2]),
            "ping_pong needs a tile for each warpgroup, and a warpgroup that only loads",
            "`warp_specialised=true`, `persistent_blocks=132`, say, and warp is block"),
        Law(lambda s: s.uses_wgmma or not s.warp_specialised,
            "warp_specialised is for warpgroups", "use fragments of 64 × n × 16"),
        Law(lambda s: s.stages >= 2 or not s.uses_wgmma,
            "stages is {stages}: warpgroups multiply tiles in shared memory", "use `stages=2` or more"),
        Law(lambda s: not (s.swizzled and s.stages and family(s.fragment) is Family.WMMA),
            "swizzled: these fragments are loaded from rows at a constant distance",
            "use `swizzled=false`, or `fragment=16,8,16`"),
        Law(lambda s: s.padding % 8 == 0,
            "padding is {padding}; rows of tiles start at multiples of 8 elements"),
        Law(lambda s: s.uses_wgmma or s.epilogue not in ("bulk", "rows"),
            "epilogue is `{epilogue}`: only fragments of warpgroups, 64×n×16, are stored so",
            "use `epilogue=direct`"),
        Law(lambda s: s.epilogue in ("bulk", "direct") or not s.swap_operands,
            "swap_operands is for results that fragments finish, and not whole rows of tiles",
            "use `epilogue=bulk`, or `epilogue=direct`"),
        Law(lambda s: s.split_k == 1 or not s.swap_operands,
            "swap_operands: with split_k={split_k}, another kernel stores the result", "use `split_k=1`"),
        _rest("is behind one matrix or more", lambda s: s.rest[0] > 0, "1,64,128"),
        _rest("has 64 rows for each warpgroup", lambda s: s.rest[1] > 0 and s.rest[1] % 64 == 0, "1,64,128"),
        _rest("has tiles of 8, 16 … 256 columns", lambda s: 0 < s.rest[2] <= 256 and s.rest[2] % 8 == 0,
              "1,64,128"),
        _rest("is of whole sums, as they are stored",
              lambda s: s.slices == s.slice_k == 1 and not s.swap_operands, "0,0,0"),
    )  # fmt: skip

    @cached_property
    def uses_wgmma(self) -> bool:
        """Whether warpgroups execute the instructions: then `warp` is a warpgroup's part."""
        return family(self.fragment) is Family.WGMMA

    @cached_property
    def has_halves(self) -> bool:
        """Whether half of a tile of the first operand has as many rows as an instruction, or a multiple."""
        rows = self.block[1] if self.swap_operands else self.block[0]
        return rows % (2 * self.fragment[0]) == 0

    @cached_property
    def workers(self) -> int:
        """Warps, or warpgroups, that compute."""
        return (
            self.ping_pong * self.slice_k * (self.block[0] // self.warp[0]) * (self.block[1] // self.warp[1])
        )

    @property
    def whole(self) -> tuple[int, int, int]:
        """What sizes are rounded up to where rows are known at launch only: whole groups of raster order."""
        return self.whole_of(None)

    def whole_of(self, rows: int | None) -> tuple[int, int, int]:
        """The same where there are so many rows: whole clusters of tiles, and steps."""
        m, n, k = self.block
        steps = k * self.split_cluster
        if self.raster_group <= 1:
            return m, n * self.cluster, steps
        apart = rows is None or self.raster_group % self.cluster > 0
        return m * (lcm(self.raster_group, self.cluster) if apart else self.cluster), n, steps

    @property
    def slices(self) -> int:
        """How many blocks share the sums of a tile."""
        return self.split_k * self.split_cluster

    def tiles(self, rows: int, columns: int, known: bool = True) -> int:
        """Of a result, with those behind its ends; known: whether the rows are, before the launch."""
        m, n, _ = self.whole_of(rows if known else None)
        return ceil(rows / m) * ceil(columns / n) * (m // self.block[0]) * (n // self.block[1])


# tiles in padded rows, fragments loaded once, results through shared memory
WMMA = Schedule()
# tiles in swizzled rows, fragments fetched ahead, results stored from registers
MMA_SYNC = Schedule(fragment=(16, 8, 16), swizzled=True, prefetch_fragments=True, epilogue="direct")
# the same instruction of sm_70, by quad-pairs; its tiles are prefetched into registers
VOLTA = Schedule((64, 64, 32), (32, 32), (32, 32, 8), stages=2, cp_async=False)
# two warpgroups compute what a third one loads by bulk copies; bulk stores
HOPPER = Schedule(
    (128, 256, 64), (64, 256), (64, 256, 16), raster_group=1, epilogue="bulk", warp_specialised=True
)
