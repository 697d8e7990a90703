"""Rules about sizes that tiles do not divide: arrays are made longer, and what is too much is dropped.

What is added to a result is computed from anything, since it is dropped: `padEmpty` goes inward through all
that computes. What is added to sums has to be zeros, which add nothing.
"""

from __future__ import annotations

from math import isfinite

from rewrites.algorithmic import separated
from rewrites.conditions import SideCondition, total
from rewrites.match import Match
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import named, zero_of
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, apply, call, closed_parts
from rise.interpret import call as evaluate
from rise.nat import Nat, ceiling_quotient, constant, divides
from rise.normal import simplify
from rise.types import Array, as_data


def missing(size: Nat | None, tile: int) -> Nat | None:
    """How many elements more are whole tiles; None where tiles divide the size, whatever it is."""
    if size is None or divides(tile, size):
        return None
    return tile * ceiling_quotient(size, tile) - size


ROUND_UP = rule(
    "roundUp",
    "xs",
    "xs |> padEmpty(p) |> take(n)",
    sizes=("p",),
    meaning="p elements more, to a size that tiles divide, and then dropped.",
)
ROUND_UP_COLUMNS = rule(
    "roundUp columns",
    "xs",
    "xs |> map(fun(r => r |> padEmpty(p))) |> map(fun(r => r |> take(n)))",
    sizes=("p",),
    meaning="p elements more in each row.",
)
MAP_EMPTY_ROWS = rule(
    "*f >> *padEmpty",
    "xs |> map(f) |> map(fun(r => r |> padEmpty(p)))",
    "xs |> map(fun(x => f(x) |> padEmpty(p)))",
    meaning="Rows are made longer where they are computed.",
)


PRODUCT_ROWS = rule(
    "rows of a product",
    "xs |> map(fun(row => ys |> map(fun(col => zip(g(row))(h(col)) |> map(f) |> reduce(op, z)))))",
    "xs |> map(g) |> map(fun(row =>"
    " ys |> map(h) |> map(fun(col => zip(row)(col) |> map(f) |> reduce(op, z)))))",
    meaning="What is done with rows and columns as a whole is done with the matrices before.",
)


def _zero(term: Expr, name: str) -> bool:
    """Whether a term is 0 where all that is in the variable is."""
    match term:
        case Literal(value):
            return value == 0
        case Identifier(other):
            return other == name
        case _:
            pass
    applied = call(term)
    if applied is None:
        return False
    match applied[0], applied[2]:
        case "fst" | "snd" | "cast" | "neg", [operand]:
            return _zero(operand, name)
        case "add" | "sub", [left, right]:
            return _zero(left, name) and _zero(right, name)
        case "mul", [left, right]:
            return any(
                _zero(a, name) and (_zero(b, name) or _finite(b)) for a, b in ((left, right), (right, left))
            )
        case _:
            return False


def _finite(term: Expr) -> bool:
    return isinstance(term, Literal) and isfinite(term.value)


def _is_zero_at_zeros(function: Lambda) -> bool:
    """Whether it gives 0 for zeros: by its denotation, if it depends on nothing else."""
    zeros = zero_of(as_data(function.parameter.type), function)
    if function.free or isinstance(zeros, str):
        return _zero(function.body, function.parameter.name)
    return bool(evaluate(Apply(function, zeros)) == 0)


def _of_zeros(match: Match) -> str | None:
    function = match.terms["f"]
    if isinstance(function, Lambda) and _is_zero_at_zeros(function):
        return None
    return "the function of two zeros is not known to be 0"


ROUND_UP_SUMS = rule(
    "roundUp sums",
    "zip(xs)(ys) |> map(f) |> reduce(op, 0)",
    "zip(xs |> padCst(0, p)(0))(ys |> padCst(0, p)(0)) |> map(f) |> reduce(op, 0)",
    sizes=("p",),
    conditions=(
        SideCondition(
            "f of zeros is 0",
            "What is added to both operands has to add nothing; 0 · x would be no number for some x.",
            _of_zeros,
        ),
    ),
    meaning="Sums with p more products, each of two zeros; or any reduction whose neutral element is 0.",
)
ROUND_UP_PAIRS = rule(
    "roundUp reduce, of pairs",
    "zip(xs)(ys) |> map(f) |> reduce(op, z)",
    "zip(zip(generate(fun(i => true)) |> padCst(0, p)(false))(xs |> padEmpty(p)))(ys |> padEmpty(p))"
    " |> map(fun(((inside, x), y) => select(inside, f((x, y)), z))) |> reduce(op, z)",
    sizes=("p",),
    conditions=(total("f"),),
    meaning="Any reduction of pairs, with p neutral elements behind the last one.",
)


@computed(
    "padEmpty as zeros",
    "xs |> padEmpty(r) → xs |> padCst(0, r)(0)",
    (
        "fun((xs: 3.i32) => xs |> padEmpty(2) |> take(3))",
        "fun((xs: 3.2.f32) => xs |> padEmpty(1) |> map(fun(x => x)) |> take(3))",
        "fun((xs: 2.(i32, 2.f32)) => xs |> padEmpty(3) |> take(2))",
    ),
    "What is undefined may be anything, so it may be what copying units put there.",
)
def EMPTY_AS_ZEROS(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    applied = call(term)
    if applied is None or applied[0] != "padEmpty" or len(applied[2]) != 1:
        return "expected `padEmpty`"
    _, head, (xs,) = applied
    if not isinstance(xs.type, Array):
        return "expected an array"
    zero = zero_of(xs.type.element, term)
    if isinstance(zero, str):
        return zero
    given = dict(zip((p.name for p in head.declaration.scheme.parameters), head.arguments, strict=True))
    given |= {"l": constant(0), "n": xs.type.size, "t": xs.type.element}
    return simplify(apply(named("padCst", given, term), zero, xs, origin=term.origin))


@computed(
    "padEmpty out of *f",
    "xs |> map(x => g(x |> padEmpty(p), x)) → zip(xs |> map(padEmpty(p)))(xs) |> map((y, x) => g(y, x))",
    (
        "fun((xss: 3.4.i32) => xss |> map(fun(xs => xs |> padEmpty(2) |> map(fun(x => x + 1)) |> take(4))))",
        "fun((xss: 3.4.i32, ys: 3.i32) => zip(xss)(ys) |> map(fun((xs, y) =>"
        " xs |> padEmpty(1) |> map(fun(x => x - y)) |> take(4))))",
        "fun((xss: 3.4.i32, yss: 4.4.i32) => xss |> map(fun(xs =>"
        " zip(yss |> map(fun(ys => ys |> padEmpty(2) |> take(4) |> reduce(+, 0))))"
        "(xs |> padEmpty(1) |> take(4)))))",
    ),
    "Rows are made longer before they are used, where they are computed.",
)
def EMPTY_OUT(term: Expr) -> Expr | str:  # noqa: N802
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return "expected a map"
    _, head, (function, xs) = applied
    if not isinstance(function, Lambda):
        return "expected a map of a function"
    parts = (t for t in closed_parts(function.body) if _is_padded(t, function.parameter.name))
    part = next(parts, None)
    if part is None or part is function.body:
        return "no part of an element is made longer"
    return simplify(separated(head, function, xs, part))


def _is_padded(term: Expr, name: str) -> bool:
    """Whether it is a variable, or a member of it, made longer."""
    applied = call(term)
    if applied is None or applied[0] != "padEmpty" or len(applied[2]) != 1:
        return False
    operand = applied[2][0]
    while (member := call(operand)) is not None and member[0] in ("fst", "snd") and member[2]:
        operand = member[2][0]
    return isinstance(operand, Identifier) and operand.name == name
