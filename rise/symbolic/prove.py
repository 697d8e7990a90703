"""Equality of values for all sizes, in a context.

Elements are equal if they apply one symbol to equal values; z3 says whether indices are. Choices are told
apart by their conditions. Loops are equal by one of these lemmas, each an induction on the number of steps:

    simulation  one accumulator is a view of the other, at the start and after each step. Lockstep, where both
                are the same, and pointwise, where one is an element of the other, are instances of it.
    split       a loop in a loop that goes on with its accumulator is one loop over both indices
    concat      a loop over p + q elements is one over q that starts with the result of one over p

Sums, which may be reordered, are in `rise.symbolic.sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rise.symbolic.context import Context
from rise.symbolic.evaluate import Evaluator
from rise.symbolic.monoids import Operators
from rise.symbolic.unknowns import Unknowns
from rise.symbolic.values import (
    ELEMENTS,
    UNDEFINED,
    Abstraction,
    Applied,
    Case,
    Element,
    Fold,
    Member,
    Path,
    Sequence,
    Value,
    Whole,
    at,
    dimensions,
    spread,
)

QUESTIONS = 200  # to z3, in one proof


class GaveUp(Exception):
    """The proof asks z3 too much."""


@dataclass
class Prover:
    """operators: those whose sums may be reordered, with what is neutral; none where the order is kept"""

    world: Unknowns
    evaluator: Evaluator
    operators: Operators | None = None

    def equal(self, left: Value, right: Value, context: Context) -> bool:
        """Whether the left value is certainly the right one, wherever the left one is defined."""
        if left is right:
            return True
        match left, right:
            case Sequence(), Sequence():
                i, inside = context.index(left.size)
                return context.equal(left.size, right.size) and self.equal(left.at(i), right.at(i), inside)
            case tuple(), tuple():
                return all(self.equal(a, b, context) for a, b in zip(left, right, strict=True))
            case Abstraction(), Abstraction():
                x = self.unknown(left.type.parameter)
                return self.equal(left.function(x), right.function(x), context)
            case _ if isinstance(left, ELEMENTS) and isinstance(right, ELEMENTS):
                return self._elements_equal(left, right, context)
            case _ if isinstance(left, ELEMENTS) or isinstance(right, ELEMENTS):
                return False
            case _:
                return context.equal(left, right)

    def unknown(self, type_: Any) -> Value:
        """Any value of a type, as the accumulator before a step."""
        return self.evaluator.opaque(self.world.name("any"), type_)

    # --- elements -----------------------------------------------------------------------------------------

    def _elements_equal(self, left: Element, right: Element, context: Context) -> bool:
        if context.asked[0] > QUESTIONS:
            raise GaveUp
        left, right = self.resolved(left, context), self.resolved(right, context)
        if is_undefined(left):
            return True
        for branching in (left, right):
            if isinstance(branching, Case):
                return all(self._elements_equal(left, right, c) for c in _branches(branching, context))
        match left, right:
            case Applied(f, xs), Applied(g, ys) if f == g and len(xs) == len(ys):
                if all(self.equal(x, y, context) for x, y in zip(xs, ys, strict=True)):
                    return True
            case Fold(), Fold():
                if self._folds_equal(left, right, context):
                    return True
        if self.operators is None:
            return False
        from rise.symbolic.sums import Sums

        return Sums(self, self.operators).equal(left, right, context)

    def resolved(self, element: Element, context: Context) -> Element:
        """Without choices whose condition is certain, and loops without steps."""
        while True:
            match element:
                case Case(Case(condition, a, b), then, otherwise):
                    element = Case(condition, Case(a, then, otherwise), Case(b, then, otherwise))
                case Case(condition, then, otherwise):
                    truth = self._truth(condition, context)
                    if truth is None:
                        return element
                    element = then if truth else otherwise
                case Fold(size, _, start, _, path) if context.equal(size, 0):
                    element = at(start, path)
                case _:
                    return element

    def _truth(self, condition: Any, context: Context) -> bool | None:
        if isinstance(condition, bool):
            return condition
        if isinstance(condition, ELEMENTS):
            known = context.assumed(condition)
            if known is not None:
                return known
            same = (t for e, t in context.choices if self.equal(e, condition, replace(context, choices=())))
            return next(same, None)
        if context.holds(condition):
            return True
        return False if context.holds(context.world.z3.Not(condition)) else None

    # --- loops --------------------------------------------------------------------------------------------

    def _folds_equal(self, left: Fold, right: Fold, context: Context) -> bool:
        if context.equal(left.size, right.size):
            if any(self._simulates(*way, context) for way in self._relations(left, right, context)):
                return True
        elif self._concatenated(left, right, context):
            return True
        for first, second in ((self._flat(left, context), right), (left, self._flat(right, context))):
            if first is not None and second is not None and (first is not left or second is not right):
                return self._folds_equal(first, second, context)
        return False

    def _relations(
        self, left: Fold, right: Fold, context: Context
    ) -> Iterator[tuple[Fold, Fold, Value, Value, Context]]:
        """Accumulators of both loops, of which one is a view of the other."""
        if not left.path or not right.path:
            for_right = self.unknown(right.type if not left.path else left.type)
            if not left.path:
                yield left, right, at(for_right, right.path), for_right, context
            else:
                yield left, right, for_right, at(for_right, left.path), context
            return
        if left.type == right.type and self._same_path(left.path, right.path, context):
            whole = self.unknown(left.type)
            yield replace(left, path=()), replace(right, path=()), whole, whole, context
        for view, viewed, swapped in ((left, right, False), (right, left, True)):
            if _are_distinct(view.path) and self._are_any(view, context):
                whole = self.unknown(viewed.type)
                seen = self._view(view, viewed, whole)
                both = (whole, seen) if swapped else (seen, whole)
                yield left, right, *both, context.for_all(list(view.path))

    def _are_any(self, fold: Fold, context: Context) -> bool:
        """Whether the path has any indices that there are: what holds for them holds for all."""
        sizes: list[Whole] = []
        type_: Any = fold.type
        while (indexed := dimensions(type_)) is not None:
            sizes.append(self.world.size(indexed[0]))
            type_ = indexed[1]
        ranges = [context.range_of(index) for index in fold.path]
        return len(sizes) == len(ranges) and all(
            extent is not None and context.equal(size, extent)
            for size, extent in zip(sizes, ranges, strict=True)
        )

    def _view(self, view: Fold, viewed: Fold, whole: Value) -> Value:
        """The accumulator whose element at each path is where the other loop has the corresponding one."""

        def leaf(path: Path, _: Any) -> Value:
            pairs = self.world.replacing(zip(view.path, path, strict=True))
            there = (p if isinstance(p, Member) else self.world.replaced(p, pairs) for p in viewed.path)
            return at(whole, tuple(there))

        return spread(self.world.size, view.type, leaf)

    def _simulates(
        self, left: Fold, right: Fold, before: Value, other: Value, inside: Context, context: Context
    ) -> bool:
        """Whether both elements are equal at the start, and after a step from these accumulators."""
        if not self.equal(at(left.start, left.path), at(right.start, right.path), inside):
            return False
        i, stepping = inside.index(left.size, "step")
        return self.equal(at(left.step(before, i), left.path), at(right.step(other, i), right.path), stepping)

    def _same_path(self, left: Path, right: Path, context: Context) -> bool:
        return len(left) == len(right) and all(
            a == b if isinstance(a, Member) or isinstance(b, Member) else context.equal(a, b)
            for a, b in zip(left, right, strict=True)
        )

    def _flat(self, fold: Fold, context: Context) -> Fold | None:
        """A loop whose step is a loop that goes on with the accumulator, as one loop; None for others."""
        quotient, remainder = self.world.quotient, self.world.remainder
        whole = self.unknown(fold.type)
        i, inside = context.index(fold.size, "step")
        inner = at(fold.step(whole, i), fold.path)
        if (
            not isinstance(inner, Fold)
            or inner.type != fold.type
            or str(i) in context.world.names_in(inner.size)
        ):
            return None
        if not self._same_path(inner.path, fold.path, inside) or not self._goes_on(fold, inner, whole):
            return None
        # the other elements of the accumulator have to go on in the same way, in a step that is one for all
        if fold.path and not (_are_distinct(fold.path) and self._are_any(fold, context)):
            return None
        j, _ = inside.index(inner.size, "step")
        after = inner.step(self.unknown(fold.type), j)
        if self.occurs(whole, after) or self._mentions(frozenset(map(str, fold.path)), after):
            return None
        rows = inner.size

        def step(accumulator: Value, k: Whole) -> Value:
            row = at(fold.step(whole, quotient(k, rows)), fold.path)
            return row.step(accumulator, remainder(k, rows))

        return replace(fold, size=fold.size * rows, step=step)

    def _goes_on(self, fold: Fold, inner: Fold, whole: Value) -> bool:
        return inner.start is whole or (
            isinstance(whole, Applied)
            and isinstance(inner.start, Applied)
            and inner.start.symbol == whole.symbol
        )

    def _concatenated(self, left: Fold, right: Fold, context: Context) -> bool:
        """Whether the shorter loop does the last steps of the longer one, from what those before give."""
        if left.type != right.type or not self._same_path(left.path, right.path, context):
            return False
        more = context.world.polynomial(left.size - right.size)
        if not context.holds(more >= 0):
            if not context.holds(more <= 0):
                return False
            more = context.world.polynomial(right.size - left.size)
            return self._continues(right, left, more, context, lambda a, b, c: self.equal(b, a, c))
        return self._continues(left, right, more, context, self.equal)

    def _continues(
        self,
        long: Fold,
        short: Fold,
        more: Whole,
        context: Context,
        equal: Callable[[Value, Value, Context], bool],
    ) -> bool:
        whole = self.unknown(long.type)
        i, stepping = context.index(short.size, "step")
        if not equal(long.step(whole, i + more), short.step(whole, i), stepping):
            return False
        first = self.evaluator.fold(long.type, more, long.step, long.start)
        return equal(first, short.start, context)

    # --- occurrence ---------------------------------------------------------------------------------------

    def occurs(self, unknown: Value, value: Value) -> bool:
        """Whether a value depends on one that `unknown` made."""
        return self._mentions(frozenset(_symbols(unknown)), value)

    def _mentions(self, names: frozenset[str], value: Value) -> bool:
        """Whether opaque elements or indices of these names occur in a value."""
        match value:
            case Applied(symbol, arguments):
                return symbol.split(".")[0] in names or any(self._mentions(names, a) for a in arguments)
            case Case(condition, then, otherwise):
                return any(self._mentions(names, part) for part in (condition, then, otherwise))
            case Fold(size, step, start, type_, path):
                after = at(step(self.unknown(type_), self.fresh()), path)
                return any(self._mentions(names, part) for part in (size, start, after, *path))
            case Sequence(size):
                return self._mentions(names, size) or self._mentions(names, value.at(self.fresh()))
            case tuple():
                return any(self._mentions(names, part) for part in value)
            case Abstraction(type_, function):
                return self._mentions(names, function(self.unknown(type_.parameter)))
            case Member():
                return False
            case _:
                return not names.isdisjoint(self.world.names_in(value))

    def fresh(self) -> Whole:
        return self.world.fresh("i")


def is_undefined(element: Value) -> bool:
    """Whether an element depends on one that nothing defines: no program may use it."""
    match element:
        case Applied(_, arguments):
            return element is UNDEFINED or any(map(is_undefined, arguments))
        case _:
            return False


def _branches(case: Case, context: Context) -> tuple[Context, Context]:
    condition = case.condition
    if isinstance(condition, ELEMENTS):
        return context.choosing(condition, True), context.choosing(condition, False)
    return context.given(condition), context.given(context.world.z3.Not(condition))


def _are_distinct(path: Path) -> bool:
    return not any(isinstance(p, Member | int) for p in path) and len({p.get_id() for p in path}) == len(path)


def _symbols(value: Value) -> Iterator[str]:
    """The names by which an opaque value occurs."""
    match value:
        case Applied(symbol):
            yield symbol.split(".")[0]
        case Sequence():
            yield from _symbols(value.at(0))
        case tuple():
            for part in value:
                yield from _symbols(part)
