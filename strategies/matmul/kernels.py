"""Programs of several kernels, some of which compute products of matrices."""

from __future__ import annotations

from functools import lru_cache

from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Failure, Result, Success
from rewrites.storing import GLOBAL_FIRST, is_global
from rise.expr import Expr
from strategies.core import FunctionStrategy, Rewrite, Strategy, prints_as_call, seq, try_
from strategies.kernels import each_kernel, stores_first
from strategies.matmul.products import contains, is_product, outline
from strategies.normal_forms import view_inward
from strategies.result_views import computed_in


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


@lru_cache(maxsize=128)
def has_product(term: Expr) -> bool:
    """Whether there is a product of matrices in a term, once it stands by itself."""
    outlined = seq(try_(POINTWISE_EACH), view_inward, outline)(computed_in(term) or term)
    return isinstance(outlined, Success) and contains(is_product)(outlined.term)
