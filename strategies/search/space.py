"""Which values of its parameters a strategy is tried with.

Most strategies declare them beside their parameters (`strategies.settings.searched`). For
`tensor_core` they depend on the problem and the GPU, and a model ranks them.

A space is an iterator of schedules (`strategies.matmul.schedule`), each made by changing another one: a new
parameter is a change here. A combination that cannot work is left out (`strategies.matmul.constraints`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import ceil, gcd
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from rise.errors import StrategyError, UsageError
from rise.frozen import Remembers, cached_property, changed, filled_at_once, hashed_once
from rise.instructions import takes
from strategies.matmul.constraints import (
    Resources,
    check,
    check_sizes,
    panel,
    pattern,
    resources,
    shared_bytes,
)
from strategies.matmul.schedule import PROMOTED, Schedule
from strategies.registry import catalogue, find, show_value
from strategies.search.cost import Cost, cost, least, memory_cycles, rounds, shared_by, tensor_cycles
from strategies.search.hardware import Gpu
from strategies.search.problem import Problem

Parameters = Mapping[str, Any]
Space = Callable[[Problem, Gpu], Iterator[Schedule]]


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Point(Remembers):
    """A strategy with values for its parameters."""

    strategy: str
    parameters: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, strategy: str, parameters: Parameters) -> Point:
        return cls(strategy, tuple(parameters.items()))

    @classmethod
    def read(cls, strategy: str, settings: Mapping[str, str]) -> Point:
        """From what `settings` gives. UsageError R0011 for what the strategy does not have."""
        known = {setting.name: setting for setting in find(strategy).settings}
        for name in settings:
            if name not in known:
                raise UsageError("R0011", f"the strategy `{strategy}` has no parameter `{name}`")
        return cls.of(strategy, {name: known[name].read(text) for name, text in settings.items()})

    @classmethod
    def by(cls, strategy: str, schedule: Schedule) -> Point:
        """With what a schedule changes."""
        point = cls.of(strategy, schedule.changes)
        vars(point)["schedule"] = schedule  # as `schedule` would make it again
        return point

    @property
    def settings(self) -> dict[str, str]:
        """As `--set` takes them."""
        return {name: show_value(value) for name, value in self.parameters}

    @cached_property
    def schedule(self) -> Schedule:
        """With what the strategy's own defaults say of the others."""
        kind = find(self.strategy).parameters
        own = kind if kind is not None and issubclass(kind, Schedule) else Schedule
        return own.of(dict(self.parameters))

    def __str__(self) -> str:
        return " ".join([self.strategy, *(f"{name}={text}" for name, text in self.settings.items())])


@filled_at_once
@dataclass(frozen=True, slots=True)
class Ranked:
    point: Point
    cost: Cost


# --- the space ------------------------------------------------------------------------------------------


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
SLOW = 1.3  # times the cost of the best
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
        tiles, sliced = p.batch * s.tiles(p.m, p.n, not p.open), slices(p, s.block[1], gpu)
        shared = s.epilogue == "shared"
        if s.ping_pong > 1 and (shared or tiles <= gpu.multiprocessors):
            continue
        for group, cluster in orders(p, s, clusters=sliced == [1] and (p.batch == 1 or p.scattered)):
            there = gpu.in_clusters(cluster)
            count = p.batch * changed(s, raster_group=group, cluster=cluster).tiles(p.m, p.n, not p.open)
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
                one = changed(one, promoted=promotion(p, one, gpu))
                yield one
                yield from whole_waves(p, one)


def promotion(p: Problem, s: Schedule, gpu: Gpu) -> int:
    """Bytes into the L2 cache at once: more where data choose matrices, and memory takes longest."""
    longest = rounds(p, s, gpu) * tensor_cycles(p, s, gpu)
    return MORE if memory_cycles(p, s, gpu) > longest else PROMOTED


def whole_waves(p: Problem, s: Schedule) -> Iterator[Schedule]:
    """Where data say how many matrices there are: those behind as many as fill waves, by finer tiles."""
    of_one, there, times = (
        s.tiles(p.m, p.n, not p.open),
        s.persistent_blocks,
        s.block[0] * s.block[1] / (p.m * FINER),
    )
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
    return ("direct", "rows" if p.scattered else "bulk")


def sharing_sums(p: Problem, gpu: Gpu) -> Iterator[Schedule]:
    """The same by clusters whose blocks share sums: only where there are fewer tiles than multiprocessors."""
    p = p.in_bulk
    for blocks in SHARING if p.batch * p.products == 1 else ():
        for s in shapes(p, gpu, ("shared",), blocks):
            few = s.tiles(p.m, p.n, not p.open) * blocks <= gpu.in_clusters(blocks)
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
    number = int("".join(filter(str.isdigit, gpu.target)))
    match p.operand:
        case "f16" | "bf16" if number >= 80:
            yield from warps((16, 32 if p.reduced else 8, 16), stages, whole=p.row_work > 0)
        case "f16":
            yield from warps((16, 16, 16), stages, ahead=False)
        case "f32" | "tf32" if number >= 80:
            yield from warps((16, 8, 8), stages)
        case "i8" if number >= 80:
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


NONE: Parameters = MappingProxyType({})
T = TypeVar("T")


def declared(strategy: str, fixed: Parameters = NONE) -> Iterator[Point]:
    """Every combination of the values that a strategy declares, those with few changes of its defaults first.

    A point names only what it changes, and the parameters that are fixed. UsageError R0032 where the strategy
    declares none.
    """
    settings = [s for s in find(strategy).settings if s.tried]
    tried = {s.name: [v for v in s.tried if v != s.default] for s in settings if s.name not in fixed}
    if not settings:
        known = ", ".join(f"`{name}`" for name in searchable())
        message = f"the search space of `{strategy}` is not defined"
        raise UsageError("R0032", message, hint=f"there are those of {known}")
    for count in range(len(tried) + 1):
        for names in itertools.combinations(tried, count):
            for values in itertools.product(*(tried[name] for name in names)):
                yield Point.of(strategy, {**fixed, **dict(zip(names, values, strict=True))})


def searchable() -> list[str]:
    """The strategies that have a space."""
    declare = (entry.name for entry in catalogue() if any(s.tried for s in entry.settings))
    return [*SPACES, *declare]


SPACES = {"tensor_core": tensor_core}
ELSE = {"tensor_core": tensor_core_else}


def space_of(strategy: str, spaces: Mapping[str, Space] = SPACES) -> Space:
    """UsageError R0032 where there is none."""
    if strategy not in spaces:
        known = ", ".join(f"`{name}`" for name in spaces)
        message = f"the cost model has no search space of `{strategy}`"
        raise UsageError("R0032", message, hint=f"there is {known}")
    return spaces[strategy]


def points(
    strategy: str, p: Problem, gpu: Gpu, spaces: Mapping[str, Space] = SPACES, fixed: Parameters = NONE
) -> Iterator[Point]:
    """Every member of the space of a strategy. UsageError R0032 without one.

    fixed: parameters that have these values whatever the space says of them
    """
    for s in space_of(strategy, spaces)(p, gpu):
        if fixed:
            yield Point.of(strategy, {**changed(s, **fixed).changes, **fixed})
        else:
            yield Point.by(strategy, s)


def refusal(point: Point, p: Problem, gpu: Gpu) -> StrategyError | None:
    """Why a point cannot be, before anything is derived."""
    schedule = point.schedule
    p = p.seen_by(schedule)
    try:
        check_sizes(schedule, p.sizes, p.along_k)
        check(schedule, gpu.limits, p.operand_bytes, p.along_k, p.result_bytes, p.beside)
        check_several(schedule, p, gpu)
        check_rows(schedule, p)
        check_reduced(schedule, p)
        check_beside(schedule, p)
    except StrategyError as error:
        return error
    return _contradiction(point)


@lru_cache(maxsize=1 << 14)
def _contradiction(point: Point) -> StrategyError | None:
    """Why a strategy does not take its parameters, whatever the problem and the GPU."""
    try:
        find(point.strategy).factory(**dict(point.parameters))
    except StrategyError as error:
        return error
    return None


def check_reduced(s: Schedule, p: Problem) -> None:
    """StrategyError R0609 where rows are reduced, and no fragment has whole sums of elements of theirs."""
    along = not s.swap_operands or p.turned
    if p.reduced and not (along and s.slices == 1 and s.epilogue != "shared"):
        message = "tensor_core: rows are reduced from the fragments of the result: no others share its sums"
        raise StrategyError("R0609", message, hint="use `epilogue=direct`, `split_k=1`, `split_cluster=1`")


def check_beside(s: Schedule, p: Problem) -> None:
    """StrategyError R0609 where rows are reduced beside a product, and no worker has them whole."""
    whole = s.warp[1] == s.block[1] and s.slices == s.slice_k == 1 and not s.swap_operands
    if p.row_work and not (whole and s.epilogue != "shared" and p.k % s.block[2] == 0):
        message = "tensor_core: rows of an operand are reduced by those who have these rows of the result"
        hint = "use warps of all columns of a block, steps that divide k, and `epilogue=direct`"
        raise StrategyError("R0609", message, hint=hint)


def check_rows(s: Schedule, p: Problem) -> None:
    """StrategyError R0604 where threads copy vectors that do not divide the rows of an operand.

    Bulk copies take longer copies of such operands, which are made by a kernel before.
    """
    vector = min(s.vector, WIDEST // p.operand_bytes)
    for row in p.rows if not s.uses_wgmma else ():
        if row % vector:
            raise StrategyError("R0604", f"tensor_core: vector: {vector} does not divide rows of {row}")


def check_several(s: Schedule, p: Problem, gpu: Gpu) -> None:
    """StrategyError R0621 where the tiles and sums of all products of a program do not fit together."""
    if p.products == 1:
        return
    all_, limits = needed(s, p), gpu.limits
    if all_.shared_bytes > limits.shared_bytes or all_.registers > limits.room(s, all_.threads):
        raise StrategyError("R0621", f"tensor_core: {p.products} products do not fit into a block together")


def cost_of(s: Schedule, p: Problem, gpu: Gpu) -> Cost:
    return cost(p.seen_by(s), s, gpu)


def candidates(strategy: str, p: Problem, gpu: Gpu, count: int, fixed: Parameters = NONE) -> Iterator[Ranked]:
    """All of them, in the order in which they are tried: the first `count` of the model, as `varied` says.

    Then the others that it ranks, and last what fits where none of these does.
    """
    found = best_first(strategy, p, gpu) if not fixed else ranked(strategy, p, gpu, fixed=fixed)
    first = varied(found, count)
    return itertools.chain(first, (one for one in found if one not in first), _else(strategy, p, gpu, fixed))


def _else(strategy: str, p: Problem, gpu: Gpu, fixed: Parameters) -> Iterator[Ranked]:
    """Ranked when the first of them is read."""
    yield from ranked(strategy, p, gpu, ELSE, fixed)


def ranked(
    strategy: str, p: Problem, gpu: Gpu, spaces: Mapping[str, Space] = SPACES, fixed: Parameters = NONE
) -> Sequence[Ranked]:
    """All legal points, the best first; of equals, the one that is written first."""
    if spaces is SPACES and not fixed:
        return list(best_first(strategy, p, gpu))
    # what differed in what is fixed, or is not tried here, is the same now
    several = dict.fromkeys(points(strategy, p, gpu, spaces, fixed))
    return sorted(_priced(several, p, gpu), key=lambda r: r.cost.cycles)


def _priced(several: Iterable[Point], p: Problem, gpu: Gpu) -> Iterator[Ranked]:
    """Those that are legal, with what they cost."""
    legal = (point for point in several if refusal(point, p, gpu) is None)
    return (Ranked(point, cost_of(point.schedule, p, gpu)) for point in legal)


def has_faster(strategy: str, p: Problem, gpu: Gpu, cycles: float) -> bool:
    """Whether the model expects some schedule to take less: mostly one of the first that are looked at."""
    may_be = (Point.by(strategy, s) for s in _members(strategy, p, gpu) if bound_of(s, p, gpu) < cycles)
    return any(one.cost.cycles < cycles for one in _priced(may_be, p, gpu))


class Remembered(Generic[T]):
    """What an iterator gives, which is asked for only once, and only as far as somebody wants to know."""

    def __init__(self, rest: Iterator[T]) -> None:
        self._known: list[T] = []
        self._rest = rest

    def __iter__(self) -> Iterator[T]:
        for number in itertools.count():
            if number == len(self._known):
                one = next(self._rest, None)
                if one is None:
                    return
                self._known.append(one)
            yield self._known[number]


@lru_cache(maxsize=4)
def best_first(strategy: str, p: Problem, gpu: Gpu) -> Iterable[Ranked]:
    """What `ranked` gives, of which several strategies ask for the first, for one program."""
    return Remembered(_in_order(strategy, _members(strategy, p, gpu), p, gpu))


def _members(strategy: str, p: Problem, gpu: Gpu) -> Iterable[Schedule]:
    """The members of a space, which is the same whatever is in front."""
    return _known_members(strategy, replace(p, in_front=0), gpu)


@lru_cache(maxsize=2)
def _known_members(strategy: str, p: Problem, gpu: Gpu) -> Iterable[Schedule]:
    return Remembered(space_of(strategy)(p, gpu))


def _in_order(strategy: str, several: Iterable[Schedule], p: Problem, gpu: Gpu) -> Iterator[Ranked]:
    """The legal ones, the best first: priced when their bound is the least, and judged when their price is.

    Most have a bound above the price of those that anybody asks for.
    """
    heap: list[tuple[float, int, Schedule, Cost | None]] = [
        (bound_of(s, p, gpu), number, s, None) for number, s in enumerate(several)
    ]
    heapify(heap)
    while heap:
        _, number, s, price = heappop(heap)
        if price is None:
            price = cost_of(s, p, gpu)
            heappush(heap, (price.cycles, number, s, price))
            continue
        point = Point.by(strategy, s)
        if refusal(point, p, gpu) is None:
            yield Ranked(point, price)


def bound_of(s: Schedule, p: Problem, gpu: Gpu) -> float:
    """Cycles, which are not more than the cost of a schedule has."""
    return least(p.seen_by(s), s, gpu)


def varied(found: Iterable[Ranked], count: int, each: int = 2) -> list[Ranked]:
    """The best `count`, with at most `each` of one tile while there are others: the model is approximate.

    One of several points with the same tile and the same cost is enough. At least one candidate whose
    warpgroups share a tile and one with ping-pong are among them, unless they are slow.
    """
    seen: Counter[tuple[Any, ...]] = Counter()
    first: list[Ranked] = []
    later: list[Ranked] = []
    for one in found:
        s = one.point.schedule
        ways = (s.warp_specialised, s.ping_pong, s.swap_operands, s.ahead)
        tile = (s.block, s.warp, s.split_k, s.split_cluster, *ways)
        same = (tile, one.cost.cycles)
        (later if seen[same] or seen[tile] >= each else first).append(one)
        seen[tile] += 1
        seen[same] += 1
        if len(first) == count:
            break
    chosen = [*first, *later][:count]
    for turns in (False, True):
        missing = all((one.point.schedule.ping_pong > 1) != turns for one in chosen)
        if missing and len(chosen) > 1:
            quick = itertools.takewhile(lambda one: one.cost.cycles < SLOW * chosen[0].cost.cycles, found)
            best = (one for one in quick if (one.point.schedule.ping_pong > 1) == turns)
            chosen[-1] = next(best, chosen[-1])
    return chosen
