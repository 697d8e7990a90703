"""Arithmetic on scalars (and, element by element, vectors). Each operation rounds to its type; the last
bits of `exp` to `cos`, and of `pow` of floats, are those of the machine that computes them."""

from __future__ import annotations

from functools import partial

from rise.declaration import Denotation
from rise.interpret import operations as op
from rise.primitives import declare as declaring
from rise.type_classes import TypeClass

UNARY = "{t: DataType} -> t -> t"
BINARY = "{t: DataType} -> t -> t -> t"
LOGICAL = "bool -> bool -> bool"

declare = partial(declaring.declare, group="arithmetic", elementwise=True)
declare_comparison = partial(declare, signature="{t: DataType} -> t -> t -> bool")
declare_order = partial(declare_comparison, operands=TypeClass.ORDERED)
declare_equality = partial(declare_comparison, operands=TypeClass.SCALAR)


def declare_function(name: str, meaning: str, denotation: Denotation, example: tuple[str, str]) -> None:
    """A function on floats."""
    declare(name, UNARY, meaning, denotation, operands=TypeClass.FLOAT, example=example)


declare(
    "add",
    BINARY,
    "Sum; integers wrap.",
    op.binary("add", commutative=True),
    infix="+",
    example=("2 + 3", "5"),
)
declare(
    "sub",
    BINARY,
    "Difference; integers wrap.",
    op.binary("subtract"),
    infix="-",
    example=("u8(2) - u8(3)", "255"),
)
declare(
    "mul",
    BINARY,
    "Product; integers wrap.",
    op.binary("multiply", commutative=True),
    infix="*",
    example=("0.5 * 3.0", "1.5"),
)
declare(
    "div",
    BINARY,
    "Quotient; of integers, truncated as in C, wrapped, and by zero an error.",
    op.divide,
    infix="/",
    example=("-7 / 2", "-3"),
)
declare(
    "mod",
    BINARY,
    "Remainder, with the sign of the dividend, as in C; of integers by zero an error.",
    op.modulo,
    infix="%",
    example=("-7 % 2", "-1"),
)
declare("neg", UNARY, "Negation; integers wrap.", op.unary("negative"), example=("neg(3)", "-3"))

declare_order(
    "lt", meaning="Less than.", denotation=op.comparison("less"), infix="<", example=("1 < 2", "true")
)
declare_order(
    "le",
    meaning="Less than or equal.",
    denotation=op.comparison("less_equal"),
    infix="<=",
    example=("2 <= 2", "true"),
)
declare_order(
    "gt", meaning="Greater than.", denotation=op.comparison("greater"), infix=">", example=("1 > 2", "false")
)
declare_order(
    "ge",
    meaning="Greater than or equal.",
    denotation=op.comparison("greater_equal"),
    infix=">=",
    example=("2 >= 2", "true"),
)
declare_equality(
    "eq",
    meaning="Equal; of truth values too.",
    denotation=op.comparison("equal"),
    infix="==",
    example=("1 == 2", "false"),
)
declare_equality(
    "ne",
    meaning="Not equal; of truth values too.",
    denotation=op.comparison("not_equal"),
    infix="!=",
    example=("1 != 2", "true"),
)

declare(
    "and",
    LOGICAL,
    "Both; the second matters where the first holds.",
    op.both,
    infix="&&",
    example=("true && false", "false"),
)
declare(
    "or",
    LOGICAL,
    "Either; the second matters where the first fails.",
    op.either,
    infix="||",
    example=("true || false", "true"),
)
declare(
    "not",
    "bool -> bool",
    "Negation of a truth value.",
    op.unary("logical_not"),
    infix="!",
    example=("!true", "false"),
)

declare(
    "min",
    BINARY,
    "The smaller, -0 below 0; of a number and NaN, the number.",
    op.extremum("fmin"),
    example=("min(1.0)(0.0 / 0.0)", "1.0"),
)
declare(
    "max",
    BINARY,
    "The larger, 0 above -0; of a number and NaN, the number.",
    op.extremum("fmax"),
    example=("max(1)(2)", "2"),
)
declare(
    "pow",
    BINARY,
    "The first to the power of the second; of integers wrapped, and truncated where the second is negative.",
    op.power,
    example=("pow(2.0)(10.0)", "1024.0"),
)
declare(
    "fma",
    "{t: DataType} -> t -> t -> t -> t",
    "a * b + c, rounded once.",
    op.fused_multiply_add,
    example=("fma(2.0)(3.0)(4.0)", "10.0"),
)

declare_function("exp", "Exponential.", op.elementary("exp"), example=("exp(0.0)", "1.0"))
declare_function(
    "exp2",
    "Power of two; in f32, zero below the smallest normal number.",
    op.power_of_two,
    example=("exp2(3.0)", "8.0"),
)
declare_function("log", "Natural logarithm.", op.elementary("log"), example=("log(1.0)", "0.0"))
declare_function("sqrt", "Square root.", op.elementary("sqrt"), example=("sqrt(9.0)", "3.0"))
declare_function(
    "reciprocal",
    "One over a number, within a unit in the last place; in f32, zero stands for subnormal numbers.",
    op.reciprocal,
    example=("reciprocal(4.0)", "0.25"),
)
declare_function("rsqrt", "One over the square root.", op.reciprocal_root, example=("rsqrt(4.0)", "0.5"))
declare_function("tanh", "Hyperbolic tangent.", op.elementary("tanh"), example=("tanh(0.0)", "0.0"))
declare_function("sin", "Sine.", op.elementary("sin"), example=("sin(0.0)", "0.0"))
declare_function("cos", "Cosine.", op.elementary("cos"), example=("cos(0.0)", "1.0"))
declare("abs", UNARY, "Absolute value; integers wrap.", op.unary("absolute"), example=("abs(-3)", "3"))
declare(
    "floor", UNARY, "The largest whole number not above.", op.whole("floor"), example=("floor(-1.5)", "-2.0")
)
declare("ceil", UNARY, "The smallest whole number not below.", op.whole("ceil"), example=("ceil(1.2)", "2.0"))
declare(
    "round",
    UNARY,
    "The nearest whole number; of two, the even one.",
    op.whole("rint"),
    example=("round(2.5)", "2.0"),
)

declare(
    "cast",
    "{s: DataType, t: DataType} -> s -> t",
    "Conversion. To floats it rounds; to integers floats are truncated, beyond their range to the nearest of "
    "them, NaN to 0, and integers wrap.",
    op.cast,
    operands=TypeClass.VALUE,
    example=("i8(300.7)", "127"),
)
declaring.declare(
    "select",
    "{t: DataType} -> bool -> t -> t -> t",
    "The second argument where the first holds, else the third; only that one is evaluated.",
    op.select,
    group="arithmetic",
    example=("select(1 < 2)(10)(1 / 0)", "10"),
)
