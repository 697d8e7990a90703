"""Programs of rows of a matrix, as texts: what the tests of passes over rows share."""

from __future__ import annotations

from rewrites.build import build
from rise.check.program import check_expression
from rise.expr import Apply, Expr, Lambda, map_children
from rise.normal import data_flow

# of a row q and a row k: a whole number between -4 and 4
SCORE = "(zip(q)(k) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0) |> fun(s => max(min(s, 4), -4)))"


def term_of(text: str) -> Expr:
    """The program of a text, whose parentheses are closed at its end."""
    return data_flow(check_expression(text + ")" * (text.count("(") - text.count(")"))))


def without_repair(term: Expr) -> Expr:
    """The pass in which nothing repairs old sums: the column `repair` is of ones."""
    match term:
        case Apply(Lambda(x, body), value) if x.name.startswith("repair"):
            ones = build("xs |> map(fun(x => x * 0 + 1))", xs=value)
            return Apply(Lambda(x, without_repair(body)), ones)
        case _:
            return map_children(term, without_repair)
