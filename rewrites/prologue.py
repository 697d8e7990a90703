"""Point-wise functions of the operands of a product: separated from it, applied when operands are loaded."""

from __future__ import annotations

from rewrites.match import Match
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, substitute, subterms
from rise.normal import is_view, simplify
from rise.types import Function

PRODUCTS = "zip(r)(c) |> map(fun((p, q) => {} * {})) |> reduce(+, 0)"


def _same(match: Match, name: str) -> bool:
    """Whether a function is the identity, or there is none of that name."""
    function = match.terms.get(name)
    return function is None or (
        isinstance(function, Lambda)
        and isinstance(function.body, Identifier)
        and function.body.name == function.parameter.name
    )


def changes_an_operand(match: Match) -> str | None:
    """g or h is not the identity."""
    return "the operands are used as they are" if _same(match, "g") and _same(match, "h") else None


def keeps_types(match: Match) -> str | None:
    """A conversion stays in the product, which then multiplies with more precision."""
    for name in sorted(match.terms.keys() & {"g", "h"}):
        function = match.terms[name].type
        if isinstance(function, Function) and function.parameter != function.result:
            return f"`{name}` changes the type from `{function.parameter}` to `{function.result}`"
    return None


def _separated(name: str, left: str, right: str) -> tuple[str, str, str]:
    return (
        name,
        f"a |> map(fun(r => b |> map(fun(c => {left}))))",
        "a |> map(fun(r => r |> map(g))) |> map(fun(r => b |> map(fun(c => c |> map(h)))"
        f" |> map(fun(c => {right}))))",
    )


MEANING = "What is done with the operands of a product is done with the matrices before."
PROLOGUE = rule(
    *_separated("prologue", PRODUCTS.format("f32(g(p))", "f32(h(q))"), PRODUCTS.format("f32(p)", "f32(q)")),
    meaning=MEANING,
    conditions=(changes_an_operand,),
)
PROLOGUE_SAME = rule(
    *_separated("prologueSame", PRODUCTS.format("g(p)", "h(q)"), PRODUCTS.format("p", "q")),
    meaning=MEANING,
    conditions=(changes_an_operand, keeps_types),
)
ZIP_MAP_OUT_FIRST = rule(
    "zip(*f, ) → *(f, )",
    "zip(xs |> map(f))(ys)",
    "zip(xs)(ys) |> map(fun((x, y) => (f(x), y)))",
    meaning="A map in a component of a zip, brought out of it.",
)
ZIP_MAP_OUT_SECOND = rule(
    "zip(, *f) → *(, f)",
    "zip(xs)(ys |> map(f))",
    "zip(xs)(ys) |> map(fun((x, y) => (x, f(y))))",
    meaning="A map in the second component of a zip is brought out of it.",
)
BLOCK_FUSION = rule(
    "*f >> mapBlock",
    "xs |> map(f) |> mapBlock(d)(g)",
    "xs |> mapBlock(d)(fun(x => g(f(x))))",
    sizes=("d",),
    meaning="A map before blocks is done in each block.",
)
PIPELINE_FUSION = rule(
    "*f >> reducePipelined",
    "xs |> map(f) |> reducePipelined(s)(g)(h)(z)",
    "xs |> reducePipelined(s)(fun(x => g(f(x))))(h)(z)",
    sizes=("s",),
    meaning="A map before a pipeline is done when an element is loaded.",
)


def is_pointwise(term: Expr) -> bool:
    """Whether a term only rearranges data and computes with single numbers."""
    return all(
        part.declaration.view or part.declaration.elementwise
        for part in subterms(term)
        if isinstance(part, Primitive)
    )


@computed(
    "inline",
    "(x => e)(a) → e[a/x], where a is point-wise",
    ("fun((xs: 3.4.i32) => xs |> map(fun(r => r |> map(fun(x => x + 1))))"
     " |> fun(ys => zip(ys)(ys) |> map(fun((a, b) => zip(a)(b)))))",),
    "A value that is cheap to compute is computed where it is used.",
)  # fmt: skip
def INLINE(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    if not (isinstance(term, Apply) and isinstance(term.function, Lambda)):
        return "expected an applied function"
    if is_view(term.argument) or not is_pointwise(term.argument):
        return "the argument is not computed point by point"
    function = term.function
    return simplify(substitute(function.body, {function.parameter.name: term.argument}))
