"""Offsets of integers, such as the zero points of quantised matrices, moved out of sums of products.

Integers wrap, so these laws are exact. What remains in the sum are products of elements as they are stored,
which tensor cores compute; beside it are sums of rows and of columns.
"""

from __future__ import annotations

from rewrites.build import build
from rewrites.match import Match
from rewrites.rule import Rule, computed
from rewrites.rule import library_rule as rule
from rise.expr import Expr, call
from rise.types import I32, SCALARS, Scalar

SUM = "(zip(xs)(ys) |> map(fun((x, y) => {})) |> reduce(+, 0))"
PRODUCTS = SUM.format("f(x) * g(y)")
FIRST, SECOND = "(xs |> map(f) |> reduce(+, 0))", "(ys |> map(g) |> reduce(+, 0))"


def of_integers(match: Match) -> str | None:
    """z is an integer: a sum of floats depends on the order of its terms."""
    type_ = match.terms["z"].type
    integer = isinstance(type_, Scalar) and not type_.is_float and type_.name != "bool"
    return None if integer else f"`{type_}` is not an integer type"


def _outside(name: str, changed: str, offset: str) -> Rule:
    return rule(
        name,
        SUM.format(changed),
        f"{PRODUCTS} {offset}",
        meaning="An offset of all elements of an operand is taken out of the sum of their products.",
        conditions=(of_integers,),
    )


FIRST_MINUS = _outside("first operand minus z", "(f(x) - z) * g(y)", f"- z * {SECOND}")
FIRST_PLUS = _outside("first operand plus z", "(f(x) + z) * g(y)", f"+ z * {SECOND}")
SECOND_MINUS = _outside("second operand minus z", "f(x) * (g(y) - z)", f"- z * {FIRST}")
SECOND_PLUS = _outside("second operand plus z", "f(x) * (g(y) + z)", f"+ z * {FIRST}")


# computed, since proofs assume that a conversion keeps the number, and this one wraps
@computed(
    "unsigned, as signed",
    "i32(x) → i32(i8(x + 128)) + 128, where x: u8",
    ("fun((x: u8) => i32(x))", "fun((xs: 7.u8) => xs |> map(fun(x => i32(x) * 3)))"),
    "An unsigned byte is a signed byte plus 128: the sum in the conversion wraps.",
    head=("cast", 1),
)
def UNSIGNED_AS_SIGNED(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    match call(term):
        case "cast", _, [x] if x.type == SCALARS["u8"] and term.type == I32:
            return build("i32(i8(x + 128)) + 128", x=x)
        case _:
            return "expected a `u8` that becomes an `i32`"
