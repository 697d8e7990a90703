"""Sums of products of matrices as one product, of matrices beside each other: A·B + C·D = [A C]·[B; D].

The one product has one accumulator, one loop and one ring of tiles, where two have two of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rewrites.elements import NotPointwise, mapped, members, names, put, zipped
from rewrites.pointwise import in_form, pointwise
from rewrites.result import Failure
from rewrites.rounding import PRODUCT_ROWS, ROUND_UP_SUMS, missing
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type
from rise.expr import Expr, Identifier, Lambda, call, fresh_name, subterms
from rise.nat import Nat
from rise.types import Pair

SUM_OF_SUMS = rule(
    "sum of sums",
    "(zip(a)(b) |> map(f) |> reduce(+, 0)) + (zip(c)(d) |> map(f) |> reduce(+, 0))",
    "zip(concat(a)(c))(concat(b)(d)) |> map(f) |> reduce(+, 0)",
    meaning="Two sums of the same function are one sum, over the arrays one behind the other.",
    exact=False,
)


@computed(
    "product beside product",
    "A·B + C·D → [A 0 C]·[B 0 D], with zeros between that make the rows of A a multiple of n",
    (
        "fun((a: 3.5.i32, b: 4.5.i32, c: 3.2.i32, d: 4.2.i32) => a |> map(fun(r => b |> map(fun(s =>"
        " zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> fun(p => c |> map(fun(r => d |>"
        " map(fun(s => zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> fun(q =>"
        " zip(p)(q) |> map(fun((r, s) => zip(r)(s) |> map(fun((x, y) => 2 * (x + y) - 1)))))))",
    ),
    "The sum of two products is the product of both first operands beside each other, and both second ones,"
    " unless a third product has an operand of one of them.",
    exact=False,
    sizes={"n": 3},
)
def PRODUCT_BESIDE_PRODUCT(term: Expr, n: Nat) -> Expr | str:  # noqa: N802  # a rule, named as the others
    try:
        form = pointwise(term)
    except NotPointwise as refused:
        return refused.reason
    reason = "no two products are added"
    for sum_, x, y in _sums(form.element):
        if x in form.leaves and y in form.leaves and not _shared(form.leaves, x, y):
            one = _beside(sum_, {name: form.leaves[name] for name in (x, y)}, n.value or 1)
            if isinstance(one, Expr):
                others = {leaf: array for leaf, array in form.leaves.items() if leaf not in (x, y)}
                element = put(form.element, {sum_: x})
                return in_form(replace(form, element=element, leaves={x: one, **others}))
            reason = one
    return reason


def _sums(element: Expr) -> Iterator[tuple[Expr, Identifier, Identifier]]:
    """The sums of two variables of which nothing else is made."""
    uses = Counter(part for part in subterms(element) if isinstance(part, Identifier))
    for part in subterms(element):
        match call(part):
            case "add", _, [Identifier() as x, Identifier() as y] if uses[x] == uses[y] == 1:
                yield part, x, y


def _shared(leaves: Mapping[Expr, Expr], x: Expr, y: Expr) -> bool:
    """Whether a third product has an operand of one of these: all of them are then computed in one loop."""
    found = {leaf: part[:2] for leaf, array in leaves.items() if (part := _product(array)) is not None}
    third = {operand for leaf, both in found.items() if leaf not in (x, y) for operand in both}
    return any(operand in third for leaf in (x, y) for operand in found.get(leaf, ()))


def _beside(sum_: Expr, products: Mapping[Expr, Expr], tile: int) -> Expr | str:
    """The sum of two products, each by its name in the sum, as one product; or why it is none."""
    parts = [part for array in products.values() if (part := _product(array)) is not None]
    if len(parts) < 2:
        return "what is added is not a product of matrices"
    (rows, columns, each), (others, behind, other) = parts
    taken = names(sum_, *products.values())
    r, c = (
        Identifier(fresh_name(name, taken), Pair(array_type(xs).element, array_type(ys).element))
        for name, xs, ys in (("rows", rows, others), ("columns", columns, behind))
    )
    (a, d), (b, e) = members(r, 2), members(c, 2)
    left, right = _applied(each, a, b), _applied(other, d, e)
    if (more := missing(array_type(a).size, tile)) is not None:
        longer = ROUND_UP_SUMS.with_sizes(p=more)(left)
        if isinstance(longer, Failure):
            return longer.reason
        left = longer.term
    one = SUM_OF_SUMS(put(sum_, dict(zip(products, (left, right), strict=True))))
    if isinstance(one, Failure):
        return "the products do not add up the same function"
    product = mapped(Lambda(r, mapped(Lambda(c, one.term), zipped(columns, behind))), zipped(rows, others))
    by_rows = PRODUCT_ROWS(product)
    return by_rows.reason if isinstance(by_rows, Failure) else by_rows.term


def _applied(each: Lambda, row: Expr, column: Expr) -> Expr:
    """What a product reduces for a row and a column."""
    inner = each.body
    if not isinstance(inner, Lambda):
        raise NotPointwise("expected a function of a row and a column", each)
    return put(inner.body, {each.parameter: row, inner.parameter: column})


def _product(array: Expr) -> tuple[Expr, Expr, Lambda] | None:
    """The rows and the columns of a product, and what it reduces as a function of both."""
    match call(array):
        case "map", _, [Lambda(row, body), rows]:
            match call(body):
                case "map", _, [Lambda(column, sums), columns] if row.name not in columns.free:
                    return rows, columns, Lambda(row, Lambda(column, sums))
    return None
