"""`tensor_core`: the schedules of matrix products by their parameters, for any program whose core is one.

The shape of a fragment selects the schedule: WMMA and `mma.sync` by warps, or Hopper's warpgroups. The
schedules are compositions of phases (`schedules`), which look for structure (`reduce` under two maps), not
for GEMM.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache, partial

from rise.errors import StrategyError
from rise.frozen import filled_at_once, hashed_once
from rise.instructions import Family, family, shapes
from strategies.core import FunctionStrategy, Rewrite, Strategy, id_
from strategies.matmul import constraints
from strategies.matmul.beside import rows_reduced
from strategies.matmul.constraints import Schedule
from strategies.matmul.instructions import load_each, load_first, load_once, prefetch_fragments
from strategies.matmul.requirements import PROGRAMS, fulfils
from strategies.matmul.schedules import by_warps, hopper, to_kernels
from strategies.matmul.split_k import over_blocks
from strategies.matmul.staging import TileCopy
from strategies.matmul.tiling import in_tiles
from strategies.settings import parameters_from

VECTORS = (1, 2, 4, 8, 16)
EPILOGUES = ("direct", "shared", "bulk", "rows")
BY_WARPGROUPS = "the copying unit brings the tiles that warpgroups read, swizzled"
NOT_SHARED = "no tile goes through shared memory, with `stages=0`"


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Parameters(Schedule):
    """See `tensor_core`; those that do not change what a schedule needs of a GPU are declared here."""

    load_once: bool = True
    vector: int = 8
    cp_async: bool = True
    prefetch_fragments: bool = False

    @property
    def copies(self) -> TileCopy:
        """Of tiles of operands, and of rows of the result."""
        threads = (128 if self.uses_wgmma else 32) * self.workers // self.ping_pong
        return TileCopy(
            threads, self.vector, self.padding, self.cp_async, self.swizzled, bulk=self.uses_wgmma
        )


@parameters_from(Parameters)
def tensor_core(p: Parameters) -> Strategy:
    """From products of matrices to tensor cores. Applies to definitions whose core is a product.

    Of several kernels it is for those with products; `default` lowers the others.

    Tiles need not divide the matrices: then longer ones are multiplied, with zeros behind their ends.

    block:              the part of the result that a block computes (m, n), and how much of k at a time
    warp:               the part of that which a warp computes, or a warpgroup
    fragment:           the shape (m, n, k) of an instruction, which determines its family: 64 × n is a
                        warpgroup's
    load_once:          fragments that several instructions use are loaded once
    stages:             how many tiles of operands are in shared memory, or being loaded; 0: operands bypass
                        it
    padding:            elements added to rows in shared memory, so that columns are in different banks
    vector:             elements that a thread copies at once, up to 16 bytes
    raster_group:       blocks in groups of so many rows of tiles, for reuse in the L2 cache; 0: row by row.
                        The last group is completed by tiles behind the end of the result
    epilogue:           `direct`: finished on fragments; `shared`: through shared memory, in whole rows;
                        `bulk`: finished on fragments of warpgroups, then through shared memory by bulk
                        stores; `rows`: the same by the threads of warpgroups, a row at whatever place
    slice_k:            how many sets of warps share a step of k
    prefetch_fragments: fragments of the next instructions are loaded while these compute
    swizzled:           rows in shared memory of 32, 64 or 128 bytes are swizzled instead of padded
    cp_async:           asynchronous copies to shared memory (sm_80 and later); else tiles are prefetched
                        into registers
    split_k:            how many blocks share the sums of a tile; a second kernel adds their parts
    warp_specialised:   one more warpgroup only loads, for those that compute
    persistent_blocks:  so many blocks, each of which computes several tiles; 0: a block for each tile
    cluster:            so many blocks, neighbours in raster order, load the operands that they share by
                        multicast: tiles of the first operand with `raster_group=1`, else of the second
    ping_pong:          so many warpgroups compute a block's tiles alternately: one multiplies, another runs
                        its epilogue
    swap_operands:      the transposed result is computed, from the transposed operands in the other order;
                        `block` (m, n) is a part of that. Warpgroups have multiples of 64 rows, and any
                        multiple of 8 columns: so either dimension of the result may have the finer tiles
    split_cluster:      how many blocks, a cluster, share the sums of a tile; they add its parts in each
                        other's shared memory (warpgroups)
    ahead:              slots for the tiles of matrices that only the epilogue reads, which the warpgroup that
                        loads fills ahead; 0: lanes read them once the products are complete
    """
    validate(p)
    composed = cache(lambda: _composed(p))  # a search makes a thousand strategies, and applies a few
    return FunctionStrategy("tensor_core", lambda term: composed()(term))


def _composed(p: Parameters) -> Rewrite:
    whole = _by_warpgroups(p) if p.uses_wgmma else _by_warps(p)
    if p.split_k > 1:
        legal = fulfils(p, p.copies if p.stages else None, PROGRAMS)
        whole = over_blocks(p.split_k, p.block[2], legal, whole, in_tiles)
    m, n, k = p.block
    rows = partial(rows_reduced, p.fragment[1], p.whole[1], swapped=p.swap_operands)
    m, n = (n, m) if p.swap_operands else (m, n)
    return to_kernels(whole, (m, n, k * p.split_k * p.split_cluster) if p.uses_wgmma else None, rows=rows)


def _by_warps(p: Parameters) -> Strategy:
    loads = prefetch_fragments if p.prefetch_fragments else load_once if p.load_once else id_
    return by_warps(
        p.block, p.warp, p.fragment, p.stages, p.copies, loads, p.epilogue,
        p.raster_group, p.slice_k, p.split_k, p.cluster, p.persistent_blocks,
    )  # fmt: skip


def _by_warpgroups(p: Parameters) -> Strategy:
    loads = load_first if p.load_once else load_each
    return hopper(
        p.block, p.warp, p.fragment, p.stages, p.raster_group, p.epilogue, p.vector, loads,
        p.warp_specialised, p.persistent_blocks, p.cluster, p.ping_pong, p.slice_k, p.split_k,
        p.swap_operands, p.split_cluster, p.ahead,
    )  # fmt: skip


def validate(p: Parameters) -> None:
    """Refuses parameters that contradict each other: a tile that does not divide the one around it, say."""
    for name, outer, inner in (
        ("block m by warp m", p.block[0], p.warp[0]),
        ("block n by warp n", p.block[1], p.warp[1]),
        ("warp m by fragment m", p.warp[0], p.fragment[0]),
        ("warp n by fragment n", p.warp[1], p.fragment[1]),
        ("block k by fragment k", p.block[2], p.fragment[2]),
        ("block k by slice_k times fragment k", p.block[2], p.slice_k * p.fragment[2]),
        ("block m by split_cluster", p.block[0], p.split_cluster),
    ):
        if inner < 1 or outer < 1 or outer % inner:
            raise StrategyError("R0604", f"tensor_core: {name}: {inner} does not divide {outer}")
    if family(p.fragment) is None:
        shape = "×".join(map(str, p.fragment))
        raise StrategyError("R0605", f"tensor_core: there is no fragment {shape}; there are {shapes()}")
    for name, value, least in (
        ("stages", p.stages, 0),
        ("padding", p.padding, 0),
        ("vector", p.vector, 1),
        ("raster_group", p.raster_group, 0),
        ("persistent_blocks", p.persistent_blocks, 0),
        ("cluster", p.cluster, 1),
        ("ping_pong", p.ping_pong, 1),
        ("split_k", p.split_k, 1),
        ("split_cluster", p.split_cluster, 1),
        ("ahead", p.ahead, 0),
    ):
        if value < least:
            raise StrategyError("R0609", f"tensor_core: {name} is {value}, and must be at least {least}")
    if p.slice_k > 1 and p.epilogue != "shared":
        message = f"tensor_core: slice_k is {p.slice_k}: partial sums are added in shared memory"
        raise StrategyError("R0609", message, hint="use `epilogue=shared`")
    if (p.persistent_blocks or p.cluster > 1) and not p.raster_group:
        message = "tensor_core: persistent blocks and clusters need a raster order of tiles"
        raise StrategyError("R0609", message, hint="use `raster_group=1` or more")
    if p.cluster > 1 and p.split_k > 1:
        message = (
            f"tensor_core: cluster is {p.cluster}: slices of sums are a dimension of the grid in no cluster"
        )
        raise StrategyError("R0609", message, hint="use `cluster=1`, or `split_k=1`")
    if p.split_cluster > 1:
        validate_split_cluster(p)
    if p.persistent_blocks % p.cluster:
        message = (
            f"tensor_core: persistent_blocks is {p.persistent_blocks}, not a multiple of cluster, {p.cluster}"
        )
        raise StrategyError("R0609", message)
    if p.ping_pong > 1 and not (p.warp_specialised and p.persistent_blocks and p.warp == p.block[:2]):
        message = "tensor_core: ping_pong needs a tile for each warpgroup, and a warpgroup that only loads"
        raise StrategyError(
            "R0609", message, hint="`warp_specialised=true`, `persistent_blocks=132`, say, and warp is block"
        )
    if p.warp_specialised and not p.uses_wgmma:
        message = "tensor_core: warp_specialised is for warpgroups"
        raise StrategyError("R0609", message, hint="use fragments of 64 × n × 16")
    if p.uses_wgmma and p.stages < 2:
        message = f"tensor_core: stages is {p.stages}: warpgroups multiply tiles in shared memory"
        raise StrategyError("R0609", message, hint="use `stages=2` or more")
    if p.swizzled and p.stages and family(p.fragment) is Family.WMMA:
        message = "tensor_core: swizzled: these fragments are loaded from rows at a constant distance"
        raise StrategyError("R0609", message, hint="use `swizzled=false`, or `fragment=16,8,16`")
    if p.vector not in VECTORS:
        message = f"tensor_core: vector is {p.vector}; threads copy 1, 2, 4, 8 or 16 elements at once"
        raise StrategyError("R0609", message)
    if p.padding % 8:
        message = f"tensor_core: padding is {p.padding}; rows of tiles start at multiples of 8 elements"
        raise StrategyError("R0609", message)
    if p.epilogue in ("bulk", "rows") and not p.uses_wgmma:
        stored = "only fragments of warpgroups, 64×n×16, are stored so"
        message = f"tensor_core: epilogue is `{p.epilogue}`: {stored}"
        raise StrategyError("R0609", message, hint="use `epilogue=direct`")
    if p.swap_operands and p.epilogue != "bulk":
        message = "tensor_core: swap_operands is for results that bulk stores write, turned in shared memory"
        raise StrategyError("R0609", message, hint="use `epilogue=bulk`")
    if p.swap_operands and p.split_k > 1:
        message = f"tensor_core: swap_operands: with split_k={p.split_k}, another kernel stores the result"
        raise StrategyError("R0609", message, hint="use `split_k=1`")
    if p.ahead:
        validate_ahead(p)
    if p.epilogue not in EPILOGUES:
        known = ", ".join(f"`{name}`" for name in EPILOGUES[:-1]) + f" or `{EPILOGUES[-1]}`"
        raise StrategyError("R0609", f"tensor_core: epilogue is `{p.epilogue}`; it can be {known}")
    refuse_without_effect(p)
    constraints.check(p, operand_bytes=1 if p.fragment[2] == 32 else 2)


def validate_split_cluster(p: Parameters) -> None:
    """Refuses what does not go with sums that the blocks of a cluster share."""
    reasons = (
        ("are added in whole rows, through shared memory", p.epilogue == "shared", "epilogue=shared"),
        ("are those of warpgroups", p.uses_wgmma, "fragment=64,128,16"),
        ("are of tiles in a raster order", p.raster_group > 0, "raster_group=1"),
        ("are of one tile", not p.persistent_blocks and p.ping_pong == 1, "persistent_blocks=0 ping_pong=1"),
        ("take all blocks of a cluster", p.cluster == 1, "cluster=1"),
        ("are shared in one way", p.split_k == p.slice_k == 1, "split_k=1 slice_k=1"),
    )
    for reason, holds, hint in reasons:
        if not holds:
            message = (
                f"tensor_core: split_cluster is {p.split_cluster}: the sums that a cluster shares {reason}"
            )
            raise StrategyError("R0609", message, hint=f"use `{hint}`")


def validate_ahead(p: Parameters) -> None:
    """Refuses what does not go with matrices that the warpgroup that loads brings for the epilogue."""
    reasons = (
        ("a warpgroup that only loads brings them", p.warp_specialised, "warp_specialised=true"),
        ("they are read where a tile's sums are, on fragments", p.epilogue != "shared", "epilogue=bulk"),
        ("another kernel reads them, which adds the sums", p.split_k == 1, "split_k=1"),
    )
    for reason, holds, hint in reasons:
        if not holds:
            message = f"tensor_core: ahead is {p.ahead}: {reason}"
            raise StrategyError("R0609", message, hint=f"use `{hint}`")


def refuse_without_effect(p: Parameters) -> None:
    """StrategyError R0609 for a parameter that changes nothing, where it is not left at its default."""
    staged = BY_WARPGROUPS if p.uses_wgmma else NOT_SHARED if not p.stages else ""
    rows = f"lanes store the result, with `epilogue={p.epilogue}`" if p.epilogue != "shared" else ""
    reasons = {
        "padding": staged,
        "cp_async": staged,
        "swizzled": staged,
        "vector": f"{staged}, and {rows}" if staged and rows else "",
        "prefetch_fragments": "operands of warpgroups' products stay in shared memory"
        if p.uses_wgmma
        else "",
        "swap_operands": "" if p.uses_wgmma else "any rows and columns are as good for instructions of warps",
        "load_once": "`prefetch_fragments` loads them once, too" if p.prefetch_fragments else "",
    }
    for field in fields(p):
        reason = reasons.get(field.name, "")
        if reason and getattr(p, field.name) != field.default:
            message = f"tensor_core: {field.name} changes nothing: {reason}"
            raise StrategyError("R0609", message, hint=f"leave `{field.name}` out")
