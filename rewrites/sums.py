"""Sums of products of matrices as one product, of matrices beside each other: A·B + C·D = [A C]·[B; D].

The one product has one accumulator, one loop and one ring of tiles, where two have two of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rewrites.build import build
from rewrites.elements import NotPointwise, mapped, members, names, put, zipped
from rewrites.folds import factors, is_float, is_zero, operation, operator_name, unconverted
from rewrites.match import project
from rewrites.pointwise import in_form, pointwise
from rewrites.prologue import PROLOGUE, PROLOGUE_SAME
from rewrites.result import Failure, Success
from rewrites.rounding import PRODUCT_ROWS, ROUND_UP_SUMS, missing
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type
from rise.canonical import canonical
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
    "difference of products",
    "A·B - C·D → A·B + C·(-D |> toMem(Global)), for sums of floats",
    (
        "fun((a: 3.5.f32, b: 4.5.f32, c: 3.2.f32, d: 2.4.f32) => a |> map(fun(r => b |> map(fun(s =>"
        " zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> fun(p => c |> map(fun(r =>"
        " transpose(d) |> map(fun(s => zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0)))))"
        " |> fun(q => zip(p)(q) |> map(fun((r, s) => zip(r)(s) |> map(fun((x, y) => (x - y) * x)))))))",
        "fun((a: 2.3.f16, b: 4.3.f16) => generate(fun(i => generate(fun(j =>"
        " (zip(a |> idx(i))(b |> idx(j)) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))"
        " - (zip(a |> idx(i))(b |> idx(j)) |> map(fun((x, y) => f32(y) * f32(x) * 2)) |> reduce(+, 0)))))))",
    ),
    "A product that is taken off is added, with its second operand negated by a kernel before.",
)
def DIFFERENCE_AS_SUM(term: Expr) -> Expr | str:  # noqa: N802  # a rule, named as the others
    form = pointwise(term)
    uses = Counter(part for part in subterms(form.element) if isinstance(part, Identifier))
    element, leaves = form.element, dict(form.leaves)
    for difference in subterms(form.element):
        match call(difference):
            case "sub", _, [x, Identifier() as y] if {x, y} <= leaves.keys() and uses[y] == 1:
                negated = _negated(leaves[y])
                if negated is not None and _product(leaves[x]) is not None:
                    element = put(element, {difference: operation("add", x, y)})
                    leaves[y] = negated
    if element == form.element:
        return "no product is taken off another one"
    return in_form(replace(form, element=element, leaves=leaves))


def _negated(array: Expr) -> Expr | None:
    """The negated product, as one whose second operand is negated; None where it is none."""
    match _product(array):
        case rows, columns, Lambda(row, Lambda(column, sums)) if _is_linear(sums):
            return mapped(Lambda(row, mapped(Lambda(column, sums), _negated_data(columns))), rows)
        case _:
            return None


def _is_linear(sums: Expr) -> bool:
    """Whether a sum changes its sign with the second numbers of all pairs."""
    match call(sums):
        case "reduce", _, [operator, start, terms] if operator_name(operator) == "add" and is_zero(start):
            pass
        case _:
            return False
    match call(terms):
        case "map", _, [Lambda(p, body), _] if is_float(second := project("snd", p)):
            found = [part for part in factors(body) if any(inner == second for inner in subterms(part[0]))]
            return [(unconverted(factor), inverse) for factor, inverse in found] == [(second, False)]
        case _:
            return False


def _negated_data(matrix: Expr) -> Expr:
    """A negated matrix, stored in the order in which the matrix is."""
    match call(matrix):
        case "transpose", _, [stored]:
            return build("x |> transpose", x=_negated_data(stored))
        case _:
            return build("x |> map(map(y => -y)) |> toMem(Global)", x=matrix)


def _crosswise() -> str:
    """Sums of products that share their operands crosswise, in the other order, as in a complex product."""
    each = "zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"
    ab, cd, cb, ad = (
        f"({first} |> map(fun(r => {second} |> map(fun(s => {each})))) |> idx(i) |> idx(j))"
        for first, second in ("ab", "cd", "cb", "ad")
    )
    inputs = "a: 3.2.i32, b: 4.2.i32, c: 3.2.i32, d: 4.2.i32"
    return f"fun(({inputs}) => generate(fun(i => generate(fun(j => ({ab} + {cd}, {cb} + {ad}))))))"


@computed(
    "product beside product",
    "A·B + C·D → [A 0 C]·[B 0 D], with zeros between that make the rows of A a multiple of n",
    (
        "fun((a: 3.5.i32, b: 4.5.i32, c: 3.2.i32, d: 4.2.i32) => a |> map(fun(r => b |> map(fun(s =>"
        " zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> fun(p => c |> map(fun(r => d |>"
        " map(fun(s => zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> fun(q =>"
        " zip(p)(q) |> map(fun((r, s) => zip(r)(s) |> map(fun((x, y) => 2 * (x + y) - 1)))))))",
        _crosswise(),
    ),
    "The sum of two products is the product of both first operands beside each other, and both second ones,"
    " unless a third product has an operand of one of them and its sum with a fourth not the other one.",
    exact=False,
    sizes={"n": 3},
)
def PRODUCT_BESIDE_PRODUCT(term: Expr, n: Nat) -> Expr | str:  # noqa: N802  # a rule, named as the others
    form = pointwise(term)
    form = replace(form, leaves={leaf: _of_operands(array) for leaf, array in form.leaves.items()})
    found = {leaf: part for leaf, array in form.leaves.items() if (part := _product(array)) is not None}
    sums = [(sum_, x, y) for sum_, x, y in _sums(form.element) if x in found and y in found]
    beside = _Beside(found, [(x, y) for _, x, y in sums])
    reason, element, joined = "no two products are added", form.element, dict[Expr, Expr]()
    left = dict(form.leaves)
    for sum_, x, y in sums:
        if not beside.is_shared(x, y):
            both = beside.ordered(x, y)
            one = _beside(
                put(sum_, dict(zip((x, y), both, strict=True))), {z: left[z] for z in both}, n.value or 1
            )
            if isinstance(one, Expr):
                element, joined[x] = put(element, {sum_: x}), one
                del left[x], left[y]
            else:
                reason = one
    return in_form(replace(form, element=element, leaves={**joined, **left})) if joined else reason


def _of_operands(array: Expr) -> Expr:
    """A product of what its operands are computed as, which another function may have taken in."""
    for rule_ in (PROLOGUE, PROLOGUE_SAME):
        if isinstance(separate := rule_(array), Success):
            return separate.term
    return array


def _sums(element: Expr) -> Iterator[tuple[Expr, Identifier, Identifier]]:
    """The sums of two variables of which nothing else is made."""
    uses = Counter(part for part in subterms(element) if isinstance(part, Identifier))
    for part in subterms(element):
        match call(part):
            case "add", _, [Identifier() as x, Identifier() as y] if uses[x] == uses[y] == 1:
                yield part, x, y


@dataclass(frozen=True)
class _Beside:
    """Products that are added, and what their operands are.

    products: by the names of their elements
    sums:     pairs of names
    """

    products: Mapping[Expr, tuple[Expr, Expr, Lambda]]
    sums: Sequence[tuple[Expr, Expr]]

    def sides(self, x: Expr, y: Expr) -> tuple[set[str], set[str]]:
        """The first operands of two products, and the second ones."""
        first, second = zip(*(map(canonical, self.products[name][:2]) for name in (x, y)), strict=True)
        return set(first), set(second)

    def is_shared(self, x: Expr, y: Expr) -> bool:
        """Whether a third product has an operand of one of these: all of them are then computed in one loop.

        If its sum with a fourth has both, these two sums share [A C], or [B D], as one product each.
        """
        firsts, seconds = self.sides(x, y)
        return any(
            not set.union(*self.sides(other, other)).isdisjoint(firsts | seconds)
            and not self._alike(other, (x, y))
            for other in self.products
            if other not in (x, y)
        )

    def _alike(self, other: Expr, both: tuple[Expr, Expr]) -> bool:
        sides = self.sides(*both)
        mine = [self.sides(*pair) for pair in self.sums if other in pair]
        return any(a == b for pair in mine for a, b in zip(pair, sides, strict=True))

    def ordered(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """The two in the order in which others with the same operands stand beside each other."""
        for side, mine in enumerate(self.sides(x, y)):
            like = [pair for pair in self.sums if self.sides(*pair)[side] == mine]
            if len(like) > 1:
                first = like[0][0]
                return (x, y) if self.sides(x, x)[side] == self.sides(first, first)[side] else (y, x)
        return x, y


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
