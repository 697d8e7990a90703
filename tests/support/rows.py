"""Programs of rows of a matrix, as texts: what the tests of passes over rows share."""

from __future__ import annotations

from random import Random

from rewrites.build import build
from rise.check.program import check_expression
from rise.expr import Apply, Expr, Lambda, map_children
from rise.normal import data_flow
from strategies.core import Rewrite
from strategies.places import in_inputs
from tests.support.programs import succeeded

# of a row q and a row k: a whole number between -4 and 4
SCORE = "(zip(q)(k) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0) |> fun(s => max(min(s, 4), -4)))"


# of a score s, a number u of the row and a number b of the element
CHANGES = (
    "s",
    "s + u - max(u, -3)",
    "max(s, b)",
    "select(b <= u, s, -4.0)",
    "0.5 * s + 0.5 * s",
    "s - b + b",
)
WEIGHTS = ("exp2(s - m)", "exp2(2 * (s - m))", "exp2(0 - m + s)", "exp2(s - m) * 2", "exp2((s - m) / 0.5)")
STARTS = ("-1000.0", "-infinity")
RESULTS = ("o", "o + l", "u * o - l", "2 * o + m", "o * l")
PLAIN = "(zip(w)(c) |> map(fun((x, y) => x * f32(y))) |> reduce(+, 0))"
ROUNDED = "(zip(w)(c) |> map(fun((x, y) => f32(f16(x)) * f32(y))) |> reduce(+, 0))"


def drawn(random: Random, text: str, **sizes: int) -> str:
    """A program of rows of which each has scores, weights that use their maximum, and two sums."""
    return (
        f"fun((a: {sizes['m']}.{sizes['d']}.f16, us: {sizes['m']}.f32, b: {sizes['t']}.{sizes['d']}.f16,"
        f" bs: {sizes['t']}.f32, v: {sizes['t']}.{sizes['e']}.f16) => zip(a)(us) |> map(fun((q, u) =>"
        f" zip(b)(bs) |> map(fun((k, b) => {SCORE} |> fun(s => {random.choice(CHANGES)}))) |> fun(scores =>"
        f" scores |> reduce(max, {random.choice(STARTS)}) |> fun(m =>"
        f" scores |> map(fun(s => {random.choice(WEIGHTS)})) |> fun(w => w |> reduce(+, 0) |> fun(l =>"
        f" transpose(v) |> map(fun(c => {text} |> fun(o => {random.choice(RESULTS)}))))))))"
    )


def passed(strategy: Rewrite, term: Expr) -> Expr:
    return succeeded(in_inputs(strategy)(term)).term


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
