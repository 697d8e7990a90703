"""Matrices of products that are multiplied again in the place of being stored."""

from __future__ import annotations

from math import inf

from rewrites.algorithmic import is_reduction
from rewrites.beside import beside
from rewrites.elements import NotPointwise, holds_arrays
from rewrites.folds import of_rows
from rewrites.lets import named_value
from rewrites.maps import BETA, LET_INLINE
from rewrites.movement import ZIP_MAP_FIRST, ZIP_MAP_SECOND
from rewrites.result import Failure, Result
from rewrites.selection import IDX_GENERATE, IDX_MAP, IDX_ZIP
from rewrites.typed import array_type
from rise.expr import Expr, Identifier, Lambda, application, apply, call, map_children, substitute, subterms
from rise.types import Array
from strategies.core import FunctionStrategy, choice, normalize, seq, try_
from strategies.matmul.kernels import has_product

# of rows beside which there are indices, only the elements that these choose
single_elements = normalize(choice(ZIP_MAP_FIRST, ZIP_MAP_SECOND, IDX_MAP, IDX_GENERATE, IDX_ZIP))
# the terms of a product up to which multiplying again takes less time than storing the matrix: measured
MOST_TERMS = 1024
MOST_TIMES = 2  # a matrix is multiplied: once for its rows, once for its columns


def _recomputed(term: Expr) -> Result:
    """A matrix of products in the place of its name, of which only its rows and its columns are reduced."""
    named = named_value(term)
    if named is None or beside(term) is not None or not has_product(named[0]):
        return Failure("recomputed", term, "no matrix of products has a name")
    value, rest = named
    found: list[Expr] = []
    others = _without_reductions(rest.body, rest.parameter, value, found)
    if rest.parameter.name in others.free or len(found) > MOST_TIMES:
        return Failure("recomputed", term, "the matrix is used otherwise, or often")
    sums = [application(part)[2][2] for part in subterms(value) if is_reduction(part)]
    if any((array_type(xs).size.value or inf) > MOST_TERMS for xs in sums):
        return Failure("recomputed", term, "storing the matrix takes less time than its products")
    return seq(try_(LET_INLINE), BETA, single_elements)(term)


def _without_reductions(term: Expr, matrix: Identifier, value: Expr, found: list[Expr]) -> Expr:
    """A term without the reductions of a matrix that its product's kernel computes, which are collected."""
    if matrix.name not in term.free:
        return term
    if isinstance(term.type, Array) and not holds_arrays(term.type.element):
        reduced = substitute(term, {matrix.name: value})
        if beside(reduced) is not None:
            found.append(term)
            return Identifier("reduced", term.type)
        if _chooses(reduced):
            return Identifier("chosen", term.type)

    def inside(part: Expr) -> Expr:
        return _without_reductions(part, matrix, value, found)

    match term, call(term):
        case Lambda(), _:  # what is in a loop would be computed as often
            return term
        case _, ("let", head, [first, Lambda(x, body)]):
            return apply(head, inside(first), Lambda(x, inside(body)))
        case _:
            return map_children(term, inside)


def _chooses(column: Expr) -> bool:
    """Whether a number for each row takes single products only, as those on a diagonal."""
    try:
        folds = of_rows(column).folds
    except NotPointwise:
        return False
    return not any(is_reduction(part) for fold in folds for part in subterms(fold.body))


recomputed = FunctionStrategy("recomputed", _recomputed)
