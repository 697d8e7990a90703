"""Rules that give what is computed a name and a place, so that it can be stored."""

from __future__ import annotations

from rewrites.rule import computed, rule
from rise.expr import Apply, Expr, Lambda, Primitive, apply
from rise.primitives.declare import primitive
from rise.types import is_data

NAMED = rule("let, introduced", "x", "let y = x in y", meaning="A value is given a name.")
MAP_FIRST_NAMED = rule(
    "mapFst, by members",
    "p |> mapFst(f)",
    "let q = p in (f(fst(q)), snd(q))",
    meaning="The pair gets a name.",
)
MAP_SECOND_NAMED = rule(
    "mapSnd, by members",
    "p |> mapSnd(f)",
    "let q = p in (fst(q), f(snd(q)))",
    meaning="The pair gets a name.",
)
PAIR_OF_MEMBERS = rule("pair of fst and snd", "p", "(fst(p), snd(p))", meaning="A pair by its members.")
IDX_LET = rule(
    "let >> idx",
    "idx(i)(let y = x in f(y))",
    "let y = x in idx(i)(f(y))",
    meaning="Only one element is needed of what is computed with a name.",
)


@computed(
    "appliedAsLet",
    "(fun(x => e))(a) → let x = a in e",
    (
        "fun((xs: 4.i32, c: i32) => (fun(y: i32 => xs |> map(fun(x => x * y))))(c * c + 1))",
        "fun(x: f32 => (fun(y: f32 => y * y))(x + 1))",
    ),
    "A function applied to data: its argument gets a name.",
)
def APPLIED_AS_LET(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    if not (isinstance(term, Apply) and isinstance(term.function, Lambda)):
        return "expected a function that is applied"
    if not is_data(term.argument.type) or not is_data(term.type):
        return "a let names data, in data"
    let = Primitive(primitive("let"), (term.argument.type, term.type), term.origin)  # type: ignore[arg-type]  # data
    return apply(let, term.argument, term.function, origin=term.origin)
