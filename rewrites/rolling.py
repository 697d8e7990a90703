"""Rolling update: sums that use another reduction of the same elements, in one pass over blocks of them.

    r = ⊗ b(c), t = ⊕ g(r, c)   →   fold over blocks of c of ((r, t), c) => (r', h(t, r, r') ⊕ ⊕ g(r', c))
                                    where r' = r ⊗ ⊗ b(c)

The repair h makes what was summed with the old r what it would be with the new one. It has to satisfy
h(g(r, c), r, r') = g(r', c) and to distribute over ⊕. For g(r, c) = exp(x(c) + y·r)·v(c) it is
h(t, r, r') = t·exp(y·(r' - r)), whatever x and v are: the softmax of attention. Sums that use no other
reduction need no repair: the product of a product is one pass, too, and so is a product beside the squares
of its rows. FlashAttention's softmax (Dao et al., 2022) is an instance; the conditions on h are Neptune's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rewrites.algorithmic import is_reduction
from rewrites.elements import (
    NotPointwise,
    all_zipped,
    at,
    fresh,
    generated,
    members,
    names,
    put,
    tuple_type,
    tupled,
)
from rewrites.folds import (
    Fold,
    System,
    is_lowest,
    of_rows,
    operation,
    rounded_like,
    unconverted,
    unrounded,
    written,
)
from rewrites.index_blocks import Blocks
from rewrites.repairs import Reductions, Sum, is_zero_behind, vanishes
from rewrites.rule import computed
from rewrites.typed import array_type, instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    alpha_equal,
    application,
    apply,
    call,
    map_children,
    subterms,
)
from rise.nat import Nat, constant
from rise.normal import is_view, simplify
from rise.types import Array, Data, Index, Space, as_data


@dataclass
class _Pass:
    """The step of the fold over blocks: a chain of named matrices and columns, and the new state.

    values:    what stands for parts of the sums' terms
    lets:      what has been named, in order
    present:   whether an element of a block is there, if some are not
    whole:     whether all of a block are
    guard:     where it does not hold, a block changes nothing
    """

    given: Reductions
    blocks: Blocks
    taken: set[str]
    inner: Identifier
    lets: list[tuple[Identifier, Expr]] = field(default_factory=list)
    values: list[tuple[Expr, Expr]] = field(default_factory=list)
    present: Expr | None = None
    whole: Expr | None = None
    guard: Expr | None = None

    def fresh(self, name: str, type_: Data) -> Identifier:
        return fresh(name, type_, self.taken)

    def rows(self, element: Expr) -> Expr:
        return generated(self.given.found.row, element)

    def matrix(self, name: str, element: Expr) -> Expr:
        """The element of a matrix, by row and index, that gets a name; equal ones have one."""
        value = self.rows(generated(self.inner, element))
        known = next((x for x, other in self.lets if alpha_equal(other, value)), None)
        if known is None:
            known = self.fresh(name, as_data(value.type))
            self.lets.append((known, value))
        return at(self.inner, at(self.given.found.row, known))

    def col(self, name: str, element: Expr) -> Expr:
        """The element of a column that gets a name."""
        known = self.fresh(name, Array(self._count, as_data(element.type)))
        self.lets.append((known, self.rows(element)))
        return at(self.given.found.row, known)

    @property
    def _count(self) -> Nat:
        type_ = self.given.found.row.type
        return type_.size if isinstance(type_, Index) else constant(1)

    def here(self, term: Expr) -> Expr:
        """A term in which names stand for what has been named."""
        for part, by in self.values:
            if alpha_equal(term, part):
                return by
        return map_children(term, self.here)

    # --- the parts of the step

    def products(self, bodies: Sequence[Expr]) -> None:
        """Names the products inside of what is reduced."""
        row, index = self.given.found.row.name, self.blocks.index.name
        found: list[Expr] = []
        for part in (part for body in bodies for part in subterms(body) if is_reduction(part)):
            if any(alpha_equal(part, known) for known in found):
                continue
            if not {row, index} <= part.free or self.given.column.name in part.free:
                raise NotPointwise("expected products of rows", part)
            found.append(part)
        named = [(part, self.matrix("product", self.here(part))) for part in found]
        self.values = [*named, *self.values]

    def top(self, old: Expr, reference: Fold) -> None:
        """Names the scores, what is there of them, and their maximum so far."""
        scores = self.here(self.unguarded(reference))
        if self.present is not None:
            choose, lowest = instance("select", (scores.type,), None), Literal(float("-inf"), scores.type)
            masked = apply(choose, self.present, scores, lowest)
            scores = masked if self.whole is None else apply(choose, self.whole, scores, masked)
        if not is_view(scores):
            scores = self.matrix("scores", scores)
            self.values = [(reference.body, scores), *self.values]
        most = apply(
            instance("reduce", (self.blocks.size, scores.type), None),
            reference.operator, reference.start, generated(self.inner, scores),
        )  # fmt: skip
        self.values.append(
            (reference.name, self.col("top", operation("max", at(self.given.found.row, old), most)))
        )

    def unguarded(self, reference: Fold) -> Expr:
        """The scores. Where all of a block are -∞ under a condition on the block alone, it is the guard."""
        match call(reference.body):
            case "select", _, [condition, scores, lowest] if is_lowest(lowest):
                guard = self.here(condition)
                inside = {
                    self.given.found.row.name,
                    self.given.column.name,
                    self.inner.name,
                    self.blocks.index.name,
                }
                if guard.free.isdisjoint(inside) and all(vanishes(s, reference) for s in self.given.sums):
                    self.guard = guard
                    return scores
        return reference.body

    def weighted(self, weight: Expr) -> Expr:
        """The element of a matrix of weights, rounded ones by a matrix of the narrower type."""
        if is_view(unconverted(weight)):
            return weight
        if (exact := unrounded(weight)) is not weight:
            _, wide, (rounded,) = application(weight)
            return apply(wide, self.weighted(apply(application(rounded)[1], self.weighted(exact))))
        return self.matrix("weights", weight)

    def sum(self, s: Sum, before: Expr, repairs: list[tuple[Expr, Expr]], change: Expr) -> Expr:
        """The new sum: the old one, repaired, and that of the block. change: of the reference"""
        weight = self.here(s.weight)
        empty = vanishes(s, self.given.reference) or is_zero_behind(s.weight)
        if self.present is not None and not empty:
            exact, zero = unrounded(weight), Literal(0.0, weight.type)
            known = apply(instance("select", (weight.type,), None), self.present, exact, zero)
            weight = rounded_like(weight, known)
        terms, kept = self.weighted(weight), at(self.given.found.row, before)
        if s.value is not None:
            kept, terms = at(self.given.column, kept), operation("mul", terms, self.here(s.value))
        if s.slope is not None:
            repair = s.power(change)
            if not any(alpha_equal(other, repair) for _, other in repairs):
                repairs.append((self.col("repair", repair), repair))
            column = next(x for x, other in repairs if alpha_equal(other, repair))
            kept = operation("mul", kept, column)
        total = apply(
            instance("reduce", (self.blocks.size, s.fold.name.type), None),
            s.fold.operator, s.fold.start, generated(self.inner, terms),
        )  # fmt: skip
        element = operation("add", kept, total)
        return self.rows(element if s.value is None else generated(self.given.column, element))

    # --- the fold

    def state_types(self) -> list[Data]:
        types = [self._type(self.given.reference.name)] if self.given.reference else []
        return types + [self._type(s.fold.name, of_matrix=s.value is not None) for s in self.given.sums]

    def _type(self, name: Identifier, of_matrix: bool = False) -> Data:
        element = as_data(name.type)
        if of_matrix and isinstance(self.given.column.type, Index):
            element = Array(self.given.column.type.size, element)
        return Array(self._count, element)

    def step(self, old: Sequence[Expr], bodies: Sequence[Expr]) -> Expr:
        """The new state."""
        self.products(bodies)
        new: list[Expr] = []
        change = at(self.given.found.row, old[0])
        if self.given.reference is not None:
            self.top(old[0], self.given.reference)
            new.append(self.lets[-1][0])
            change = operation("sub", at(self.given.found.row, new[0]), change)
        repairs: list[tuple[Expr, Expr]] = []
        for s, before in zip(self.given.sums, old[len(new) :], strict=True):
            new.append(self.sum(s, before, repairs, change))
        result = tupled(new)
        for name, value in reversed(self.lets):
            result = Apply(Lambda(name, result), value)
        return result

    def guarded(self, new: Expr, state: Identifier) -> Expr:
        """The new state, or the old one where a block changes nothing."""
        if self.guard is None:
            return new
        return apply(instance("select", (state.type,), None), self.guard, new, state)

    def start(self) -> Expr:
        start = self.given.start
        parts = [] if start is None else [self.rows(start)]
        for s in self.given.sums:
            zero = s.fold.start
            parts.append(self.rows(zero if s.value is None else generated(self.given.column, zero)))
        return tupled(parts)

    def result(self, sums: Identifier) -> Expr:
        """The rows, by the members of the last state."""
        folds = ([self.given.reference] if self.given.reference else []) + [s.fold for s in self.given.sums]
        wide = {s.fold.name for s in self.given.sums if s.value is not None}
        values: dict[Expr, Expr] = {}
        for fold, member in zip(folds, members(sums, len(folds)), strict=True):
            element = at(self.given.found.row, member)
            values[fold.name] = at(self.given.column, element) if fold.name in wide else element
        if (reference := self.given.reference) is not None:
            values[reference.name] = self.given.maximum(values[reference.name])
        return written(replace(self.given.found, folds=(), element=put(self.given.found.element, values)))


def _rolled(found: System, size: Nat) -> Expr:
    """let state = (fold over blocks) in (the matrix of elements, by the members of the state)"""
    given = Reductions.of(found)
    blocks = Blocks(given.index, given.length, size, found.row, given.column)
    for body in given.bodies:
        blocks.find(body)
    taken = names(written(found)) | {f.name.name for f in found.folds}
    taken |= {"l", found.row.name, given.column.name}
    inner = Identifier("l", Index(size))
    p = _Pass(given, blocks, taken, inner)
    return _fold(p, given.bodies)


def _fold(p: _Pass, bodies: Sequence[Expr]) -> Expr:
    arrays = p.blocks.arrays
    p.inner = p.fresh("l", as_data(p.inner.type))
    types = p.state_types()
    state = p.fresh("state", tuple_type(types))
    block = p.fresh("block", tuple_type([array_type(xs).element for xs in arrays]))
    values, p.present = p.blocks.opened(block, p.inner)
    p.values, p.whole = list(values.items()), p.blocks.is_whole(block)
    new = p.step(members(state, len(types)), bodies)
    step = Lambda(state, Lambda(block, p.guarded(new, state)))
    xs = all_zipped(arrays)
    known = array_type(xs)
    fold = instance("reduceSeq", (Space.LOCAL, known.size, known.element, state.type), None)
    sums = p.fresh("sums", as_data(state.type))
    return simplify(Apply(Lambda(sums, p.result(sums)), apply(fold, step, p.start(), xs)))


@computed(
    "rolling update",
    "e → blocks |> reduceSeq(((r, t), c) => (r', h(t, r, r') + Σ g(r', c)), (r0, 0)),"
    " where e[i][j] = f(r, t) for r = max b(c) and t = Σ g(r, c), in blocks of n",
    (
        "fun((a: 3.4.f32, b: 6.4.f32, v: 5.6.f32) => a |> map(fun(q => b |> map(fun(k => zip(q)(k)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0) |> fun(x => max(min(x, 4), -4)))) |> fun(s => s"
        " |> reduce(max, -1000.0) |> fun(m => s |> map(fun(x => exp2(x - m))) |> fun(e => e"
        " |> reduce(+, 0) |> fun(l => v |> map(fun(c => (zip(e)(c) |> map(fun((x, y) => x * y))"
        " |> reduce(+, 0)) - l)))))))))",
        "fun((a: 3.5.f32, b: 5.5.f32, v: 2.5.f32) => zip(a)(a) |> map(fun((q, p) => zip(p)(b) |> map("
        "fun((y, k) => y + (zip(q)(k) |> map(fun((x, y) => x * y)) |> reduce(+, 0)) |> fun(x =>"
        " max(min(x, 4), -4)))) |> fun(s => s |> reduce(max, -1000.0) |> fun(m => v |> map(fun(c =>"
        " zip(s)(c) |> map(fun((x, y) => exp2(2 * (x - m)) * y)) |> reduce(+, 0))))))))",
        "fun((a: 3.6.f32, w: 6.5.f32) => a |> map(fun(r => r |> map(fun(x => x * x)) |> reduce(+, 0)"
        " |> fun(s => transpose(w) |> map(fun(c => (zip(r)(c) |> map(fun((x, y) => x * y))"
        " |> reduce(+, 0)) * rsqrt(s + 1)))))))",
        "fun((a: 3.5.f32, v: 5.2.f32) => a |> map(fun(s => s |> reduce(max, -1000.0) |> fun(m => s"
        " |> map(fun(x => exp2(max(min(x, 4), -4) - m))) |> fun(e => (transpose(v) |> map(fun(c =>"
        " zip(e)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0))), (m, e |> reduce(+, 0))))))))",
    ),
    "Sums that use a maximum, and the maximum, in one pass over blocks of n elements.",
    exact=False,
    sizes={"n": 2},
)
def ROLLING(term: Expr, n: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    return _rolled(of_rows(term), n)
