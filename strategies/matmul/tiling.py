"""Tiles of results, their order, the sums of a tile in blocks: each phase finds its place by structure."""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import movement as m
from rewrites.loops import VIEW_INTO_FOLD
from rewrites.maps import MAP_LAST_FISSION
from rewrites.prologue import ZIP_MAP_OUT_FIRST, ZIP_MAP_OUT_SECOND
from rewrites.rasterise import RASTERISE, RASTERISE_TO_THE_END
from rewrites.reductions import FOLD_OF_SUMS, REDUCE_TREE
from rewrites.result import Failure, Result
from rewrites.tupling import (
    SHARE_FIRST,
    SHARE_FIRST_WITH,
    SHARE_SECOND,
    SHARE_WITH_FIRST,
    TUPLING,
    folds_of,
    is_fold,
    shared,
)
from rewrites.zips import ZIP_REPEATED, ZIP_SAME
from rise.expr import Expr, Lambda, Primitive, application, call, subterms
from rise.nat import Nat, divides, nat
from rise.types import shape
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    at_child,
    bottom_up,
    check,
    choice,
    depending,
    function,
    id_,
    normalize,
    prints_as_call,
    repeat,
    seq,
    top_down,
    try_,
)
from strategies.matmul.products import at_parts, at_products, rank
from strategies.normal_forms import fuse_once, view_inward
from strategies.places import arguments, computes, mapped

MATRIX = 2  # dimensions

# two maps over tiles as one, whatever else happens to the tiles
flatten: Strategy = seq(normalize(choice(a.FLATTEN_INNER, a.FLATTEN_PART, a.FLATTEN)), view_inward)


# --- places -----------------------------------------------------------------------------------------------


@prints_as_call
def in_zips(s: Rewrite) -> Strategy:
    """s at a zip in a component of the zip that a term is, or in one of its components."""

    def component(term: Expr) -> Result:
        applied = call(term)
        if applied is None or applied[0] != "zip":
            return Failure("in_zips", term, "expected a zip")
        return choice(s, inside)(term)

    def inside(term: Expr) -> Result:
        return choice(argument(component), function(argument(component)))(term)

    return FunctionStrategy("in_zips", inside)


@prints_as_call
def in_tile(s: Rewrite, dimensions: int = MATRIX) -> Strategy:
    """s at a tile, of a matrix or an array of so many dimensions: in the body of the maps that compute tiles.

    before: e |> map(f) |> join, where f(x) is a matrix
    after:  e |> map(x => s(f(x))) |> join
    """

    def run(term: Expr) -> Result:
        if not computes(term):
            return argument(run)(term)
        body = call(term)[2][0].body  # type: ignore[index, union-attr]  # of a map's function
        return mapped(s if rank(body) <= dimensions else run)(term)

    return FunctionStrategy("in_tile", run)


@prints_as_call
def at_folds(s: Rewrite) -> Strategy:
    """s at every outermost fold: at the sums over tiles that `tile_reduction` makes."""
    return at_parts(is_fold, "at_folds", "no sum is in blocks: `tile_reduction` comes before", s)


@prints_as_call
def at_step(s: Rewrite) -> Strategy:
    """s in the body of the step function of a fold.

    before: xs |> reduceSeq((acc, x) => e, y)
    after:  xs |> reduceSeq((acc, x) => s(e), y)
    """

    def run(term: Expr) -> Result:
        if not is_fold(term):
            return Failure("at_step", term, "expected a reduction")
        # reduceSeq(step)(initial)(xs): step is an argument two applications in
        return at_child(0, lambda f: at_child(0, lambda g: at_child(1, two_bodies, g), f), term)

    def two_bodies(term: Expr) -> Result:
        return at_child(0, lambda inner: at_child(0, s, inner), term)

    return FunctionStrategy("at_step", run)


# --- tiles ------------------------------------------------------------------------------------------------

# maps in the components of a zip, and of the zips in these, fused with the map over it
in_components: Strategy = in_zips(choice(ZIP_MAP_OUT_FIRST, ZIP_MAP_OUT_SECOND))
fuse_tiles: Strategy = repeat(
    choice(fuse_once, argument(choice(ZIP_SAME, ZIP_REPEATED)), argument(in_components))
)
# tiles of operands beside each other, views next to what they rearrange
in_tiles: Strategy = seq(view_inward, fuse_tiles, try_(mapped(seq(view_inward, fuse_tiles))), view_inward)


@prints_as_call
def tile_output(rows: int, columns: int, in_list: bool = False) -> Strategy:
    """A matrix by tiles of rows × columns.

    before: A |> map(row => B |> map(column => f(row)(column)))
    after:  A |> split(rows) |> map(a => B |> split(columns) |> map(b =>
              a |> map(row => b |> map(column => f(row)(column))))) |> …

    in_list: one map over all tiles, row by row, whose order can be changed. Where a row of the matrix is not
             known to be whole tiles, there are two maps all the same.
    """
    by_rows = seq(m.TILE.with_sizes(bm=rows, bn=columns), arguments(3, in_tiles))

    def make(term: Expr) -> Strategy:
        if rank(term) != MATRIX:
            return by_rows
        across = shape(term.type)[0][1].exact_quotient(nat(columns))
        if across is None:
            return by_rows
        tile = m.TILE_FLAT.with_sizes(bm=rows, bn=columns, c=across)
        return seq(tile, arguments(4, seq(argument(in_tiles), flatten)))

    return depending(make) if in_list else by_rows


@prints_as_call
def parts(rows: int, columns: int) -> Strategy:
    """A matrix by tiles in one list, with views next to what they rearrange: a block's tile by warps.

    before: zip(C)(A) |> map((cs, row) => …)
    after:  … |> map((c, (a, b)) => zip(c)(a) |> map(…)) |> split(n / columns) |> …
    """

    def make(term: Expr) -> Strategy:
        if rank(term) != MATRIX:
            return check(lambda _: False, "parts", f"expected a matrix, found `{term.type}`")
        width = shape(term.type)[0][1]
        if not divides(columns, width):
            return check(
                lambda _: False, "parts", f"{columns} does not divide {width}, the columns of a tile"
            )
        tile = m.TILE_FLAT.with_sizes(bm=rows, bn=columns, c=width.exact_quotient(nat(columns)) or 1)
        return seq(tile, arguments(4, seq(view_inward, flatten)))

    return depending(make)


@prints_as_call
def fragment_tiles(rows: int, columns: int) -> Strategy:
    """A matrix by tiles of the size of an instruction's result.

    before: zip(C)(A) |> map((cs, row) => …)
    after:  zip(C |> split(rows))(A |> split(rows)) |> map((c, a) => … |> map((c, b) => …)) |> …
    """
    return seq(m.TILE.with_sizes(bm=rows, bn=columns), arguments(3, view_inward))


# --- the sums of a tile -----------------------------------------------------------------------------------


@prints_as_call
def in_blocks(size: int) -> Strategy:
    """The sums of a matrix in blocks of `size`, and the loop over blocks outside of the maps over elements.

    before: A |> map(row => B |> map(column => zip(row)(column) |> map(×) |> reduce(+, 0)))
    after:  zip(A |> map(split(size)) |> transpose)(B |> …) |> reduceSeq((acc, (a, b)) =>
              zip(acc)(a) |> map((cs, row) => zip(cs)(b) |> map((c, column) => c + …)), 0)
    """
    return seq(
        top_down(a.BLOCK_REDUCE.with_sizes(n=size)),
        view_inward,
        normalize(a.REDUCE_FROM),
        bottom_up(a.LIFT_REDUCE),
        view_inward,
        bottom_up(a.LIFT_REDUCE),
        view_inward,
    )


# a fold keeps the innermost of its sums' three dimensions outermost
_innermost_out: Strategy = seq(
    m.INNERMOST_OUT, arguments(3, VIEW_INTO_FOLD), arguments(2, seq(VIEW_INTO_FOLD, view_inward))
)


@prints_as_call
def in_slices(size: int, width: int) -> Strategy:
    """The sums of a matrix in blocks of `size`, in which each slice has sums of its own until the end.

    before: A |> map(row => B |> map(column => zip(row)(column) |> map(×) |> reduce(+, 0)))
    after:  zip(A |> map(split(size)) |> transpose)(B |> …) |> reduceSeq((accs, (a, b)) =>
              zip(accs)(zip(a |> map(split(width)) |> transpose)(b |> …)) |> map((acc, (a, b)) => …), 0)
              |> transpose |> map(transpose) |> map(map(reduce(+, 0)))
    """
    sums = seq(
        top_down(a.BLOCK_REDUCE.with_sizes(n=size)),
        top_down(seq(at_step(top_down(REDUCE_TREE.with_sizes(n=width))), FOLD_OF_SUMS)),
        view_inward,
        normalize(choice(m.ZIP_MAP_SECOND, a.MAP_FUSION)),
    )
    lifted = seq(bottom_up(a.LIFT_REDUCE), view_inward, bottom_up(a.LIFT_REDUCE))
    return seq(sums, mapped(MAP_LAST_FISSION), MAP_LAST_FISSION, argument(seq(lifted, _innermost_out)))


@prints_as_call
def tile_reduction(size: int) -> Strategy:
    """Every product of matrices as a fold over tiles with `size` of k, whose step multiplies two tiles.

    before: a |> map(row => b |> map(column => dot(row, column)))
    after:  zip(a |> …)(b |> …) |> reduceSeq((acc, (a, b)) => acc + a·b, 0)
    """
    return at_products(in_blocks(size))


def _all_in_reach(term: Expr) -> bool:
    """Whether no fold that uses variables bound in a term shares what the folds of the term itself share."""
    here = list(folds_of(term))
    if len(here) < 2:
        return True
    further = [fold for fold in subterms(term) if is_fold(fold) and not any(fold is known for known in here)]
    return not any(shared(fold, known) for fold in further for known in here)


_shared: Strategy = seq(
    top_down(choice(SHARE_FIRST, SHARE_SECOND, SHARE_WITH_FIRST, SHARE_FIRST_WITH, ZIP_SAME)), view_inward
)
# products of a tile that share an operand as one fold, which loads it once
tupled: Strategy = try_(
    repeat(
        top_down(
            seq(check(_all_in_reach, "tupled", "more folds share it further in"), TUPLING, argument(_shared))
        )
    )
)


# --- their order ------------------------------------------------------------------------------------------


@prints_as_call
def raster(group: int, together: int = 1) -> Strategy:
    """The tiles of a list in groups of so many rows, column by column in each: neighbours share operands.

    before: e |> map(f) |> split(c)
    after:  e |> reorder(…) |> map(f) |> reorder(…) |> split(c)

    together: so many neighbours in a column stay neighbours in the last group, if that has fewer rows

    Tiles that are in two maps stay as they are, and so do all with a group of 0.
    """

    def run(term: Expr) -> Result:
        applied = call(term)
        if applied is not None and applied[0] == "split" and computes(applied[2][0]):
            across = applied[1].arguments[0]
            if isinstance(across, Nat):
                return argument(in_groups(shape(applied[2][0].type)[0][0], across))(term)
        return argument(run)(term)

    def in_groups(tiles: Nat, across: Nat) -> Strategy:
        rows = tiles.exact_quotient(across)
        count = rows.value if rows is not None else None
        if count is None or count % group == 0 or count % together or group % together:
            return RASTERISE.with_sizes(g=group, c=across)
        if count < group:
            return RASTERISE.with_sizes(g=count, c=across)
        whole, left = divmod(count, group)
        parts = {"g": group // together, "h": left // together, "s": together}
        return RASTERISE_TO_THE_END.with_sizes(q=whole, c=across, **parts)

    return if_in_list(FunctionStrategy("raster", run)) if group else id_


@prints_as_call
def if_in_list(s: Rewrite) -> Strategy:
    """s where tiles are in one list, nothing where they are in two maps, by rows and columns."""
    return depending(lambda term: id_ if in_two_maps(term) else s)


def in_two_maps(term: Expr) -> bool:
    """Whether the tiles of a matrix are under two maps, or over two dimensions of the grid."""
    for part in subterms(term):
        if isinstance(part, Primitive) and part.name == "mapBlock" and part.arguments[0] == nat(1):
            return True
    while not computes(term):
        applied = call(term)
        if applied is None or not applied[2]:
            return False
        term = applied[2][-1]
    function_ = application(term)[2][0]
    return isinstance(function_, Lambda) and rank(function_.body) > 2
