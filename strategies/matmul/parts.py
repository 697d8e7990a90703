"""Reductions in parts: a kernel computes those of each part, a second one what the parts are together."""

from __future__ import annotations

from rewrites.algorithmic import GENERATE_AS_MAP, MAP_IDENTITY, is_reduction
from rewrites.elements import NotPointwise
from rewrites.folds import FACTORS, of_rows
from rewrites.lowering import MAP_GLOBAL
from rewrites.maps import MAP_LAST_FISSION
from rewrites.masks import FACTOR_OF_MASK
from rewrites.memory import IN_GLOBAL
from rewrites.movement import DROP_UNUSED
from rewrites.parts import IN_PARTS
from rewrites.split_k import JOIN_MAPS
from rewrites.storing import APPLIED_AS_LET, GLOBAL_FIRST, STORED_BEFORE_MAP
from rewrites.zips import UNZIP_MAP
from rise.expr import Expr, Lambda, call, subterms
from rise.normal import is_view
from rise.types import Array, Pair, Type
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    everywhere,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.default import LOOP, folds, written
from strategies.normal_forms import view_inlined
from strategies.operands import each_operand, in_function, nth_operand, operand
from strategies.places import computes, mapped

NO_ROWS = "expected a matrix, or an array of matrices, by rows: `xs |> map(f)`"
GRID_DIMENSIONS = 3


def depth(type_: Type) -> int:
    """How many dimensions the largest array in a tuple has."""
    match type_:
        case Array(_, element):
            return 1 + depth(element)
        case Pair(first, second):
            return max(depth(first), depth(second))
        case _:
            return 0


def dimensions(term: Expr) -> int:
    """How many dimensions an array of matrices has; those of a column, a number for each row, are two."""
    return depth(term.type) + _is_column(term)


def _is_column(term: Expr) -> bool:
    """Whether an array has a number for each row: its innermost index is one that products depend on."""
    while depth(term.type) > 1 or rearranges(term):
        match call(term):
            case "map", _, [Lambda(_, body), _]:
                term = body
            case _, _, [inner] if rearranges(term):
                term = inner
            case _:
                return False
    if not isinstance(term.type, Array):
        return False
    try:
        found = of_rows(term)
    except NotPointwise:
        return False
    terms = (part for fold in found.folds for part in subterms(fold.body))
    return any(is_reduction(part) and found.row.name in part.free for part in terms)


def rearranges(term: Expr) -> bool:
    """Whether a term only gives an array another form."""
    found = call(term)
    return found is not None and found[0] in ("join", "split", "transpose", "unzip")


@prints_as_call
def in_parts(parts: int, multiple: int, s: Rewrite) -> Strategy:
    """Reductions over one index in so many parts, which are stored, and what they are together.

    before: xs |> map(x => q |> map(row => softmax(K·row)·V))
    after:  let parts = s(xs |> map(x => blocks of K, V |> map(b => q |> map(row => (o, (r, t)))))) in
              parts |> mapGlobal(2)(p => … |> mapGlobal(1)(…) |> mapGlobal(0)(…))

    multiple: a part has a multiple of so many elements
    s:        for the array of the parts, one of matrices for each matrix
    """
    return seq(
        parts_stored(parts, multiple),
        nth_operand(0, operand(s)),
        nth_operand(1, in_function(over_grid)),
    )


@prints_as_call
def parts_stored(parts: int, multiple: int) -> Strategy:
    """Reductions in so many parts, which are stored before what they are together.

    before: xs |> map(x => m)
    after:  let parts = xs |> map(x => m in parts) |> toMem(Global) in zip(xs)(parts) |> map(…)
    """

    def of_matrix(term: Expr) -> Strategy:
        try:
            length = of_rows(term).folds[0].size
        except (NotPointwise, IndexError):
            return check(lambda _: False, "parts_stored", "expected a matrix of reductions")
        if length is not None and length.value is None:
            open_ = f"{length} elements, which are known at launch only, are not divided into {parts} parts"
            return check(lambda _: False, "parts_stored", open_)
        size = -(-(length.value or 0) // parts) if length is not None else 0
        return IN_PARTS.with_sizes(n=max(-(-size // multiple), 1) * multiple)

    first = seq(
        everywhere(FACTOR_OF_MASK),
        try_(FACTORS),
        depending(of_matrix),
        APPLIED_AS_LET,
        nth_operand(0, IN_GLOBAL),
        nth_operand(1, in_function(GENERATE_AS_MAP)),
    )

    def make(term: Expr) -> Strategy:
        if rearranges(term):
            return seq(argument(depending(make)), GLOBAL_FIRST)
        if dimensions(term) == 2:
            return first
        if computes(term):
            return seq(mapped(depending(make)), STORED_BEFORE_MAP)
        return check(lambda _: False, "parts_stored", NO_ROWS)

    return depending(make)


_tidied = normalize(
    choice(
        view_inlined,
        UNZIP_MAP,
        DROP_UNUSED,
        MAP_IDENTITY,
    )
)


def _over_grid(term: Expr) -> Strategy:
    again, outer = depending(_over_grid), depth(term.type)
    if isinstance(term.type, Pair):
        return each_operand(again)
    if rearranges(term):
        return argument(again)
    match call(term):
        case "generate", _, _:
            return seq(GENERATE_AS_MAP, again)
        case "map", _, [Lambda(_, body), _] if is_view(body):
            return argument(again)
        case "map", _, [Lambda(_, body), _] if rearranges(body):
            return seq(MAP_LAST_FISSION, again)
    if outer > GRID_DIMENSIONS:
        return seq(JOIN_MAPS, again)
    return seq(mapped(again if outer > 1 else written(LOOP)), MAP_GLOBAL.with_sizes(d=outer - 1))


# what is computed element by element: dimensions of arrays over those of the grid, reductions in loops
over_grid: Strategy = seq(_tidied, folds, depending(_over_grid))
