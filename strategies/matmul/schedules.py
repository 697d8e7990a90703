"""Schedules of products of matrices, composed of phases: WMMA, `mma.sync`, and Hopper's warpgroups.

A schedule takes a matrix around products to its kernel, or each matrix of an array. `to_kernels` takes a
whole program there. A user's own schedule is such a composition with phases changed, dropped or added.
"""

from __future__ import annotations

from collections.abc import Callable

from rewrites import lowering as low
from rewrites.pointwise import POINTWISE_EACH, RESULTS
from rewrites.views import TRANSPOSE_PAIR
from rise.expr import Expr, Lambda, Primitive, call
from rise.types import Pair, shape
from strategies.abstraction import with_parts_abstracted
from strategies.complete import complete
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    id_,
    prints_as_call,
    seq,
    try_,
)
from strategies.default import lowered
from strategies.matmul.alignment import aligned_operands, copied
from strategies.matmul.bulk import stored_in_bulk, stored_in_bulk_transposed, stored_in_rows
from strategies.matmul.columns import reduced_rows, rows_inside
from strategies.matmul.epilogue import (
    Stored,
    beside_in_bulk,
    direct_epilogue,
    kept_shared,
    rows_by_threads,
    shared_epilogue,
)
from strategies.matmul.grid import (
    arrays_in_groups,
    blocks,
    by_itself,
    cluster_for_each,
    clusters,
    in_turn,
    of_several_arrays,
    persistent,
    to_warpgroups,
    to_warps,
)
from strategies.matmul.instructions import (
    accumulate_fragments,
    load_each,
    load_first,
    load_once,
    prefetch_fragments,
    sliced,
    tensorise,
    warp_tiles,
)
from strategies.matmul.kernels import each_product_kernel
from strategies.matmul.products import (
    NO_PRODUCT,
    NOT_IN_BULK,
    bring_prologue,
    bulk_operands,
    computed_operands,
    contains,
    first_inside,
    in_one_matrix,
    is_product,
    outline,
    rank,
    separate_prologue,
)
from strategies.matmul.requirements import PROGRAMS, TILES, fulfils
from strategies.matmul.rounding import ZEROS, ZEROS_BESIDE, rounded_up
from strategies.matmul.schedule import HOPPER, WMMA, Schedule
from strategies.matmul.split_k import over_cluster
from strategies.matmul.staging import copies_of, loaded_ahead, promoted, specialise, stage, tiles_copied
from strategies.matmul.sums import in_one_sum
from strategies.matmul.tiling import in_tile, raster, tile_output, tile_reduction, tupled
from strategies.normal_forms import view_inward
from strategies.places import arguments, below_shape, in_inputs, mapped
from strategies.result_views import under_views, views_outward
from strategies.rounded import in_few_instructions

NO_CLUSTERS = (
    "matrices of an array are a dimension of the grid that is in no cluster: use `cluster=1` and"
    " `split_cluster=1`"
)
NO_MATRIX = "there is no product of matrices: the result is neither a matrix nor an array of matrices"

Block = tuple[int, int, int]


# --- what is around a schedule ----------------------------------------------------------------------------

# every product of matrices by itself, what is done with its elements in a map over it
products: Strategy = seq(
    check(lambda term: rank(term) == 2, "products", NO_MATRIX),
    view_inward,
    outline,
    check(contains(is_product), "products", NO_PRODUCT),
    check(in_one_matrix, "products", NO_MATRIX),
    in_few_instructions,
)
# functions of the first operand's elements inside of the products; all other operands as they are in memory
operands_in_bulk: Strategy = seq(first_inside, check(bulk_operands, "operands_in_bulk", NOT_IN_BULK))


@prints_as_call
def operands_named(s: Rewrite) -> Strategy:
    """s for a program in which the operands of products are names where they are computed.

    before: A |> map(map(f)) |> (A => e)
    after:  A |> map(map(f)) |> (A => s(e))
    """

    def make(term: Expr) -> Strategy:
        found = computed_operands(term)
        return with_parts_abstracted(lambda part: any(part is matrix for matrix in found), lambda _: s)

    return depending(make)


@prints_as_call
def of_matrices(s: Rewrite, cluster: int = 1, together: int = 1) -> Strategy:
    """s for the matrix that a program computes, for each of an array of matrices, or of a pair of them.

    before: zip(As)(Bs) |> map((A, B) => A·B)
    after:  zip(As)(Bs) |> mapBlock(2)((A, B) => s(A·B)), or s's persistent blocks compute all tiles

    Arrays of matrices in arrays are computed as one array, which is split into these.
    """
    in_grid = seq(check(lambda _: cluster == 1, "of_matrices", NO_CLUSTERS), low.MAP_BLOCK.with_sizes(d=2))
    listed = seq(of_several_arrays, arrays_in_groups(together))
    batch = seq(
        check(lambda term: rank(term) == 3, "of_matrices", NO_MATRIX),
        try_(POINTWISE_EACH),
        mapped(s),
        depending(lambda term: listed if contains(is_persistent)(term) else in_grid),
    )
    several = seq(
        choice(check(in_two_arrays, "of_matrices", "one array is stored"), RESULTS), arguments(2, s)
    )
    nested = seq(
        check(lambda term: rank(term) > 3, "of_matrices", NO_MATRIX), POINTWISE_EACH, below_shape(batch)
    )
    one = choice(s, batch, nested)
    one = choice(one, under_views(one), seq(views_outward, under_views(one)))
    return depending(lambda term: several if isinstance(term.type, Pair) else one)


def is_persistent(term: Expr) -> bool:
    """Whether blocks, or clusters, compute several elements of an array, one after the other."""
    return isinstance(term, Primitive) and term.name in ("mapBlockPersistent", "mapClusterPersistent")


def in_two_arrays(term: Expr) -> bool:
    """Whether a term is a matrix of pairs, stored as two arrays: `e |> map(unzip) |> unzip`."""
    match call(term):
        case "unzip", _, [rows]:
            match call(rows):
                case "map", _, [Lambda(row, body), _]:
                    return (inner := call(body)) is not None and inner[0] == "unzip" and inner[2] == [row]
    return False


@prints_as_call
def to_kernels(
    s: Rewrite,
    align: Block | None = None,
    otherwise: Rewrite = lowered,
    rows: Callable[[Rewrite], Rewrite] | None = None,
) -> Strategy:
    """s for each kernel of a program that computes products; nothing high-level may be left of any kernel.

    before: (A, B, C) => (A·B |> toMem(Global))·C
    after:  (A, B, C) => let stored = s(A·B) in s(stored·C)

    align:     operands whose rows the copying unit does not take are copied before, to tiles of m × n × k
    otherwise: for the other kernels, what `default` does unless another schedule is given
    rows:      what makes of s a strategy for programs that reduce the rows of its matrix, by `rows_reduced`
    """
    if align is not None:
        s = seq(try_(aligned_operands(align)), each_product_kernel(s, copied))
    if rows is not None:
        s = rows(s)
    return complete(in_inputs(each_product_kernel(s, otherwise)))


@prints_as_call
def in_whole_tiles(s: Schedule, operands: Rewrite, tiles: Callable[[Stored], Rewrite]) -> Strategy:
    """What is around the tiles of a schedule: products found, requirements checked, sizes rounded up.

    before: A·B, where tiles need not divide the matrices
    after:  tiles(A·B with zeros behind the ends of A and B), without what zeros add

    s:        what is checked before anything is derived; whether operands are swapped
    operands: how functions of operands' elements are separated from products
    tiles:    the phases for a matrix of whole tiles, from what is known of the result
    """
    named = check(contains(is_product), "products", NO_PRODUCT)
    copies = tiles_copied(s)
    behind = ZEROS_BESIDE if copies is not None and copies.bulk else ZEROS
    whole = depending(lambda term: rounded_up(s.whole_of(rows(term)), copies, tiles(Stored.of(term)), behind))
    schedule = seq(products, fulfils(s, PROGRAMS), operands, named, fulfils(s, TILES), whole)
    oriented = operands_swapped(schedule) if s.swap_operands else schedule
    return of_matrices(oriented, max(s.cluster, s.split_cluster), s.raster_matrices)


def rows(matrix: Expr) -> int | None:
    """How many rows a matrix has; None where that is known at launch only."""
    return shape(matrix.type)[0][0].value


@prints_as_call
def operands_swapped(s: Rewrite) -> Strategy:
    """s for the transposed matrix, whose products have the transposed operands in the other order.

    before: A·B
    after:  s(transpose(A·B)) |> transpose, in which `products` finds transpose(B)·transpose(A)
    """
    return seq(TRANSPOSE_PAIR, argument(s))


# --- the schedules ----------------------------------------------------------------------------------------


@prints_as_call
def by_warps(s: Schedule = WMMA) -> Strategy:
    """Products by instructions of warps, WMMA or `mma.sync`, from tiles in shared memory.

    before: A·B
    after:  what `tensor_core` makes of a kernel

    s: the parameters of `tensor_core`: WMMA, MMA_SYNC or VOLTA of `schedule`, or changed ones
    """
    (m, n, k), copies = s.block, copies_of(s)
    loads = prefetch_fragments if s.prefetch_fragments else load_once if s.load_once else id_
    sums = seq(tile_reduction(k), warp_tiles(*s.warp), tensorise(s.fragment), accumulate_fragments, loads)
    whole = seq(sums, to_warps, kept_shared)
    kept = sliced(k, s.slice_k, s.warp, s.fragment, loads, to_warps) if s.slice_k > 1 else whole
    rows = reduced_rows(k, s.warp[0], s.fragment[0])
    direct = direct_epilogue(sums, s.warp, s.fragment, to_warps, rows=rows)
    return in_whole_tiles(
        s, separate_prologue,
        lambda result: seq(
            operands_named(seq(
                rows_inside,
                tile_output(m, n, in_list=s.raster_group > 0),
                in_tile(shared_epilogue(kept, copies, result) if s.epilogue == "shared" else direct),
                raster(s.raster_group, s.cluster),
                blocks, clusters(s.cluster), persistent(s.persistent_blocks // s.cluster),
                tupled,
            )),
            stage(copies, s.stages),
            bring_prologue,
        ),
    )  # fmt: skip


@prints_as_call
def hopper(s: Schedule = HOPPER) -> Strategy:
    """Products by warpgroups, whose tiles the copying unit brings: a ring, roles, clusters, ping-pong.

    before: A·B
    after:  what `tensor_core` makes of a kernel

    s: the parameters of `tensor_core`: HOPPER of `schedule`, or changed ones
    """
    (m, n, k), copies = s.block, copies_of(s)
    consumers = (m // s.warp[0]) * (n // s.warp[1])
    workers = by_itself if s.ping_pong > 1 else to_warpgroups
    loads = load_first if s.load_once else load_each
    sums = seq(tile_reduction(k), warp_tiles(*s.warp), tensorise(s.fragment), accumulate_fragments, loads)
    in_bulk = stored_in_bulk_transposed if s.swap_operands else stored_in_bulk
    whole = seq(sums, workers, kept_shared)
    kept = sliced(k, s.slice_k, s.warp, s.fragment, loads, workers) if s.slice_k > 1 else whole
    each = seq(
        blocks, in_turn(s.ping_pong), clusters(s.cluster), persistent(s.persistent_blocks // s.cluster)
    )

    def tile(result: Stored) -> Strategy:
        if s.split_cluster > 1:
            return over_cluster(s.split_cluster, seq(sums, workers), rows_by_threads(copies, result))
        if s.epilogue == "shared":
            return shared_epilogue(kept, copies, result)
        store = {"bulk": in_bulk, "rows": stored_in_rows(result.row)}.get(s.epilogue, id_)
        rows = reduced_rows(k, s.warp[0], s.fragment[0])
        finished = direct_epilogue(sums, s.warp, s.fragment, workers, store, rows)
        return seq(beside_in_bulk, finished) if s.ahead else finished

    return in_whole_tiles(
        s, seq(in_one_sum(k), operands_in_bulk),
        lambda result: seq(
            operands_named(seq(
                rows_inside,
                tile_output(m, n, in_list=s.raster_group > 0),
                in_tile(tile(result)),
                raster(s.raster_group, s.cluster),
                cluster_for_each if s.split_cluster > 1 else each,
                tupled,
            )),
            loaded_ahead(copies, s.ahead, consumers),
            stage(copies, s.stages),
            specialise(s.stages, consumers) if s.warp_specialised else id_,
            promoted(s.promoted),
            bring_prologue,
        ),
    )  # fmt: skip
