"""Sums of products of matrices as one product."""

from __future__ import annotations

from rewrites.sums import PRODUCT_BESIDE_PRODUCT
from rise.expr import Expr
from rise.types import Pair
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import Strategy, check, depending, prints_as_call, repeat, seq
from strategies.matmul.products import operands
from strategies.places import arguments

NOT_ALIKE = "the rows, or columns, of matrices beside each other do not lie in memory in the same order"


@prints_as_call
def in_one_sum(depth: int, copied: bool = False) -> Strategy:
    """Sums of products as one product, where the operands that come together have the same order in memory.

    It does not fail: other sums are left as they are. Of two results, both are looked at.

    before: A·B + C·D
    after:  [A 0 C]·[B 0 D], with zeros that make A's rows a multiple of the depth

    depth: of a step of the reduction, so that no tile reaches from A into C
    copied: operands are copied, so they may be computed; else the copying unit brings them as they are
    """

    def in_memory(matrix: Expr) -> bool:
        known = contiguity_of(matrix, {})
        return isinstance(known, Contiguity) and (copied or not known.computed)

    alike = check(
        lambda term: all(in_memory(matrix) for both in operands(term) for matrix in both),
        "in_one_sum",
        NOT_ALIKE,
    )
    joined = repeat(seq(PRODUCT_BESIDE_PRODUCT.with_sizes(n=depth), alike))
    return depending(lambda term: arguments(2, joined) if isinstance(term.type, Pair) else joined)
