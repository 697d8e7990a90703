"""Many small products: blocks take several matrices each."""

from __future__ import annotations

from dataclasses import replace

from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Success
from rise.errors import StrategyError
from rise.expr import Expr, Identifier, call
from strategies.batches.costs import Tile, is_unrolled
from strategies.batches.fragments import (
    COLUMNS,
    FRAGMENTS,
    ROWS,
    each_by_a_warp,
    each_by_all,
    matrix_by_a_warp,
    matrix_by_warps,
)
from strategies.batches.joined import as_one, as_one_matrix, rows_as_batch
from strategies.batches.parts import matrices_by_threads
from strategies.batches.plans import (
    BLOCKS,
    BULK,
    BULK_PADDED,
    BULK_SECOND,
    DIRECT,
    ELEMENTS,
    JOINED,
    PADDED,
    RUNS,
    SHARED,
    THREADS,
    UNROLLED,
    WARPS,
    Plan,
    by_threads,
    in_bulk,
    in_bulk_padded,
    in_bulk_second,
    in_rows,
    plan_of,
)
from strategies.batches.runs import (
    in_shared,
    several,
    staged,
    staged_apart,
    staged_in_bulk,
    stored_in_bulk,
    through_shared,
    with_shared,
)
from strategies.batches.sizes import Sizes
from strategies.batches.stages import by_rows
from strategies.batches.threads import by_threads as in_turns
from strategies.batches.threads import one_map, one_row, rows_of_matrices
from strategies.complete import complete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    choice,
    depending,
    id_,
    prints_as_call,
    seq,
    try_,
)
from strategies.memory_bound.blocks import WARP, chosen_or, refuse
from strategies.places import as_one_array, below_shape, in_inputs, mapped
from strategies.result_views import computed_in, under_views
from strategies.settings import searched

# where the copying unit brings operands
PLANS = {BULK: in_bulk, BULK_PADDED: in_bulk_padded, BULK_SECOND: in_bulk_second, JOINED: as_one}
AS_THEY_ARE = (RUNS, BULK, JOINED)  # where fragments are read from runs
OF_PARTS = ("", RUNS, BULK)  # where operands are of which threads compute parts
NO_BATCH = "expected a map over a batch of arrays of known sizes"


@searched(
    count=(0, 1, 2, 4, 8, 16, 32, 64),
    threads=(0, 64, 128, 256),
    by=("", THREADS, WARPS, BLOCKS),
    rows=(0, 16, 32),
    epilogue=("", SHARED, DIRECT),
    operands=("", RUNS, PADDED, ELEMENTS, *PLANS),
    vector=(0, 1, 2),
    columns=(0, 8, 16, 32, 64),
)
@prints_as_call
def batch(
    count: int = 0,
    threads: int = 0,
    by: str = "",
    rows: int = 0,
    epilogue: str = "",
    operands: str = "",
    vector: int = 0,
    columns: int = 0,
) -> Strategy:
    """A map over small matrices: each block copies several to shared memory, and multiplies them there.

    count:   matrices of a block; 0: as many as are about 16 KiB, with their results
    threads: of a block; 0: as many as the rows of these matrices occupy
    by:      who multiplies a matrix: `threads`, a row each; `warps`, one; `blocks`, all warps; else chosen
    rows:    of a matrix, for each of all warps, a multiple of 16; or for each thread; 0: chosen
    epilogue: where results go: `shared`, from where they leave as one run; `direct`, to memory; else chosen
    operands: fragments, and numbers of parts, are read from `runs` as they came, by threads or by the
              copying unit (`bulk`). Fragments may be read from `padded` rows, too, that these runs are laid
              out in again (`bulk_padded`; `bulk_second`: those of the second operand), or that threads bring
              `elements` to, as many at once as divide rows; matrices that share the second operand may be
              `joined` to one, whose rows those of all are; else chosen
    vector:   elements that a thread brings at once, at most 16 bytes; 0: chosen
    columns:  of a matrix, for each of all warps, a multiple of 8; or for each thread; 0: chosen
    """
    chosen_or("batch", count=count, threads=threads, rows=rows, vector=vector, columns=columns)
    if rows % ROWS and by != THREADS:
        raise StrategyError("R0604", f"batch: rows: {rows} is not a multiple of the {ROWS} of a fragment")
    if columns % COLUMNS and by != THREADS:
        wanted = f"a multiple of the {COLUMNS} of a fragment"
        raise StrategyError("R0604", f"batch: columns: {columns} is not {wanted}")
    chosen_from("by", by, (THREADS, WARPS, BLOCKS))
    chosen_from("epilogue", epilogue, (SHARED, DIRECT))
    chosen_from("operands", operands, (RUNS, PADDED, ELEMENTS, *PLANS))

    of_blocks = {"rows": rows, "operands": operands, "columns": columns}

    def planned(sizes: Sizes) -> Plan:
        if operands == JOINED and sizes.common and sizes.operand in FRAGMENTS:
            return as_one(sizes, rows, columns, count)
        if by == THREADS or (not by and sizes.operand not in FRAGMENTS):
            return by_threads(sizes, (rows, columns), count, operands == BULK)
        if operands in PLANS and sizes.operand in FRAGMENTS:
            return PLANS[operands](sizes, rows, columns)
        return plan_of(sizes, rows, columns)

    def refused(sizes: Sizes, plan: Plan, in_run: bool) -> str | None:
        unused = [name for name, given in of_blocks.items() if given]
        if plan.by != THREADS and sizes.operand not in FRAGMENTS:
            return f"there are no fragments of `{sizes.operand}`: use `by=threads`"
        if plan.stored and not in_run:
            return "results that are no run of matrices are stored by `epilogue=direct`"
        brought = plan.parts or (unused == ["operands"] and sizes.by_rows is not None)
        if unused and plan.by != BLOCKS and not (brought and operands in OF_PARTS):
            return f"`{unused[0]}` changes nothing: matrices are multiplied by {plan.by}"
        if operands == JOINED and not sizes.common:
            return "matrices that are multiplied as one share a matrix, which none of these do"
        if vector and operands in PLANS:
            return "`vector` changes nothing: the copying unit brings operands"
        if threads and operands in PLANS and (plan.by != THREADS or sizes.by_rows is None):
            return "`threads` changes nothing: there is a warp for each part of a matrix"
        return None

    def with_plan(plan: Plan, sizes: Sizes, in_run: bool) -> Strategy:
        plan = replace(
            plan,
            by=by or plan.by,
            count=count or plan.count,
            threads=threads or plan.threads,
            stored=epilogue == SHARED if epilogue else plan.stored and in_run,
            operands=operands or plan.operands,
            vector=vector or plan.vector,
        )
        reason = refused(sizes, plan, in_run)
        return refuse("batch", reason) if reason is not None else _by_blocks(plan, sizes)

    def chosen(term: Expr, in_run: bool = True) -> Rewrite:
        sizes = Sizes.of(term)
        if sizes is None:
            return refuse("batch", NO_BATCH)
        plan = planned(sizes)
        made = with_plan(plan, sizes, in_run)
        if plan.parts is None or rows or columns:
            return made
        return choice(made, with_plan(in_rows(sizes), sizes, in_run))

    one_array = seq(try_(rows_as_batch), one_batch) if operands == JOINED else one_batch
    adjacent = seq(one_array, below_shape(depending(chosen)))
    elsewhere = seq(one_array, below_shape(depending(lambda term: chosen(term, False))))
    placed = depending(lambda term: adjacent if are_adjacent(term) else under_views(elsewhere))
    return FunctionStrategy("batch", complete(in_inputs(placed)))


def _by_blocks(plan: Plan, sizes: Sizes) -> Strategy:
    """A map over matrices, several for each block, which copies them, and their results."""
    by_copies = plan.operands in PLANS
    pattern = sizes.pattern if plan.operands == BULK and plan.parts is None else 0
    by_warps = sizes.are_apart and plan.count % (plan.threads // WARP) == 0
    vectors = (plan.vector,) * len(sizes.read) if plan.vector else sizes.vectors
    apart = plan.by == THREADS and sizes.by_rows is not None and not by_warps
    by_hand = staged_apart(plan.threads, vectors) if apart else staged(plan.threads, vectors, by_warps)
    copied = staged_in_bulk(pattern) if by_copies else by_hand
    runs = id_ if plan.operands == ELEMENTS else argument(copied)
    if plan.operands == JOINED:
        compute = as_one_matrix(by_all(plan, sizes.joined(plan.count)))
    else:
        rows = sizes.by_rows
        again = rows is not None and (rows.in_stages or max(plan.split, plan.dealt) > 1)
        compute = read_once(copied, plan, sizes) if again else seq(runs, multiplied(plan, sizes))
    unpadded = by_copies and not pattern
    if plan.stored:
        compute = stored_in_bulk(compute) if unpadded else through_shared(plan.threads, compute)
    if plan.operands in AS_THEY_ARE:
        compute = with_shared(plan.threads, compute)
    return several(plan.count, compute, zeros=not unpadded)


# an array of matrices, where they are in arrays in an array, too
one_batch = try_(POINTWISE_EACH)


def are_adjacent(term: Expr) -> bool:
    """Whether no view but splits and joins is between a map over matrices and the result."""
    inner = computed_in(term)
    return inner is None or inner is as_one_array(term)


def matrices_of(term: Expr) -> Expr:
    """The map over matrices, one array of them, below the views that say where its results are."""
    inner = computed_in(term) or term
    listed = one_batch(inner)
    return as_one_array(listed.term) if isinstance(listed, Success) else inner


def chosen_from(name: str, value: str, known: tuple[str, ...]) -> None:
    """R0604 for a word that is not one of these, nor empty."""
    if value not in ("", *known):
        raise StrategyError("R0604", f"batch: {name}: `{value}` is not one of {', '.join(known)}")


def multiplied(plan: Plan, sizes: Sizes) -> Strategy:
    """A map over matrices in shared memory, by threads, a warp for each, or all warps for each in turn."""
    match plan.by:
        case by if by == THREADS and plan.parts:
            parts = plan.parts
            return matrices_by_threads(plan.threads, sizes.product, parts, parts.stored_at_once(sizes))
        case by if by == THREADS:
            each = in_turns(plan.threads, one_row(sizes.columns * sizes.depth <= UNROLLED))
            if sizes.by_rows is None:
                return rows_of_matrices(each)
            rows = by_rows(each, sizes.by_rows.in_matrices, plan.split, plan.dealt)
            return seq(mapped(one_map), rows)
        case by if by == WARPS:
            return each_by_a_warp(plan.threads // WARP, matrix_by_a_warp(sizes.product, sizes.operand))
        case _:
            return each_by_all(by_all(plan, sizes))


def read_once(copied: Strategy, plan: Plan, sizes: Sizes) -> Strategy:
    """A map over what several stages read, which a block has in shared memory under a name."""

    def chosen(term: Expr) -> Rewrite:
        applied = call(term)
        arrays = [xs for xs in applied[2][1:] if isinstance(xs, Identifier)] if applied is not None else []
        return in_shared(arrays, copied, multiplied(plan, sizes))

    return depending(chosen)


def by_all(plan: Plan, sizes: Sizes) -> Strategy:
    """A matrix by all warps of a block."""
    again = 0 if plan.operands in AS_THEY_ARE else plan.threads
    in_memory, of_second = plan.operands == ELEMENTS, plan.operands == BULK_SECOND
    in_run = of_second or plan.operands == JOINED or (plan.operands == BULK and not sizes.pattern)
    tile = Tile(plan.rows, plan.columns or -(-sizes.columns // COLUMNS) * COLUMNS)
    return matrix_by_warps(
        sizes.product,
        (tile.rows, tile.columns),
        sizes.operand,
        again,
        plan.vector,
        in_memory,
        in_run,
        of_second and not is_unrolled(sizes, tile),
    )
