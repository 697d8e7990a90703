"""Which programs are batches of small products, for which a block takes several of them at a time."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Success
from rise.expr import Expr, Lambda
from rise.instructions import Family
from strategies.batches.fragments import COLUMNS, ROWS
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

WORKERS = {THREADS: "threads", WARPS: "a warp each", BLOCKS: "all of its warps"}


def batched(search: Search, program: Expr, single: bool = False) -> tuple[Choice, Success] | None:
    """The kernel of a closed program that is a batch of small products; None where it is none.

    single: also of a batch of one, for which tiles of a matrix are better where there are some
    """
    body = program
    while isinstance(body, Lambda):
        body = body.body
    found = try_(POINTWISE_EACH)(body)
    sizes = Sizes.of(found.term) if isinstance(found, Success) else None
    if sizes is None or (sizes.batch == 1 and not single) or not sizes.are_small:
        return None
    plan = sizes.plan()
    if plan.by != THREADS and Family.MMA not in search.gpu.sustained:
        return None
    in_bulk = sizes.suit_bulk and Family.WGMMA in search.gpu.sustained
    points = (*(copied_in_bulk(sizes) if in_bulk else ()), *alternatives(plan))
    tried = ((point, search.attempt(point, program)) for point in points)
    point, result = next(((p, r) for p, r in tried if isinstance(r, Success)), (None, None))
    if point is None or result is None:
        return None
    many = "products" if sizes.batch == MANY else f"{sizes.batch} products"
    given = dict(point.parameters)
    taken = sizes.in_bulk() if given.get("operands") == BULK else plan
    count = given.get("count", taken.count)
    reason = f"{count} of a batch of {many} for each block, multiplied by {WORKERS[taken.by]}"
    return Choice(point, reason), result


def copied_in_bulk(sizes: Sizes) -> Iterator[Point]:
    """The plan for matrices that the copying unit brings, then one with fewer registers for each warp."""
    yield Point.of("batch", {"operands": BULK})
    plan, half = sizes.in_bulk(), -(-sizes.columns // (2 * COLUMNS)) * COLUMNS
    rows = next(part for part in TALL if (part, half) != (plan.rows, plan.columns))
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
