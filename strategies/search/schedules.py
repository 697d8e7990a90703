"""Which schedules `tensor_core` is tried with, as functions of a problem and a GPU.

A space is an iterator of schedules (`strategies.matmul.schedule`), each made by changing another one: a new
parameter is a change here. A combination that cannot work is left out (`strategies.matmul.constraints`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import ceil, gcd
from typing import Any

from rise.frozen import changed
from rise.instructions import takes
from strategies.matmul.constraints import Resources, panel, pattern, resources, shared_bytes
from strategies.matmul.schedule import Schedule
from strategies.search.cost import memory_cycles, rounds, shared_by, tensor_cycles, tiles_of_one
from strategies.search.hardware import Gpu
from strategies.search.problem import Problem

# of a block's tile the rows, of a warpgroup's part the rows, and how many warpgroups have a tile each
ARRANGEMENTS = (
    (64, 64, 1), (128, 64, 1), (128, 128, 1), (192, 64, 1), (192, 192, 1), (256, 64, 1), (256, 128, 1),
    (64, 64, 2), (128, 128, 2), (192, 192, 2),
)  # fmt: skip
WIDTHS = (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256)


GROUPS = (8, 16)  # rows of tiles in a group, besides those that divide them
SHORT = 4  # the same where rows are known at launch only, and may be few
CLUSTERS = (2, 3, 4)
SHARING = (2, 4, 8)  # blocks that share the sums of a tile
LEAST = 4  # steps of each
DEPTHS = (128, 256)  # bytes of a step along k, the longer only where so many STAGES fit: of small tiles
DEEPEST, STAGES = 8, 6
FINER = 64  # columns of the tiles behind whole waves
RASTER_MATRICES = range(12, 7, -1)  # how many matrices have tiles in raster order, the most first
MORE = 256  # bytes that are brought into the L2 cache at once, where memory takes longest; measured
FEW = 3  # products with the same matrix: of more, other products are between those of a column; measured
LARGE, LARGEST = 3, 4  # times as many elements have the others, and those in raster order
AHEAD = (0, 1)  # slots for the tiles of matrices that only the epilogue reads
FULL_WAVES = range(1, 9)  # waves of tiles, of which the narrowest tiles that fill them are tried
PARTS = (1, 2, 3, 4, 5)  # fragments that a warpgroup's part has in a row
NARROWEST = 48  # columns of one of several: narrower ones wait for shared memory
PANEL = 64  # columns, of 16 bits: shorter rows of operands across k are parts of lines of the cache
ROWS_AT_ONCE, SECTOR = 8, 32  # of a fragment that lanes store by an instruction; bytes of a part of a line


def warpgroups(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """By warpgroups, fed by another one; also with operands swapped."""
    p = p.in_bulk
    if p.turned:
        yield from warpgroups_of(p.seen_by(Schedule(swap_operands=True)), gpu)
        return
    yield from warpgroups_of(p, gpu)
    if turned_in_bulk(p) or turned_by_lanes(p):
        yield from warpgroups_of(p.seen_by(Schedule(swap_operands=True)), gpu)


def turned_in_bulk(p: Problem) -> bool:
    """Whether the transposed result may be computed: one product in 16 bits, which bulk stores turn."""
    return p.batch * p.products == 1 and p.result_bytes == 2 and not p.beside and not p.row_work


def turned_by_lanes(p: Problem) -> bool:
    """Whether it may be for tiles whose columns the other order does not have, or has in short rows.

    Where only the second operand lies across k, it has panels; as the first one, it leaves any multiple of 8
    to the other. Lanes store 32-bit numbers turned as quickly.
    """
    alone = p.batch * p.products == 1 and not p.row_work
    return alone and p.result_bytes > 2 and whole_sectors(p) and p.along_k == (True, False)


def turns(p: Problem) -> bool:
    """Whether lanes turn the result of a problem with operands swapped."""
    return p.swapped and not p.turned and p.result_bytes > 2


def whole_sectors(p: Problem) -> bool:
    """Whether the eight lanes of a fragment that have neighbours in a column move whole sectors, turned."""
    return all(size * ROWS_AT_ONCE >= SECTOR for size in (p.result_bytes, *p.beside))


def warpgroups_of(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """The same with operands in the order in which the problem has them."""
    for s in shapes(p, gpu, stores(p)):
        tiles, sliced = p.batch * tiles_of_one(p, s), slices(p, s.block[1], gpu)
        shared = s.epilogue == "shared"
        if s.ping_pong > 1 and (shared or tiles <= gpu.multiprocessors):
            continue
        for group, cluster in orders(p, s, clusters=sliced == [1] and (p.batch == 1 or p.scattered)):
            there = gpu.in_clusters(cluster)
            count = p.batch * tiles_of_one(p, changed(s, raster_group=group, cluster=cluster))
            many = count > there and not shared
            if p.batch > 1 and cluster > 1 and not many:
                continue  # matrices are a dimension of the grid that is in no cluster
            # a block with one tile has not more than its steps
            stages = s.stages if many else max(2, min(s.stages, ceil(p.k / s.block[2])))
            for blocks in [1] if shared or s.ahead else sliced:
                one = changed(
                    s, stages=stages, raster_group=group, split_k=blocks, cluster=cluster,
                    persistent_blocks=there if many else 0, swap_operands=p.swapped,
                )  # fmt: skip
                if not (many and p.scattered):
                    yield one
                    continue
                one = changed(one, **less_loaded(p, one, gpu))
                yield one
                yield from whole_waves(p, one)


def less_loaded(p: Problem, s: Schedule, gpu: Gpu) -> dict[str, Any]:
    """What helps where data choose matrices, and memory takes longer than tensor cores: measured.

    More bytes come into the cache at once for warpgroups that share a tile, and of warpgroups in turn each
    loads short tiles by half. Either makes blocks of a cluster wait longer for each other.
    """
    if memory_cycles(p, s, gpu) <= rounds(p, s, gpu) * tensor_cycles(p, s, gpu) or s.cluster > 1:
        return {}
    return {"short_tiles": p.missing > 0 and s.has_halves} if s.ping_pong > 1 else {"promoted": MORE}


def whole_waves(p: Problem, s: Schedule) -> Iterator[Schedule]:
    """Where data say how many matrices there are: those behind as many as fill waves, by finer tiles."""
    of_one, there = tiles_of_one(p, s), s.persistent_blocks
    times = s.block[0] * s.block[1] / (p.m * FINER)
    about = p.batch * of_one // there
    for waves in (about, about + 1):
        count = waves * there // of_one
        if times >= LARGE and p.m % s.fragment[0] == 0 and count:
            yield changed(s, rest=(count, p.m, FINER))
            together = next((number for number in RASTER_MATRICES if count % number == 0), 0)
            if together and times >= LARGEST and s.cluster == 1 and count >= p.batch and p.of_each < FEW:
                yield changed(s, rest=(count, p.m, FINER), raster_matrices=together)


def stores(p: Problem) -> Sequence[str]:
    """How results may be stored, the quickest last; bulk stores put no rows where data say.

    Rows that bulk stores do not take: by all threads, with what is read beside them, or by each warpgroup.
    Rows are reduced where their sums are.
    """
    if p.by_elements and p.reduced:
        return ("direct",)
    if p.by_elements:
        return ("direct", "shared") if p.beside else ("direct", "shared", "rows")
    if turns(p):
        return ("direct",)
    if p.elsewhere and not p.scattered:
        return ("direct", "bulk", "rows")
    return ("direct", "rows" if p.scattered else "bulk")


def sharing_sums(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """The same by clusters whose blocks share sums: only where there are fewer tiles than multiprocessors."""
    p = p.in_bulk
    for blocks in SHARING if p.batch * p.products == 1 else ():
        for s in shapes(p, gpu, ("shared",), blocks):
            few = tiles_of_one(p, s) * blocks <= gpu.in_clusters(blocks)
            if s.ping_pong == 1 and few and p.k >= blocks * LEAST * s.block[2]:
                steps = ceil(p.k / (blocks * s.block[2]))
                group = largest_group(ceil(p.m / s.block[0]))
                yield changed(s, stages=min(s.stages, steps), raster_group=group)


def largest_group(rows: int) -> int:
    """The most rows of tiles in a group, up to eight, that divide them."""
    return max(g for g in range(1, 9) if rows % g == 0)


def orders(p: Problem, s: Schedule, clusters: bool) -> Iterator[tuple[int, int]]:
    """Groups of raster order, and clusters, whose blocks share tiles of one operand.

    A group of several rows need not divide the rows of tiles: then tiles behind their end complete it.
    """
    rows = ceil(p.m / s.block[0])
    groups = {1, SHORT} if p.open else {largest_group(rows), *(g for g in GROUPS if rows > g)}
    yield from ((group, 1) for group in sorted(groups))
    for size in CLUSTERS if clusters else ():
        whole = [g for g in range(size, GROUPS[-1] + 1, size) if rows % g == 0 and not p.open]
        longer = [g - g % size for g in GROUPS if rows > g and not p.open]
        found = {size, *whole[-1:], *(g for g in longer if not whole or whole[-1] < GROUPS[0])}
        for group in (1, *sorted(found, reverse=True)):
            if shared_by(p, s.block, group, size) != (1, 1):
                yield group, size


def shapes(p: Problem, gpu: Gpu, epilogues: Sequence[str], split_cluster: int = 1) -> Iterator[Schedule]:
    """Tiles of some widths, those that divide n among them; how results are stored; the stages that fit.

    Where lanes turn the result, those that fill waves, and that the other order has not in whole lines.
    """
    widths = {n for n in range(24, 257, 8) if p.n % n == 0} | {n for n in WIDTHS if n <= p.n + 31}
    if by_lanes := turns(p):
        widths = set()
    full = {bm: filling(p, bm, gpu) for bm, _, _ in ARRANGEMENTS} if split_cluster == 1 else {}
    every = sorted(widths.union(*full.values()), reverse=True)
    for bn, (bm, wm, ping_pong) in itertools.product(every, ARRANGEMENTS):
        if (bn not in widths and bn not in full[bm]) or (by_lanes and bn % PANEL == 0):
            continue
        slots = AHEAD if brought(p) and split_cluster == 1 else (0,)
        for parts, epilogue, depth, ahead in itertools.product(PARTS, epilogues, DEPTHS, slots):
            fragment = of_warpgroups(bn // parts, p)
            if bm <= p.m + 63 and bn % parts == 0 and takes(fragment, p.operand):
                s = Schedule(
                    (bm, bn, depth // p.operand_bytes), (wm, bn), fragment, 1, epilogue=epilogue,
                    warp_specialised=True, ping_pong=ping_pong, split_cluster=split_cluster, ahead=ahead,
                )  # fmt: skip
                if sensible(s, p):
                    stages = deepest(s, p, gpu)
                    if depth == DEPTHS[0] or stages >= STAGES:
                        yield changed(s, stages=stages)


def filling(p: Problem, rows: int, gpu: Gpu) -> set[int]:
    """The narrowest tiles of so many rows of which a few waves have enough, where these are multiples of 8.

    Of wider ones, some multiprocessors have none in the last wave; of narrower ones there is a wave more.
    """
    if p.batch > 1 or p.open:
        return set()
    across = (waves * gpu.multiprocessors // ceil(p.m / rows) for waves in FULL_WAVES)
    narrowest = (8 * ceil(p.n / (8 * count)) for count in across if count)
    return {n for n in narrowest if NARROWEST <= n <= WIDTHS[-1]}


def brought(p: Problem) -> bool:
    """Whether the copying unit brings the matrices that are read beside products."""
    return bool(p.beside) and all(p.result_row * size % WIDEST == 0 for size in p.beside)


def of_warpgroups(columns: int, p: Problem) -> tuple[int, int, int]:
    """The shape of a warpgroup's instruction: 32 bytes of each row along k."""
    return 64, columns, 32 // p.operand_bytes


def sensible(s: Schedule, p: Problem) -> bool:
    """Whether a tile is not known to be bad: the cost does not show all that the compiler makes of it."""
    bn, width = s.block[1], s.fragment[1]
    bulk = p.result_row * p.result_bytes % WIDEST == 0  # whether bulk stores take the rows of the result
    direct = (p.result_bytes != 2 or not bulk) and (not p.swapped or p.turned or whole_sectors(p))
    if width < min(bn, NARROWEST) or not {"bulk": bulk, "direct": direct}.get(s.epilogue, True):
        return False
    if s.ahead and not all(pattern(bn * size) for size in p.beside):
        return False
    return p.along_k[1] or width % panel(bn) == 0


def deepest(s: Schedule, p: Problem, gpu: Gpu) -> int:
    """The most stages that fit into shared memory, up to eight; two where not even these do."""
    of_products = s, p.operand_bytes, p.along_k, p.result_bytes, p.operands
    two, three = (shared_bytes(*of_products, count, p.products, p.beside) for count in (2, 3))
    fit = (gpu.limits.shared_bytes - two) // (three - two)  # all that is not the ring stands beside it
    return max(2, min(2 + fit, DEEPEST))


def needed(s: Schedule, p: Problem) -> Resources:
    """What a block needs for all products of a program."""
    return resources(s, p.operand_bytes, p.along_k, p.result_bytes, p.operands, p.products, p.beside)


def slices(p: Problem, bn: int, gpu: Gpu) -> list[int]:
    """Among how many blocks sums are shared out: only where there are fewer tiles than multiprocessors."""
    few = (p.m // 128) * (p.n // bn) * 2 <= gpu.multiprocessors and p.batch * p.products == 1
    few = few and p.in_one_sum is None  # each product would be cut into slices of its own
    return [
        1,
        *(w for w in (2, 4, 8) if few and p.k % (DEPTHS[0] // p.operand_bytes * w) == 0 and p.k // w >= 512),
    ]


def of_warps(fragment: tuple[int, int, int], whole: bool = False) -> Iterator[Schedule]:
    """Small blocks, and those of GPUs before Hopper; whole: each warp has all columns of its block."""
    depth = 64 if fragment[2] == 16 else 32
    tiles = ((32, 32), (32, 64), (64, 64), (64, 128), (128, 64), (128, 128), (128, 256))
    for (bm, bn), k in itertools.product(tiles, (depth, depth // 2)):
        # fragments for a large part and a long step, fetched ahead, do not fit into the registers
        large = [(64, 64)] if k < depth else []
        parts = [(16, bn), (32, bn)] if whole else [(16, 16)] if bm == 32 else [(32, 32), *large]
        for warp in parts:
            yield Schedule((bm, bn, k), warp, fragment, epilogue="direct")


def warps(
    fragment: tuple[int, int, int], stages: Sequence[int], ahead: bool = True, whole: bool = False
) -> Iterator[Schedule]:
    """By warps, with fragments fetched ahead from swizzled rows."""
    for s, count, group in itertools.product(of_warps(fragment, whole), stages, (0, 4, 8, 16)):
        yield changed(s, stages=count, raster_group=group, swizzled=ahead, prefetch_fragments=ahead)


def tensor_core(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """The space of the strategy of that name, for the instructions that a GPU has for the operands."""
    yield from in_bulk(p, gpu)
    yield from copied(p, gpu, (3, 4, 6))


def in_bulk(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """By warpgroups, where bulk copies take what is in memory."""
    if gpu.target == "sm_90a" and takes(of_warpgroups(64, p), p.operand) and p.ready:
        yield from warpgroups(p, gpu)
        yield from sharing_sums(p, gpu)


def copied(p: Problem, gpu: Gpu, stages: Sequence[int]) -> Iterator[Schedule]:
    """By warps, whose threads copy."""
    match p.operand:
        case "f16" | "bf16" if gpu.capability >= 80:
            yield from warps((16, 32 if p.reduced else 8, 16), stages, whole=p.row_work > 0)
        case "f16":
            yield from warps((16, 16, 16), stages, ahead=False)
        case "f32" | "tf32" if gpu.capability >= 80:
            yield from warps((16, 8, 8), stages)
        case "i8" if gpu.capability >= 80:
            yield from warps((16, 8, 32), stages)
        case _:
            return


def tensor_core_else(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """What fits programs that the space does not: slower, or not known to be as fast.

    Results through shared memory, where what is done with them does not fit on fragments; fewer stages, where
    a program has several products; rows of operands copied in parts that divide them; WMMA.
    """
    whole = max(1, 16 // p.operand_bytes)
    width = gcd(whole, *p.rows)
    widest = width, width * p.operand_bytes >= SMALLEST_ASYNCHRONOUS
    copies = [widest] if widest == (1, False) else [widest, (1, False)]
    for s in in_bulk(p, gpu):
        if s.ping_pong == s.slices == 1:
            stages = sorted({2, 3, s.stages}, reverse=True)
            for epilogue, fewer in itertools.product(("shared", s.epilogue), stages):
                yield changed(s, stages=fewer, epilogue=epilogue, cluster=1, persistent_blocks=0)
    for _, same in itertools.groupby(copied(p, gpu, (6, 4, 3, 2)), lambda s: s.block):
        direct = list(same)
        yield from (changed(s, epilogue="shared") for s in direct)
        yield from direct
    if p.operand in ("f16", "bf16", "f32"):
        fragments = [f for f in ((16, 8, 16 if p.operand_bytes == 2 else 8),) if gpu.target != "sm_75"]
        fragments += [(16, 16, 16)] if p.operand == "f16" else []
        for fragment, (vector, asynchronous) in itertools.product(fragments, copies):
            wide = fragment != (16, 16, 16) and vector == whole
            for s, fewer, epilogue in itertools.product(of_warps(fragment), (2, 3), ("shared", "direct")):
                yield changed(
                    s, stages=fewer, swizzled=wide, vector=vector, cp_async=asynchronous, epilogue=epilogue
                )


WIDEST = 16  # bytes of a vector, and of what bulk copies move
SMALLEST_ASYNCHRONOUS = 4  # bytes of a copy past the registers
