"""Reductions of the elements of one index: a maximum, and sums that use it, with what repairs these.

A sum whose terms are g(r, c) = exp(x(c) + y·r)·v(c) is for another r' what it is for r times exp(y·(r' - r)),
whatever x and v are. So it may be begun before r is known (`rolling`), and computed in parts (`parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from rewrites.elements import NotPointwise, fresh, names, put, replaced
from rewrites.exact import Exact, added, draws, evaluated, rational
from rewrites.folds import (
    Fold,
    System,
    factors,
    is_lowest,
    is_positive,
    is_zero,
    operation,
    operator_name,
    product_of,
    unconverted,
    unrounded,
)
from rewrites.typed import instance
from rise.expr import Expr, Identifier, Literal, Primitive, apply, call, fresh_name, substitute, subterms
from rise.nat import Nat, constant
from rise.normal import is_view
from rise.types import Data, Index, as_data

# what a maximum starts from in place of -∞, which minus itself is not a number: far below all scores, and
# finite also when it is scaled
LOWEST = {"f16": -(2.0**14), "bf16": -(2.0**100), "f32": -(2.0**100), "f64": -(2.0**1000)}


def lowest(start: Expr) -> Expr:
    """What a maximum starts from: a number in place of -∞."""
    return Literal(LOWEST[str(start.type)], start.type) if is_lowest(start) else start


def from_lowest(maximum: Expr, start: Expr) -> Expr:
    """A maximum that started from a number in place of -∞: -∞ where it is still that number."""
    if not is_lowest(start):
        return maximum
    same = operation("le", maximum, lowest(start))
    return apply(instance("select", (maximum.type,), None), same, Literal(float("-inf"), start.type), maximum)


@dataclass(frozen=True)
class Repair:
    """h(t, n, r, s): what a sum t of n elements for the reference r is for another, s."""

    total: Identifier
    count: Identifier
    old: Identifier
    new: Identifier
    term: Expr

    def of(self, total: Expr, count: Expr, old: Expr, new: Expr) -> Expr:
        parts: dict[Expr, Expr] = {self.total: total, self.count: count, self.old: old, self.new: new}
        return put(self.term, parts)

    @classmethod
    def by(cls, make: Callable[[Expr, Expr, Expr], Expr], type_: Data) -> Repair:
        """make: the term, of the sum, the number of its elements, and the change of the reference"""
        total, count, old, new = (Identifier(name, type_) for name in ("t", "n", "r", "s"))
        return cls(total, count, old, new, make(total, count, operation("sub", new, old)))


def check(repair: Repair, g: Expr, reference: Identifier, index: Identifier) -> None:
    """Compares in exact numbers what a repair of Σ g(r, c) has to satisfy, or raises NotPointwise.

    h(g(r, c), r, s) = g(s, c),  h(x + y, r, s) = h(x, r, s) + h(y, r, s),  h(h(x, r, s), s, u) = h(x, r, u)
    """
    random = Random(0)
    drawn, one = draws(random)(index.name), rational(1)

    def h(total: Exact, old: Exact, new: Exact) -> Exact:
        parts = zip((repair.total, repair.count, repair.old, repair.new), (total, one, old, new), strict=True)
        return evaluated(repair.term, {x.name: value for x, value in parts}, drawn, powers=False)

    def of(r: Exact) -> Exact:
        return evaluated(g, {reference.name: r}, drawn, powers=False)

    for _ in range(2):
        r, s, u, x, y = (rational(Fraction(random.randint(-9, 9), random.randint(1, 3))) for _ in range(5))
        repaired = h(of(r), r, s) == of(s)
        distributes = h(added(x, y), r, s) == added(h(x, r, s), h(y, r, s))
        if not (repaired and distributes and h(h(x, r, s), s, u) == h(x, r, u)):
            raise NotPointwise("the repair of a sum is wrong", g)


def of_squares(type_: Data) -> Repair:
    """h(t, n, r, s) = t + n·(s - r)², of squares of the distances from the mean r of n elements."""
    return Repair.by(
        lambda t, n, change: operation("add", t, operation("mul", n, operation("mul", change, change))), type_
    )


@dataclass(frozen=True)
class Sum:
    """A sum of weights, or of weights times values that depend on the column.

    weight: a function of the row and the index
    value:  a function of the index and the column; None for sums that do not depend on the column
    slope:  the weight is proportional to `exponential`(slope · r), for the reference r; None if it is not
    """

    fold: Fold
    weight: Expr
    value: Expr | None
    slope: Expr | None = None
    exponential: str = "exp"

    def power(self, change: Expr) -> Expr:
        """What makes the sum for one reference that for another: exp(y·(s - r))."""
        if self.slope is None:
            raise NotPointwise("no repair is known", self.weight)
        return operation(self.exponential, times(self.slope, change))

    @property
    def repair(self) -> Repair | None:
        """h(t, n, r, s) = t·exp(y·(s - r)); None for a sum that does not use the reference."""
        if self.slope is None:
            return None
        return Repair.by(
            lambda t, n, change: operation("mul", t, self.power(change)), as_data(self.fold.name.type)
        )


def _slope(term: Expr, name: str) -> Expr | None:
    """y of x + y·r, for the variable r of that name, which x and y do not use; None for other terms."""
    one = Literal(1.0, term.type)
    if name not in term.free:
        return Literal(0.0, term.type)
    match term, call(term):
        case Identifier(), _:
            return one
        case _, ("neg", _, [inner]):
            slope = _slope(inner, name)
            return None if slope is None else _negative(slope)
        case _, (("add" | "sub") as sign, _, [left, right]):
            a, b = _slope(left, name), _slope(right, name)
            if a is None or b is None:
                return None
            if name not in right.free:
                return a
            signed = b if sign == "add" else _negative(b)
            return signed if name not in left.free else operation("add", a, signed)
        case _, ("mul", _, [left, right]):
            used, other = (left, right) if name in left.free else (right, left)
            slope = _slope(used, name)
            return None if slope is None or name in other.free else times(slope, other)
        case _, ("div", _, [left, right]) if name not in right.free:
            slope = _slope(left, name)
            return None if slope is None else operation("div", slope, right)
        case _:
            return None


def times(slope: Expr, other: Expr) -> Expr:
    match slope, call(slope):
        case Literal(1.0), _:
            return other
        case Literal(-1.0), _:
            return _negative(other)
        case _, ("neg", _, [inner]):
            return _negative(times(inner, other))
        case _:
            return operation("mul", slope, other)


def _negative(term: Expr) -> Expr:
    match term, call(term):
        case Literal(value), _:
            return Literal(-value, term.type, term.origin)
        case _, ("neg", _, [inner]):
            return inner
        case _, ("sub", _, [left, right]):
            return operation("sub", right, left)
        case _:
            return operation("neg", term)


def _as_sum(found: System, column: Identifier, fold: Fold, reference: Fold | None) -> Sum:
    if operator_name(fold.operator) != "add" or not is_zero(fold.start):
        raise NotPointwise("expected a maximum and sums", fold.body)
    others = {other.name.name for other in found.folds if reference is None or other.name != reference.name}
    if not fold.body.free.isdisjoint(others):
        raise NotPointwise(
            "a sum uses a reduction that is not a maximum: see `factors of reductions`", fold.body
        )
    parts = list(factors(fold.body))
    values = [part for part in parts if column.name in part[0].free]
    type_ = as_data(fold.name.type)
    value = product_of(values, type_) if values else None
    if value is not None and found.row.name in value.free:
        raise NotPointwise("a term of a sum is not a function of the row times one of the column", fold.body)
    made = Sum(fold, product_of([part for part in parts if part not in values], type_), value)
    if reference is None or reference.name.name not in fold.body.free:
        return made
    name = reference.name.name
    uses = [part for part in parts if name in part[0].free]
    match [(call(unrounded(factor)), inverse) for factor, inverse in uses]:
        case [((("exp" | "exp2") as exponential, _, [power]), False)]:
            slope = _slope(power, name)
            if slope is not None and fold.index.name not in slope.free:
                repaired = replace(made, slope=slope, exponential=exponential)
                if repaired.repair is not None:
                    check(repaired.repair, repaired.weight, reference.name, fold.index)
                return repaired
    raise NotPointwise("no repair is known: expected one factor exp(x + y·r) for the maximum r", fold.body)


def vanishes(s: Sum, reference: Fold | None) -> bool:
    """Whether a weight is 0 where what the maximum is of is -∞: it is exp(x·score + …) for a positive x.

    Other factors do not use the score: 0 · -∞ is not 0.
    """
    if reference is None or s.slope is None:
        return False
    score = Identifier(fresh_name("score", names(s.fold.body)), reference.body.type)
    parts = [(replaced(factor, reference.body, score), inverse) for factor, inverse in factors(s.weight)]
    using = [part for part in parts if score.name in part[0].free]
    match [(call(unrounded(factor)), inverse) for factor, inverse in using]:
        case [((("exp" | "exp2"), _, [power]), False)]:
            slope = _slope(power, score.name)
            return slope is not None and is_positive(slope)
        case _:
            return False


def is_zero_behind(weight: Expr) -> bool:
    """Whether a weight is an element of an array, behind whose end there are zeros."""
    used = {part.name for part in subterms(weight) if isinstance(part, Primitive)}
    return is_view(unconverted(weight)) and "indexToInt" not in used


@dataclass(frozen=True)
class Reductions:
    """The reductions of a system over one index.

    reference: a maximum that sums use, if there is one
    sums:      those without a column first: nothing should stand between products that a GPU starts
    """

    found: System
    column: Identifier
    index: Identifier
    length: Nat
    reference: Fold | None
    sums: tuple[Sum, ...]

    @classmethod
    def of(cls, found: System) -> Reductions:
        """Raises NotPointwise for other reductions, and where no repair of a sum is known."""
        # where rows are numbers, nothing depends on the column
        column = found.column or Identifier(fresh_name("j", names(found.element)), Index(constant(1)))
        if not found.folds or any(f.size != found.folds[0].size for f in found.folds):
            raise NotPointwise("expected reductions of equally many elements", found.element)
        length = found.folds[0].size
        if length is None:
            raise NotPointwise("expected reductions by index", found.element)
        index = Identifier("l", Index(length))
        folds = [replace(f, index=index, body=substitute(f.body, {f.index.name: index})) for f in found.folds]
        references = [fold for fold in folds if operator_name(fold.operator) == "max"]
        if len(references) > 1:
            raise NotPointwise("there is more than one maximum", found.element)
        reference = references[0] if references else None
        sums = [_as_sum(found, column, fold, reference) for fold in folds if fold is not reference]
        sums.sort(key=lambda s: s.value is not None)
        return cls(found, column, index, length, reference, tuple(sums))

    @property
    def start(self) -> Expr | None:
        """What the maximum starts from: a number in place of -∞ where sums use it."""
        if self.reference is None:
            return None
        return lowest(self.reference.start) if self.sums else self.reference.start

    @property
    def maximum(self) -> Callable[[Expr], Expr]:
        """The maximum that the program has, of what was computed."""
        start = self.reference.start if self.reference is not None and self.sums else None
        return lambda computed: computed if start is None else from_lowest(computed, start)

    def combined(
        self, index: Identifier, of_part: Mapping[Identifier, Expr], taken: set[str]
    ) -> tuple[list[Fold], dict[Expr, Expr]]:
        """The same reductions of all elements, from those of parts; and what their names stand for then.

        index, of_part: of a part, and the results of its reductions, by their names
        """
        new: dict[Expr, Identifier] = {
            name: fresh(f"all_{name.name}", as_data(name.type), taken) for name in of_part
        }
        folds: list[Fold] = []
        if (reference := self.reference) is not None:
            start = self.start or reference.start
            folds.append(Fold(new[reference.name], reference.operator, start, index, of_part[reference.name]))
        for s in self.sums:
            term = of_part[s.fold.name]
            if s.slope is not None and reference is not None:
                change = operation("sub", new[reference.name], of_part[reference.name])
                term = operation("mul", term, s.power(change))
            folds.append(Fold(new[s.fold.name], s.fold.operator, s.fold.start, index, term))
        values: dict[Expr, Expr] = dict(new)
        if reference is not None:
            values[reference.name] = self.maximum(new[reference.name])
        return folds, values

    @property
    def bodies(self) -> list[Expr]:
        """The terms of all reductions."""
        bodies = [s.weight for s in self.sums] + [s.value for s in self.sums if s.value is not None]
        return bodies + ([self.reference.body] if self.reference else [])
