"""What the rows of a matrix are reduced to, in parts of rows: one number, or a maximum and sums that use it.

    r = max e, t = Σ exp(e - r)   →   (q, s) of each part; then r = max q, t = Σ s·exp(q - r)

All terms are functions of one element of the row, which is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from rewrites.algorithmic import is_reduction
from rewrites.build import build
from rewrites.elements import NotPointwise, fresh, mapped, members, names, put, replaced, tupled
from rewrites.exact import draws, evaluated, rational
from rewrites.extrema import Extremum
from rewrites.folds import Fold, System
from rewrites.repairs import Reductions, vanishes
from rewrites.typed import array_type, zero_of
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, substitute, subterms
from rise.nat import Nat
from rise.types import as_data


@dataclass(frozen=True)
class RowFolds:
    """Reductions of the elements of a row.

    given: their maximum, if sums use one, and the sums; None of one reduction by any operator
    index, body: an element of the row, of which all terms are functions, by its index
    folds: the reductions, whose bodies are functions of the variable `element`
    """

    given: Reductions | None
    index: Identifier
    body: Expr
    element: Identifier
    folds: tuple[Fold, ...]

    @classmethod
    def of(cls, found: System) -> RowFolds:
        """Raises NotPointwise where the terms are not functions of one element, or do not combine."""
        if len(found.folds) == 1:
            (fold,) = found.folds
            element = fresh("e", as_data(fold.body.type), names(fold.body))
            return cls(None, fold.index, fold.body, element, (_of_element(fold, fold.body, element),))
        given = Reductions.of(found)
        folds = [given.reference] if given.reference is not None else []
        folds += [s.fold for s in given.sums]
        outside = {found.row.name, given.index.name}
        taken = names(*(fold.body for fold in folds))
        for body in _candidates(folds):
            element = fresh("e", as_data(body.type), taken)
            made = tuple(_of_element(fold, body, element) for fold in folds)
            if all(fold.body.free.isdisjoint(outside) for fold in made):
                return cls(given, given.index, body, element, made)
        raise NotPointwise("what is reduced is not computed from one element of the row", found.element)

    @property
    def size(self) -> Nat | None:
        """How many elements a row has."""
        return self.folds[0].size

    @property
    def neutral(self) -> Expr:
        """An element that changes no reduction. Raises NotPointwise where none is known."""
        if self.given is None:
            return self.folds[0].start
        reference = self.given.reference
        zero = zero_of(as_data(self.element.type), self.body)
        if reference is None and isinstance(zero, Expr) and all(map(self._is_zero_at_zero, self.folds)):
            return zero
        is_top = reference is not None and self.folds[0].body == self.element
        if is_top and all(vanishes(s, reference) for s in self.given.sums):
            return Literal(float("-inf"), self.element.type)
        raise NotPointwise("no element is known that changes none of the reductions", self.body)

    def _is_zero_at_zero(self, fold: Fold) -> bool:
        at_zero = evaluated(fold.body, {self.element.name: rational(0)}, draws(Random(0))(""))
        return at_zero == rational(0)

    def of_part(self, part: Expr) -> Expr:
        """What a part of a row is reduced to: a number, or a maximum and sums."""
        made = [self._reduced(fold, part) for fold in self.folds]
        if self.given is None or self.given.reference is None:
            return tupled(made)
        top = self.folds[0].name
        return Apply(Lambda(top, tupled([top, *made[1:]])), made[0])

    def _reduced(self, fold: Fold, part: Expr) -> Expr:
        terms = part if fold.body == self.element else mapped(Lambda(self.element, fold.body), part)
        is_top = self.given is not None and self.given.reference is not None and fold is self.folds[0]
        start = (self.given.start if self.given is not None and is_top else None) or fold.start
        return build("xs |> reduce(op, z)", xs=terms, op=fold.operator, z=start)

    def of_row(self, parts: Expr, element: Expr, width: Nat) -> Expr:
        """A function of the reductions of a row, from those of its parts, whatever the width of these."""
        taken = names(parts, element) | {fold.name.name for fold in self.folds}
        part = fresh("part", array_type(parts).element, taken)
        of_part = dict(zip((f.name for f in self.folds), members(part, len(self.folds)), strict=True))
        if self.given is None:
            (fold,) = self.folds
            combined = build("xs |> reduce(op, z)", xs=parts, op=fold.operator, z=fold.start)
            return substitute(element, {fold.name.name: combined})
        folds, values = self.given.combined(self.index, of_part, taken)
        result = put(element, values)
        for fold in reversed(folds):
            terms = mapped(Lambda(part, fold.body), parts)
            total = build("xs |> reduce(op, z)", xs=terms, op=fold.operator, z=fold.start)
            result = Apply(Lambda(fold.name, result), total)
        return result


def _of_element(fold: Fold, body: Expr, element: Identifier) -> Fold:
    return Fold(fold.name, fold.operator, fold.start, fold.index, replaced(fold.body, body, element))


def _candidates(folds: Sequence[Fold]) -> Iterator[Expr]:
    """What all terms may be functions of: one of the terms, or a reduction in them, as a product is."""
    yield from (fold.body for fold in folds)
    yield from (part for fold in folds for part in subterms(fold.body) if is_reduction(part))


def row_reductions(found: System) -> RowFolds | Extremum:
    """What rows are reduced to. Raises NotPointwise."""
    return Extremum.of(found) or RowFolds.of(found)
