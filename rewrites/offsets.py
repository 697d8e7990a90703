"""Offsets of whole numbers, such as zero points of quantised matrices, outside of the sums of their products.

Whole numbers wrap, so their sums are a ring and these laws are exact: what is left is a sum of products of
elements as they are stored, which instructions compute, and sums of rows and columns.
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


def of_whole_numbers(match: Match) -> str | None:
    """z is no float: sums of those depend on their order."""
    type_ = match.terms["z"].type
    whole = isinstance(type_, Scalar) and not type_.is_float and type_.name != "bool"
    return None if whole else f"`{type_}` is no type of whole numbers"


def _outside(name: str, changed: str, offset: str) -> Rule:
    return rule(
        name,
        SUM.format(changed),
        f"{PRODUCTS} {offset}",
        meaning="What is added to all elements of a row or column is added to the sum of its products.",
        conditions=(of_whole_numbers,),
    )


FIRST_LESS = _outside("first less z", "(f(x) - z) * g(y)", f"- z * {SECOND}")
FIRST_PLUS = _outside("first plus z", "(f(x) + z) * g(y)", f"+ z * {SECOND}")
SECOND_LESS = _outside("second less z", "f(x) * (g(y) - z)", f"- z * {FIRST}")
SECOND_PLUS = _outside("second plus z", "f(x) * (g(y) + z)", f"+ z * {FIRST}")


# proofs take numbers that are converted for the same numbers, which these are not
@computed(
    "unsigned, as signed",
    "i32(x) → i32(i8(x + 128)) + 128, where x: u8",
    ("fun((x: u8) => i32(x))", "fun((xs: 7.u8) => xs |> map(fun(x => i32(x) * 3)))"),
    "A byte without a sign is one with a sign and an offset: adding 128 wraps.",
    head=("cast", 1),
)
def UNSIGNED_AS_SIGNED(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    match call(term):
        case "cast", _, [x] if x.type == SCALARS["u8"] and term.type == I32:
            return build("i32(i8(x + 128)) + 128", x=x)
        case _:
            return "expected a `u8` that becomes an `i32`"
