"""The cost of a schedule of products, in cycles, by which schedules are ranked before the best are timed.

A roofline for each tile: tensor cores, shared memory, the L2 cache, and how long a tile of operands takes to
come; then waves of tiles, with what nothing overlaps at their ends. The form is DeepGEMM's (its heuristics
for sm_90), with the time that copies take added and the rates of `hardware`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import ceil, floor, sqrt

from rise.frozen import filled_at_once
from rise.instructions import MOST_SUMS, Family, family
from strategies.matmul.constraints import PARTIAL, PATTERNS, finer, panel, resources
from strategies.matmul.schedule import WITHOUT_REST, Schedule
from strategies.search.hardware import Gpu
from strategies.search.problem import Problem

SECOND_KERNEL = 7500  # cycles: the sums of slices leave one kernel and enter the next; measured
# cycles from the end of a kernel to the products of the next, which is launched early; measured
BOUNDARY = 4000
# of a kernel in front that runs beside a product's first tiles: the bytes that its warps read at once on a
# multiprocessor, cycles for these besides the latency, and shared memory of a block and what it is given in
FRONT_READS, FRONT_ROUND, FRONT_SHARED = 4 * 32 * 64, 250, 2048
EMPTY = 6000  # cycles that a second kernel takes, were there nothing left for it to do; measured
# of a tile's time, where blocks of a cluster wait for each other: of two, of more with several tiles each, of
# tiles that data choose; measured
SYNCHRONISATION, OF_MANY, OF_CHOSEN = 0.01, 0.3, 0.05
# cycles for each step of blocks in clusters that have one tile each: until all have freed a slot; measured
CLUSTER_STEP = 20
# of the time for the cache: how much longer such blocks take, so many side by side, if they load other tiles
# than their neighbours; measured
APART, NEIGHBOURS = 0.05, 32
# the same where one of two blocks has a tile behind the end, if tiles have up to 128 × 128 results; measured
UNMATCHED, SMALL = 0.2, 128 * 128
# cycles: the blocks of a cluster start together, and none ends before the others; measured
CLUSTER_START = 1350
MEETING = 2000  # cycles: blocks that share sums wait for the last of them, twice; measured
EXPOSED = 0.3  # of the time that it takes to read a matrix, where it is loaded ahead: measured
BETWEEN = 1.6  # slow-down of memory where an operand of the epilogue is read between writes
AT_ONCE = 1.4  # the same, where all warpgroups do so at once and results leave a cache so FILLED: measured
FILLED = 2 / 3
LOCKSTEP = 0.12  # of a tile's time, for each after the third, where all warpgroups stop at its end
STOP = 5000  # cycles: of that the most
NARROW = 1.6  # times as long, where rows are as short as the shortest pattern
REREAD = 1.5  # times as long, where operands are read from memory again: copies wait for them; measured
LINE = 128  # bytes of the L2 cache that are read at once
PART_OF_LINE = 1.1  # times as many, where parts that start inside of lines are shorter than a line: measured
AGAIN = 0.6  # of the time for a line, for each further part of it: measured
REQUEST = 2  # cycles of a multiprocessor for each line of which it asks for bytes, however few: measured
# cycles of a step whose operands are computed on their way through registers, and for each byte of a thread's
# part; measured at 32×32 and 64×64, where such kernels took 2 to 3.5 times what was expected
COMPUTED_STEP, COMPUTED_BYTE = 300, 15
# cycles for each element of the first operand's tile whose rows are reduced beside the product, and for each
# operation on it; so many times as many where one worker multiplies alone; what part of tensor cores' time
# hides some of them: measured
BESIDE, BESIDE_ALONE, BESIDE_HIDDEN = 0.0088, 1.4, 0.1
WARPS = 1.8  # times as long, with instructions of warps: measured at 32×64 and 64×64, on H200
LOW = 1.06  # times as long, for warpgroups with a tile each of only 64 rows
FEW_COLUMNS = 512  # of matrices whose order is that of tiles
WIDEST = 16  # bytes of which rows that bulk copies take are multiples
SOFT, HARDER = 4, 8  # the powers of the soft maximum: of what a tile waits for; of that and the memory
# power limits the clock of warpgroups' products that take so many cycles: how much longer they take then, and
# which part of the time for shared memory still counts; measured
STEADY, POWERED, BESIDE_POWERED = 80_000, 1.15, 0.85
ROUNDED = 1e-9  # more than roundings change of a cost
SECTOR = 32  # bytes that memory writes at least
CHOSEN = 1.6  # times as long, where data choose the matrices of tiles one by one; measured
SPREAD = 2  # times the root of a number of groups: how far what is missing of them is from the mean, at most
TENSOR_CORES = 4  # of a multiprocessor
# cycles of a multiprocessor for each result that is stored by itself: by the threads of a warp next to each
# other in a row, or by the lanes that have it in a fragment; measured
BY_ROWS, BY_LANES = 0.15, 1.0
# times as long as in whole rows, where functions of elements are computed on fragments of these; measured
ON_FRAGMENTS = 2
LANES = 128  # of a multiprocessor, each with an operation a cycle
ALONE = 0.88  # of the rate of tensor cores, for one warpgroup that multiplies without another beside it


@filled_at_once
@dataclass(frozen=True, slots=True)
class Cost:
    """cycles: of the whole, by which schedules are ranked; the rest explains it.

    tiles, waves: of the result; how often a multiprocessor takes one. efficiency: of the last wave, in all
    bound: what a tile waits for most: `tensor`, `shared`, `l2`, `latency`; `memory` for all of them together
    """

    cycles: float
    tiles: int
    waves: int
    efficiency: float
    bound: str


UNKNOWN = Cost(0.0, 0, 0, 0.0, "unknown")  # where no model knows the program


# the cost of a schedule asks for these several times
of_one_schedule = lru_cache(maxsize=1)


def tiles_of_one(p: Problem, s: Schedule) -> int:
    """Those of one matrix of the result."""
    return s.tiles(p.m, p.n, not p.open)


@of_one_schedule
def tiles(p: Problem, s: Schedule) -> int:
    """⌈m/BM⌉·⌈n/BN⌉ of each matrix, in whole groups and clusters, for each slice of k."""
    return p.batch * tiles_of_one(p, s) * s.slices


def waves(p: Problem, s: Schedule, gpu: Gpu) -> int:
    """How many tiles the busiest multiprocessor computes, one after the other."""
    return ceil(tiles(p, s) / workers(s, gpu))


def rounds(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """The same, or what it is in the mean where data say how many tiles there are, about so many."""
    if not p.scattered or s.rest != WITHOUT_REST:
        return waves(p, s, gpu)
    there = workers(s, gpu)
    of_one = tiles(p, s) / p.batch
    spread = min(of_one * deviation(p) / there, 1 / 2) if p.missing else 1 / 2
    middle = tiles(p, s) / there
    return (_begun(middle + spread) - _begun(max(middle - spread, 0.0))) / (2 * spread)


def deviation(p: Problem) -> float:
    """By how many matrices there may be more, or fewer, than are expected where data say how many have rows.

    Of each group half of its last one is missing in the mean, so twice as many as are missing are last ones.
    What is missing of each differs, so the sum does by about the root of their number.
    """
    return SPREAD * sqrt(2 * p.batch * p.missing)


def _begun(x: float) -> float:
    """∫⌈t⌉dt from 0 to x."""
    whole = floor(x)
    return whole * (whole + 1) / 2 + (x - whole) * (whole + 1)


def workers(s: Schedule, gpu: Gpu) -> int:
    """Multiprocessors that compute: of a persistent grid not more than it has blocks."""
    there = gpu.in_clusters(s.cluster * s.split_cluster)
    return min(s.persistent_blocks or there, there)


@of_one_schedule
def busy(p: Problem, s: Schedule, gpu: Gpu) -> int:
    """How many multiprocessors compute at a time."""
    return min(workers(s, gpu), tiles(p, s))


def wave_efficiency(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Useful work over what the waves could do: m·n/(waves·SMs·BM·BN); the table of hopper.md §2.5."""
    room = waves(p, s, gpu) * gpu.multiprocessors * s.block[0] * s.block[1]
    return p.batch * p.m * p.n * s.slices / room


def depth(p: Problem, s: Schedule) -> float:
    """How much of k a tile sums up."""
    return p.k / s.slices


def tensor_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """BM·BN·K products at the rate that the instructions reach for long; of wider elements as many fewer.

    A warp uses one of the four tensor cores of a multiprocessor, a warpgroup all of them. Of rows that are
    missing in the mean, warpgroups beside each other do without half.
    """
    rate = gpu.macs * 2 / p.operand_bytes * gpu.sustained.get(family(s.fragment) or Family.WMMA, 0.3)
    if not s.uses_wgmma:
        rate *= min(1, s.workers * resident(p, s, gpu) / TENSOR_CORES)
    elif s.workers * resident(p, s, gpu) == 1:
        rate *= ALONE
    beside = s.uses_wgmma and s.ping_pong == 1 and s.block[0] > s.warp[0]
    needed = 1 - p.missing / 2 if beside else 1
    return s.block[0] * s.block[1] * depth(p, s) * needed / rate


def shared_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Tiles written once, K·es·(BM+BN), and read by parts: each reads its own rows, and all of its columns.

    A part is a warp's; a product of a warpgroup reads shared memory itself, so there it is a fragment.
    """
    bm, bn, _ = s.block
    wm, wn = s.fragment[:2] if s.uses_wgmma else s.warp
    reads = (bm / wm) * (bn / wn) * (wm + wn)
    first, second = loaded(p)
    moved = depth(p, s) * p.operand_bytes * (first * bm + second * bn + reads)
    narrow = any(width == PATTERNS[-1] for width in patterns(p, s).values())
    return moved / gpu.shared_rate * (NARROW if narrow else 1)


def patterns(p: Problem, s: Schedule) -> dict[int, int]:
    """The bytes of the rows in which operands across k are copied for warpgroups, by operand."""
    across = [index for index in (0, 1) if s.uses_wgmma and not p.along_k[index]]
    return {index: panel(s.block[index], p.operand_bytes) * p.operand_bytes for index in across}


def requests(p: Problem, s: Schedule, index: int) -> float:
    """How many lines of the L2 cache a tile of an operand reads from, for each element along k.

    Tiles are copied in parts of their rows, as long as a line or as the pattern in shared memory: a line of
    parts is asked for AGAIN. Where rows start inside of lines, so do parts, and some take bytes of two.
    """
    length, row = s.block[index] * p.operand_bytes, p.rows[index] * p.operand_bytes
    width = patterns(p, s).get(index, LINE)
    if row % LINE == 0 or row % WIDEST:  # the latter are copied to longer rows
        return length / LINE * (1 + AGAIN * (LINE / width - 1))
    return length / width * touched(row, width) * (PART_OF_LINE if width < LINE else 1)


@cache
def touched(row: int, width: int) -> float:
    """Of how many lines a part of so many bytes has some, in the mean, in rows of so many."""
    starts = [i * row + j * width for i in range(LINE // WIDEST) for j in range(LINE // width)]
    return sum(ceil((start % LINE + width) / LINE) for start in starts) / len(starts)


def sharing(p: Problem, s: Schedule) -> tuple[int, int]:
    """How many blocks load a tile of the first operand together, and how many one of the second."""
    return shared_by(p, s.block, s.raster_group, s.cluster)


def shared_by(p: Problem, block: tuple[int, int, int], group: int, cluster: int) -> tuple[int, int]:
    """The same for clusters of so many blocks, in groups of so many rows of tiles.

    The blocks of a cluster are neighbours in raster order: of a row of tiles where groups have one row, else
    of a column. Each loads a part, which has whole atoms of the pattern.
    """
    atoms = 8 * cluster
    if group <= 1:
        return (cluster, 1) if block[0] % atoms == 0 else (1, 1)
    long = block[1 if p.along_k[1] else 2]
    return (1, cluster) if group % cluster == 0 and long % atoms == 0 else (1, 1)


def loaded(p: Problem) -> tuple[float, float]:
    """For which part of k tiles of first and of second operands are loaded: for less than all if shared."""
    first, second = p.operands
    return first / p.products, second / p.products


def l2_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """K·es·(BM/a + BN/b) from the cache, where a and b blocks share a tile, and what its lines take."""
    first, second = (part / count for part, count in zip(loaded(p), sharing(p, s), strict=True))
    # half of the last tiles of groups, twice as many as are missing, are loaded by half
    parts = [first * (1 - p.missing / 2) if s.short_tiles else first, second]
    moved = sum(part * s.block[index] for index, part in enumerate(parts)) * p.operand_bytes
    asked = sum(part * requests(p, s, index) for index, part in enumerate(parts))
    line = max(REQUEST, busy(p, s, gpu) * LINE / gpu.l2_rate)
    cycles = depth(p, s) * max(moved / port(p, s, gpu), line * asked)
    return cycles * (1 if is_in_order(p, s) else CHOSEN)


def is_in_order(p: Problem, s: Schedule) -> bool:
    """Whether tiles side by side share operands, also where data choose their matrices.

    Where each matrix has few columns, the order that data say is that of tiles, too; and so it is where
    matrices have a part of their rows, which are groups in this order.
    """
    few = tiles_of_one(p, s) == s.cluster or p.n <= FEW_COLUMNS
    return not p.scattered or s.raster_matrices > 1 or few or p.missing > 0


def port(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Bytes a cycle between the L2 cache and a multiprocessor, where all multiprocessors load as many."""
    return min(gpu.l2_port, gpu.l2_rate / busy(p, s, gpu))


def latency_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """K/BK steps that each wait for their tile: one is consumed, one is given back, the rest is under way."""
    ahead = max(s.stages - 2, 0) + 0.5
    return depth(p, s) * p.folds / p.products / s.block[2] * gpu.latency / (ahead * resident(p, s, gpu))


def computed_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Of threads that load operands, compute them and store them, which no asynchronous copy does."""
    if not p.computed:
        return 0.0
    needed = resources(s, p.operand_bytes, p.along_k, p.result_bytes, beside=p.beside)
    part = (s.block[0] + s.block[1]) * s.block[2] * p.operand_bytes / needed.threads
    steps = depth(p, s) / s.block[2]
    return steps * (COMPUTED_STEP + COMPUTED_BYTE * part) / resident(p, s, gpu)


def beside_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Of workers that reduce the rows of the first operand's tiles, each time that these are loaded."""
    if not p.row_work:
        return 0.0
    alone = s.workers * resident(p, s, gpu) == s.ping_pong
    each = BESIDE * (1 + p.row_work) * (BESIDE_ALONE * s.ping_pong if alone else 1)
    computed = each * s.block[0] * depth(p, s)
    return max(0.0, computed - BESIDE_HIDDEN * tensor_cycles(p, s, gpu))


def front_cycles(p: Problem, s: Schedule, gpu: Gpu, tile: float) -> float:
    """Until a small kernel in front is done: beside the first products, where these leave it room."""
    if not p.in_front:
        return 0.0
    reads = ceil(p.in_front / (FRONT_READS * gpu.multiprocessors))
    alone = reads * (gpu.latency + FRONT_ROUND)
    return BOUNDARY + (max(alone - tile, 0.0) if leaves_room(p, s, gpu) else alone)


def leaves_room(p: Problem, s: Schedule, gpu: Gpu) -> bool:
    """Whether a small block of another kernel runs well on each multiprocessor beside those of a schedule.

    Beside warpgroups that take turns it costs nearly as much as in front of them: measured.
    """
    needed = resources(s, p.operand_bytes, p.along_k, p.result_bytes, products=p.products, beside=p.beside)
    shared = needed.shared_bytes + 1024 + FRONT_SHARED
    together = s.warp_specialised and s.ping_pong == 1
    return together and needed.accumulators <= MOST_SUMS and shared <= gpu.shared


@of_one_schedule
def resident(p: Problem, s: Schedule, gpu: Gpu) -> int:
    """Blocks that share a multiprocessor, as far as there are so many."""
    needed = resources(s, p.operand_bytes, p.along_k, p.result_bytes, beside=p.beside)
    registers = min(gpu.limits.thread_registers, 8 + 2 * needed.accumulators) * needed.threads
    fit = min(
        gpu.shared // max(needed.shared_bytes + 1024, 1), gpu.limits.registers // registers,
        2 * gpu.limits.threads // needed.threads, ceil(tiles(p, s) / gpu.multiprocessors),
    )  # fmt: skip
    return 1 if s.persistent_blocks else max(fit, 1)


def epilogue_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """BM·BN results through the L2 cache, what is added from memory; results in shared memory as well.

    Stored from fragments, four lanes have a row's neighbours: of 16-bit elements half a sector of the cache.
    """
    size = PARTIAL if s.split_k > 1 else p.result_bytes
    sector = 2 if s.epilogue == "direct" and size < PARTIAL else 1
    added = 0 if s.split_k > 1 else p.added_bytes
    each = {"shared": 4, "bulk": size, "rows": size}.get(s.epilogue, 0)
    at_once = AT_ONCE if s.ping_pong == 1 and once(p) > FILLED * gpu.l2_bytes else 1
    read = BETWEEN * at_once * added * busy(p, s, gpu) / gpu.dram_rate
    if s.ahead:
        read = EXPOSED * read + 2 * added / gpu.shared_rate
    computed = p.work / LANES if s.split_k == 1 else 0
    stored = size * sector / port(p, s, gpu) + of_sectors(p, s, gpu)
    if p.by_elements and s.epilogue != "shared":
        computed *= ON_FRAGMENTS
    if p.by_elements and s.split_k == 1:
        stored += BY_LANES if s.epilogue == "direct" else BY_ROWS
    finished = (computed + read + stored) / s.split_cluster
    return gpu.latency + s.block[0] * s.block[1] * (finished + 2 * each / gpu.shared_rate + exchanged(s, gpu))


def of_sectors(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Cycles for an element of a tile whose rows begin in a sector that the tile before ends in.

    Memory keeps only whole sectors, so what is there is read first. Where rows of the result do not begin in
    whole sectors, all tiles have such rows. Of swapped operands the rows of a tile are columns of the result.
    """
    width, row = (s.block[0], p.m) if s.swap_operands else (s.block[1], p.n)
    parted = width < row and width * p.result_bytes % SECTOR > 0 == row * p.result_bytes % SECTOR
    return p.result_bytes * busy(p, s, gpu) / gpu.dram_rate if parted and s.split_k == 1 else 0.0


def interrupted(p: Problem, s: Schedule, gpu: Gpu, tile: float) -> float:
    """Cycles that products wait for tiles behind that of a matrix ahead, beyond what the ring has by then."""
    if not s.ahead:
        return 0.0
    brought = s.block[0] * s.block[1] * p.added_bytes * busy(p, s, gpu) / gpu.dram_rate
    covered = max(s.stages - 2, 0) * tile * s.block[2] / depth(p, s)
    return max(brought - covered, 0)


def unmatched(p: Problem, s: Schedule) -> float:
    """Of a tile's time: how much longer both blocks of a cluster take where one has no part of the result."""
    behind = tiles_of_one(p, s) > ceil(p.m / s.block[0]) * ceil(p.n / s.block[1])
    alone = s.cluster == 2 and behind and not s.persistent_blocks
    return UNMATCHED * min(1, SMALL / (s.block[0] * s.block[1])) if alone else 0.0


def apart(p: Problem, s: Schedule) -> float:
    """Which part of what NEIGHBOURS in raster order load differs, beyond the least that an order could have.

    Blocks side by side that ask the cache for the same bytes are answered together.
    """
    bm, bn, _ = s.block
    down, across = ceil(p.m / bm), ceil(p.n / bn)
    group = min(max(s.raster_group, 1), down)
    more = loaded_side_by_side(down, across, bm, bn, group) - least_side_by_side(down, across, bm, bn)
    return more / (min(NEIGHBOURS, down * across) * (bm + bn))


def loaded_side_by_side(down: int, across: int, bm: int, bn: int, group: int) -> int:
    """Rows and columns of operands that NEIGHBOURS load, in groups of so many rows of tiles."""
    together = min(NEIGHBOURS, down * across)
    rows, columns = min(group, together), min(across, ceil(together / group))
    return max(rows, ceil(together / columns)) * bm + columns * bn


@cache
def least_side_by_side(down: int, across: int, bm: int, bn: int) -> int:
    """The same in the best of all groups."""
    groups = range(1, min(down, NEIGHBOURS, down * across) + 1)
    return min(loaded_side_by_side(down, across, bm, bn, group) for group in groups)


def exchanged(s: Schedule, gpu: Gpu) -> float:
    """Cycles for an element of a tile whose sums a cluster shares: a block reads all parts of some."""
    return PARTIAL / gpu.cluster_rate if s.split_cluster > 1 else 0.0


def once(p: Problem) -> int:
    """The bytes of operands, of what is added and of results, each counted once."""
    operands = p.batch * (p.m + p.n) * p.k * p.operand_bytes
    return operands + p.batch * p.m * p.n * (p.result_bytes + p.added_bytes)


def memory_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """A, B and D through memory once; operands again with every wave that leaves the cache.

    Matrices that are multiplied several times are read once: neighbours in the list have the same.
    """
    operands = p.batch * (p.m + p.n) * p.k * p.operand_bytes
    result = p.batch * p.m * p.n * (p.result_bytes + p.added_bytes)
    several = 0 < p.input_bytes < operands
    if several:
        operands = p.input_bytes
    if operands > gpu.l2_bytes and not (several and p.batch > 1):
        rows, columns = footprint(p, s, gpu)
        first, second = loaded(p)
        wave = (first * rows * s.block[0] + second * columns * s.block[1]) * depth(p, s) * p.operand_bytes
        again = wave * tiles(p, s) / gpu.multiprocessors - operands
        operands += int(REREAD * max(again, 0))
    return (operands + result) / gpu.dram_rate


def footprint(p: Problem, s: Schedule, gpu: Gpu) -> tuple[float, float]:
    """Rows and columns of tiles that one wave of tiles covers: row by row, or in groups of rows."""
    down, across = ceil(p.m / s.block[0]), ceil(p.n / s.block[1])
    if s.raster_group:
        columns = min(across, gpu.multiprocessors / min(s.raster_group, down))
        return min(down, gpu.multiprocessors / columns), columns
    return min(down, ceil(gpu.multiprocessors / across)), min(across, gpu.multiprocessors)


def addition_cycles(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """Of split-K: a kernel that reads the sums of all slices and writes the result."""
    if s.split_k == 1:
        return 0.0
    moved = p.batch * p.m * p.n * (s.split_k * PARTIAL + p.result_bytes + p.added_bytes)
    fits = moved < gpu.l2_bytes
    return SECOND_KERNEL + moved / (gpu.l2_rate if fits else gpu.dram_rate)


def is_powered(p: Problem, s: Schedule, gpu: Gpu) -> bool:
    """Whether warpgroups multiply for so long, and so much of the time, that power limits the clock."""
    products = p.batch * p.products * p.m * p.n * p.k
    long = products > STEADY * gpu.multiprocessors * gpu.macs * 2 / p.operand_bytes
    return s.uses_wgmma and long and is_in_order(p, s)


def waiting(p: Problem, s: Schedule, gpu: Gpu, count: float) -> float:
    """Of a tile's time: how long blocks of a cluster, with so many tiles each, wait for each other."""
    if p.scattered and s.cluster > 1:
        return OF_CHOSEN
    if s.cluster > 2 and count > 1:
        return OF_MANY
    return SYNCHRONISATION if s.cluster > 1 and not is_powered(p, s, gpu) else 0


def of_limits(limits: Mapping[str, float], p: Problem, s: Schedule, gpu: Gpu) -> float:
    """The soft maximum, (Σ xⁿ)^(1/n), of what a tile waits for: of limits that are close each is felt."""
    power = SOFT
    if is_powered(p, s, gpu):
        limits = {
            **limits, "tensor": limits["tensor"] * POWERED, "shared": limits["shared"] * BESIDE_POWERED
        }  # fmt: skip
        power = HARDER if s.ping_pong > 1 else SOFT
    return float(sum(x**power for x in limits.values()) ** (1 / power))


def least(p: Problem, s: Schedule, gpu: Gpu) -> float:
    """A lower bound on the cost, in cycles: products at full speed, shared memory, results.

    It is quick to compute and excludes most schedules. The time of the cache and of memory is left out.
    """
    p = _first(p, s)
    rate = gpu.macs * 2 / p.operand_bytes * gpu.sustained.get(family(s.fragment) or Family.WMMA, 0.3)
    products = s.block[0] * s.block[1] * depth(p, s) / rate
    tile = of_limits({"tensor": products, "shared": shared_cycles(p, s, gpu)}, p, s, gpu)
    count = rounds(p, s, gpu)
    epilogues = 1 + (count - 1) / (4 if count > 1 else 1)
    total = count * tile * (1 if s.uses_wgmma else WARPS) + epilogues * epilogue_cycles(p, s, gpu)
    return total * (1 - ROUNDED)


def cost(p: Problem, s: Schedule, gpu: Gpu) -> Cost:
    """That of the kernel, or of both where the last matrices of an array have finer tiles."""
    if s.rest == WITHOUT_REST:
        return of_kernel(p, s, gpu)
    first = of_kernel(_first(p, s), s, gpu)
    # where fewer are expected, there may be one all the same; those behind share operands as the others do
    count = max(p.batch - s.rest[0], 1)
    left = replace(p, batch=count, input_bytes=p.input_bytes * count // p.batch)
    rest = of_kernel(left, finer(s, p.operand_bytes, p.along_k), gpu)
    second = rest.cycles + EMPTY - gpu.fill  # which both have in them
    return replace(first, cycles=first.cycles + second, tiles=first.tiles + rest.tiles)


def _first(p: Problem, s: Schedule) -> Problem:
    """The matrices whose tiles are as large as `block`."""
    return p if s.rest == WITHOUT_REST else replace(p, batch=min(p.batch, s.rest[0]))


def of_kernel(p: Problem, s: Schedule, gpu: Gpu) -> Cost:
    """waves · max(tensor, shared, L2, latency) + what is not overlapped, and not less than memory takes.

    A wave ends with its epilogue and begins with an empty pipeline, unless another block of the
    multiprocessor computes meanwhile, or another warpgroup that takes its turn. A persistent grid with
    roles fills the pipeline once.
    """
    parts = {
        "tensor": tensor_cycles(p, s, gpu), "shared": shared_cycles(p, s, gpu),
        "l2": l2_cycles(p, s, gpu), "latency": latency_cycles(p, s, gpu),
    }  # fmt: skip
    bound = max(parts, key=lambda name: parts[name])
    count, together = rounds(p, s, gpu), resident(p, s, gpu)
    tile = of_limits(parts, p, s, gpu)
    tile *= 1 + waiting(p, s, gpu, count)
    tile *= 1 + unmatched(p, s)
    if count == 1:
        tile += CLUSTER_STEP * depth(p, s) / s.block[2] if s.cluster > 1 else 0
        tile += APART * apart(p, s) * parts["l2"]
    tile += interrupted(p, s, gpu, tile)
    tile *= 1 if s.uses_wgmma else WARPS
    tile += computed_cycles(p, s, gpu) + beside_cycles(p, s, gpu)
    tile += MEETING if s.split_cluster > 1 else 0
    tile *= LOW if s.ping_pong > 1 and s.block[0] == s.fragment[0] else 1
    fills = 1 if s.persistent_blocks and s.warp_specialised else count / together
    # single results keep the cache busy, whoever else computes meanwhile
    hidden = together * s.ping_pong > 1 and not p.by_elements
    epilogues = 1 + (count - 1) / (4 if hidden else 1)
    # blocks whose tiles data choose are not in step
    stops = 0 if hidden or p.scattered else min(LOCKSTEP * tile, STOP) * max(count - 3, 0)
    epilogue = epilogue_cycles(p, s, gpu)
    busy = count * tile + stops + fills * gpu.fill + epilogues * epilogue
    busy += CLUSTER_START if s.cluster * s.split_cluster > 1 else 0
    busy += front_cycles(p, s, gpu, tile)
    memory = memory_cycles(p, s, gpu) + p.in_front / gpu.dram_rate + gpu.fill
    # memory has little to do while everybody stores results; CHOSEN has that in it
    memory += 0 if hidden or not is_in_order(p, s) else epilogues * epilogue
    total = (busy**HARDER + memory**HARDER) ** (1 / HARDER) + addition_cycles(p, s, gpu)
    # of schedules that are equal otherwise, the one that moves less
    total += memory / 100
    which = bound if busy >= memory else "memory"
    return Cost(total, tiles(p, s), waves(p, s, gpu), wave_efficiency(p, s, gpu), which)
