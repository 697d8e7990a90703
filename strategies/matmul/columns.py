"""Reductions of the first operand's rows in the loop of a product: norms beside it, from tiles that it loads.

    zip(A·B)(A |> map(reduce(+, 0))) |> map((p, s) => p |> map(x => g(x, h(s))))

A block reduces the rows of its tile of A step by step, from shared memory, while tensor cores multiply. The
sums stay in registers of the threads that hold these rows of the product, and scale them there. Where several
blocks have the same rows, each reduces them again.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites.algorithmic import is_map_of_reductions
from rewrites.columns import COLUMN_ON_FRAGMENTS, ELEMENTS_AS_MAP, STORED_COLUMN
from rewrites.conditions import reshapes
from rewrites.folds import FACTORS
from rewrites.maps import BETA
from rewrites.pointwise import REDUCTIONS_APART
from rewrites.result import Success
from rewrites.tupling import is_fold
from rise.expr import Apply, Expr, Lambda, alpha_equal, application, subterms
from rise.types import Array
from strategies.abstraction import outermost_parts, with_parts_abstracted
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    check,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
    top_down,
    try_,
)
from strategies.matmul.products import Product, at_parts, contains, is_product, outline
from strategies.matmul.tiling import at_step, fuse_tiles
from strategies.normal_forms import form_outward, view_inward
from strategies.places import mapped

DEPTH = 16  # of fragments, on which a column does not depend


def is_product_or_column(term: Expr) -> bool:
    """A product of matrices, or a reduction of each row of a matrix."""
    return is_product(term) or is_map_of_reductions(term)


def columns_of(term: Expr) -> list[Expr]:
    """The reductions of rows beside products."""
    return [part for part in outermost_parts(term, is_product_or_column) if not is_product(part)]


def reduced_matrix(column: Expr) -> Expr:
    """The matrix whose rows are reduced."""
    return application(column)[2][1]


def has_columns(term: Expr) -> bool:
    """Whether rows are reduced beside products, in whatever form."""
    hidden = [id(part) for part in outermost_parts(term, is_product)]
    return any(
        id(part) not in hidden and a.is_reduction(part)
        for part in outermost_parts(term, lambda part: id(part) in hidden or a.is_reduction(part))
    )


def is_of_rows(term: Expr) -> bool:
    """Whether a term is numbers of rows, by reductions of these."""
    return isinstance(term.type, Array) and has_columns(term) and not contains(is_product)(term)


def reduces_first_operand(term: Expr) -> bool:
    """Whether beside the products of an outlined program the rows of their first operand are reduced."""
    columns, products = columns_of(term), outermost_parts(term, is_product)
    firsts = [Product.of(part).rows for part in products]
    beside = (alpha_equal(first, reduced_matrix(c)) for first in firsts for c in columns)
    return bool(columns) and bool(firsts) and all(beside)


@prints_as_call
def beside_products(s: Rewrite) -> Strategy:
    """s where rows are reduced beside products, whose names stand for them meanwhile; else nothing."""
    hidden = with_parts_abstracted(is_product, lambda _: s)
    return depending(lambda term: hidden if has_columns(term) else id_)


# what rows are reduced to, where it is used: each tile has its rows, and what it needs of them
rows_inside: Strategy = beside_products(seq(fuse_tiles, normalize(BETA)))
# each reduction of rows by itself, the tile a function of elements of these and of products
rows_apart: Strategy = beside_products(REDUCTIONS_APART)


@prints_as_call
def reduced_rows(depth: int, rows: int, fragment: int) -> Strategy:
    """The reductions of a tile's rows as folds over its parts along k, columns of fragments as accumulators.

    before: a |> map(row => row |> map(f) |> reduce(op, z))
    after:  a |> map(split(depth)) |> transpose |> reduceSeq((cs, t) => zip(cs)(t |> split(rows)) |> map(…
              zipFragment(t |> asFragment |> mapFragment(f) |> reduceRows(op, z))(c) |> mapFragment(op)), z)

    rows:     of the parts that workers have
    fragment: rows of a fragment
    """
    of_fragment = mapped(COLUMN_ON_FRAGMENTS.with_sizes(k=DEPTH))
    of_worker = seq(_in_parts(fragment), argument(of_fragment), view_inward)
    fold = seq(
        try_(normalize(ELEMENTS_AS_MAP)),
        top_down(a.BLOCK_REDUCE.with_sizes(n=depth)),
        view_inward,
        a.LIFT_REDUCE,
        view_inward,
        top_down(
            seq(check(is_fold, "a reduction"), at_step(seq(_in_parts(rows), argument(mapped(of_worker)))))
        ),
        form_outward,
        view_inward,
        normalize(STORED_COLUMN),
    )
    each = at_parts(is_map_of_reductions, "reduced_rows", "no rows are reduced", fold)
    return beside_products(each)


def _in_parts(rows: int) -> Strategy:
    return seq(a.SPLIT_JOIN.with_sizes(n=rows), view_inward)


def _is_applied_to_form(term: Expr) -> bool:
    return isinstance(term, Apply) and isinstance(term.function, Lambda) and reshapes(term.argument)


# names for columns, and for matrices of fragments, are replaced by these: none is stored
forms_in_place: Strategy = normalize(
    seq(check(_is_applied_to_form, "forms_in_place", "something is computed"), BETA)
)


def _several_reductions(term: Expr) -> bool:
    """A cheap check: whether a term is numbers by more than one reduction."""
    return isinstance(term.type, Array) and sum(map(a.is_reduction, subterms(term))) > 1


def _is_beside(term: Expr) -> bool:
    outlined = seq(view_inward, outline)(term)
    return isinstance(outlined, Success) and reduces_first_operand(outlined.term)


# factors of rows stand outside of sums of products, also where that moves them out of roundings
scales_outside: Strategy = seq(
    check(_several_reductions, "scales_outside", "rows are not reduced beside a product"),
    try_(FACTORS),
    check(_is_beside, "scales_outside", "no rows of a product's first operand are reduced"),
)
