"""Products, and reductions of their rows, in one pass over the second operand: attention, chains, norms."""

from __future__ import annotations

from math import prod

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import staging as s
from rewrites.apart import NUMBERS_APART
from rewrites.exponentials import RECIPROCAL
from rewrites.folds import FACTORS, columns_of
from rewrites.longer import WHOLE_FRAGMENTS
from rewrites.maps import MAP_LAST_FISSION
from rewrites.masks import BLOCKS_OF_A_MASK, FACTOR_OF_MASK, NUMBERS_OF_TILES
from rewrites.monotone import MAXIMUM_OF_MONOTONE, NAMED_IN_MAXIMUM
from rewrites.orders import IN_PAIRS, RASTERISE_BACKWARDS
from rewrites.rolling import ROLLING
from rewrites.rounding import EMPTY_AS_ZEROS, ROUND_UP, missing
from rewrites.rows import FOLD_OF_MAPS, ROWS_ON_FRAGMENTS, guarded
from rewrites.split_k import JOIN_MAPS, JOIN_MAPS_OF_BOTH
from rewrites.summands import SUMMANDS
from rewrites.zips import MAP_OUTSIDE_PAIR, ZIP_SAME
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, call, subterms
from rise.instructions import Family
from rise.nat import Nat
from rise.types import Array, Pair, Scalar, shape
from strategies.complete import complete
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    everywhere,
    id_,
    normalize,
    prints_as_call,
    recursive,
    seq,
    top_down,
    try_,
)
from strategies.matmul.bulk import stored_in_bulk
from strategies.matmul.constraints import pattern
from strategies.matmul.grid import computing, outermost_map
from strategies.matmul.instructions import DEPTH, workers_on
from strategies.matmul.parts import NO_ROWS, dimensions, in_parts, rearranges
from strategies.matmul.rounding import longer_inward
from strategies.matmul.staging import ASYNCHRONOUS, TileCopy, copied, specialise, stage
from strategies.nests import in_one_map
from strategies.normal_forms import view_inlined
from strategies.places import arguments, computes, in_inputs, mapped
from strategies.result_views import at_computed
from strategies.rounded import powers_of_two, tanh_of_scores
from strategies.settings import searched

OPERAND_BYTES = 2
MOST_DIMENSIONS = 4  # of an array of matrices: two of the grid's three, and those of a matrix
PATTERN_ROWS = 8  # that swizzling repeats: a block of a cluster loads whole ones


# maxima of scores that a monotone function makes of products, from the products
maxima_of_products: Strategy = everywhere(seq(NAMED_IN_MAXIMUM, top_down(MAXIMUM_OF_MONOTONE)))


@prints_as_call
def in_one_pass(columns: int, early: bool = False) -> Strategy:
    """A map over rows as a fold over blocks of the columns of what it computes first, on fragments.

    before: q |> map(row => softmax(K·row)·V)
    after:  zip(K |> split(columns))(V |> split(columns)) |> reduceSeq(…) |> …
    """
    return seq(
        tanh_of_scores,
        try_(SUMMANDS),
        try_(FACTORS),
        ROLLING.with_sizes(n=columns),
        maxima_of_products if early else id_,
        powers_of_two,
        everywhere(RECIPROCAL),
        ROWS_ON_FRAGMENTS.with_sizes(k=DEPTH),
    )


@prints_as_call
def resident(copies: TileCopy, ahead: Strategy = id_) -> Strategy:
    """Copies the rows of a block to shared memory: of pairs, the first members. Only matrices are copied.

    before: xs
    after:  xs |> copyAsync(l), or in panels as wide as a swizzling pattern xs |> … |> bulkCopy(l) |> …

    ahead: for the bulk copy
    """

    def make(term: Expr) -> Strategy:
        type_, which = term.type, 0
        if isinstance(type_, Array) and isinstance(type_.element, Pair):
            type_, which = Array(type_.size, type_.element.first), 1
        sizes, element = shape(type_)
        if len(sizes) != 2 or not isinstance(element, Scalar) or element.bytes != OPERAND_BYTES:
            return id_
        if not copies.bulk:
            return seq(s.IN_SHARED[copies.primitive(None)][which].with_sizes(p=copies.padding))
        length = (sizes[1].value or 0) * element.bytes
        width = pattern(length)
        if not width:
            return id_
        panels = id_ if length == width else top_down(s.PANELS[0].with_sizes(w=width // element.bytes))
        return seq((s.IN_BULK, s.FIRST_IN_BULK)[which].with_sizes(b=width), panels, ahead)

    return depending(make)


# what is behind the last row: zeros, or in matrices whatever the copying unit finds there
_zeros: Strategy = normalize(EMPTY_AS_ZEROS)
_zeros_beside: Strategy = normalize(
    seq(check(lambda term: dimensions(term) < 2, "zeros_beside", "it is a matrix"), EMPTY_AS_ZEROS)
)


@prints_as_call
def whole_rows(rows: int, s: Rewrite, behind: Rewrite) -> Strategy:
    """s for a map over rows whose number is a multiple of `rows`.

    before: xs |> map(f)
    after:  (s (xs with zeros behind its end |> map(f))) |> take(n)

    behind: what is behind the last row: zeros, or anything
    """

    def make(term: Expr) -> Strategy:
        if not isinstance(term.type, Array):
            return check(lambda _: False, "whole_rows", NO_ROWS)
        more = missing(term.type.size, rows)
        if more is None:
            return seq(s)
        return seq(ROUND_UP.with_sizes(p=more), argument(seq(longer_inward, behind, s)))

    return depending(make)


@prints_as_call
def whole_fragments(rows: int, s: Rewrite) -> Strategy:
    """s for a matrix whose rows and sums of products fragments of so many rows divide; behind them are zeros.

    before: xs |> map(f)
    after:  (s (xs with zeros behind each row |> map(f'))) |> map(take(n))
    """

    def make(term: Expr) -> Strategy:
        columns = _known(columns_of(term))
        wide = workers_on(rows).width(rows, columns)
        return seq(
            try_(WHOLE_FRAGMENTS.with_sizes(n=wide, k=DEPTH)),
            depending(lambda longer: seq(s) if computes(longer) else argument(s)),
        )

    return depending(make)


def _known(size: Nat | None) -> int:
    return (size.value if size is not None else None) or 0


def _one_map(term: Expr) -> Strategy:
    found = call(term)
    if found is None or found[0] != "pair":
        return id_
    inner = seq(try_(seq(argument(ZIP_SAME), a.MAP_FUSION)), try_(mapped(one_map)))
    return seq(MAP_OUTSIDE_PAIR, argument(inner))


# two maps over one array as one map, from whose pairs their results are taken; also maps of such
one_map = try_(depending(_one_map))


@prints_as_call
def each_matrix(s: Rewrite) -> Strategy:
    """s for a matrix, or for each of an array of matrices, or of an array of such arrays.

    before: zip(A)(B) |> map((a, b) => e) |> join
    after:  zip(A)(B) |> mapBlock(1)((a, b) => s(e)) |> join
    """

    def make(term: Expr) -> Strategy:
        if rearranges(term):
            return argument(each_matrix(s))
        match dimensions(term) if isinstance(term.type, Array) else 0:
            case 2:
                return seq(s)
            case several if several > MOST_DIMENSIONS:
                return seq(JOIN_MAPS, each_matrix(s))
            case 3 | 4 as several:
                return seq(mapped(each_matrix(s)), low.MAP_BLOCK.with_sizes(d=several - 2))
            case _:
                return check(lambda _: False, "each_matrix", NO_ROWS)

    return depending(make)


def counted(term: Expr) -> tuple[list[int], Expr]:
    """The sizes of arrays of matrices, outermost first, and the matrix that they are made of."""
    counts: list[int] = []
    while dimensions(term) > 2 or rearranges(term):
        match call(term):
            case _, _, [inner] if rearranges(term):
                term = inner
            case "map", _, [Lambda(_, inner), _] if isinstance(term.type, Array):
                counts.append(term.type.size.value or 0)
                term = inner
            case _:
                break
    return counts, term


def _maps_compute(term: Expr) -> bool:
    match call(term):
        case "map", _, [Lambda(_, body), _]:
            return computes(body)
        case _:
            return False


# of an array of maps, the pairs of elements in one list, behind the views of what is computed
_in_one_list: Strategy = recursive(
    "in_one_list",
    lambda itself: choice(
        seq(check(_maps_compute, "in_one_list", "expected maps"), JOIN_MAPS_OF_BOTH),
        seq(MAP_LAST_FISSION, argument(itself)),
    ),
)


@prints_as_call
def tiles_of_all(s: Rewrite) -> Strategy:
    """s for each matrix, and what it computes of all of them as one list.

    before: xs |> map(x => e)
    after:  xs |> map(x => tiles |> map(t => (x, t))) |> join |> map((x, t) => …) |> …
    """

    def make(term: Expr) -> Strategy:
        if rearranges(term):
            return argument(tiles_of_all(s))
        match dimensions(term) if isinstance(term.type, Array) else 0:
            case 2:
                return seq(s)
            case several if several > 2:
                return seq(mapped(tiles_of_all(s)), _in_one_list)
            case _:
                return check(lambda _: False, "tiles_of_all", NO_ROWS)

    return depending(make)


@prints_as_call
def last_first(s: Rewrite) -> Strategy:
    """s for a map; where its folds skip elements, from the last element to the first.

    A causal mask leaves most to the last rows: what takes longest starts first.

    before: xs |> map(x => … select(p, e, state) …)
    after:  s(xs |> reorder(n, i => n - 1 - i, …) |> map(…)) |> reorder(n, i => n - 1 - i, …)
    """

    def make(term: Expr) -> Strategy:
        count = shape(term.type)[0][0].value if isinstance(term.type, Array) else None
        if count is None or count == 1 or not any(map(_skips, subterms(term))):
            return seq(s)
        return seq(RASTERISE_BACKWARDS.with_sizes(n=count), argument(s))

    return depending(make)


@prints_as_call
def long_with_short(s: Rewrite) -> Strategy:
    """s for a map; where its folds skip elements, for the map over pairs of its first and last elements.

    A causal mask leaves most to the last rows: every pair has as much to do.

    before: xs |> map(x => … select(p, e, state) …)
    after:  s(xs |> reorder(n, …) |> split(2) |> map(pair => pair |> mapSeq(…))) |> join |> reorder(n, …)
    """

    def make(term: Expr) -> Strategy:
        count = shape(term.type)[0][0].value if isinstance(term.type, Array) else None
        if count is None or count % 2 or not any(map(_skips, subterms(term))):
            return last_first(s)
        pairs = seq(a.SPLIT_JOIN.with_sizes(n=2), argument(seq(mapped(low.MAP_SEQ), s)))
        return seq(IN_PAIRS.with_sizes(n=count), argument(pairs))

    return depending(make)


def _skips(term: Expr) -> bool:
    match term:
        case Lambda(state, Lambda(_, body)):
            return guarded(state, body)[0] is not None
        case _:
            return False


def _check_cluster(cluster: int, columns: int, blocks: int, loads: bool) -> None:
    """Refuses clusters whose blocks would not share what they load."""
    if cluster < 1:
        raise StrategyError("R0609", f"one_pass: cluster = {cluster} must be at least 1")
    if not loads:
        message = f"one_pass: cluster is {cluster}: only a warpgroup that loads sends tiles to other blocks"
        raise StrategyError("R0609", message, hint="use `fragment=64 warp_specialised=true`, or `cluster=1`")
    if columns % (cluster * PATTERN_ROWS):
        message = f"one_pass: columns by cluster: {cluster * PATTERN_ROWS} does not divide {columns}"
        raise StrategyError("R0604", message, hint="each block loads whole patterns of swizzled rows")
    if blocks % cluster:
        raise StrategyError("R0604", f"one_pass: blocks by cluster: {cluster} does not divide {blocks}")


@searched(
    rows=(128, 64, 192, 256),
    columns=(128, 32, 64, 256),
    stages=(2, 1, 3, 4),
    warp_specialised=(True, False),
    blocks=(0, 132),
    cluster=(1, 2),
    bulk_stores=(True, False),
    fragment=(64, 32, 16),
    parts=(1, 2, 4, 8),
)
@prints_as_call
def one_pass(
    rows: int = 128,
    columns: int = 128,
    stages: int = 2,
    warp_specialised: bool = True,
    blocks: int = 0,
    bulk_stores: bool = True,
    fragment: int = 64,
    vector: int = 8,
    parts: int = 1,
    ahead: int = 0,
    skewed: bool = False,
    turns: bool = False,
    cluster: int = 1,
    early_maxima: bool = False,
) -> Strategy:
    """Products and reductions of their rows in one kernel: attention, chains, norms.

    rows:    of a block
    columns: of a block of what is reduced
    stages:  how many blocks of the operands are in shared memory
    warp_specialised: of warpgroups, one only loads
    blocks:  at most so many, each of which computes several tiles; 0: a block for each tile
    bulk_stores: results of warpgroups leave through shared memory
    fragment: rows of a fragment, and of a worker: 64 of a warpgroup (sm_90a), 16 or 32 of a warp (sm_80)
    vector:  elements that a thread of a warp copies at once: they have to divide the rows of operands
    parts:   of what is reduced, each by blocks of its own; a second kernel computes what they are together
    ahead:   slots for the rows of tiles, which the warpgroup that loads fills ahead; 0: one, by who computes
    skewed:  where a warpgroup loads, a step ends behind the first products of the next one
    turns:   warpgroups start the products of steps one after the other
    cluster: so many blocks of neighbouring rows load the operands together, each a part, by multicast
    early_maxima: the maximum of what a monotone function makes of products is taken of the products
    """
    workers = workers_on(fragment)
    if rows < fragment or rows % fragment:
        raise StrategyError("R0604", f"one_pass: rows by fragment: {fragment} does not divide {rows}")
    if parts < 1:
        raise StrategyError("R0609", f"one_pass: parts = {parts} must be at least 1")
    if cluster != 1:
        _check_cluster(cluster, columns, blocks, workers.family is Family.WGMMA and warp_specialised)
    count = rows // fragment
    in_bulk = workers.family is Family.WGMMA
    copies = TileCopy(
        workers.threads * count, vector, padding=8, asynchronous=vector * OPERAND_BYTES >= ASYNCHRONOUS,
        swizzled=True, bulk=in_bulk,
    )  # fmt: skip
    specialised = in_bulk and warp_specialised
    behind = _zeros_beside if in_bulk else _zeros
    early = top_down(s.COPY_AHEAD.with_sizes(s=ahead, p=1, c=count)) if ahead and specialised else id_
    whole_tile = seq(
        everywhere(FACTOR_OF_MASK),
        try_(BLOCKS_OF_A_MASK.with_sizes(n=columns)),
        try_(NUMBERS_APART),
    )
    block = low.MAP_BLOCK.with_sizes(d=0)
    by_workers = seq(
        a.SPLIT_JOIN.with_sizes(n=fragment),
        argument(
            seq(
                mapped(in_one_pass(columns, early_maxima)),
                arguments(2, resident(copies, early)),
                FOLD_OF_MAPS,
                everywhere(computing(workers.level)),
            )
        ),
    )
    # what a mask says of blocks of columns is said of all rows of a cluster: its blocks take the same steps
    by_blocks = seq(a.SPLIT_JOIN.with_sizes(n=rows), argument(seq(mapped(by_workers), block)))
    of_tile = seq(whole_tile, by_workers if cluster == 1 else by_blocks)
    of_all = rows * cluster

    def of_matrix(order: Strategy) -> Strategy:
        tiles = argument(seq(try_(NUMBERS_OF_TILES), mapped(of_tile), order))
        of_rows = seq(a.SPLIT_JOIN.with_sizes(n=of_all), tiles)
        return whole_fragments(fragment, whole_rows(of_all, of_rows, behind))

    in_turn = top_down(low.IN_TURN if skewed else choice(*low.STEP_IN_TURN)) if turns else id_
    overlapped = seq(top_down(choice(*low.SKEW)) if skewed else id_, in_turn)
    roles = seq(specialise(stages, count), overlapped) if specialised else id_
    stored = stored_in_bulk if in_bulk and bulk_stores else id_
    staged = seq(stage(copies, stages), id_ if in_bulk else copied(copies), roles, stored)

    # a block for each tile, or a cluster
    each = block if cluster == 1 else low.MAP_CLUSTER.with_sizes(d=0)
    persist = low.BLOCKS_PERSIST if cluster == 1 else low.CLUSTERS_PERSIST

    def over_matrices(term: Expr) -> Strategy:
        counts, matrix = counted(term)
        is_matrix = isinstance(matrix.type, Array) and dimensions(matrix) == 2
        tiles = -(-(shape(matrix.type)[0][0].value or 0) // of_all) if is_matrix else 0
        persists = 0 < blocks < tiles * cluster * prod(counts)
        if not persists and cluster == 1:
            return each_matrix(seq(in_one_map, of_matrix(last_first(block))))
        if not persists:
            return seq(tiles_of_all(seq(in_one_map, of_matrix(last_first(id_)))), outermost_map(each))
        persistent = seq(each, persist.with_sizes(d=0, p=blocks // cluster))
        # of tiles in pairs, the copying unit can bring only those that are inside
        order = long_with_short if missing(shape(matrix.type)[0][0], of_all) is None else last_first
        return seq(tiles_of_all(seq(in_one_map, of_matrix(order(id_)))), outermost_map(persistent))

    kernel = seq(depending(over_matrices), staged)
    all_rows = seq(one_map, kernel if parts == 1 else in_parts(parts, columns, kernel))
    return complete(in_inputs(seq(normalize(view_inlined), at_computed(all_rows))))
