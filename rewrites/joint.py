"""Reductions of one array as one: of tuples, by an operator that repairs what it combines.

    r = ⊗ b(c), t = ⊕ g(r, c)   →   (r, t) = ⊙ (b(c), g(b(c), c))
    (r, t) ⊙ (r', t') = (s, h(t, r, s) ⊕ h(t', r', s))   where s = r ⊗ r'

The repair h is that of `rolling` and `parts`, of which this is the form without an order: ⊙ is associative,
so threads may share the elements out as they like, and an array is read once. The softmax of a row has
r = max x and t = Σ exp(x - r), with h(t, r, s) = t·exp(r - s). A mean r, and the squares of what is left of n
elements, t = Σ (x - r)², have h(t, r, s) = t + n·(s - r)²: the number of elements is a member of the tuple,
too (Welford, 1962; Chan, Golub and LeVeque, 1983). Before it is used, ⊙ is compared with the reductions of a
few elements, in exact numbers: a wrong repair is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import numpy as np

from rewrites.algorithmic import is_reduction
from rewrites.elements import NotPointwise, as_map, fresh, members, names, put, replaced, tuple_type, tupled
from rewrites.exact import Exact, added, draws, evaluated, rational, times, value_of
from rewrites.folds import Fold, System, factored, is_zero, of_rows, operation, operator_name
from rewrites.repairs import Reductions, Repair, of_squares
from rewrites.rule import computed
from rewrites.typed import instance
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, apply, call, substitute, subterms
from rise.interpret import call as evaluate
from rise.normal import simplify
from rise.types import Index, as_data

Values = Callable[[Sequence[Expr]], dict[Expr, Expr]]  # what stands for reductions, by members of the result
WRONG = "the repair of a sum is wrong: combined elements are not what the program computes of them"


@dataclass(frozen=True)
class Joint:
    """A reduction, the reference, and sums that use it.

    term:     what the reference is of, b(c)
    start:    what a maximum starts from; None for a mean, whose number of elements is counted
    sums:     the terms of the sums, g(r, c), each with its repair; None where it does not use the reference
    """

    index: Identifier
    reference: Identifier
    term: Expr
    start: Expr | None
    sums: tuple[tuple[Expr, Repair | None], ...]

    @property
    def elements(self) -> list[Expr]:
        """The tuple that stands for one element."""
        first = self.term if self.start is None else operation("max", self.term, self.start)
        return [*self._count(1.0), first, *(put(g, {self.reference: first}) for g, _ in self.sums)]

    @property
    def unit(self) -> list[Expr]:
        """The tuple that stands for none."""
        zero = Literal(0.0, self.reference.type)
        return [*self._count(0.0), self.start or zero, *(Literal(0.0, g.type) for g, _ in self.sums)]

    def _count(self, value: float) -> list[Expr]:
        return [Literal(value, self.reference.type)] if self.start is None else []

    def shared(self, left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
        """The reference of both: the larger maximum, or the mean μ + (μ' - μ)·n'/(n + n')."""
        if self.start is not None:
            return operation("max", left[0], right[0])
        count = operation("max", operation("add", left[0], right[0]), Literal(1.0, self.reference.type))
        part = operation("mul", operation("sub", right[1], left[1]), operation("div", right[0], count))
        return operation("add", left[1], part)

    def combined(self, new: Expr, left: Sequence[Expr], right: Sequence[Expr]) -> list[Expr]:
        """The tuple of both, whose reference is `new`."""
        at = 0 if self.start is not None else 1
        made = [] if self.start is not None else [operation("add", left[0], right[0])]
        made.append(new)
        for (_, repair), t, u in zip(self.sums, left[at + 1 :], right[at + 1 :], strict=True):
            both = [
                total if repair is None else repair.of(total, side[0], side[at], new)
                for total, side in ((t, left), (u, right))
            ]
            made.append(operation("add", *both))
        return made

    # --- whether it is right

    def check(self) -> None:
        """Compares three elements, combined in either order and with none. Raises NotPointwise."""
        a, b = (
            [Identifier(f"{side} {n}", x.type) for n, x in enumerate(self.unit)] for side in ("left", "right")
        )
        new = Identifier("both", self.reference.type)
        shared, made = self.shared(a, b), self.combined(new, a, b)

        def together(left: Sequence[Exact], right: Sequence[Exact]) -> list[Exact]:
            values = {x.name: v for x, v in (*zip(a, left, strict=True), *zip(b, right, strict=True))}
            values[new.name] = evaluated(shared, values, _none_drawn)
            return [evaluated(term, values, _none_drawn) for term in made]

        for seed in range(2):
            at_place = draws(Random(seed))
            places = [at_place(self.index.name) for _ in range(3)]
            x, y, z = ([evaluated(term, {}, drawn) for term in self.elements] for drawn in places)
            none = [evaluated(term, {}, _none_drawn) for term in self.unit]
            wanted = self._of([evaluated(self.term, {}, drawn) for drawn in places])
            values = {self.reference.name: wanted[-1]}
            for g, _ in self.sums:
                wanted.append(added(*(evaluated(g, values, drawn) for drawn in places)))
            found = together(together(x, y), z)
            if not found == together(x, together(y, z)) == together(none, found) == wanted:
                raise NotPointwise(WRONG, self.term)

    def _of(self, terms: Sequence[Exact]) -> list[Exact]:
        """The reference of so many elements, behind their number if that is counted."""
        if self.start is not None:
            return [rational(max(map(value_of, terms)))]
        return [rational(len(terms)), times(added(*terms), rational(Fraction(1, len(terms))))]


def _none_drawn(term: Expr) -> Exact:
    raise NotPointwise("no exact value is known", term)


# --- what reductions are ----------------------------------------------------------------------------------


def _of_maximum(found: System) -> tuple[Joint, Values]:
    given = Reductions.of(found)
    reference, start, sums = given.reference, given.start, given.sums
    if reference is None or start is None or not sums or any(s.value is not None for s in sums):
        raise NotPointwise("expected a maximum, and sums that use it", found.element)
    terms = tuple((s.weight, s.repair) for s in sums)

    def values(by: Sequence[Expr]) -> dict[Expr, Expr]:
        of_sums: dict[Expr, Expr] = {s.fold.name: t for s, t in zip(sums, by[1:], strict=True)}
        return {reference.name: given.maximum(by[0]), **of_sums}

    return Joint(given.index, reference.name, reference.body, start, terms), values


def _of_mean(found: System) -> tuple[Joint, Values]:
    if len(found.folds) != 2 or found.folds[0].size != found.folds[1].size:
        raise NotPointwise("expected a mean, and a sum that uses it", found.element)
    total, squares = found.folds
    mean_of = next((part for part in subterms(squares.body) if _is_mean(part, total)), None)
    if mean_of is None:
        raise NotPointwise("a sum uses another one, which is not a mean", squares.body)
    type_ = as_data(total.name.type)
    mean = fresh("mean", type_, names(found.element, squares.body, total.body))
    g = replaced(substitute(squares.body, {squares.index.name: total.index}), mean_of, mean)
    if total.name.name in g.free:
        raise NotPointwise("a sum uses another one otherwise than by its mean", squares.body)

    def values(by: Sequence[Expr]) -> dict[Expr, Expr]:
        return {mean_of: by[1], total.name: operation("mul", by[1], by[0]), squares.name: by[2]}

    return Joint(total.index, mean, total.body, None, ((g, of_squares(type_)),)), values


def _is_sum(fold: Fold) -> bool:
    return operator_name(fold.operator) == "add" and is_zero(fold.start)


def _is_mean(term: Expr, total: Fold) -> bool:
    """v / n, for the sum v of n elements"""
    match call(term):
        case "div", _, [Identifier() as sum_, count] if sum_ == total.name and total.size is not None:
            return _constant(count) == total.size.value
        case _:
            return False


def _constant(term: Expr) -> float | None:
    """The value of a number that depends on nothing, as the length of an array does."""
    return None if term.free else float(np.asarray(evaluate(term)))


def _jointly(found: System) -> Expr:
    """Each row as a function of one reduction."""
    if any(is_reduction(part) for fold in found.folds for part in subterms(fold.body)):
        raise NotPointwise("elements are reductions themselves", found.element)
    taken = names(found.element, *(fold.body for fold in found.folds)) | {f.name.name for f in found.folds}
    joint, values_of = _of_mean(found) if all(map(_is_sum, found.folds)) else _of_maximum(found)
    state = fresh("state", tuple_type([as_data(x.type) for x in joint.unit]), taken)
    values = values_of(members(state, len(joint.unit)))
    joint.check()
    element = put(found.element, values)
    row = element if found.column is None else as_map(found.column, element)
    left, right = (fresh(side, as_data(state.type), taken) for side in ("a", "b"))
    new = fresh("both", as_data(joint.reference.type), taken)
    a, b = (members(side, len(joint.unit)) for side in (left, right))
    both = Apply(Lambda(new, tupled(joint.combined(new, a, b))), joint.shared(a, b))
    elements = as_map(joint.index, tupled(joint.elements))
    size = joint.index.type.size if isinstance(joint.index.type, Index) else None
    reduced = apply(
        instance("reduce", (size, as_data(state.type)), None),
        Lambda(left, Lambda(right, both)), tupled(joint.unit), elements,
    )  # fmt: skip
    return simplify(as_map(found.row, Apply(Lambda(state, row), reduced)))


@computed(
    "reductions as one",
    "e → rows |> map(row => let (r, t) = row |> map(c => (b(c), g(b(c), c))) |> reduce(⊙, (r0, 0)) in"
    " f(r, t)), where e[i] = f(r, t) for a maximum or a mean r = ⊗ b(c) and sums t = Σ g(r, c)",
    (
        "fun((a: 3.5.f32) => a |> map(fun(xs => xs |> map(fun(x => max(min(x, 4), -4))) |> fun(s =>"
        " s |> reduce(max, -1000.0) |> fun(m => s |> map(fun(x => exp2(x - m))) |> reduce(+, 0) |>"
        " fun(t => s |> map(fun(x => exp2(x - m) + t))))))))",
        "fun((a: 3.2.f32) => a |> map(fun(xs => xs |> reduce(+, 0) |> fun(v => xs |> map(fun(x => (x"
        " - v / 2.0) * (x - v / 2.0))) |> reduce(+, 0)))))",
    ),
    "A maximum or a mean, and sums that use it, of every row by one reduction, for which it is read once.",
    exact=False,
)
def AS_ONE(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    return _jointly(factored(of_rows(term)))
