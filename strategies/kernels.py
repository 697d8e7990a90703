"""Programs of several kernels: a value that is stored in global memory ends a kernel.

`toMem(Global)` marks such values. Each of them is a program by itself, for the whole grid, and so is
the program that reads them; a schedule lowers each of these programs by itself.
"""

from __future__ import annotations

from rewrites.memory import NOT_STORED
from rewrites.result import Result, Success
from rewrites.storing import GLOBAL_FIRST, is_global
from rise.expr import Expr, call
from strategies.core import FunctionStrategy, Rewrite, Strategy, prints_as_call, seq
from strategies.operands import in_function, nth_operand, operand


@prints_as_call
def each_kernel(s: Rewrite) -> Strategy:
    """s for the program of each kernel: those whose results are stored in global memory, then the last.

    A result is in global memory anyway, so storing it there changes nothing.
    """

    def run(term: Expr) -> Result:
        if is_global(term):
            return seq(NOT_STORED, run)(term)
        if isinstance(GLOBAL_FIRST(term), Success):
            return seq(GLOBAL_FIRST, run)(term)
        if not stores_first(term):
            return s(term)
        return seq(nth_operand(0, operand(s)), nth_operand(1, in_function(run)))(term)

    return FunctionStrategy("each_kernel", run)


def stores_first(term: Expr) -> bool:
    """Whether a term is a let of what is stored in global memory."""
    applied = call(term)
    return applied is not None and applied[0] == "let" and is_global(applied[2][0])
