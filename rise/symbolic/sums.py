"""Sums that may be reordered, with any associative and commutative operator.

A sum is a list of summands, each a term for all points of a box: a loop of `acc + t(i)` is one with i as a
dimension. Two summands are equal if a bijection of their boxes makes their terms equal: dimensions are
exchanged, split and joined, cut in two where a choice or another summand asks for it, or permuted as a
`reorder` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

from rise.symbolic.context import Context
from rise.symbolic.monoids import Operators, is_operator, neutral_of
from rise.symbolic.unknowns import Unknowns
from rise.symbolic.values import Applied, Case, Condition, Element, Fold, Whole, at, replaced

if TYPE_CHECKING:
    from rise.symbolic.prove import Prover

Dimension = tuple[Whole, Whole]  # an index, and its size
DEEPEST = 4  # of so many dimensions all orders are tried


@dataclass(frozen=True)
class Summand:
    """The sum of the body for all points of the box."""

    box: tuple[Dimension, ...]
    body: Element

    def inside(self, context: Context) -> Context:
        """The context at a point of the box."""
        return replace(context, ranges=(*context.ranges, *self.box))

    def at(self, values: Sequence[tuple[Whole, Whole]], world: Unknowns) -> Element:
        """The body for values of its indices."""
        changed = [(index, value) for index, value in values if index is not value]
        pairs = world.replacing(changed)
        return replaced(self.body, lambda term: world.replaced(term, pairs)) if changed else self.body

    def over(self, place: int, dimensions: Sequence[Dimension], value: Whole, world: Unknowns) -> Summand:
        """Over other dimensions in the place of one, whose index is a value of theirs."""
        box = (*self.box[:place], *dimensions, *self.box[place + 1 :])
        return Summand(box, self.at([(self.box[place][0], value)], world))


@dataclass
class Sums:
    prover: Prover
    operators: Operators

    def equal(self, left: Element, right: Element, context: Context) -> bool:
        heads = dict.fromkeys(h for h in (self.operator(left, context), self.operator(right, context)) if h)
        return any(self._equal(head, left, right, context) for head in heads)

    def _equal(self, operator: str, left: Element, right: Element, context: Context) -> bool:
        lefts = list(self.summands(operator, left, context))
        rights = list(self.summands(operator, right, context))
        if _is_only(lefts, left) and _is_only(rights, right):
            return False
        return self.match(operator, lefts, rights, context)

    def operator(self, element: Element, context: Context, depth: int = 6) -> str | None:
        """The operator of a sum."""
        match element:
            case Applied(symbol, (_, _)) if is_operator(symbol, self.operators):
                return symbol
            case Fold(size, step, _, type_, path) if depth:
                i, inside = context.index(size, "step")
                after = at(step(self.prover.unknown(type_), i), path)
                return self.operator(after, inside, depth - 1)
            case Case(_, then, otherwise):
                return self.operator(then, context, depth) or self.operator(otherwise, context, depth)
            case _:
                return None

    # --- summands -----------------------------------------------------------------------------------------

    def summands(self, operator: str, element: Element, context: Context) -> Iterator[Summand]:
        """Those of an element; what is no sum is one of them. What is neutral is left out."""
        element = self.prover.resolved(element, context)
        neutral = neutral_of(operator, self.operators)
        if neutral is not None and _is_neutral(self.prover, element, neutral, context):
            return
        match element:
            case Applied(symbol, (first, second)) if symbol == operator:
                yield from self.summands(operator, first, context)
                yield from self.summands(operator, second, context)
            case Applied(symbol, (first, second)) if _distributes(symbol, operator):
                yield from self._distributed(operator, element, first, second, context)
            case Fold():
                terms = self._terms(operator, element, context)
                yield from [Summand((), element)] if terms is None else terms
            case _:
                yield Summand((), element)

    def _distributed(
        self, operator: str, product: Applied, first: Any, second: Any, context: Context
    ) -> Iterator[Summand]:
        """A factor of a sum is one of each summand."""
        for place, factor in enumerate((first, second)):
            terms = list(self.summands(operator, factor, context))
            if not _is_only(terms, factor):
                for term in terms:
                    pair = (term.body, second) if place == 0 else (first, term.body)
                    inside = term.inside(context)
                    for inner in self.summands(operator, Applied(product.symbol, pair), inside):
                        yield Summand(term.box + inner.box, inner.body)
                return
        yield Summand((), product)

    def _terms(self, operator: str, fold: Fold, context: Context) -> list[Summand] | None:
        """The summands of a loop that adds to its accumulator; None where it does something else."""
        whole = self.prover.unknown(fold.type)
        before = at(whole, fold.path)
        i, inside = context.index(fold.size, "step")
        added, starts = [], 0
        for part in self.summands(operator, at(fold.step(whole, i), fold.path), inside):
            if not self.prover.occurs(whole, part.body):
                added.append(replace(part, box=((i, fold.size), *part.box)))
            elif part.box or not self.prover.equal(part.body, before, part.inside(inside)):
                return None
            else:
                starts += 1
        if starts != 1:
            return None
        return [*self.summands(operator, at(fold.start, fold.path), context), *added]

    # --- matching -----------------------------------------------------------------------------------------

    def match(self, operator: str, lefts: list[Summand], rights: list[Summand], context: Context) -> bool:
        """Whether each summand of one side has an equal one on the other."""
        lefts, rights = self._unmatched(lefts, rights, context)
        if not lefts and not rights:
            return True
        cut = [self._cut_at_choices(operator, side, context) for side in (lefts, rights)]
        if any(new is not None for new in cut):
            return self.match(operator, cut[0] or lefts, cut[1] or rights, context)
        if self._take_out(lefts, rights, context, False) or self._take_out(rights, lefts, context, True):
            return self.match(operator, lefts, rights, context)
        return False

    def _unmatched(
        self, lefts: list[Summand], rights: list[Summand], context: Context
    ) -> tuple[list[Summand], list[Summand]]:
        rest, others = [], list(rights)
        for left in lefts:
            found = next((r for r in others if self.same(left, r, context)), None)
            if found is None:
                rest.append(left)
            else:
                others.remove(found)
        return rest, others

    def same(self, left: Summand, right: Summand, context: Context) -> bool:
        """Whether some bijection of their boxes makes the bodies equal."""
        for first, second in self._forms(left, right, context):
            points = self._points(first, second, context)
            if any(self.prover.equal(one, other, inside) for one, other, inside in points):
                return True
        return False

    def _forms(self, left: Summand, right: Summand, context: Context) -> Iterator[tuple[Summand, Summand]]:
        """Both, as they are and with dimensions split into their factors, and permuted."""
        yield left, right
        split_left, split_right = list(_split(left, context)), list(_split(right, context))
        yield from ((first, right) for first in split_left)
        yield from ((left, second) for second in split_right)
        yield from ((first, second) for first in split_left for second in split_right)
        yield from ((first, right) for first in _permuted(left, self.prover, context))
        yield from ((left, second) for second in _permuted(right, self.prover, context))

    def _points(
        self, left: Summand, right: Summand, context: Context
    ) -> Iterator[tuple[Element, Element, Context]]:
        """Both bodies at a point of the larger box, for each way in which the boxes correspond."""
        swapped = len(left.box) < len(right.box)
        long, short = (right, left) if swapped else (left, right)
        if len(long.box) > DEEPEST:
            return
        for order in permutations(long.box):
            values = _aligned(order, short.box, context)
            if values is not None:
                first, second = long.body, short.at(values, context.world)
                pair = (second, first) if swapped else (first, second)
                yield *pair, long.inside(context)

    def _cut_at_choices(self, operator: str, sums: list[Summand], context: Context) -> list[Summand] | None:
        """With boxes cut in two where a choice in a body changes; None where there is none to cut."""
        for position, summand in enumerate(sums):
            for place, threshold in _thresholds(summand, context):
                halves = _halves(summand, place, threshold, context)
                if halves is None:
                    continue
                new = [
                    Summand(half.box + inner.box, inner.body)
                    for half in halves
                    for inner in self.summands(operator, half.body, half.inside(context))
                ]
                return [*sums[:position], *new, *sums[position + 1 :]]
        return None

    def _take_out(
        self, longer: list[Summand], shorter: list[Summand], context: Context, swapped: bool
    ) -> bool:
        """Takes one summand out of the beginning or the end of another; changes both lists."""
        for long in longer:
            if len(long.box) != 1:
                continue
            for short in shorter:
                volume = _volume(short.box)
                for threshold, which in ((volume, 0), (long.box[0][1] - volume, 1)):
                    halves = _halves(long, 0, threshold, context)
                    if halves is None:
                        continue
                    pair = (short, halves[which]) if swapped else (halves[which], short)
                    if self.same(*pair, context):
                        longer[longer.index(long)] = halves[1 - which]
                        shorter.remove(short)
                        return True
        return False


def _is_only(sums: list[Summand], element: Element) -> bool:
    return len(sums) == 1 and not sums[0].box and sums[0].body is element


def _is_neutral(prover: Prover, element: Element, neutral: Element, context: Context) -> bool:
    if (
        not isinstance(element, Applied)
        or not isinstance(neutral, Applied)
        or element.symbol != neutral.symbol
    ):
        return False
    return all(
        prover.equal(x, y, context) for x, y in zip(element.arguments, neutral.arguments, strict=False)
    )


def _distributes(symbol: str, operator: str) -> bool:
    """Whether it is multiplication, and the operator addition, of one type."""
    return symbol.startswith("mul:") and operator == f"add:{symbol.removeprefix('mul:')}"


# --- boxes ------------------------------------------------------------------------------------------------


def _volume(box: tuple[Dimension, ...]) -> Whole:
    product: Whole = 1
    for _, size in box:
        product = product * size
    return product


def _aligned(
    order: Sequence[Dimension], short: Sequence[Dimension], context: Context
) -> list[tuple[Whole, Whole]] | None:
    """The indices of the smaller box by those of the larger one, row by row; None if the sizes differ."""
    values: list[tuple[Whole, Whole]] = []
    rest = list(order)
    for place, (index, size) in enumerate(short):
        if not rest:
            return None
        value, covered = rest.pop(0)
        while not context.equal(covered, size):
            if not rest or len(rest) <= len(short) - place - 1:
                return None
            inner, extent = rest.pop(0)
            value, covered = value * extent + inner, covered * extent
        values.append((index, value))
    return None if rest else values


def _split(summand: Summand, context: Context) -> Iterator[Summand]:
    """With a dimension whose size is a product split into its factors, in each order."""
    z3 = context.world.z3
    for place, (_, size) in enumerate(summand.box):
        factors = _factors(size, z3)
        if not 1 < len(factors) <= 3:
            continue
        for order in permutations(factors):
            made = [(context.world.fresh("i"), factor) for factor in order]
            value: Whole = 0
            for inner, extent in made:
                value = value * extent + inner
            yield summand.over(place, made, value, context.world)


def _factors(size: Whole, z3: Any) -> list[Whole]:
    if isinstance(size, int):
        return [size]
    size = z3.simplify(size)
    return list(size.children()) if z3.is_mul(size) else [size]


def _permuted(summand: Summand, prover: Prover, context: Context) -> Iterator[Summand]:
    """With an index taken through a permutation of a `reorder`, forth or back."""
    world = context.world
    for place, (_, size) in enumerate(summand.box):
        for function, inverse, below in list(world.permutations):
            if not context.equal(size, below):
                continue
            for there, back in ((function, inverse), (inverse, function)):
                made, inside = context.index(size)
                image = world.permuted(there, back, made, below)
                returned = world.permuted(back, there, image, below)
                if inside.equal(returned, made) and inside.holds(world.both(image >= 0, image < size)):
                    yield summand.over(place, [(made, size)], image, world)


def _halves(
    summand: Summand, place: int, threshold: Whole, context: Context
) -> tuple[Summand, Summand] | None:
    """The summand with one index below the threshold, and with it from there on; None if it is outside."""
    _, size = summand.box[place]
    around = Summand(summand.box[:place] + summand.box[place + 1 :], summand.body).inside(context)
    if not around.holds(context.world.both(threshold >= 0, threshold <= size)):
        return None

    def part(extent: Whole, start: Whole) -> Summand:
        new = context.world.fresh("i")
        return summand.over(place, [(new, extent)], new + start, context.world)

    return part(threshold, 0), part(size - threshold, threshold)


def _thresholds(summand: Summand, context: Context) -> Iterator[tuple[int, Whole]]:
    """Where a choice in the body changes: which index, and from which number on."""
    for condition in _conditions(summand.body):
        for place, (index, _) in enumerate(summand.box):
            for threshold in _changes(condition, index, summand, context.world.z3):
                inside = summand.inside(context)
                if not inside.holds(index < threshold) and not inside.holds(index >= threshold):
                    yield place, threshold


def _conditions(element: Any) -> Iterator[Condition]:
    match element:
        case Case(condition, then, otherwise):
            if not isinstance(condition, Applied | Case | Fold | bool):
                yield condition
            yield from _conditions(then)
            yield from _conditions(otherwise)
        case Applied(_, arguments):
            for argument in arguments:
                yield from _conditions(argument)


def _changes(condition: Condition, index: Whole, summand: Summand, z3: Any) -> Iterator[Whole]:
    """The numbers with which a condition compares an index."""
    offset = 0
    kind = condition.decl().kind()
    if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR, z3.Z3_OP_NOT):
        for child in condition.children():
            yield from _changes(child, index, summand, z3)
        return
    if kind not in (z3.Z3_OP_LT, z3.Z3_OP_LE, z3.Z3_OP_GT, z3.Z3_OP_GE):
        return
    left, right = condition.children()
    if left.eq(index):
        yield right + (1 if kind in (z3.Z3_OP_LE, z3.Z3_OP_GT) else 0) + offset
    elif right.eq(index):
        yield left + (1 if kind in (z3.Z3_OP_LT, z3.Z3_OP_GE) else 0) + offset
