"""Reductions in parts, each of which has its own maximum, and what the parts are together.

    r = ⊗ b(c), t = ⊕ g(r, c)   →   parts of c |> map(c => let r = ⊗ b(c) in (⊕ g(r, c), r)) |> combined
    combined: r = ⊗ of the parts' r,  t = ⊕ h(t of a part, r of the part, r)

Besides what `rolling` asks of the repair h, h(h(t, r, r'), r', r'') has to be h(t, r, r''), as for
h(t, r, r') = t·exp(y·(r' - r)): then the parts may be computed in any order, or at once. A part that is
masked as a whole has the sums 0 and a maximum far below all others, so it adds nothing. For the softmax of
attention this is FlashDecoding's combination of parts of the keys (Dao et al., 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rewrites.elements import (
    NotPointwise,
    all_zipped,
    at,
    fresh,
    mapped,
    members,
    names,
    put,
    tuple_type,
    tupled,
)
from rewrites.folds import Fold, System, is_lowest, of_rows, operation, rounded_like, unrounded, written
from rewrites.index_blocks import Blocks
from rewrites.longer import by_rows
from rewrites.repairs import Reductions, Sum, is_zero_behind, vanishes
from rewrites.rule import computed
from rewrites.typed import array_type, instance
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, alpha_equal, apply, call, map_children
from rise.nat import Nat
from rise.normal import simplify
from rise.types import Array, Data, Index, as_data


@dataclass
class _Part:
    """The reductions of a part of the elements.

    inner:   the index of an element in the part
    present: whether the element is there, if some are not
    values:  what stands for parts of terms
    """

    given: Reductions
    inner: Identifier
    present: Expr | None
    values: list[tuple[Expr, Expr]] = field(default_factory=list)

    def here(self, term: Expr) -> Expr:
        for part, by in self.values:
            if alpha_equal(term, part):
                return by
        return map_children(term, self.here)

    def folds(self) -> list[Fold]:
        """The maximum, if there is one, and the sums."""
        made = [self.top(self.given.reference)] if self.given.reference is not None else []
        return made + [self.sum(s) for s in self.given.sums]

    def top(self, reference: Fold) -> Fold:
        scores = self.here(reference.body)
        if self.present is not None:
            choose, least = instance("select", (scores.type,), None), Literal(float("-inf"), scores.type)
            condition, scores = _unmasked(scores)
            present = self.present if condition is None else _both(self.present, condition)
            scores = apply(choose, present, scores, least)
        self.values = [(reference.body, scores), *self.values]
        return replace(reference, start=self.given.start or reference.start, index=self.inner, body=scores)

    def sum(self, s: Sum) -> Fold:
        weight = self.here(s.weight)
        empty = vanishes(s, self.given.reference) or is_zero_behind(s.weight)
        if self.present is not None and not empty:
            exact, zero = unrounded(weight), Literal(0.0, weight.type)
            known = apply(instance("select", (weight.type,), None), self.present, exact, zero)
            weight = rounded_like(weight, known)
        body = weight if s.value is None else operation("mul", weight, self.here(s.value))
        return replace(s.fold, index=self.inner, body=body)


def _unmasked(scores: Expr) -> tuple[Expr | None, Expr]:
    """(c, s) of select(c, s, -∞); (None, s) of other scores s."""
    match call(scores):
        case "select", _, [condition, inside, least] if is_lowest(least):
            return condition, inside
        case _:
            return None, scores


def _both(first: Expr, second: Expr) -> Expr:
    return apply(instance("and", (), None), first, second)


def _in_parts(found: System, size: Nat) -> Expr:
    """let parts = (the reductions of each part) in (the rows, by the members of the parts)"""
    given = Reductions.of(found)
    linear = None not in (size.value, given.length.value)
    blocks = Blocks(given.index, given.length, size, found.row, given.column, linear=linear)
    for body in given.bodies:
        blocks.find(body)
    if blocks.count.value == 1:
        raise NotPointwise("one part has all elements", found.element)
    taken = names(written(found)) | {f.name.name for f in found.folds}
    taken |= {found.row.name, given.column.name}
    arrays = blocks.arrays
    block = fresh("part", tuple_type([array_type(xs).element for xs in arrays]), taken)
    inner = fresh("l", Index(size), taken)
    values, present = blocks.opened(block, inner)
    folds = _Part(given, inner, present, list(values.items())).folds()
    of_part = _stored(given, folds)
    parts = mapped(Lambda(block, by_rows(of_part)), all_zipped(arrays))
    name = fresh("parts", as_data(parts.type), taken)
    return simplify(Apply(Lambda(name, _combined(given, name, taken)), parts))


def _order(given: Reductions) -> list[Fold]:
    """In which order a part's reductions are stored: matrices, then numbers of rows."""
    matrices = [s.fold for s in given.sums if s.value is not None]
    numbers = [s.fold for s in given.sums if s.value is None]
    return matrices + ([given.reference] if given.reference is not None else []) + numbers


def _stored(given: Reductions, folds: list[Fold]) -> System:
    """What is stored of a part: its reductions, as rows."""
    order = _order(given)
    wide = {s.fold.name for s in given.sums if s.value is not None}
    types = [_row_type(given, fold, fold.name in wide) for fold in order]
    column = given.column if wide else None
    return System(
        given.found.row, column, tuple(folds), tupled([fold.name for fold in order]), tuple_type(types)
    )


def _row_type(given: Reductions, fold: Fold, is_wide: bool) -> Data:
    element, columns = as_data(fold.name.type), given.column.type
    return Array(columns.size, element) if is_wide and isinstance(columns, Index) else element


def _combined(given: Reductions, parts: Identifier, taken: set[str]) -> Expr:
    """The rows of the result, by the members of all parts."""
    found, order = given.found, _order(given)
    wide = {s.fold.name for s in given.sums if s.value is not None}
    k = fresh("k", Index(array_type(parts).size), taken)
    of_part: dict[Identifier, Expr] = {}
    for fold, member in zip(order, members(at(found.row, at(k, parts)), len(order)), strict=True):
        of_part[fold.name] = at(given.column, member) if fold.name in wide else member
    folds, values = given.combined(k, of_part, taken)
    element = put(found.element, values)
    return written(System(found.row, found.column, tuple(folds), element, found.type))


@computed(
    "reductions in parts",
    "e → let parts = blocks |> map(c => (Σ g(r, c), r) for r = max b(c)) in e', where e[i][j] = f(r, t) for"
    " r = max b(c) and t = Σ g(r, c), and e' has the maximum of the parts' r and Σ h(t, r of the part, r)",
    (
        "fun((a: 3.4.f32, b: 5.4.f32, v: 5.2.f32) => a |> map(fun(q => b |> map(fun(k => zip(q)(k)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0) |> fun(x => max(min(x, 4), -4)))) |> fun(s => s"
        " |> reduce(max, -1000.0) |> fun(m => s |> map(fun(x => exp2(x - m))) |> fun(e => e"
        " |> reduce(+, 0) |> fun(l => transpose(v) |> map(fun(c => (zip(e)(c) |> map(fun((x, y) => x * y))"
        " |> reduce(+, 0)) - l)))))))))",
        "fun((a: 3.6.f32, w: 6.5.f32) => a |> map(fun(r => transpose(w) |> map(fun(c => zip(r)(c)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))",
        "fun((a: 3.2.f32, b: 4.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))) |> reduce(max, -1000.0))))",
    ),
    "A maximum, and sums that use it, of parts of n elements: no part needs another one.",
    exact=False,
    sizes={"n": 2},
)
def IN_PARTS(term: Expr, n: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    return _in_parts(of_rows(term), n)
