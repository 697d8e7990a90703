"""Masks by comparisons of numbers: which blocks of columns a tile of rows can do without.

A causal mask excludes whole blocks of columns. The rules here say so in the program:

    select(i >= j, s, -∞)   →   select(i' >= j0, select(i0 >= j', s, select(i >= j, s, -∞)), -∞)

where i0 and i' are the first and the last row of the tile, and j0 and j' the first and the last column of the
block, so that the new conditions depend on tile and block alone. Where the outer one does not hold, a block
of a rolling update changes nothing, and the update skips it (see `rolling`); where the inner one holds, no
element needs a comparison. Of conditions one of which has to hold, as of a window beside the first columns,
so has one of the new ones. The rows of a tile are numbered from the number of the tile, so that the first and
the last of them are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product

from rewrites.build import build
from rewrites.elements import (
    NotPointwise,
    all_zipped,
    are_numbers,
    fresh,
    generated,
    mapped,
    members,
    names,
    number,
    put,
    zipped,
)
from rewrites.folds import factors, is_lowest, is_positive, product_of
from rewrites.match import project
from rewrites.rule import computed
from rewrites.scopes import Scope, Scoped, over_rows
from rewrites.typed import array_type, instance
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Literal,
    application,
    apply,
    call,
    substitute,
)
from rise.nat import Nat, NatVariable, constant, variable
from rise.normal import is_view, simplify
from rise.pretty import show
from rise.types import I32, Index, Pair, as_data

MOST_ALTERNATIVES = 2  # ranges of blocks that a fold visits
NO_MASK = "no `select(c, x, -infinity)` compares numbers of rows and columns"

# --- numbers of tiles -------------------------------------------------------------------------------------


def _operands(name: str, term: Expr) -> Iterator[Expr]:
    """What an operation of two operands is applied to, also where it is nested."""
    match call(term):
        case found, _, [first, second] if found == name:
            yield from _operands(name, first)
            yield from _operands(name, second)
        case _:
            yield term


def _zipped_like(xs: Expr, values: Mapping[Expr, Expr]) -> Expr:
    match call(xs):
        case "zip", _, [first, second]:
            return zipped(_zipped_like(first, values), _zipped_like(second, values))
        case _:
            return values[xs]


@computed(
    "numbers of tiles",
    "zip(xs)(generate(i => indexToInt(i))) |> split(n) |> map(f) →"
    " zip(xs |> split(n))(generate(t => t)) |> map((x, t) =>"
    " f(zip(x)(generate(r => indexToInt(t)*n + indexToInt(r)))))",
    (
        "fun((xs: 6.f32) => zip(xs)(generate(fun(i => indexToInt(i)))) |> split(2)"
        " |> map(map(fun((x, i) => x * f32(i)))))",
        "fun((xs: 8.f32, ys: 8.f32) => zip(xs)(zip(generate(fun(i => indexToInt(i))))(ys)) |> split(4)"
        " |> map(fun(tile => tile |> map(fun((x, (i, y)) => select(i < 5, x, y))))))",
    ),
    "Of numbered elements in tiles, the number by that of the tile.",
    head=("map", 2),
)
def NUMBERS_OF_TILES(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "map", _, [Lambda(tile, body), tiles]:
            pass
        case _:
            return "expected a map of tiles"
    match call(tiles):
        case "split", split, [xs]:
            pass
        case _:
            return "expected tiles: `xs |> split(n)`"
    arrays = list(dict.fromkeys(_operands("zip", xs)))
    numbers = [ys for ys in arrays if are_numbers(ys)]
    others = [ys for ys in arrays if ys not in numbers]
    if not numbers:
        return "no elements are numbered"
    size, count = split.arguments[0], array_type(tiles).size
    if not isinstance(size, Nat) or size.value is None:
        return "the size of a tile is not known"
    taken = names(term)
    t = fresh("t", Index(count), taken)
    cut = [apply(instance("split", (size, count, array_type(ys).element), ys.origin), ys) for ys in others]
    together = all_zipped([*cut, generated(t, t)])
    x = fresh("x", array_type(together).element, taken)
    parts = members(x, len(cut) + 1)
    r = fresh("r", Index(size), taken)
    inner_numbers = generated(r, build("t * n + r", t=number(parts[-1]), n=_length(size), r=number(r)))
    values = dict(zip(others, parts, strict=False)) | dict.fromkeys(numbers, inner_numbers)
    inner = substitute(body, {tile.name: _zipped_like(xs, values)})
    return simplify(mapped(Lambda(x, inner), together))


def _length(size: Nat) -> Expr:
    """A size as a number."""
    if size.value is None:
        raise NotPointwise(f"the size {size} is not a number yet", Literal(0, I32))
    return Literal(size.value, I32)


# --- linear comparisons -----------------------------------------------------------------------------------


def _linear(term: Expr) -> Nat | None:
    """A sum of indices and other numbers with coefficients; None for other terms."""
    match term, call(term):
        case Literal(int() as value), _:
            return constant(value)
        case _, ("indexToInt", _, [Identifier(name)]):
            return variable(name)
        case _, ("neg", _, [inner]):
            opposite = _linear(inner)
            return None if opposite is None else constant(0) - opposite
        case _, (("add" | "sub" | "mul") as name, _, [left, right]):
            a, b = _linear(left), _linear(right)
            if a is None or b is None:
                return None
            return a + b if name == "add" else a - b if name == "sub" else a * b
        case _ if term.type == I32 and is_view(term):
            return variable(show(term))
        case _:
            return None


def _difference(comparison: Expr) -> Nat | None:
    """What a comparison says is not negative, up to a constant."""
    match call(comparison):
        case (("lt" | "le"), _, [smaller, larger]):
            pass
        case (("gt" | "ge"), _, [larger, smaller]):
            pass
        case _:
            return None
    low, high = _linear(smaller), _linear(larger)
    return None if low is None or high is None else high - low


def _sign(value: Nat, name: str) -> int | None:
    """The sign of the coefficient of a variable, 0 without it; None if it is multiplied with others."""
    found = 0
    for monomial, coefficient in value.terms:
        if name in Nat.build({monomial: 1}).variables:
            if monomial != ((NatVariable(name), 1),):
                return None
            found = 1 if coefficient > 0 else -1
    return found


# --- factors ----------------------------------------------------------------------------------------------


@computed(
    "factor of a mask",
    "select(c, x * f, -∞) → select(c, x, -∞) * f, where f > 0",
    (
        "fun((xs: 3.f32, s: f32) => xs |> map(fun(x => select(x <= s, x * 0.5, -infinity))))",
        "fun((xs: 3.f32, s: f32) => xs |> map(fun(x => select(x <= s, exp2(s) * x, -infinity))))",
    ),
    "A positive factor of what a mask leaves may be applied to what it excludes, too: -∞ stays -∞.",
    head=("select", 3),
)
def FACTOR_OF_MASK(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "select", head, [condition, inside, lowest] if is_lowest(lowest):
            pass
        case _:
            return "expected `select(c, x, -infinity)`"
    parts = list(factors(inside))
    positive = [part for part in parts if is_positive(part[0])]
    rest = [part for part in parts if part not in positive]
    if not positive or not rest:
        return "no factor is certainly positive"
    type_ = as_data(term.type)
    masked = apply(head, condition, product_of(rest, type_), lowest, origin=term.origin)
    return product_of([(masked, False), *positive], type_)


# --- masks ------------------------------------------------------------------------------------------------


@dataclass
class _Masks(Scoped):
    """Adds to masks what they imply of whole blocks of so many columns."""

    columns: Nat

    def here(self, term: Expr, scope: Scope) -> Expr | None:
        match call(term):
            case "select", _, [condition, inside, lowest] if is_lowest(lowest) and scope.column is not None:
                return self.masked(term, condition, inside, lowest, scope)
            case _:
                return None

    def masked(self, term: Expr, condition: Expr, inside: Expr, lowest: Expr, scope: Scope) -> Expr:
        column = self.number_of_column(scope)
        if column is None:
            return term
        some = self.of_blocks(condition, column, scope, True)
        if some is None or len(_alternatives(some)) > MOST_ALTERNATIVES:
            return term
        self.changed = True
        head = application(term)[1]
        if (every := self.of_blocks(condition, column, scope, False)) is not None:
            term = apply(head, every, inside, term)
        return apply(head, some, term, lowest, origin=term.origin)

    def of_blocks(self, condition: Expr, j: Expr, scope: Scope, some: bool) -> Expr | None:
        """Whether a condition may hold in a block of columns for some rows of the tile, or does for all.

        Of `a && b`, a condition that nothing is known of may hold, so the other one decides if both may.
        Of `a || b`, one that holds for all elements is enough, so nothing need be known of the other one.
        """
        match call(condition):
            case (("and" | "or") as name, _, [left, right]):
                known = [self.of_blocks(part, j, scope, some) for part in (left, right)]
                if None in known and (name == "and") is not some:
                    return None
                found = [part for part in known if part is not None]
                return reduce(lambda a, b: apply(instance(name, (), None), a, b), found) if found else None
            case _:
                return self.of_block(condition, j, scope, some)

    def number_of_column(self, scope: Scope) -> Expr | None:
        """A view of the innermost map's element that is its number."""
        if scope.column is None:
            return None
        index, x = scope.column
        if index == x:
            return number(index)
        return next((v for v in _views(x) if self.value(v, scope) == number(index)), None)

    def of_block(self, part: Expr, j: Expr, scope: Scope, some: bool) -> Expr | None:
        """Whether a comparison may hold in a block of columns for some rows of the tile, or does for all.

        None if nothing is known of whole blocks
        """
        value = self.value(part, scope)
        difference = _difference(value) if value is not None else None
        if value is None or difference is None or scope.column is None:
            return None
        column, _ = scope.column
        of_row, of_column = _sign(difference, scope.row.name), _sign(difference, column.name)
        if of_row is None or not of_column:
            return None
        rows = scope.row.type.size if isinstance(scope.row.type, Index) else constant(1)
        row = _length(rows - 1) if (of_row > 0) is some else Literal(0, I32)
        last = " + m" if (of_column > 0) is some else ""
        sizes = {"n": _length(self.columns), "m": _length(self.columns - 1)}
        block = build(f"j / n * n{last}", j=j, **sizes)
        made = put(value, {number(scope.row): row, number(column): block})
        return made if made.free <= self.whole.free | j.free else None


def _alternatives(condition: Expr) -> list[Expr]:
    """The conditions of which one holds, so that each of them is comparisons that hold together."""
    match call(condition):
        case "or", _, [left, right]:
            return [*_alternatives(left), *_alternatives(right)]
        case "and", _, [left, right]:
            return [build("a && b", a=a, b=b) for a, b in product(_alternatives(left), _alternatives(right))]
        case _:
            return [condition]


def _views(x: Expr) -> Iterator[Expr]:
    """A tuple and its members."""
    yield x
    if isinstance(x.type, Pair):
        yield from _views(project("fst", x))
        yield from _views(project("snd", x))


@computed(
    "blocks of a mask",
    "select(c, x, -∞) → select(u, select(w, x, select(c, x, -∞)), -∞), where w implies c, c implies u, and"
    " both are the same for all rows and for n columns",
    (
        "fun((a: 3.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) =>"
        " select(j <= i && i - j < 2, x * y, -infinity))))))",
    ),
    "What a mask of numbers says of whole blocks of n columns.",
    head=("map", 2),
    sizes={"n": 2},
)
def BLOCKS_OF_A_MASK(term: Expr, n: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    return over_rows(term, lambda whole, taken: _Masks(whole, taken, n), NO_MASK)
