"""The index of the largest or smallest element: two reductions of numbers in the place of one of pairs.

    zip(indices)(xs) |> reduce(better, (0, xs[0]))   →   m = max xs, and the least i where xs[i] = m

What reduces rows in registers reduces numbers, and each of these in parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from rewrites.build import build
from rewrites.elements import are_numbers, at, number, pair
from rewrites.folds import EXTREMES, Fold, System, operation, operator_name
from rewrites.rule import computed
from rewrites.typed import array_type
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, alpha_equal, call, map_children, substitute
from rise.interpret import call as evaluate
from rise.nat import Nat
from rise.normal import simplify
from rise.numbers import bounds
from rise.types import I32, Data, Index, Scalar, as_data

Ranked = tuple[int, int]  # an index, and an element
FEW = (0, 1, 2)
# of an array, the first or the last place where m is
PLACE = (
    "zip(generate(fun((i: Idx[$n]) => indexToInt(i))))(xs)"
    " |> map(fun((i, x) => select(x == m, i, none))) |> reduce({}, none)"
)


@dataclass(frozen=True)
class Order:
    """Which of two elements an operator takes.

    largest, first: the largest one, or the smallest; of equal ones that with the least index, or the greatest
    """

    largest: bool
    first: bool

    def better(self, one: Ranked, other: Ranked) -> Ranked:
        sign, turn = (1 if self.largest else -1), (-1 if self.first else 1)
        return max(one, other, key=lambda pair: (sign * pair[1], turn * pair[0]))

    @property
    def operators(self) -> tuple[str, str]:
        """Of the elements, and of the indices of equal ones."""
        return ("max" if self.largest else "min", "min" if self.first else "max")


ORDERS = tuple(Order(largest, first) for largest, first in product((True, False), repeat=2))


def _order(operator: Expr, index: Data, count: int, element: Scalar, swapped: bool) -> Order | None:
    """Which order an operator on pairs has: by its denotation."""
    if operator.free or element.name == "bool":
        return None
    some = list(product(range(min(count, len(FEW))), FEW))

    def literal(one: Ranked) -> Expr:
        both = (Literal(one[0], index), Literal(one[1], element))
        return pair(*reversed(both)) if swapped else pair(*both)

    def taken(one: Ranked, other: Ranked) -> Ranked:
        found = evaluate(Apply(Apply(operator, literal(one)), literal(other)))
        i, x = reversed(found) if swapped else found
        return int(i), int(x)

    both = [(a, b) for a, b in product(some, repeat=2) if a != b]
    return next((o for o in ORDERS if all(taken(a, b) == o.better(a, b) for a, b in both)), None)


@dataclass(frozen=True)
class _Pairs:
    """A reduction of elements that are paired with their indices, or with the numbers of these.

    swapped: the elements come first
    """

    operator: Expr
    start: Expr
    indices: Expr
    elements: Expr
    swapped: bool

    @classmethod
    def of(cls, term: Expr) -> _Pairs | None:
        match call(term):
            case "reduce", _, [operator, start, pairs]:
                match call(pairs):
                    case "zip", _, [first, second] if _are_indices(first) or are_numbers(first):
                        return cls(operator, start, first, second, False)
                    case "zip", _, [first, second] if _are_indices(second) or are_numbers(second):
                        return cls(operator, start, second, first, True)
        return None

    @property
    def starts_inside(self) -> bool:
        """Whether the reduction starts from one of the elements and its index."""
        match call(self.start):
            case "pair", _, [index, element]:
                index, element = (element, index) if self.swapped else (index, element)
                if not isinstance(index, Literal):
                    return False
                place = Literal(index.value, Index(array_type(self.elements).size))
                return any(alpha_equal(element, e) for e in _elements(place, self.elements))
            case _:
                return False


def _elements(place: Expr, xs: Expr) -> Iterator[Expr]:
    """An element of an array; also as a function of that of another array."""
    yield simplify(at(place, xs))
    match call(xs):
        case "map", _, [Lambda(x, body), inner]:
            yield from (simplify(substitute(body, {x.name: e})) for e in _elements(place, inner))


def _are_indices(xs: Expr) -> bool:
    match call(xs):
        case "generate", _, [Lambda(index, body)]:
            return body == index
        case _:
            return False


def _start(type_: Scalar, extremum: str) -> Expr:
    """What changes no maximum, or no minimum, of numbers of a type."""
    if type_.is_float:
        return Literal(EXTREMES[extremum], type_)
    low, high = bounds(type_)
    return Literal(low if extremum == "max" else high, type_)


@computed(
    "index of an extremum",
    "zip(indices)(xs) |> reduce(op, (0, xs |> idx(0))) → (the least i where x = m, m), for m = max xs",
    (
        "fun((xs: 5.f32) => zip(generate(fun((i: Idx[5]) => i)))(xs) |> reduce(fun(a => fun(b =>"
        " select(snd(a) > snd(b) || (snd(a) == snd(b) && fst(a) < fst(b)))(a)(b))), (0, xs |> idx(0))))",
        "fun((xs: 4.i32) => zip(xs |> map(fun(x => x % 3)))(generate(fun((i: Idx[4]) => i)))"
        " |> fun(ps => ps |> reduce(fun(a => fun(b =>"
        " select(fst(a) < fst(b) || (fst(a) == fst(b) && snd(a) > snd(b)))(a)(b))),"
        " (xs |> map(fun(x => x % 3)) |> idx(2), 2))) |> snd)",
    ),
    "The index of an extremum is the least of the indices of elements that equal it.",
)
def INDEX_OF_EXTREMUM(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    found = _Pairs.of(term)
    if found is None:
        return "expected a reduction of elements that are paired with their indices"
    known, index = array_type(found.elements), as_data(array_type(found.indices).element)
    count, element = known.size.value, known.element
    if not isinstance(element, Scalar) or count is None or not found.starts_inside:
        return "expected a reduction of numbers that starts from one of them"
    order = _order(found.operator, index, count, element, found.swapped)
    if order is None:
        return "the operator does not take the better element, and of equal ones the first or the last"
    best, earliest = order.operators
    place = PLACE.format(earliest)
    place = f"natAsIndex($n)({place})" if isinstance(index, Index) else place
    both = f"(m, {place})" if found.swapped else f"({place}, m)"
    return build(
        f"ys |> fun(xs => xs |> reduce({best}, low) |> fun(m => {both}))",
        {"n": known.size},
        ys=found.elements,
        low=_start(element, best),
        none=Literal(count - 1 if order.first else 0, I32),
    )


def with_indices_apart(term: Expr) -> Expr:
    """A term in which the indices of extrema are reductions of numbers."""
    term = map_children(term, with_indices_apart)
    made = INDEX_OF_EXTREMUM.rewrite(term) if _Pairs.of(term) is not None else term
    return term if isinstance(made, str) else made


# --- of rows, in parts -----------------------------------------------------------------------------------

# of the parts of a row, which have w elements each
PLACE_IN_PARTS = (
    "zip(generate(fun((i: Idx[$n]) => indexToInt(i))))(xs)"
    " |> map(fun((i, (x, place)) => select(x == m, i * w + place, none))) |> reduce(op, none)"
)


@dataclass(frozen=True)
class Extremum:
    """An extremum of a row, and the first or the last number of the elements that equal it.

    index, body: an element of the row, by its index
    top, place:  the reductions, of which the second uses the result of the first
    """

    index: Identifier
    body: Expr
    top: Fold
    place: Fold

    @classmethod
    def of(cls, found: System) -> Extremum | None:
        """None for other reductions."""
        match found.folds:
            case [top, place] if operator_name(top.operator) in ("max", "min") and _is_place(place, top):
                return cls(top.index, top.body, top, place)
            case _:
                return None

    @property
    def size(self) -> Nat | None:
        """How many elements a row has."""
        return self.top.size

    @property
    def folds(self) -> tuple[Fold, ...]:
        return (self.top, self.place)

    @property
    def neutral(self) -> Expr:
        """An element that changes no extremum. If it equals all elements of a row, they come before it."""
        return self.top.start

    def of_part(self, part: Expr) -> Expr:
        """The extremum of a part, and its number in that."""
        size = array_type(part).size
        last = (size.value or 1) - 1 if operator_name(self.place.operator) == "min" else 0
        top = build("xs |> reduce(op, z)", xs=part, op=self.top.operator, z=self.top.start)
        place = build(
            PLACE.format("op"),
            {"n": size},
            xs=part,
            m=self.top.name,
            op=self.place.operator,
            none=Literal(last, I32),
        )
        return Apply(Lambda(self.top.name, pair(self.top.name, place)), top)

    def of_row(self, parts: Expr, element: Expr, width: Nat) -> Expr:
        """A function of the extremum of a row and of its number, from those of parts of so many elements."""
        top = build(
            "xs |> map(x => fst(x)) |> reduce(op, z)", xs=parts, op=self.top.operator, z=self.top.start
        )
        place = build(
            PLACE_IN_PARTS,
            {"n": array_type(parts).size},
            xs=parts,
            m=self.top.name,
            w=Literal(width.value or 0, I32),
            op=self.place.operator,
            none=self.place.start,
        )
        if operator_name(self.place.operator) == "max":  # elements behind the end may be the last ones
            last = (self.size.value if self.size is not None else None) or 1
            place = operation("min", place, Literal(last - 1, I32))
        return Apply(Lambda(self.top.name, Apply(Lambda(self.place.name, element), place)), top)


def _is_place(place: Fold, top: Fold) -> bool:
    """Whether a reduction finds the first or the last number of the elements that equal an extremum."""
    body = substitute(place.body, {place.index.name: top.index})
    match call(body):
        case "select", _, [condition, index, none] if alpha_equal(none, place.start):
            equal = call(condition)
            is_equal = equal is not None and equal[0] == "eq"
            sides = equal[2] if equal is not None else []
            there = any(alpha_equal(side, top.body) for side in sides) and top.name in sides
            return is_equal and there and index == number(top.index)
        case _:
            return False
