"""Programs of rows of a matrix, as texts: what the tests of passes over rows share."""

from __future__ import annotations

from rise.check.program import check_expression
from rise.expr import Expr
from rise.normal import data_flow

# of a row q and a row k: a whole number between -4 and 4
SCORE = "(zip(q)(k) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0) |> fun(s => max(min(s, 4), -4)))"


def term_of(text: str) -> Expr:
    """The program of a text, whose parentheses are closed at its end."""
    return data_flow(check_expression(text + ")" * (text.count("(") - text.count(")"))))
