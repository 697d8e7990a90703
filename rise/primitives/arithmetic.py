"""Arithmetic on scalars (and, element by element, vectors). Each operation rounds to its type."""

from __future__ import annotations

from functools import partial

from rise.interpret import operations as op
from rise.primitives import declare as declaring

UNARY = "{t: DataType} -> t -> t"
BINARY = "{t: DataType} -> t -> t -> t"
COMPARISON = "{t: DataType} -> t -> t -> bool"
LOGICAL = "bool -> bool -> bool"

declare = partial(declaring.declare, elementwise=True)

declare("add", BINARY, "Sum; integers wrap.", op.binary("add"), infix="+")
declare("sub", BINARY, "Difference; integers wrap.", op.binary("subtract"), infix="-")
declare("mul", BINARY, "Product; integers wrap.", op.binary("multiply"), infix="*")
declare("div", BINARY, "Quotient; of integers, truncated as in C.", op.divide, infix="/")
declare("mod", BINARY, "Remainder, with the sign of the dividend, as in C.", op.modulo, infix="%")
declare("neg", UNARY, "Negation.", op.unary("negative"))

declare("lt", COMPARISON, "Less than.", op.binary("less"), infix="<")
declare("le", COMPARISON, "Less than or equal.", op.binary("less_equal"), infix="<=")
declare("gt", COMPARISON, "Greater than.", op.binary("greater"), infix=">")
declare("ge", COMPARISON, "Greater than or equal.", op.binary("greater_equal"), infix=">=")
declare("eq", COMPARISON, "Equal.", op.binary("equal"), infix="==")
declare("ne", COMPARISON, "Not equal.", op.binary("not_equal"), infix="!=")

declare("and", LOGICAL, "Both; the second matters where the first holds.", op.both, infix="&&")
declare("or", LOGICAL, "Either; the second matters where the first fails.", op.either, infix="||")
declare("not", "bool -> bool", "Negation of a truth value.", op.unary("logical_not"), infix="!")

declare("min", BINARY, "The smaller; of a number and NaN, the number.", op.binary("fmin"))
declare("max", BINARY, "The larger; of a number and NaN, the number.", op.binary("fmax"))
declare("pow", BINARY, "The first to the power of the second.", op.power)
declare("fma", "{t: DataType} -> t -> t -> t -> t", "a * b + c, rounded once.", op.fused_multiply_add)

declare("exp", UNARY, "Exponential.", op.elementary("exp"))
declare("log", UNARY, "Natural logarithm.", op.elementary("log"))
declare("sqrt", UNARY, "Square root.", op.elementary("sqrt"))
declare("rsqrt", UNARY, "One over the square root, rounded once.", op.reciprocal_root)
declare("tanh", UNARY, "Hyperbolic tangent.", op.elementary("tanh"))
declare("sin", UNARY, "Sine.", op.elementary("sin"))
declare("cos", UNARY, "Cosine.", op.elementary("cos"))
declare("abs", UNARY, "Absolute value.", op.unary("absolute"))
declare("floor", UNARY, "The largest whole number not above.", op.unary("floor"))

declare(
    "cast",
    "{s: DataType, t: DataType} -> s -> t",
    "Conversion; to integers by truncation, beyond their range to the nearest of them.",
    op.cast,
)
declaring.declare(
    "select",
    "{t: DataType} -> bool -> t -> t -> t",
    "The second argument where the first holds, else the third; only that one is evaluated.",
    op.select,
)
