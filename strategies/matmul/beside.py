"""Reductions of rows in the kernel of a product: beside its result, or in its place."""

from __future__ import annotations

from rewrites.beside import ROWS_BY_PARTS, beside, is_unzip
from rewrites.exponentials import EXP_AS_EXP2
from rewrites.result import Failure, Result
from rewrites.row_parts import REDUCTIONS_INWARD, reduces_parts
from rewrites.storing import GLOBAL_FIRST, STORED_TOGETHER
from rise.expr import (
    Expr,
    application,
    call,
)
from rise.types import Pair
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    everywhere,
    function,
    prints_as_call,
    seq,
)
from strategies.default import lowered
from strategies.kernels import stores_first
from strategies.matmul.separate import rows_stored
from strategies.memory_bound.reduction import reduction
from strategies.memory_bound.rows import rows
from strategies.operands import in_function, nth_operand, operand
from strategies.places import arguments

# of differences, which are computed first: so the sums of large scores keep their last digits
_powers = everywhere(EXP_AS_EXP2)


@prints_as_call
def rows_reduced(width: int, columns: int, s: Rewrite, swapped: bool = False) -> Strategy:
    """s for a matrix around products; also where its rows are reduced, in parts, from the registers.

    before: (D, E |> map(reduce(+, 0))), where D and E are functions of one product
    after:  let stored = s(zip2D(D, E)), with E's fragments |> reduceRows(+, 0) |> asColumn, in
              (fst(stored), snd(stored) |> map(reduce(+, 0)))

    width:   columns of a part, as many as a fragment has
    columns: of which a multiple is computed. A row that is one part needs no second kernel.
    swapped: s computes the transposed matrix, so that its fragments have parts of columns
    """
    inside = at_reductions(s, swapped)
    by_parts = ROWS_BY_PARTS.with_sizes(w=width, n=columns)
    of_two = seq(nth_operand(0, operand(inside)), nth_operand(1, in_function(added)))
    kernels = depending(lambda term: of_two if stores_first(term) else inside)

    def make(term: Expr) -> Strategy:
        if beside(term) is None:
            return seq(s)
        return seq(by_parts, kernels)

    return depending(make)


@prints_as_call
def at_reductions(s: Rewrite, swapped: bool = False) -> Strategy:
    """s for the matrix whose rows are reduced in parts, or its columns; then its fragments are reduced.

    before: M |> map(split(w) >> map(reduce(+, 0)))
    after:  s(M), with |> reduceRows(+, 0) |> asColumn in the place of |> asMatrix

    swapped: s computes the transposed matrix, so these are parts of columns
    """

    def run(term: Expr) -> Result:
        if not reduces_parts(term):
            return argument(run)(term)
        if not swapped:
            return seq(function(_powers), argument(s), REDUCTIONS_INWARD)(term)
        applied = call(application(term)[2][-1])
        if applied is None or applied[0] != "transpose":
            return Failure("at_reductions", term, "with swapped operands, fragments have parts of columns")
        return seq(function(_powers), arguments(2, s), REDUCTIONS_INWARD)(term)

    return FunctionStrategy("at_reductions", run)


def _beside_product(term: Expr) -> bool:
    """Whether a product's kernel can compute what is stored first, with the reductions of its rows."""
    applied = call(term)
    return applied is not None and beside(application(applied[2][0])[2][0]) is not None


# a matrix and the reductions of its rows, both of which later kernels read
stored_together: Strategy = seq(
    check(stores_first, "stored_together", "nothing is stored first"),
    nth_operand(1, in_function(seq(rows_stored, GLOBAL_FIRST))),
    STORED_TOGETHER,
    check(_beside_product, "stored_together", "no product's kernel computes both"),
)


def _added(term: Expr) -> Result:
    each = choice(reduction(), rows(), lowered)
    if stores_first(term):
        return seq(nth_operand(0, operand(each)), nth_operand(1, in_function(added)))(term)
    if is_unzip(term):
        return argument(each)(term)
    return (nth_operand(1, added) if isinstance(term.type, Pair) else each)(term)


# the numbers of rows, from those of their parts; what else they are computed from is stored before
added = FunctionStrategy("added", _added)
