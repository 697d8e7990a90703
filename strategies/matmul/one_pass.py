"""Products, and reductions of their rows, in one pass over the second operand: attention, chains, norms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import staging as s
from rewrites.exponentials import EXP2_OF_DIFFERENCE, EXP2_OF_PRODUCT, EXP_AS_EXP2, RECIPROCAL
from rewrites.folds import FACTORS
from rewrites.masks import BLOCKS_OF_A_MASK, FACTOR_OF_MASK, NUMBERS_OF_TILES
from rewrites.movement import ZIP_MAP_FIRST, ZIP_MAP_SECOND
from rewrites.orders import RASTERISE_BACKWARDS
from rewrites.rolling import ROLLING
from rewrites.rounding import EMPTY_AS_ZEROS, ROUND_UP
from rewrites.rows import FOLD_OF_MAPS, ROWS_ON_FRAGMENTS, guarded
from rise.expr import Expr, Lambda, call, subterms
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
    repeat,
    seq,
    top_down,
    try_,
)
from strategies.matmul.bulk import stored_in_bulk
from strategies.matmul.constraints import pattern
from strategies.matmul.grid import computing
from strategies.matmul.products import rank
from strategies.matmul.rounding import longer_inward, missing
from strategies.matmul.staging import TileCopy, specialise, stage
from strategies.places import arguments, in_inputs, mapped
from strategies.settings import searched

WARPGROUP_ROWS = 64  # of an accumulator of wgmma
DEPTH = 16  # of an operand of 16-bit elements
NO_ROWS = "expected a matrix, or an array of matrices, by rows: `xs |> map(f)`"


@prints_as_call
def in_one_pass(columns: int) -> Strategy:
    """A map over rows as a fold over blocks of the columns of what it computes first, on fragments.

    before: q |> map(row => softmax(K·row)·V)
    after:  zip(K |> split(columns))(V |> split(columns)) |> reduceSeq(…) |> …
    """
    powers = seq(everywhere(EXP_AS_EXP2), everywhere(EXP2_OF_DIFFERENCE), everywhere(EXP2_OF_PRODUCT))
    return seq(
        try_(FACTORS),
        ROLLING.with_sizes(n=columns),
        powers,
        everywhere(RECIPROCAL),
        ROWS_ON_FRAGMENTS.with_sizes(k=DEPTH),
    )


def _resident(term: Expr) -> Strategy:
    """The rows of a block in shared memory, in panels as wide as a swizzling pattern."""
    type_, copy = term.type, s.IN_BULK
    if isinstance(type_, Array) and isinstance(type_.element, Pair):
        type_, copy = Array(type_.size, type_.element.first), s.FIRST_IN_BULK
    sizes, element = shape(type_)
    if len(sizes) != 2 or not isinstance(element, Scalar) or element.bytes != 2:
        return id_
    length = (sizes[1].value or 0) * element.bytes
    width = pattern(length)
    if not width:
        return id_
    panels = id_ if length == width else top_down(s.PANELS[0].with_sizes(w=width // element.bytes))
    return seq(copy.with_sizes(b=width), panels)


resident: Strategy = depending(_resident)


@prints_as_call
def whole_rows(rows: int, s: Rewrite) -> Strategy:
    """s for a map over rows whose number is a multiple of `rows`; behind the last rows are zeros.

    before: xs |> map(f)
    after:  (s (xs with zeros behind its end |> map(f))) |> take(n)
    """

    def make(term: Expr) -> Strategy:
        more = missing(shape(term.type)[0][0], rows)
        if not more:
            return seq(s)
        return seq(ROUND_UP.with_sizes(p=more), argument(seq(longer_inward, normalize(EMPTY_AS_ZEROS), s)))

    return depending(make)


@prints_as_call
def each_matrix(s: Rewrite, shares: tuple[int, ...] = ()) -> Strategy:
    """s for a matrix, or for each of an array of matrices, or of an array of such arrays.

    shares: by how many blocks each of these arrays is shared out, outermost first; without, by one for each

    before: zip(A)(B) |> map((a, b) => e) |> join
    after:  zip(A)(B) |> mapBlock(1)((a, b) => s(e)) |> join
    """

    def make(term: Expr) -> Strategy:
        if rearranges(term):
            return argument(each_matrix(s, shares))
        match rank(term):
            case 2:
                return seq(s)
            case 3 | 4 as dimensions:
                d = dimensions - 2
                share = [low.BLOCKS_PERSIST.with_sizes(d=d, p=shares[0])] if shares else []
                over = seq(low.MAP_BLOCK.with_sizes(d=d), *share)
                return seq(mapped(each_matrix(s, shares[1:])), over)
            case _:
                return check(lambda _: False, "each_matrix", NO_ROWS)

    return depending(make)


def rearranges(term: Expr) -> bool:
    """Whether a term only gives an array another form."""
    found = call(term)
    return found is not None and found[0] in ("join", "split", "transpose")


def counted(term: Expr) -> tuple[list[int], Expr]:
    """The sizes of arrays of matrices, outermost first, and the matrix that they are made of."""
    counts: list[int] = []
    while rank(term) > 2 or rearranges(term):
        match call(term):
            case _, _, [inner] if rearranges(term):
                term = inner
            case "map", _, [Lambda(_, inner), _] if isinstance(term.type, Array):
                counts.append(term.type.size.value or 0)
                term = inner
            case _:
                break
    return counts, term


def shared_out(counts: Sequence[int], blocks: int) -> tuple[int, ...]:
    """By how many blocks arrays in arrays are shared out, of so many in all, in the fewest rounds."""
    if not counts:
        return ()
    outermost, *others = counts
    found = [(share, *shared_out(others, blocks // share)) for share in range(1, min(outermost, blocks) + 1)]
    return min(found, key=lambda shares: prod(-(-n // p) for n, p in zip(counts, shares, strict=True)))


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


def _skips(term: Expr) -> bool:
    match term:
        case Lambda(state, Lambda(_, body)):
            return guarded(state, body)[0] is not None
        case _:
            return False


@searched(
    rows=(128, 64, 192, 256),
    columns=(128, 32, 64, 256),
    stages=(2, 1, 3, 4),
    warp_specialised=(True, False),
    blocks=(0, 132),
    bulk_stores=(True, False),
)
@prints_as_call
def one_pass(
    rows: int = 128,
    columns: int = 128,
    stages: int = 2,
    warp_specialised: bool = True,
    blocks: int = 0,
    bulk_stores: bool = True,
) -> Strategy:
    """Products and reductions of their rows in one kernel, by warpgroups: attention, chains, norms.

    rows:    of a block, 64 for each warpgroup
    columns: of a block of what is reduced
    stages:  how many blocks of the operands are in shared memory
    warp_specialised: one warpgroup only loads
    blocks:  at most so many, each of which computes tiles of several matrices; 0: a block for each tile
    bulk_stores: results leave through shared memory
    """
    groups = rows // WARPGROUP_ROWS
    of_tile = seq(
        everywhere(FACTOR_OF_MASK),
        try_(BLOCKS_OF_A_MASK.with_sizes(n=columns)),
        a.SPLIT_JOIN.with_sizes(n=WARPGROUP_ROWS),
        argument(
            seq(
                mapped(in_one_pass(columns)),
                arguments(2, resident),
                FOLD_OF_MAPS,
                everywhere(computing(low.MAP_WARP_GROUP)),
            )
        ),
    )
    of_matrix = whole_rows(
        rows,
        seq(
            a.SPLIT_JOIN.with_sizes(n=rows),
            argument(seq(try_(NUMBERS_OF_TILES), mapped(of_tile), last_first(low.MAP_BLOCK.with_sizes(d=0)))),
        ),
    )
    copies = TileCopy(128 * groups, 8, 0, bulk=True)
    roles = specialise(stages, groups) if warp_specialised else id_
    staged = seq(stage(copies, stages), roles, stored_in_bulk if bulk_stores else id_)
    by_rows = seq(repeat(choice(a.MAP_FUSION, ZIP_MAP_FIRST, ZIP_MAP_SECOND)), of_matrix)

    def over_matrices(term: Expr) -> Strategy:
        counts, matrix = counted(term)
        tiles = -(-(shape(matrix.type)[0][0].value or 0) // rows) if rank(matrix) == 2 else 0
        shares = shared_out(counts, blocks // tiles) if 0 < tiles <= blocks < tiles * prod(counts) else ()
        return each_matrix(by_rows, shares)

    return complete(in_inputs(seq(depending(over_matrices), staged)))
