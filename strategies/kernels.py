"""Programs of several kernels: what is stored in global memory on the way ends one.

`toMem(Global)` says where. Each value that it stores is a program by itself, for the whole grid, and so is
what is made of them in the end; a schedule lowers each of these programs as if it stood alone.
"""

from __future__ import annotations

from rewrites.memory import NOT_STORED
from rewrites.result import Failure, Result, Success
from rewrites.storing import GLOBAL_FIRST, is_global
from rise.expr import Expr, call
from strategies.core import Rewrite, Strategy, seq
from strategies.normal_forms import view_inward
from strategies.operands import in_function, nth_operand, operand
from strategies.products import contains, is_product, outline


def each_kernel(s: Rewrite) -> Strategy:
    """s for the program of each kernel: those whose results are stored in global memory, then the last.

    A result is in global memory anyway: that it is stored there says nothing.
    """

    def run(term: Expr) -> Result:
        if is_global(term):
            return seq(NOT_STORED, run)(term)
        if isinstance(GLOBAL_FIRST(term), Success):
            return seq(GLOBAL_FIRST, run)(term)
        if not stores_first(term):
            return s(term)
        return seq(nth_operand(0, operand(s)), nth_operand(1, in_function(run)))(term)

    return Strategy("each_kernel", run)


def stores_first(term: Expr) -> bool:
    """Whether a term is a let of what is stored in global memory."""
    applied = call(term)
    return applied is not None and applied[0] == "let" and is_global(applied[2][0])


def each_product_kernel(s: Rewrite, otherwise: Rewrite) -> Strategy:
    """s for the kernels that compute products of matrices, `otherwise` for those before, between and after.

    A program of one kernel is left to s, and so is the last kernel where no other has a product: its failure
    says what is missing.
    """

    def run(term: Expr) -> Result:
        if not is_global(term) and not stores_first(term) and isinstance(GLOBAL_FIRST(term), Failure):
            return s(term)
        by_kind = Strategy("by_kind", lambda part: (s if has_product(part) else otherwise)(part))
        return each_kernel(by_kind)(term) if has_product(term) else s(term)

    return Strategy("each_product_kernel", run)


def has_product(term: Expr) -> bool:
    """Whether there is a product of matrices in a term, once it stands by itself."""
    outlined = seq(view_inward, outline)(term)
    return isinstance(outlined, Success) and contains(is_product)(outlined.term)
