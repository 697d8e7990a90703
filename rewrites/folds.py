"""Elements of matrices as functions of reductions, and what moves out of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rewrites.algorithmic import is_reduction
from rewrites.elements import Elements, NotPointwise, at, generated, holds_arrays, names, pair, put
from rewrites.match import project
from rewrites.rule import computed
from rewrites.typed import array_type, instance, mapped
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    application,
    apply,
    call,
    map_children,
    substitute,
    subterms,
)
from rise.nat import Nat
from rise.normal import simplify
from rise.types import Array, Data, Index, Pair, Scalar, Type, as_data

# --- numbers ----------------------------------------------------------------------------------------------


def operation(name: str, *operands: Expr) -> Expr:
    """An operation on numbers of one type."""
    return apply(instance(name, (operands[0].type,), operands[0].origin), *operands)


def factors(term: Expr, inverse: bool = False) -> Iterator[tuple[Expr, bool]]:
    """The factors of a product of floats, each with whether it is a divisor."""
    match call(term):
        case "mul", _, [left, right] if is_float(term):
            yield from factors(left, inverse)
            yield from factors(right, inverse)
        case "div", _, [left, right] if is_float(term):
            yield from factors(left, inverse)
            yield from factors(right, not inverse)
        case _:
            yield term, inverse


def unconverted(term: Expr) -> Expr:
    """A number without the conversion to a wider type."""
    match call(term):
        case "cast", _, [inner] if isinstance(inner.type, Scalar) and isinstance(term.type, Scalar):
            return inner if inner.type.bytes < term.type.bytes else term
        case _:
            return term


def unrounded(term: Expr) -> Expr:
    """x of wide(narrow(x)): what a number was before it was rounded to a narrower type and converted back."""
    match call(term):
        case "cast", _, [inner] if is_float(term) and (rounding := call(inner)) is not None:
            before = rounding[2][0] if rounding[0] == "cast" else term
            return before if before.type == term.type else term
        case _:
            return term


def rounded_like(term: Expr, by: Expr) -> Expr:
    """wide(narrow(by)) for a term wide(narrow(x)); by for other terms, and if rounding does not change it."""
    if unrounded(term) is term:
        return by
    _, wide, (inner,) = application(term)
    _, narrow, _ = application(inner)
    rounded = apply(narrow, by)
    return by if unconverted(by).type == rounded.type else apply(wide, rounded)


def product_of(factors: Sequence[tuple[Expr, bool]], type_: Data) -> Expr:
    """The product of factors; 1 of none."""
    above = [factor for factor, inverse in factors if not inverse]
    result: Expr = above[0] if above else Literal(1.0, type_)
    for factor in above[1:]:
        result = operation("mul", result, factor)
    for factor in (factor for factor, inverse in factors if inverse):
        result = operation("div", result, factor)
    return result


def is_float(term: Expr) -> bool:
    return isinstance(term.type, Scalar) and term.type.is_float


def operator_name(operator: Expr) -> str:
    """The name of a primitive operator, or of `fun((a, b) => op(a, b))`."""
    match operator:
        case Primitive():
            return operator.name
        case Lambda(a, Lambda(b, body)):
            found = call(body)
            return found[0] if found is not None and found[2] in ([a, b], [b, a]) else ""
        case _:
            return ""


# --- reductions of elements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """A reduction by its elements: reduce(operator, start)(generate(fun(index => body)))."""

    name: Identifier
    operator: Expr
    start: Expr
    index: Identifier
    body: Expr

    @property
    def size(self) -> Nat | None:
        return self.index.type.size if isinstance(self.index.type, Index) else None


@dataclass(frozen=True)
class System:
    """An element of a matrix as a function of reductions, in the order in which they use each other.

    A row may also be a tuple of arrays of one length and of numbers; its element is the tuple of elements.

    column: None where a row has no arrays
    type:   of a row
    """

    row: Identifier
    column: Identifier | None
    folds: tuple[Fold, ...]
    element: Expr
    type: Data

    def member(self, name: str) -> System:
        """The system of the first or the second member of the rows, which are pairs."""
        type_ = self.type
        if not isinstance(type_, Pair):
            raise NotPointwise("expected pairs", self.element)
        type_ = type_.first if name == "fst" else type_.second
        column = self.column if columns_in(type_) else None
        return System(self.row, column, self.folds, simplify(project(name, self.element)), type_)


def _unfolded(term: Expr) -> Expr:
    """A term with the values of all names that it binds in their places."""
    term = map_children(term, _unfolded)
    match term:
        case Apply(Lambda(x, body), argument):
            return _unfolded(substitute(body, {x.name: argument}))
        case _:
            return term


def system(term: Expr) -> System:
    """The reductions of which an element of a matrix is a function. Raises NotPointwise."""
    if columns_of(term) is None:
        raise NotPointwise("expected a matrix of numbers", term)
    return of_rows(term)


def columns_of(term: Expr) -> Nat | None:
    """How many columns a matrix of numbers has, also one beside numbers of its rows; None for other terms."""
    sizes = columns_in(term.type.element) if isinstance(term.type, Array) else []
    return sizes[0] if sizes and all(size == sizes[0] for size in sizes) else None


def columns_in(type_: Type) -> list[Nat | None]:
    """The lengths of the arrays in a tuple of arrays and numbers; None for an array of arrays."""
    match type_:
        case Array(size, element):
            return [None if holds_arrays(element) else size]
        case Pair(first, second):
            return columns_in(first) + columns_in(second)
        case _:
            return []


def of_rows(term: Expr) -> System:
    """The same, also of a column: a number for each row. Raises NotPointwise."""
    if not isinstance(term.type, Array) or (columns_in(term.type.element) and columns_of(term) is None):
        raise NotPointwise("expected a matrix of numbers", term)
    elements = Elements(names(term))
    rows = array_type(term)
    row = elements.index("i", rows.size)
    columns = columns_of(term)
    column = None if columns is None else elements.index("j", columns)
    result = elements.value(_element(at(row, term), column))
    hoisting = _Hoisting(elements, [])
    element = hoisting.go(_unfolded(elements.closed(result)), frozenset())
    return System(row, column, tuple(hoisting.folds), element, as_data(rows.element))


def _element(row: Expr, column: Identifier | None) -> Expr:
    """The element of an array, the tuple of those of a tuple; a number as it is."""
    match row.type:
        case Pair():
            first, second = (_element(project(name, row), column) for name in ("fst", "snd"))
            return pair(first, second)
        case Array() if column is not None:
            return at(column, row)
        case _:
            return row


@dataclass(frozen=True)
class _Hoisting:
    """Names the reductions in a term that use no variable bound inside of it; equal ones have one name."""

    elements: Elements
    folds: list[Fold]

    def go(self, term: Expr, bound: frozenset[str]) -> Expr:
        if isinstance(term, Lambda):
            return Lambda(term.parameter, self.go(term.body, bound | {term.parameter.name}), term.origin)
        inner = map_children(_from_extreme(term), lambda child: self.go(child, bound))
        if not is_reduction(inner) or not inner.free.isdisjoint(bound):
            return inner
        for fold in self.folds:
            if alpha_equal(_reduced(_spelled_like(inner, fold)), inner):
                return fold.name
        self.folds.append(_as_fold(self.elements.fresh("v", as_data(inner.type)), inner))
        return self.folds[-1].name


def _spelled_like(reduction: Expr, fold: Fold) -> Fold:
    """A fold with the operator of a reduction, `max` or `(a, b) => max(a, b)`, if it has the same one."""
    operator = application(reduction)[2][0]
    name = operator_name(operator)
    return replace(fold, operator=operator) if name and name == operator_name(fold.operator) else fold


# what changes no maximum, and no minimum
EXTREMES = {"max": float("-inf"), "min": float("inf")}


def _from_extreme(term: Expr) -> Expr:
    """An extremum that starts from one of the elements as one from -∞ or ∞ on; other terms as they are."""
    match call(term):
        case "reduce", head, [operator, start, summands] if is_float(start):
            extreme = EXTREMES.get(operator_name(operator))
            match call(summands):
                case "generate", _, [Lambda(index, body)] if extreme is not None:
                    places = [
                        p.argument for p in subterms(start) if isinstance(p, Apply) and p.head == ("idx", 1)
                    ]
                    if any(alpha_equal(substitute(body, {index.name: place}), start) for place in places):
                        return apply(head, operator, Literal(extreme, start.type), summands)
    return term


def _as_fold(name: Identifier, reduction: Expr) -> Fold:
    _, _, (operator, start, summands) = application(reduction)
    match call(summands):
        case "generate", _, [Lambda(index, body)]:
            return Fold(name, operator, start, index, body)
        case _:
            raise NotPointwise("expected a reduction of elements", reduction)


def _reduced(fold: Fold) -> Expr:
    """The reduction that a fold describes."""
    known = instance("reduce", (fold.size, fold.name.type), fold.name.origin)
    return apply(known, fold.operator, fold.start, generated(fold.index, fold.body))


def written(found: System) -> Expr:
    """The matrix of the elements, or the column, each reduction computed once."""
    return simplify(generated(found.row, _row(found)))


def _row(found: System) -> Expr:
    if isinstance(found.type, Pair):
        return pair(*(_row(found.member(name)) for name in ("fst", "snd")))
    result = with_folds(found.element, found.folds)
    return result if found.column is None else generated(found.column, result)


def with_folds(term: Expr, folds: Sequence[Fold]) -> Expr:
    """A term in which the names of reductions stand for their results."""
    for fold in reversed(folds):
        if fold.name.name in term.free:
            term = Apply(Lambda(fold.name, term, term.origin), _reduced(fold), term.origin)
    return term


@computed(
    "factors of reductions",
    "e → generate(i => generate(j => f(c·Σ x, d·max y))), where e[i][j] = f(Σ c·x, max d·y) for d > 0",
    (
        "fun((a: 3.4.f32, b: 5.4.f32) => a |> map(fun(r => r |> reduce(+, 1) |> fun(s => b |> map(fun(c =>"
        " zip(r)(c) |> map(fun((x, y) => x * (s * s + 1) * y)) |> reduce(+, 0)))))))",
        "fun((a: 3.4.f16, b: 5.4.f16) => a |> map(fun(r => r |> map(fun(x => f32(x))) |> reduce(+, 1)"
        " |> fun(s => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) => f32(f16(f32(x) * s)) * f32(y)))"
        " |> reduce(+, 0)))))))",
    ),
    "A factor that all terms of a sum have stands before the sum, a positive one also before a maximum.",
    exact=False,
)
def FACTORS(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    found = of_rows(term)
    after = factored(found)
    return "no sum or maximum has a factor that all of its terms have" if after is found else written(after)


def factored(found: System) -> System:
    """The system with such factors before its reductions; itself where there are none."""
    folds: list[Fold] = []
    before: dict[Expr, Expr] = {}
    for fold in found.folds:
        fold = replace(fold, body=put(fold.body, before), start=put(fold.start, before))
        parts, fixed = _before_sum(fold)
        moves = operator_name(fold.operator) == "add" and is_zero(fold.start)
        if operator_name(fold.operator) == "max" and is_lowest(fold.start):
            moves = all(is_positive(factor) for factor, _ in fixed)
        if moves and fixed and is_float(fold.name):
            inner = Identifier(f"{fold.name.name}_", fold.name.type)
            type_ = as_data(fold.name.type)
            before[fold.name] = product_of([(inner, False), *fixed], type_)
            fold = replace(fold, name=inner, body=product_of(parts, type_))
        folds.append(fold)
    return replace(found, folds=tuple(folds), element=put(found.element, before)) if before else found


@computed(
    "factor of a sum",
    "xs |> map(x => f(x) * c) |> reduce(+, 0) → (xs |> map(f) |> reduce(+, 0)) * c",
    (
        "fun((xs: 5.f32, c: f32) => xs |> map(fun(x => x * (x + c) * c)) |> reduce(+, 0))",
        "fun((xs: 5.f32, ys: 5.f32, c: f32, d: f32) => zip(xs)(ys) |> map(fun((x, y) => c * x * (y * d)))"
        " |> reduce(+, 0))",
    ),
    "A factor that all terms of a sum have stands beside the sum.",
    head=("reduce", 3),
    exact=False,
)
def FACTOR_OF_SUM(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "reduce", head, [operator, start, terms] if is_float(term):
            pass
        case _:
            return "expected a sum of floats"
    match call(terms):
        case "map", _, [Lambda(x, body) as function, xs]:
            pass
        case _:
            return "expected a sum of what a function gives"
    if operator_name(operator) != "add" or not is_zero(start):
        return "expected a sum that starts from zero"
    found = list(factors(body))
    fixed = [(factor, inverse) for factor, inverse in found if x.name not in factor.free and not inverse]
    rest = [part for part in found if part not in fixed]
    if not fixed or not rest:
        return "no factor is the same for all terms"
    each = Lambda(x, product_of(rest, as_data(body.type)), function.origin)
    total = apply(head, operator, start, mapped(each, xs), origin=term.origin)
    return product_of([(total, False), *fixed], as_data(term.type))


def _before_sum(fold: Fold) -> tuple[list[tuple[Expr, bool]], list[tuple[Expr, bool]]]:
    """The factors of a sum's terms that differ, and those that all terms have, also inside of a rounding."""
    differ: list[tuple[Expr, bool]] = []
    fixed: list[tuple[Expr, bool]] = []
    for factor, inverse in factors(fold.body):
        if fold.index.name not in factor.free:
            fixed.append((factor, inverse))
            continue
        parts = list(factors(unrounded(factor), inverse))
        same = [part for part in parts if fold.index.name not in part[0].free]
        if unrounded(factor) is factor or not same:
            differ.append((factor, inverse))
            continue
        rest = [(part, other != inverse) for part, other in parts if (part, other) not in same]
        differ.append((rounded_like(factor, product_of(rest, as_data(factor.type))), inverse))
        fixed += same
    return differ, fixed


def is_lowest(term: Expr) -> bool:
    """-∞"""
    match term, call(term):
        case Literal(value), _:
            return value == float("-inf")
        case _, ("neg", _, [Literal(value)]):
            return value == float("inf")
        case _:
            return False


def is_positive(term: Expr) -> bool:
    """Whether a number is positive whatever its variables are, so far as its form tells."""
    match term, call(term):
        case Literal(value), _:
            return value > 0
        case _, (("exp" | "exp2" | "rsqrt"), _, [_]):
            return True
        case _, (("mul" | "div" | "add"), _, [left, right]):
            return is_positive(left) and is_positive(right)
        case _:
            return False


def is_zero(term: Expr) -> bool:
    return isinstance(term, Literal) and term.value == 0
