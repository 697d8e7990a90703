"""Views around arrays of matrices that a program computes: where in its result these are written."""

from __future__ import annotations

from rewrites.maps import MAP_LAST_FISSION
from rewrites.result import Failure, Result
from rise.expr import Expr, Lambda, call
from rise.normal import is_view
from rise.types import shape
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    depending,
    prints_as_call,
    seq,
    try_,
)
from strategies.evaluation import is_rearranged
from strategies.places import computes, mapped

WRITTEN = frozenset({"join", "split", "transpose", "take", "reorder", "prefix", "prefixes", "scatterBy"})
MATRIX = 2  # dimensions


def without_views(term: Expr) -> Expr:
    """The array that views around it put elsewhere."""
    while is_view_of_result(term):
        term = _viewed(term)
    return term


def is_view_of_result(term: Expr) -> bool:
    """Whether a term is a view of an array, or of each of its elements, that results are written through."""
    applied = call(term)
    return (applied is not None and applied[0] in WRITTEN) or is_rearranged(term)


def gives_parts(term: Expr) -> bool:
    """Whether a term unzips an array of pairs, or each array of such in an array."""
    match call(term):
        case "unzip", _, [_]:
            return True
        case "map", _, [Lambda(x, body), _]:
            return gives_parts(body) and is_view(body) and x.name in body.free
        case _:
            return False


def computed_in(term: Expr) -> Expr | None:
    """The array that is computed, a map, below views of it; None where there is none."""
    inner = without_views(term)
    return inner if computes(inner) else None


def matrices_in(term: Expr) -> Expr | None:
    """The array of matrices below views of it: rows of several products in one array."""
    inner = computed_in(term)
    return inner if inner is not None and len(shape(inner.type)[0]) == MATRIX + 1 else None


@prints_as_call
def under_views(s: Rewrite) -> Strategy:
    """s at the matrix, or at the array of matrices, that views around it put elsewhere.

    before: xs |> map(x => A·B) |> join |> take(n)
    after:  s(xs |> map(x => A·B)) |> join |> take(n)
    """

    def run(term: Expr) -> Result:
        inner = computed_in(term)
        if inner is None or inner is term or len(shape(inner.type)[0]) < MATRIX:
            return Failure("under_views", term, "no views are around matrices")
        return at(inner)(term)

    def at(inner: Expr) -> Rewrite:
        return lambda term: s(term) if term is inner else argument(at(inner))(term)

    return FunctionStrategy("under_views", run)


@prints_as_call
def at_computed(s: Rewrite) -> Strategy:
    """s at the matrices that a program computes, whether views put them elsewhere or not."""
    elsewhere = under_views(s)

    def placed(term: Expr) -> Rewrite:
        inner = computed_in(term)
        return s if inner is None or inner is term else elsewhere

    return depending(placed)


def _viewed(term: Expr) -> Expr:
    applied = call(term)
    return term if applied is None else applied[2][-1]


def _views_outward(term: Expr) -> Result:
    match call(term):
        case "map", _, [Lambda(_, body), _] if is_view_of_result(body) and computed_in(body) is not None:
            return seq(MAP_LAST_FISSION, argument(try_(views_outward)))(term)
        case "map", _, [Lambda(_, body), _] if computed_in(body) is not None:
            return seq(mapped(views_outward), try_(views_outward))(term)
        case _ if is_view_of_result(term):
            return argument(views_outward)(term)
        case _:
            return Failure("views_outward", term, "no views are around what a map computes")


# views of what a map computes after the map: matrices are then computed one like the other
#   xs |> map(x => ys |> map(y => A·B) |> transpose)  →  xs |> map(x => ys |> map(y => A·B)) |> map(transpose)
views_outward = FunctionStrategy("views_outward", _views_outward)
