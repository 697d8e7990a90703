"""A reduction of products in several partial sums, which are added at the end (slice-K, split-K)."""

from __future__ import annotations

from functools import reduce as fold

from rewrites.rule import Rule, computed
from rewrites.rule import library_rule as rule
from rise.expr import Apply, Expr, Literal, Primitive, apply, call
from rise.primitives.declare import primitive
from rise.types import Array, Index

# an operand by rows, and by columns: how it is read, its slices, how rows of a slice are read
BY_ROWS = ("", "map(split(w)) |> transpose", "")
BY_COLUMNS = (" |> transpose", "split(w)", " |> transpose")


def _in_slices(name: str, first: tuple[str, str, str], second: tuple[str, str, str]) -> Rule:
    dot = "fun(col => zip(row)(col) |> map(f) |> reduce(op, z))"
    return rule(
        f"product, k in slices{name}",
        f"xs{first[0]} |> map(fun(row => ys{second[0]} |> map({dot})))",
        f"zip(xs |> {first[1]})(ys |> {second[1]}) |> map(fun((a, b) =>"
        f" a{first[2]} |> map(fun(row => b{second[2]} |> map({dot})))))"
        " |> transpose |> map(transpose) |> map(map(reduce(op, z)))",
        sizes=("w",),
        exact=False,
        meaning="A product of matrices as a sum of products of slices of w, with the layout of the matrices.",
    )


# the first that matches is the one to take
PRODUCT_IN_SLICES = (
    _in_slices(", both by columns", BY_COLUMNS, BY_COLUMNS),
    _in_slices(", A by columns", BY_COLUMNS, BY_ROWS),
    _in_slices(", B by columns", BY_ROWS, BY_COLUMNS),
    _in_slices("", BY_ROWS, BY_ROWS),
)
JOIN_MAPS = rule(
    "**f → J >> *f >> S",
    "xs |> map(fun(x => h(x) |> map(f)))",
    "xs |> map(h) |> join |> map(f) |> split(n)",
    meaning="Two nested maps as one over all elements.",
)

JOIN_MAPS_OF_BOTH = rule(
    "**f → J >> *f >> S, of pairs",
    "xs |> map(fun(x => h(x) |> map(fun(y => f(x)(y)))))",
    "xs |> map(fun(x => h(x) |> map(fun(y => (x, y))))) |> join"
    " |> map(fun(p => f(fst(p))(snd(p)))) |> split(n)",
    meaning="Two nested maps as one over all pairs of an outer and an inner element.",
)


@computed(
    "unrollSum",
    "xs |> reduce(+, 0) → xs[0] + … + xs[n-1], for a known n",
    ("fun((xs: 4.f32) => xs |> reduce(+, 0))", "fun((xs: 1.i32) => xs |> reduce(+, 0))"),
    "A short sum without a loop.",
    exact=False,
)
def UNROLL_SUM(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    applied = call(term)
    if applied is None or applied[0] != "reduce" or len(applied[2]) != 3:
        return "expected a reduction"
    operator, zero, xs = applied[2]
    if not (isinstance(zero, Literal) and zero.value == 0) or not _adds(operator):
        return "the reduction is not a sum"
    if not isinstance(xs.type, Array) or not xs.type.size.value:
        return "the number of summands is not known, or 0"
    size, element = xs.type.size, xs.type.element
    at = Primitive(primitive("idx"), (size, element), term.origin)
    add = Primitive(primitive("add"), (element,), term.origin)
    summands = [
        apply(at, Literal(i, Index(size), term.origin), xs, origin=term.origin)
        for i in range(size.value or 0)
    ]
    return fold(lambda a, b: apply(add, a, b, origin=term.origin), summands)


def _adds(operator: Expr) -> bool:
    """Whether a function of two arguments is their sum."""
    from rise.expr import Identifier, Lambda

    match operator:
        case Primitive():
            return operator.name == "add"
        case Lambda(x, Lambda(y, Apply(Apply(Primitive() as head, Identifier(a)), Identifier(b)))):
            return head.name == "add" and (a, b) == (x.name, y.name)
        case _:
            return False
