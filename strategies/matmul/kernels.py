"""Programs of several kernels, some of which compute products of matrices."""

from __future__ import annotations

from functools import lru_cache

from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Failure, Result, Success
from rewrites.storing import GLOBAL_FIRST, is_global
from rise.expr import Expr, Lambda, call
from strategies.abstraction import outermost_parts
from strategies.core import FunctionStrategy, Rewrite, Strategy, prints_as_call, seq, try_
from strategies.kernels import each_kernel, stores_first
from strategies.matmul.products import Product, is_product, outline
from strategies.normal_forms import view_inward


@prints_as_call
def each_product_kernel(s: Rewrite, otherwise: Rewrite) -> Strategy:
    """s for the kernels that compute products of matrices, `otherwise` for those before, between and after.

    A program of one kernel is left to s, and so is the last kernel where no other has a product: its failure
    states what is missing.
    """

    def run(term: Expr) -> Result:
        if not is_global(term) and not stores_first(term) and isinstance(GLOBAL_FIRST(term), Failure):
            return s(term)
        by_kind = FunctionStrategy("by_kind", lambda part: (s if has_product(part) else otherwise)(part))
        return each_kernel(by_kind)(term) if has_product(term) else s(term)

    return FunctionStrategy("each_product_kernel", run)


def has_product(term: Expr) -> bool:
    """Whether there is a product of matrices in a term, once it stands by itself."""
    return bool(_products(term))


def multiplies(term: Expr) -> bool:
    """Whether one of the products is of all rows and all columns, and not of each row by itself."""
    return any(not _is_rowwise(product) for product in _products(term))


@lru_cache(maxsize=128)
def _products(term: Expr) -> list[Expr]:
    """The outermost products of a term, once these stand by themselves."""
    outlined = seq(try_(POINTWISE_EACH), view_inward, outline)(term)
    return outermost_parts(outlined.term, is_product) if isinstance(outlined, Success) else []


def _is_rowwise(product: Expr) -> bool:
    """Whether the inner array belongs to the outer element: x => x |> map(reduce(+, 0))."""
    match call(product):
        case _, _, [Lambda(x, _), _]:
            return x.name in Product.of(product).columns.free
        case _:
            return False
