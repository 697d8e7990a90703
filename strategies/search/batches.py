"""Which programs are batches of small products, for which a block takes several of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rewrites.result import Success
from rise.expr import Expr, Lambda
from rise.instructions import Family
from strategies.batches.batch import PLANS, matrices_of
from strategies.batches.fragments import COLUMNS, ROWS
from strategies.batches.joined import as_one, is_one_product, is_tall, rows_as_batch, suit_joined
from strategies.batches.part_costs import MOSTLY_WRITTEN, Split, best_parts
from strategies.batches.plans import (
    BLOCKS,
    BULK,
    BULK_PADDED,
    BULK_SECOND,
    DIRECT,
    ELEMENTS,
    JOINED,
    RESIDENT,
    RUNS,
    SHARED,
    TALL,
    THREADS,
    WARPS,
    Plan,
    by_threads,
    plan_of,
    small_split,
    suit_bulk,
    suit_padded,
    suit_padded_parts,
    suit_second,
    two_fit,
)
from strategies.batches.sizes import LARGEST_SIDE, MANY, Sizes
from strategies.batches.tiles import slices, tiles
from strategies.matmul.cuda_core import Tile
from strategies.memory_bound.blocks import WARP
from strategies.search.choice import Choice, Search
from strategies.search.space import Point

# Measured: for each multiprocessor, how many matrices are few, so that blocks for tiles of each are faster
# than one for all of it; where rows are whole chunks of 16 bytes, and where they are not.
FEW_WHOLE, FEW_TILES = 4, 1 / 3
# Measured: how many runs, of an odd number of elements or not, threads bring sooner than the copying unit.
FEW_RUNS = {True: 2.5, False: 8}
PAIR = 4  # bytes
LONGEST_OF_LARGE = 32  # elements of a row that a thread computes, of a product with more than LARGEST_SIDE
PARTS = 3  # how many parts for each thread are tried
# tiles of matrices, of which a multiprocessor has room for one only: the fastest from 117 to 127 rows
QUARTERS = Tile((64, 64, 16), (32, 32), (8, 4), stages=2)

WORKERS = {THREADS: "threads", WARPS: "a warp each", BLOCKS: "all of its warps"}


def batched(search: Search, program: Expr, single: bool = False) -> tuple[Choice, Success] | None:
    """The kernel of a closed program that is a batch of small products; None where it is none.

    single: also of few or large matrices, for which tiles of each are better where there are some
    """
    body = program
    while isinstance(body, Lambda):
        body = body.body
    matrices = matrices_of(body)
    if is_one_product(matrices):
        return _of_rows(search, program, matrices)
    sizes = Sizes.of(matrices)
    if sizes is None or not sizes.are_small:
        return None
    if are_few_long(search, sizes):
        return None
    plan = plan_of(sizes)
    if not single and sizes.by_rows is None and not suits_block(search, sizes, plan):
        return None
    if plan.by != THREADS and Family.MMA not in search.gpu.sustained:
        return None
    has_unit = Family.WGMMA in search.gpu.sustained
    brought = tuple(in_parts(sizes) if plan.parts else copied_in_bulk(sizes)) if has_unit else ()
    if plan.parts is None and has_unit and (split := small_split(sizes)) is not None:
        brought = (of_threads(split), *brought)
    others = tuple(alternatives(sizes, plan))
    points = (*others, *brought) if are_few_runs(search, sizes, plan) else (*brought, *others)
    if are_few_rows(search, sizes, plan):
        points = (Point.by("tensor_core", tiles(sizes)), *points)
    elif plan.parts and not two_fit(sizes):
        points = (Point.of("cuda_core", QUARTERS.changes), *points)
    elif has_unit and (sliced := slices(sizes)) is not None:
        points = (Point.by("tensor_core", sliced), *points)
    return _first(search, program, points, lambda point: _reason(point, sizes, plan))


def _first(
    search: Search, program: Expr, points: Iterable[Point], why: Callable[[Point], str]
) -> tuple[Choice, Success] | None:
    """The first of these that gives a kernel."""
    tried = ((point, search.attempt(point, program)) for point in points)
    return next(
        ((Choice(point, why(point)), made) for point, made in tried if isinstance(made, Success)), None
    )


def _of_rows(search: Search, program: Expr, matrix: Expr) -> tuple[Choice, Success] | None:
    """The kernel of a matrix of many short rows, of which a block takes some; None of others."""
    rows = rows_as_batch(matrix)
    sizes = Sizes.of(matrices_of(rows.term)) if isinstance(rows, Success) else None
    if sizes is None or not is_tall(sizes) or Family.WGMMA not in search.gpu.sustained:
        return None
    many = "" if sizes.batch == MANY else f" of {sizes.batch}"
    reason = f"{as_one(sizes).count}{many} rows for each block, multiplied by all of its warps"
    return _first(search, program, with_fewer_registers(sizes, JOINED), lambda _: reason)


def _reason(point: Point, sizes: Sizes, plan: Plan) -> str:
    what = "products" if sizes.operand else "arrays"
    many = what if sizes.batch == MANY else f"{sizes.batch} {what}"
    if point.strategy == "cuda_core":
        return "tiles of each matrix, since two of them do not fit into shared memory"
    if point.strategy != "batch":
        small = Point.by("tensor_core", tiles(sizes)) == point
        why = f"a batch of {many} is small" if small else "rows would all start in the same bank"
        return f"tiles of each matrix, since {why}"
    given = dict(point.parameters)
    count = given.get("count", 0)
    operands = given.get("operands", "")
    if plan.parts or sizes.by_rows is not None or given.get("by") == THREADS:
        part = (given.get("rows", 0), given.get("columns", 0))
        taken = by_threads(sizes, part, count, operands == BULK)
    else:
        taken = PLANS[operands](sizes) if operands in PLANS else plan
    count = count or taken.count
    done = "multiplied" if sizes.operand else "computed"
    return f"{count} of a batch of {many} for each block, {done} by {WORKERS[taken.by]}"


def suits_block(search: Search, sizes: Sizes, plan: Plan) -> bool:
    """Whether a block takes all of a product sooner than one of its tiles."""
    if sizes.is_large and not suit_large(sizes, plan):
        return False
    return sizes.batch > few(search, sizes, plan)


def suit_large(sizes: Sizes, plan: Plan) -> bool:
    """Whether a block takes larger products sooner as a whole than in tiles: measured.

    The copying unit brings tiles of whole fragments sooner where all sides are long, or no second block fits:
    of others the tiles have parts that lie behind the matrix, or threads copy them. Results have to leave as
    a run, unless they are few.
    """
    whole = sizes.are_chunks and all(side % ROWS == 0 for side in sizes.product)
    if whole and (min(sizes.product) > LARGEST_SIDE or not two_fit(sizes)):
        return False
    if plan.parts is not None:
        few_results = sizes.written <= MOSTLY_WRITTEN * sizes.bytes
        return two_fit(sizes) and (plan.stored or few_results)
    if plan.by == THREADS:
        return plan.stored and sizes.columns <= LONGEST_OF_LARGE
    return plan.stored or suit_bulk(sizes)


def few(search: Search, sizes: Sizes, plan: Plan) -> float:
    """How many matrices are so few that the tiles that the cost model chooses for each are faster."""
    if plan.by != BLOCKS:
        return 1
    return FEW_WHOLE * search.gpu.multiprocessors if sizes.are_chunks else 0


def are_few_long(search: Search, sizes: Sizes) -> bool:
    """Whether rows are so few that a warp for each of them fits on the GPU, and so long that it is faster."""
    rows = sizes.by_rows
    if rows is None:
        return False
    if rows.in_matrices and (rows.in_stages or rows.count == 1 or sizes.reduced <= 2 * WARP):
        return False
    return sizes.batch * sizes.rows <= RESIDENT // WARP * search.gpu.multiprocessors


def are_few_rows(search: Search, sizes: Sizes, plan: Plan) -> bool:
    """Whether tiles whose rows threads bring are faster. Other copies would need longer rows first."""
    return (
        plan.by == BLOCKS and not sizes.are_chunks and sizes.batch <= FEW_TILES * search.gpu.multiprocessors
    )


def are_few_runs(search: Search, sizes: Sizes, plan: Plan) -> bool:
    """Whether threads bring matrices sooner, since few waves of blocks hide little of the latency.

    Rows of odd lengths come so only where the plan has pairs of elements stored at once, and larger products
    never: few threads would have many copies each.
    """
    odd = sizes.copied_at_once < PAIR
    few_ = sizes.batch <= FEW_RUNS[odd] * search.gpu.multiprocessors and not sizes.is_large
    return not sizes.are_chunks and few_ and (not odd or plan.vector > 0)


def in_parts(sizes: Sizes) -> Iterator[Point]:
    """Parts of matrices for each thread, where the copying unit brings these; then other parts."""
    if suit_padded_parts(sizes):
        yield Point.of("batch", {})
    yield Point.of("batch", {"operands": BULK})
    for rows, columns in best_parts(sizes, PARTS)[1:]:
        yield Point.of("batch", {"by": THREADS, "operands": BULK, "rows": rows, "columns": columns})


def of_threads(split: Split) -> Point:
    """This part of a result for each thread, of so many matrices, whose results leave as a run."""
    part = {"rows": split.parts.rows, "columns": split.parts.columns}
    return Point.of(
        "batch", {"by": THREADS, "operands": BULK, "count": split.count, **part, "epilogue": SHARED}
    )


def copied_in_bulk(sizes: Sizes) -> Iterator[Point]:
    """The plans for matrices that the copying unit brings, then one with fewer registers for each warp.

    It cannot pad rows, which threads that each read one would read from the same banks.
    """
    if sizes.by_rows is not None and not sizes.by_rows.crowded:
        yield Point.of("batch", {"operands": BULK})
    if suit_joined(sizes):
        yield from with_fewer_registers(sizes, JOINED)
    if suit_second(sizes):
        yield Point.of("batch", {"operands": BULK_SECOND})
    if suit_padded(sizes):
        yield Point.of("batch", {"operands": BULK_PADDED})
    if not suit_bulk(sizes):
        return
    yield from with_fewer_registers(sizes, BULK)


def with_fewer_registers(sizes: Sizes, operands: str) -> Iterator[Point]:
    """The plan of that name, then one whose warps have half of the columns, which takes fewer registers."""
    yield Point.of("batch", {"operands": operands})
    plan, half = PLANS[operands](sizes), -(-sizes.columns // (2 * COLUMNS)) * COLUMNS
    rows = next(part for part in (2 * TALL[-1], *TALL) if (part, half) != (plan.rows, plan.columns))
    yield Point.of("batch", {"operands": operands, "rows": rows, "columns": half})


def alternatives(sizes: Sizes, plan: Plan) -> Iterator[Point]:
    """The plan, then variants of it, since each version of the compiler spills registers in other kernels."""
    yield Point.of("batch", {})
    if plan.by == BLOCKS and plan.operands == RUNS:
        yield Point.of("batch", {"operands": ELEMENTS, "count": 1})
    if plan.by == BLOCKS:
        yield Point.of("batch", {"rows": ROWS if plan.rows > ROWS else 2 * ROWS})
    yield Point.of("batch", {"count": 2 * plan.count})
    if plan.by == THREADS and sizes.runs is not None:
        for rows, columns in best_parts(sizes, 1):
            yield Point.of("batch", {"by": THREADS, "rows": rows, "columns": columns})
    yield Point.of("batch", {"epilogue": DIRECT})
