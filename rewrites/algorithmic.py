"""Rules about maps and reductions: splitting, fusing, blocking, interchanging."""

from __future__ import annotations

from rewrites.match import Match
from rewrites.rule import rule
from rise.expr import Identifier, Lambda, call


def changes(name: str, reason: str) -> object:
    """The condition that a function variable is not the identity, under which a rule would undo nothing."""

    def condition(match: Match) -> str | None:
        function = match.terms[name]
        body = function
        while isinstance(body, Lambda):
            body = body.body
        return reason if isinstance(body, Identifier) else None

    return condition


def no_pairs(match: Match) -> str | None:
    """The function does not only build pairs: then there is nothing to separate."""
    body = match.terms["f"]
    while isinstance(body, Lambda):
        body = body.body
    applied = call(body)
    return "the function only pairs its arguments" if applied and applied[0] == "pair" else None


SPLIT_JOIN = rule(
    "splitJoin",
    "xs |> map(f)",
    "xs |> split(n) |> map(fun(b => b |> map(f))) |> join",
    meaning="A map in blocks of n.",
)
MAP_FUSION = rule(
    "mapFusion",
    "xs |> map(f) |> map(g)",
    "xs |> map(fun(x => g(f(x))))",
    meaning="Two maps as one.",
)
MAP_IDENTITY = rule("mapIdentity", "xs |> map(fun(x => x))", "xs", meaning="Mapping the identity changes nothing.")
MAP_CONSTANT = rule(
    "mapConstant",
    "xs |> map(fun(x => z))",
    "generate(fun(i => z))",
    meaning="A map that ignores its elements is a constant array.",
)
MAP_NAMED = rule(
    "mapNamed",
    "xs |> map(fun(x => (fun(p => g(x, p)))(h(x))))",
    "zip(xs)(xs |> map(h)) |> map(fun((x, p) => g(x, p)))",
    meaning="A named part of a map's body becomes a map of its own.",
)
BLOCK_REDUCE = rule(
    "blockReduce",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> reduceSeq(Local)(fun(acc, b => op(acc, b |> reduce(op, z))), z)",
    meaning="A reduction in blocks of n, since op is associative with neutral element z.",
    exact=False,
)
REDUCE_FROM = rule(
    "reduceFrom",
    "c + (xs |> split(n) |> reduceSeq(Local)(fun(acc, b => acc + (b |> map(f) |> reduce(+, 0))), 0))",
    "xs |> split(n) |> reduceSeq(Local)(fun(acc, b => acc + (b |> map(f) |> reduce(+, 0))), c)",
    meaning="What a sum is added to becomes its initial value.",
    exact=False,
)
LIFT_REDUCE = rule(
    "liftReduce",
    "xs |> map(fun(x => h(x) |> reduceSeq(Local)(fun(acc, y => g(x, acc, y)), z(x))))",
    "xs |> map(h) |> transpose |> reduceSeq(Local)("
    "fun(acc, ys => zip(xs)(zip(acc)(ys)) |> map(fun((x, (a, y)) => g(x, a, y)))), xs |> map(z))",
    meaning="A map of reductions is a reduction of maps (interchange), whatever the functions are.",
)
FLATTEN = rule(
    "flatten",
    "xs |> map(fun(x => h(x) |> map(fun(y => f(x, y))))) |> join",
    "xs |> map(fun(x => h(x) |> map(fun(y => (x, y))))) |> join |> map(fun((x, y) => f(x, y)))",
    meaning="Two nested maps as one map over pairs.",
    conditions=(no_pairs,),
)
