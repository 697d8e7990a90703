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
    are_numbers,
    at,
    fresh,
    generated,
    members,
    names,
    number,
    over,
    put,
    replaced,
    selects,
    transposed,
    tuple_type,
    tupled,
    zipped,
)
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
    rounded_like,
    system,
    unconverted,
    unrounded,
    written,
)
from rewrites.rounding import zero_of
from rewrites.rule import computed
from rewrites.typed import array_type, instance, named
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
    children,
    fresh_name,
    map_children,
    substitute,
    subterms,
)
from rise.nat import Nat, constant, quotient
from rise.normal import is_view, simplify
from rise.types import BOOL, I32, Array, Data, Index, Space, as_data

# what a maximum starts from in place of -∞, which minus itself is not a number: far below all scores, and
# finite also when it is scaled
LOWEST = {"f16": -(2.0**14), "bf16": -(2.0**100), "f32": -(2.0**100), "f64": -(2.0**1000)}


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


# --- repairs ----------------------------------------------------------------------------------------------


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
            return None if slope is None or name in other.free else _times(slope, other)
        case _, ("div", _, [left, right]) if name not in right.free:
            slope = _slope(left, name)
            return None if slope is None else operation("div", slope, right)
        case _:
            return None


def _times(slope: Expr, other: Expr) -> Expr:
    match slope, call(slope):
        case Literal(1.0), _:
            return other
        case Literal(-1.0), _:
            return _negative(other)
        case _, ("neg", _, [inner]):
            return _negative(_times(inner, other))
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
                return replace(made, slope=slope, exponential=exponential)
    raise NotPointwise("no repair is known: expected one factor exp(x + y·r) for the maximum r", fold.body)


def _vanishes(s: Sum, reference: Fold | None) -> bool:
    """Whether a weight is 0 where what the maximum is of is -∞: it is exp(x·score + …) for a positive x."""
    if reference is None or s.slope is None:
        return False
    score = Identifier(fresh_name("score", names(s.fold.body)), reference.body.type)
    for factor, inverse in factors(s.weight):
        match call(unrounded(factor)):
            case (("exp" | "exp2"), _, [power]) if not inverse:
                power = replaced(power, reference.body, score)
                slope = _slope(power, score.name)
                if score.name in power.free and slope is not None:
                    return is_positive(slope)
    return False


def _is_zero_behind(weight: Expr) -> bool:
    """Whether a weight is an element of an array, behind whose end there are zeros."""
    used = {part.name for part in subterms(weight) if isinstance(part, Primitive)}
    return is_view(unconverted(weight)) and "indexToInt" not in used


# --- one pass over blocks ---------------------------------------------------------------------------------


@dataclass
class _Blocks:
    """The arrays over an index, in blocks of `size`; behind their ends are zeros.

    parts:  the parts of terms that select by the index, each with the array that it selects from; None for
            an array of the row, whose block is found by its number
    number: the quotient of the index by the size of a block, where terms use it
    """

    index: Identifier
    length: Nat
    size: Nat
    row: Identifier
    column: Identifier
    parts: dict[Expr, Expr | None] = field(default_factory=dict)
    number: Expr | None = None

    @property
    def count(self) -> Nat:
        return quotient(self.length + self.size - 1, self.size)

    @property
    def missing(self) -> Nat:
        return self.count * self.size - self.length

    @property
    def ragged(self) -> bool:
        return self.missing != constant(0)

    def find(self, term: Expr) -> None:
        """Collects the parts of a term."""
        if self.index.name not in term.free or term in self.parts:
            return
        if selects(term, self.index.name):
            xs = application(term)[2][1]
            self.parts[term] = None if self.row.name in xs.free else self._by_index(xs)
        elif self._is_number(term):
            self.number = term
        elif term == number(self.index):
            self.parts[term] = generated(self.index, term)
        elif term == self.index:
            raise NotPointwise("the number of an element is used in another way than as a number", term)
        else:
            for child in children(term):
                self.find(child)

    def _is_number(self, term: Expr) -> bool:
        match call(term):
            case "div", _, [index, Literal(value)] if value == self.size.value:
                return index == number(self.index)
            case _:
                return False

    def _by_index(self, xs: Expr) -> Expr:
        """An array over the index; one that depends on the column, with that inside."""
        return transposed(over(self.column, xs)) if self.column.name in xs.free else xs

    @property
    def selected(self) -> list[Expr]:
        """The arrays over the index, each once."""
        return list(dict.fromkeys(xs for xs in self.parts.values() if xs is not None))

    @property
    def arrays(self) -> list[Expr]:
        """The arrays, each once, in blocks; at the end the numbers of the blocks where they are needed."""
        found = [self.split(xs) for xs in self.selected]
        if self.ragged:
            found.append(self.split(self._present, fill=Literal(False, BOOL)))
        if self.ragged or self.number is not None or None in self.parts.values() or not found:
            number = Identifier("number", Index(self.count))
            found.append(generated(number, number))
        return found

    @property
    def _present(self) -> Expr:
        return generated(self.index, Literal(True, BOOL))

    def split(self, xs: Expr, fill: Expr | None = None) -> Expr:
        known = array_type(xs)
        if self.ragged and are_numbers(xs):
            index = Identifier(self.index.name, Index(self.count * self.size))
            xs, known = generated(index, number(index)), replace(known, size=self.count * self.size)
        elif self.ragged:
            zero = fill or zero_of(known.element, xs)
            if isinstance(zero, str):
                raise NotPointwise(zero, xs)
            sizes: dict[str, Nat | Data] = {
                "l": constant(0),
                "r": self.missing,
                "n": known.size,
                "t": known.element,
            }
            xs = apply(named("padCst", sizes, xs), zero, xs)
        return apply(instance("split", (self.size, self.count, known.element), xs.origin), xs)

    def is_whole(self, block: Expr) -> Expr | None:
        """Whether all elements of a block are there; None if no block is known to be whole."""
        size, whole = self.size.value, quotient(self.length, self.size)
        if not self.ragged or size is None or not whole.value:
            return None
        this = number(members(block, len(self.arrays))[-1])
        return operation("lt", this, Literal(whole.value, I32))

    def opened(self, block: Expr, inner: Identifier) -> tuple[dict[Expr, Expr], Expr | None]:
        """What stands for each part in a block, and whether an element of it is there, if some are not."""
        members_ = members(block, len(self.arrays))
        of_array = dict(zip(self.selected, members_, strict=False))
        values: dict[Expr, Expr] = {}
        for part, xs in self.parts.items():
            given = application(part)[2]
            if xs is None:
                values[part] = at(inner, at(members_[-1], self.split(given[1])))
                continue
            element = at(inner, of_array[xs])
            values[part] = at(self.column, element) if self.column.name in given[-1].free else element
        if self.number is not None:
            values[self.number] = number(members_[-1])
        return values, at(inner, members_[len(of_array)]) if self.ragged else None


@dataclass
class _Pass:
    """The step of the fold over blocks: a chain of named matrices and columns, and the new state.

    reference: the reduction that sums use, if there is one
    values:    what stands for parts of the sums' terms
    lets:      what has been named, in order
    present:   whether an element of a block is there, if some are not
    whole:     whether all of a block are
    guard:     where it does not hold, a block changes nothing
    """

    found: System
    column: Identifier
    reference: Fold | None
    sums: list[Sum]
    blocks: _Blocks
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
        return generated(self.found.row, element)

    def matrix(self, name: str, element: Expr) -> Expr:
        """The element of a matrix, by row and index, that gets a name; equal ones have one."""
        value = self.rows(generated(self.inner, element))
        known = next((x for x, other in self.lets if alpha_equal(other, value)), None)
        if known is None:
            known = self.fresh(name, as_data(value.type))
            self.lets.append((known, value))
        return at(self.inner, at(self.found.row, known))

    def col(self, name: str, element: Expr) -> Expr:
        """The element of a column that gets a name."""
        known = self.fresh(name, Array(self._count, as_data(element.type)))
        self.lets.append((known, self.rows(element)))
        return at(self.found.row, known)

    @property
    def _count(self) -> Nat:
        type_ = self.found.row.type
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
        row, index = self.found.row.name, self.blocks.index.name
        found: list[Expr] = []
        for part in (part for body in bodies for part in subterms(body) if is_reduction(part)):
            if any(alpha_equal(part, known) for known in found):
                continue
            if not {row, index} <= part.free or self.column.name in part.free:
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
        self.values.append((reference.name, self.col("top", operation("max", at(self.found.row, old), most))))

    def unguarded(self, reference: Fold) -> Expr:
        """The scores. Where all of a block are -∞ under a condition on the block alone, it is the guard."""
        match call(reference.body):
            case "select", _, [condition, scores, lowest] if is_lowest(lowest):
                guard = self.here(condition)
                inside = {self.found.row.name, self.column.name, self.inner.name, self.blocks.index.name}
                if guard.free.isdisjoint(inside) and all(_vanishes(s, reference) for s in self.sums):
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

    def sum(self, s: Sum, before: Expr, repairs: dict[tuple[str, Expr], Expr], change: Expr) -> Expr:
        """The new sum: the old one, repaired, and that of the block. change: of the reference"""
        weight = self.here(s.weight)
        vanishes = _vanishes(s, self.reference) or _is_zero_behind(s.weight)
        if self.present is not None and not vanishes:
            exact, zero = unrounded(weight), Literal(0.0, weight.type)
            known = apply(instance("select", (weight.type,), None), self.present, exact, zero)
            weight = rounded_like(weight, known)
        terms, kept = self.weighted(weight), at(self.found.row, before)
        if s.value is not None:
            kept, terms = at(self.column, kept), operation("mul", terms, self.here(s.value))
        if s.slope is not None:
            key = s.exponential, s.slope
            if key not in repairs:
                repairs[key] = self.col("repair", operation(s.exponential, _times(s.slope, change)))
            kept = operation("mul", kept, repairs[key])
        total = apply(
            instance("reduce", (self.blocks.size, s.fold.name.type), None),
            s.fold.operator, s.fold.start, generated(self.inner, terms),
        )  # fmt: skip
        element = operation("add", kept, total)
        return self.rows(element if s.value is None else generated(self.column, element))

    # --- the fold

    def state_types(self) -> list[Data]:
        types = [self._type(self.reference.name)] if self.reference else []
        return types + [self._type(s.fold.name, of_matrix=s.value is not None) for s in self.sums]

    def _type(self, name: Identifier, of_matrix: bool = False) -> Data:
        element = as_data(name.type)
        if of_matrix and isinstance(self.column.type, Index):
            element = Array(self.column.type.size, element)
        return Array(self._count, element)

    def step(self, old: Sequence[Expr], bodies: Sequence[Expr]) -> Expr:
        """The new state."""
        self.products(bodies)
        new: list[Expr] = []
        change = at(self.found.row, old[0])
        if self.reference is not None:
            self.top(old[0], self.reference)
            new.append(self.lets[-1][0])
            change = operation("sub", at(self.found.row, new[0]), change)
        repairs: dict[tuple[str, Expr], Expr] = {}
        for s, before in zip(self.sums, old[len(new) :], strict=True):
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
        parts = [self.rows(_lowest(self.reference.start))] if self.reference else []
        for s in self.sums:
            zero = s.fold.start
            parts.append(self.rows(zero if s.value is None else generated(self.column, zero)))
        return tupled(parts)

    def result(self, sums: Identifier) -> Expr:
        """The rows, by the members of the last state."""
        folds = ([self.reference] if self.reference else []) + [s.fold for s in self.sums]
        wide = {s.fold.name for s in self.sums if s.value is not None}
        values: dict[Expr, Expr] = {}
        for fold, member in zip(folds, members(sums, len(folds)), strict=True):
            element = at(self.found.row, member)
            values[fold.name] = at(self.column, element) if fold.name in wide else element
        return written(replace(self.found, folds=(), element=put(self.found.element, values)))


def _rolled(found: System, size: Nat) -> Expr:
    """let state = (fold over blocks) in (the matrix of elements, by the members of the state)"""
    column = found.column
    if column is None or not found.folds or any(fold.size != found.folds[0].size for fold in found.folds):
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
    # products last: nothing should stand between those that a GPU starts
    sums.sort(key=lambda s: s.value is not None)
    if not sums:
        raise NotPointwise("there are no sums", found.element)
    bodies = [s.weight for s in sums] + [s.value for s in sums if s.value is not None]
    bodies += [reference.body] if reference else []
    blocks = _Blocks(index, length, size, found.row, column)
    for body in bodies:
        blocks.find(body)
    taken = names(written(found)) | {f.name.name for f in folds} | {"l", found.row.name, column.name}
    return _fold(_Pass(found, column, reference, sums, blocks, taken, Identifier("l", Index(size))), bodies)


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
    xs = arrays[-1]
    for ys in reversed(arrays[:-1]):
        xs = zipped(ys, xs)
    known = array_type(xs)
    fold = instance("reduceSeq", (Space.LOCAL, known.size, known.element, state.type), None)
    sums = p.fresh("sums", as_data(state.type))
    return simplify(Apply(Lambda(sums, p.result(sums)), apply(fold, step, p.start(), xs)))


def _lowest(start: Expr) -> Expr:
    return Literal(LOWEST[str(start.type)], start.type) if is_lowest(start) else start


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
    try:
        return _rolled(system(term), n)
    except NotPointwise as refused:
        return refused.reason
