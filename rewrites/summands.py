"""What the terms of a maximum have in common, taken out of the exponentials of their differences from it.

    r = max (p·x + c),  exp((p·x + c) - r)   →   s = max x,  exp(p·x - p·s),  r = p·s + c      for p > 0

A softmax does not change when all scores of a row do by the same number, so a slope by the distance of a
query and a key is one by the number of the key alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rewrites.algorithmic import is_reduction
from rewrites.elements import names, put
from rewrites.folds import (
    Fold,
    System,
    factors,
    is_float,
    is_lowest,
    is_positive,
    of_rows,
    operation,
    operator_name,
    product_of,
    written,
)
from rewrites.rule import computed
from rise.expr import (
    Expr,
    Identifier,
    Literal,
    alpha_equal,
    apply,
    call,
    fresh_name,
    map_children,
    substitute,
    subterms,
)
from rise.types import Scalar, as_data

MOST = 2.0**24  # of a literal that a whole number times is finite
NONE = "no terms of a maximum have a summand or a factor that exponentials of differences do without"

Factors = list[tuple[Expr, bool]]


# --- sums -------------------------------------------------------------------------------------------------


def _summands(term: Expr, index: str, minus: bool = False) -> Iterator[tuple[Expr, bool]]:
    """The summands of a sum, each with whether it is subtracted.

    A number that is finite is multiplied with the summands where some of these are the same for all terms.
    """
    match call(term):
        case ("add" | "sub") as name, _, [left, right] if is_float(term):
            yield from _summands(left, index, minus)
            yield from _summands(right, index, minus is not (name == "sub"))
        case "neg", _, [inner] if is_float(term):
            yield from _summands(inner, index, not minus)
        case "mul", _, [left, right] if is_float(term):
            for one, other in ((left, right), (right, left)):
                parts = list(_summands(one, index))
                fixed = [part for part, _ in parts if index not in part.free]
                if index not in other.free and is_finite(other) and fixed and len(fixed) < len(parts):
                    for part, negative in parts:
                        yield operation("mul", part, other), minus is not negative
                    return
            yield term, minus
        case _:
            yield term, minus


def is_finite(term: Expr) -> bool:
    """Whether a number is finite whatever its variables are, so far as its form tells."""
    match term, call(term):
        case Literal(value), _:
            return isinstance(value, int | float) and abs(value) <= MOST
        case _, ("cast", _, [inner]):
            return isinstance(inner.type, Scalar) and not inner.type.is_float
        case _, (("add" | "sub" | "mul"), _, [left, right]):
            return is_finite(left) and is_finite(right)
        case _, ("neg", _, [inner]):
            return is_finite(inner)
        case _:
            return False


def _sum(parts: list[tuple[Expr, bool]]) -> Expr:
    """The sum of summands; those that are subtracted come last."""
    parts = sorted(parts, key=lambda part: part[1])
    (result, minus), *others = parts
    result = operation("neg", result) if minus else result
    for part, negative in others:
        result = operation("sub" if negative else "add", result, part)
    return result


def _grouped(term: Expr, index: str) -> Expr:
    """Products in which the factors that are the same for all terms are multiplied first."""
    if is_reduction(term):
        return term
    found = list(factors(term))
    if len(found) == 1:
        return map_children(term, lambda child: _grouped(child, index))
    type_ = as_data(term.type)
    inner = [(_grouped(factor, index), inverse) for factor, inverse in found]
    fixed = [part for part in inner if index not in part[0].free]
    moving = [part for part in inner if part not in fixed]
    if not fixed or not moving:
        return product_of(inner, type_)
    return product_of([*moving, (product_of(fixed, type_), False)], type_)


# --- scores -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scores:
    """A term of a maximum, written as scale · inner + offset.

    inner:  differs from term to term
    scale:  positive factors, the same for all terms
    offset: the same for all terms; None for 0
    """

    inner: Expr
    scale: Factors
    offset: Expr | None

    def scaled(self, term: Expr) -> Expr:
        return product_of([(term, False), *self.scale], as_data(term.type))

    def whole(self, term: Expr) -> Expr:
        return self.scaled(term) if self.offset is None else operation("add", self.scaled(term), self.offset)


def _chosen(term: Expr) -> list[Expr]:
    """What a mask leaves, in all of its cases."""
    match call(term):
        case "select", _, [_, first, second] if is_float(term):
            return [*_chosen(first), *_chosen(second)]
        case _:
            return [] if is_lowest(term) else [term]


def _with_chosen(term: Expr, by: Expr) -> Expr:
    match call(term):
        case "select", head, [condition, first, second] if is_float(term):
            return apply(head, condition, _with_chosen(first, by), _with_chosen(second, by))
        case _:
            return term if is_lowest(term) else by


def _split(found: Factors, index: str) -> tuple[Factors, Factors]:
    """The positive factors that are the same for all terms, as one, and the others."""
    fixed = [part for part in found if index not in part[0].free and is_positive(part[0])]
    return fixed, [part for part in found if part not in fixed]


def _scores(fold: Fold) -> _Scores | None:
    """The terms of a maximum without their common summands; None where they have a common factor at most."""
    index, type_ = fold.index.name, as_data(fold.name.type)
    outside, rest = _split(list(factors(fold.body)), index)
    whole = product_of(rest, type_)
    chosen = _chosen(whole)
    if not rest or not chosen or not all(alpha_equal(other, chosen[0]) for other in chosen):
        return None
    parts = list(_summands(chosen[0], index))
    fixed = [part for part in parts if index not in part[0].free and is_finite(part[0])]
    moving = [part for part in parts if part not in fixed]
    if not moving:
        return None
    main = next((part for part in moving if any(map(is_reduction, subterms(part[0])))), moving[0])
    scale, own = _split(list(factors(main[0])), index)
    if not own or not (fixed or (len(moving) > 1 and scale)):
        return None
    inverse = [(factor, not divides) for factor, divides in scale]
    made = [(product_of(own, type_), main[1])]
    for part in moving:
        if part is not main:
            made.append((product_of([*factors(part[0]), *inverse], type_), part[1]))
    inner = _with_chosen(whole, _grouped(_sum(made), index))
    # a factor outside of all cases is one of the summand, too
    together = product_of([*scale, *outside], type_)
    offset = product_of([(_sum(fixed), False), *outside], type_) if fixed else None
    return _Scores(inner, [(together, False)] if scale or outside else [], offset)


def _in_differences(term: Expr, score: Expr, name: Identifier, by: Expr) -> Expr:
    """A term with another for each difference of a score from the maximum of that name."""
    match call(term):
        case "sub", _, [left, Identifier() as right] if right == name and alpha_equal(left, score):
            return by
        case _:
            return map_children(term, lambda child: _in_differences(child, score, name, by))


def _without(found: System) -> System:
    """The system with scores in place of the terms of a maximum; itself where nothing is left out."""
    folds: list[Fold] = []
    before: dict[Expr, Expr] = {}
    changes: list[tuple[Fold, Identifier, _Scores]] = []
    for fold in found.folds:
        body = fold.body
        for old, new, scores in changes:
            at_index = {old.index.name: fold.index}
            score, inner = (substitute(part, at_index) for part in (old.body, scores.inner))
            difference = operation("sub", scores.scaled(inner), scores.scaled(new))
            body = _in_differences(body, score, old.name, difference)
        fold = replace(fold, body=put(body, before), start=put(fold.start, before))
        if operator_name(fold.operator) == "max" and is_lowest(fold.start) and is_float(fold.name):
            scores_ = _scores(fold)
            if scores_ is not None and _is_reference(found, fold):
                new = Identifier(fresh_name(f"{fold.name.name}_", names(fold.body)), fold.name.type)
                before[fold.name] = scores_.whole(new)
                changes.append((fold, new, scores_))
                fold = replace(fold, name=new, body=scores_.inner)
        folds.append(fold)
    return replace(found, folds=tuple(folds), element=put(found.element, before)) if changes else found


def _is_reference(found: System, maximum: Fold) -> bool:
    """Whether all reductions that use a maximum do so in differences of its terms from it."""
    users = [fold for fold in found.folds if maximum.name.name in fold.body.free]
    for fold in users:
        score = substitute(maximum.body, {maximum.index.name: fold.index})
        zero = Literal(0.0, score.type)
        rest = _in_differences(fold.body, score, maximum.name, zero)
        if maximum.name.name in rest.free:
            return False
    return bool(users)


@computed(
    "summands of a maximum",
    "e → generate(i => generate(j => f(r, Σ g(r, x)))), where r = max(p·x + c) is p·s + c for s = max x, and"
    " (p·x + c) - r is p·x - p·s",
    (
        "fun((a: 3.4.f32, b: 5.4.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((q, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((k, j) => (zip(q)(k)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0)) * 0.5 + 2 * f32(j - i))) |> fun(s => s"
        " |> reduce(max, -infinity) |> fun(m => s |> map(fun(x => exp2(x - m))) |> reduce(+, 0))))))",
    ),
    "Exponentials of differences from a maximum do without what is added to all terms.",
    exact=False,
)
def SUMMANDS(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    found = of_rows(term)
    after = _without(found)
    return NONE if after is found else written(after)
