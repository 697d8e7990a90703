"""Point-wise functions of the operands of a product: separated from it, applied when operands are loaded."""

from __future__ import annotations

from rewrites.match import Match
from rewrites.rule import Condition, Rule, computed
from rewrites.rule import library_rule as rule
from rewrites.typed import instance
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, apply, call, substitute, subterms
from rise.normal import is_view, simplify
from rise.types import F32, Function, Scalar, Type

BYTE = Scalar("i8")
TWO_BYTES = (Scalar("f16"), Scalar("bf16"))
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


def _prologue(name: str, converted: str, *conditions: Condition) -> Rule:
    """converted: what the product makes of an element of an operand"""

    def products(first: str, second: str) -> str:
        return PRODUCTS.format(converted.format(first), converted.format(second))

    return rule(
        name,
        f"a |> map(fun(r => b |> map(fun(c => {products('g(p)', 'h(q)')}))))",
        "a |> map(fun(r => r |> map(g))) |> map(fun(r => b |> map(fun(c => c |> map(h)))"
        f" |> map(fun(c => {products('p', 'q')}))))",
        meaning="What is done with the operands of a product is done with the matrices before.",
        conditions=(changes_an_operand, *conditions),
    )


PROLOGUE = _prologue("prologue", "f32({})")
PROLOGUE_OF_BYTES = _prologue("prologue, i32", "i32({})")
PROLOGUE_SAME = _prologue("prologueSame", "{}", keeps_types)


# --- functions of an operand's elements and of what is beside its row or column -------------------------


def changes_the_operand(match: Match) -> str | None:
    """Rows or columns are not elements of the array, or their elements are computed with more than these."""
    h = match.terms["h"]
    uses_more = not isinstance(h, Lambda) or h.parameter.name in h.body.free
    return "the operand is used as it is" if _same(match, "v") and not uses_more else None


def keeps_conversions(match: Match) -> str | None:
    """What is multiplied is not converted last: a conversion stays in the product."""
    body = match.terms["h"]
    while isinstance(body, Lambda):
        body = body.body
    applied = call(body)
    converts = applied is not None and applied[0] == "cast"
    return (
        "a conversion stays in the product, which then multiplies with more precision" if converts else None
    )


def _of_columns(name: str, wrapped: str, *conditions: Condition) -> Rule:
    dot = "map(fun(c => zip(r)({}) |> map(fun((p, q) => g(p) * {})) |> reduce(+, 0)))"
    before, after = (wrapped.format(operand) for operand in ("h(c, q)", "q"))
    return rule(
        name,
        f"b |> {dot.format('v(c)', before)}",
        f"b |> map(fun(c => v(c) |> map(fun(q => h(c, q))))) |> {dot.format('c', after)}",
        meaning="What is done with elements of columns, and what is beside these, is done before.",
        conditions=(changes_the_operand, *conditions),
    )


def _of_rows(name: str, wrapped: str, *conditions: Condition) -> Rule:
    dot = "map(fun(r => b |> map(fun(c => zip({})(c) |> map(fun((p, q) => {} * g(q))) |> reduce(+, 0)))))"
    before, after = (wrapped.format(operand) for operand in ("h(r, p)", "p"))
    return rule(
        name,
        f"a |> {dot.format('v(r)', before)}",
        f"a |> map(fun(r => v(r) |> map(fun(p => h(r, p))))) |> {dot.format('r', after)}",
        meaning="What is done with elements of rows, and what is beside these, is done before.",
        conditions=(changes_the_operand, *conditions),
    )


PROLOGUE_OF_COLUMNS = _of_columns("prologue of columns", "f32({})")
PROLOGUE_OF_COLUMNS_SAME = _of_columns("prologue of columns, same", "{}", keeps_conversions)
PROLOGUE_OF_ROWS = _of_rows("prologue of rows", "f32({})")
PROLOGUE_OF_ROWS_SAME = _of_rows("prologue of rows, same", "{}", keeps_conversions)

# a bulk copy brings numbers as they are, so a function is applied to fragments, when these are loaded
FIRST_INSIDE = rule(
    "prologue, inside",
    "a |> map(fun(r => r |> map(g)))"
    " |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(f) |> reduce(+, 0)))))",
    "a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((p, q) => f((g(p), q)))) |> reduce(+, 0)))))",
    meaning="A function of the first operand of a product is applied where its elements are multiplied.",
)


@computed(
    "product with a byte",
    "f32(x) * f32(y) → f32(x) * f32(f16(y)), where x: f16 and y: i8, and the same of bf16",
    (
        "fun((x: f16, y: i8) => f32(x) * f32(y))",
        "fun((x: i8, y: bf16) => f32(x) * f32(y))",
    ),
    "A byte is a number of the type that it is multiplied with, so that instructions multiply both.",
    head=("mul", 2),
)
def BYTE_WIDENED(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    match call(term):
        case "mul", product, [first, second] if term.type == F32:
            pass
        case _:
            return "expected a product of f32"
    match call(first), call(second):
        case ("cast", _, [x]), ("cast", _, [y]):
            pass
        case _:
            return "expected conversions of both numbers"
    if y.type == BYTE and x.type in TWO_BYTES:
        return apply(product, first, _through(second, y, x.type), origin=term.origin)
    if x.type == BYTE and y.type in TWO_BYTES:
        return apply(product, _through(first, x, y.type), second, origin=term.origin)
    return f"the products are of `{x.type}` and `{y.type}`"


def _through(converted: Expr, number: Expr, type_: Type) -> Expr:
    """A number that is converted, by way of another type."""
    inner = apply(instance("cast", (number.type, type_), number.origin), number)
    return apply(instance("cast", (type_, converted.type), number.origin), inner)


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
