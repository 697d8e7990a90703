"""Which programs are batches of small products, for which a block takes several of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Success
from rise.expr import Expr, Lambda
from rise.instructions import Family
from rise.types import SCALARS
from strategies.batches.fragments import COLUMNS, FRAGMENTS, ROWS
from strategies.batches.sizes import (
    BLOCKS,
    BULK,
    DIRECT,
    ELEMENTS,
    MANY,
    RUNS,
    TALL,
    THREADS,
    WARPS,
    Plan,
    Sizes,
)
from strategies.core import try_
from strategies.search.choice import Choice, Search
from strategies.search.space import Point

# Measured: for each multiprocessor, how many matrices are few, so that blocks for tiles of each are faster
# than one for all of it; where rows are whole chunks of 16 bytes, and where they are not.
FEW_WHOLE, FEW_TILES = 4, 1 / 3
# Measured: how many runs, of an odd number of elements or not, threads bring sooner than the copying unit.
FEW_RUNS = {True: 2.5, False: 8}
CHUNK, WIDEST, PAIR = (
    16,
    8,
    4,
)  # bytes: of whole rows; of a copy of others at most; of an asynchronous one at least
TILE, STEP = 32, 64  # rows and columns of a tile; terms of its sums at a time

WORKERS = {THREADS: "threads", WARPS: "a warp each", BLOCKS: "all of its warps"}


def batched(search: Search, program: Expr, single: bool = False) -> tuple[Choice, Success] | None:
    """The kernel of a closed program that is a batch of small products; None where it is none.

    single: also of few matrices, for which tiles of each are better where there are some
    """
    body = program
    while isinstance(body, Lambda):
        body = body.body
    found = try_(POINTWISE_EACH)(body)
    sizes = Sizes.of(found.term) if isinstance(found, Success) else None
    if sizes is None or not sizes.are_small:
        return None
    plan = sizes.plan()
    if not single and sizes.batch <= few(search, sizes, plan):
        return None
    if plan.by != THREADS and Family.MMA not in search.gpu.sustained:
        return None
    in_bulk = sizes.suit_bulk and Family.WGMMA in search.gpu.sustained
    bulk, others = tuple(copied_in_bulk(sizes)) if in_bulk else (), tuple(alternatives(plan))
    tiles = tuple(tiles_of_each(sizes)) if are_few_rows(search, sizes, plan) else ()
    points = (*tiles, *others, *bulk) if are_few_runs(search, sizes, plan) else (*bulk, *others)
    tried = ((point, search.attempt(point, program)) for point in points)
    point, result = next(((p, r) for p, r in tried if isinstance(r, Success)), (None, None))
    return None if point is None or result is None else (Choice(point, _reason(point, sizes, plan)), result)


def _reason(point: Point, sizes: Sizes, plan: Plan) -> str:
    many = "products" if sizes.batch == MANY else f"{sizes.batch} products"
    if point.strategy != "batch":
        return f"tiles of each matrix, since a batch of {many} is small"
    given = dict(point.parameters)
    taken = sizes.in_bulk() if given.get("operands") == BULK else plan
    count = given.get("count", taken.count)
    return f"{count} of a batch of {many} for each block, multiplied by {WORKERS[taken.by]}"


def few(search: Search, sizes: Sizes, plan: Plan) -> float:
    """How many matrices are so few that the tiles that the cost model chooses for each are faster."""
    if plan.by != BLOCKS:
        return 1
    return FEW_WHOLE * search.gpu.multiprocessors if are_chunks(sizes) else 0


def are_few_rows(search: Search, sizes: Sizes, plan: Plan) -> bool:
    """Whether tiles whose rows threads bring are faster. Other copies would need longer rows first."""
    return (
        plan.by == BLOCKS and not are_chunks(sizes) and sizes.batch <= FEW_TILES * search.gpu.multiprocessors
    )


def are_few_runs(search: Search, sizes: Sizes, plan: Plan) -> bool:
    """Whether threads bring matrices sooner, since few waves of blocks hide little of the latency.

    Rows of odd lengths come so only where the plan has pairs of elements stored at once.
    """
    odd = copied_at_once(sizes) < PAIR
    few_ = sizes.batch <= FEW_RUNS[odd] * search.gpu.multiprocessors
    return not are_chunks(sizes) and few_ and (not odd or plan.vector > 0)


def are_chunks(sizes: Sizes) -> bool:
    return copied_at_once(sizes, CHUNK) == CHUNK


def copied_at_once(sizes: Sizes, most: int = WIDEST) -> int:
    """The bytes of a row that one instruction may copy: a power of two of which all rows are multiples."""
    return gcd(most, *sizes.row_bytes)


def tiles_of_each(sizes: Sizes) -> Iterator[Point]:
    """Small tiles that warps multiply; several steps ahead, unless a step takes a thread many registers."""
    width, asynchronous = copied_at_once(sizes), copied_at_once(sizes) >= PAIR
    # of steps of half the length fewer terms may be zeros
    whole, halves = (-(-sizes.depth // step) * step for step in (STEP, STEP // 2))
    half = 4 * halves <= 3 * whole
    settings = {
        "block": (TILE, TILE, STEP // 2 if half else STEP),
        "warp": (TILE // 2, TILE // 2),
        "fragment": FRAGMENTS[sizes.operand],
        "stages": 3 if asynchronous or half else 2,
        "epilogue": DIRECT,
        "vector": width // SCALARS[sizes.operand].bytes,
        "cp_async": asynchronous,
    }
    yield Point.of("tensor_core", settings)


def copied_in_bulk(sizes: Sizes) -> Iterator[Point]:
    """The plan for matrices that the copying unit brings, then one with fewer registers for each warp."""
    yield Point.of("batch", {"operands": BULK})
    plan, half = sizes.in_bulk(), -(-sizes.columns // (2 * COLUMNS)) * COLUMNS
    rows = next(part for part in (2 * TALL[-1], *TALL) if (part, half) != (plan.rows, plan.columns))
    yield Point.of("batch", {"operands": BULK, "rows": rows, "columns": half})


def alternatives(plan: Plan) -> Iterator[Point]:
    """The plan, then variants of it, since each version of the compiler spills registers in other kernels."""
    yield Point.of("batch", {})
    if plan.by == BLOCKS and plan.operands == RUNS:
        yield Point.of("batch", {"operands": ELEMENTS, "count": 1})
    if plan.by == BLOCKS:
        yield Point.of("batch", {"rows": ROWS if plan.rows > ROWS else 2 * ROWS})
    yield Point.of("batch", {"count": 2 * plan.count})
    yield Point.of("batch", {"epilogue": DIRECT})
