"""Rolling update: sums that use the result of another reduction of the same elements, in one pass over blocks.

    r = ⊗ b(c), t = ⊕ g(r, c)   →   fold over blocks of c of ((r, t), c) => (r', h(t, r, r') ⊕ ⊕ g(r', c))
                                    where r' = r ⊗ ⊗ b(c)

The repair h makes what was summed with the old r what it would be with the new one. It has to satisfy
h(g(r, c), r, r') = g(r', c) and to distribute over ⊕. For g(r, c) = exp(x(c) + y·r)·v(c) it is
h(t, r, r') = t·exp(y·(r' - r)), whatever x and v are: the softmax of attention. Sums that use no other reduction
need no repair: a product beside the squares of its rows is one pass, too, and so is a product of a product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rewrites.algorithmic import is_reduction
from rewrites.elements import (
    Elements,
    NotPointwise,
    at,
    generated,
    matrix,
    members,
    names,
    over,
    pair,
    put,
    selects,
    transposed,
    tuple_type,
    zipped,
)
from rewrites.pointwise import sizes_of
from rewrites.rule import computed
from rewrites.typed import array_type, instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    apply,
    call,
    fresh_name,
    map_children,
    substitute,
    subterms,
)
from rise.nat import Nat
from rise.normal import is_view, simplify
from rise.types import Array, Data, Index, Scalar, Space, as_data

EXPONENTIALS = ("exp", "exp2")
# the lowest finite numbers: a maximum from here on differs from one from -∞ where all elements are -∞ only
LOWEST = {"f16": -65504.0, "bf16": -3.3895313892515355e38, "f32": -3.4028234663852886e38, "f64": -1.7976931348623157e308}  # fmt: skip


# --- numbers ----------------------------------------------------------------------------------------------


def _of(name: str, *operands: Expr) -> Expr:
    """An operation on numbers of one type."""
    return apply(instance(name, (operands[0].type,), operands[0].origin), *operands)


def factors(term: Expr, inverse: bool = False) -> Iterator[tuple[Expr, bool]]:
    """The factors of a product of floats, each with whether it is a divisor."""
    match call(term):
        case "mul", _, [left, right] if _is_float(term):
            yield from factors(left, inverse)
            yield from factors(right, inverse)
        case "div", _, [left, right] if _is_float(term):
            yield from factors(left, inverse)
            yield from factors(right, not inverse)
        case _:
            yield term, inverse


def unrounded(term: Expr) -> Expr:
    """x of wide(narrow(x)): what a number was before it was rounded to a narrower type and converted back."""
    match call(term):
        case "cast", _, [inner] if _is_float(term) and (rounding := call(inner)) is not None:
            before = rounding[2][0] if rounding[0] == "cast" else term
            return before if before.type == term.type else term
        case _:
            return term


def _rounded_like(term: Expr, by: Expr) -> Expr:
    """wide(narrow(by)) for a term wide(narrow(x)); by for other terms."""
    if unrounded(term) is term:
        return by
    (_, wide, [inner]) = call(term)  # type: ignore[misc]  # a conversion
    (_, narrow, _) = call(inner)  # type: ignore[misc]  # a rounding
    return apply(wide, apply(narrow, by))


def _product(factors: Sequence[tuple[Expr, bool]], type_: Data) -> Expr:
    """The product of factors; 1 of none."""
    above = [factor for factor, inverse in factors if not inverse]
    result: Expr = above[0] if above else Literal(1.0, type_)
    for factor in above[1:]:
        result = _of("mul", result, factor)
    for factor in (factor for factor, inverse in factors if inverse):
        result = _of("div", result, factor)
    return result


def _is_float(term: Expr) -> bool:
    return isinstance(term.type, Scalar) and term.type.is_float


def _operation(operator: Expr) -> str:
    """The name of a primitive operator, or of `fun((a, b) => op(a, b))`."""
    match operator:
        case Primitive():
            return operator.name
        case Lambda(a, Lambda(b, body)):
            found = call(body)
            return found[0] if found is not None and found[2] in ([a, b], [b, a]) else ""
        case _:
            return ""


def _slope(term: Expr, name: str) -> Expr | None:
    """y of x + y·r for the variable r of that name, where x and y do not use r; None if there is no such form."""
    one = Literal(1.0, term.type)
    if name not in term.free:
        return Literal(0.0, term.type)
    match term, call(term):
        case Identifier(), _:
            return one
        case _, ("neg", _, [inner]):
            slope = _slope(inner, name)
            return None if slope is None else _negative(slope)
        case _, (("add" | "sub") as operation, _, [left, right]):
            a, b = _slope(left, name), _slope(right, name)
            if a is None or b is None:
                return None
            if name not in right.free:
                return a
            signed = b if operation == "add" else _negative(b)
            return signed if name not in left.free else _of("add", a, signed)
        case _, ("mul", _, [left, right]):
            used, other = (left, right) if name in left.free else (right, left)
            slope = _slope(used, name)
            return None if slope is None or name in other.free else _times(slope, other)
        case _, ("div", _, [left, right]) if name not in right.free:
            slope = _slope(left, name)
            return None if slope is None else _of("div", slope, right)
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
            return _of("mul", slope, other)


def _negative(term: Expr) -> Expr:
    match term, call(term):
        case Literal(value), _:
            return Literal(-value, term.type, term.origin)
        case _, ("neg", _, [inner]):
            return inner
        case _, ("sub", _, [left, right]):
            return _of("sub", right, left)
        case _:
            return _of("neg", term)


# --- reductions of elements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """A reduction by its elements: reduce(operator, start)(generate(fun(index => body)))."""

    name: Identifier
    operator: Expr
    start: Expr
    index: Identifier
    body: Expr

    @property
    def size(self) -> Nat | None:
        return self.index.type.size if isinstance(self.index.type, Index) else None


@dataclass(frozen=True)
class System:
    """An element of a matrix as a function of reductions, in the order in which they use each other.

    column: None for a number for each row
    """

    row: Identifier
    column: Identifier | None
    folds: tuple[Fold, ...]
    element: Expr


def _unfolded(term: Expr) -> Expr:
    """A term with the values of all names that it binds in their places."""
    term = map_children(term, _unfolded)
    match term:
        case Apply(Lambda(x, body), argument):
            return _unfolded(substitute(body, {x.name: argument}))
        case _:
            return term


def system(term: Expr) -> System:
    """The reductions of which an element of a matrix is a function. Raises NotPointwise."""
    if sizes_of(term) is None:
        raise NotPointwise("expected a matrix of numbers", term)
    return of_rows(term)


def of_rows(term: Expr) -> System:
    """The same, also of a column: a number for each row. Raises NotPointwise."""
    elements = Elements(names(term))
    rows = array_type(term)
    row = elements.index("i", rows.size)
    place, column = at(row, term), None
    if isinstance(rows.element, Array):
        column = elements.index("j", rows.element.size)
        place = at(column, place)
    result = elements.value(place)
    hoisting = _Hoisting(elements, [])
    element = hoisting.go(_unfolded(elements.closed(result)), frozenset())
    return System(row, column, tuple(hoisting.folds), element)


@dataclass(frozen=True)
class _Hoisting:
    """Gives names to the reductions in a term that use no variable bound inside of it, equal ones the same."""

    elements: Elements
    folds: list[Fold]

    def go(self, term: Expr, bound: frozenset[str]) -> Expr:
        if isinstance(term, Lambda):
            return Lambda(term.parameter, self.go(term.body, bound | {term.parameter.name}), term.origin)
        inner = map_children(_from_lowest(term), lambda child: self.go(child, bound))
        if not is_reduction(inner) or not inner.free.isdisjoint(bound):
            return inner
        for fold in self.folds:
            if alpha_equal(_reduced(fold), inner):
                return fold.name
        self.folds.append(_as_fold(self.elements.fresh("v", as_data(inner.type)), inner))
        return self.folds[-1].name


def _from_lowest(term: Expr) -> Expr:
    """The maximum of an array from -∞ on where it was from one of the elements on; other terms as they are."""
    match call(term):
        case "reduce", head, [operator, start, summands] if _operation(operator) == "max" and _is_float(start):
            match call(summands):
                case "generate", _, [Lambda(index, body)]:
                    places = [p.argument for p in subterms(start) if isinstance(p, Apply) and p.head == ("idx", 1)]
                    if any(alpha_equal(substitute(body, {index.name: place}), start) for place in places):
                        return apply(head, operator, Literal(float("-inf"), start.type), summands)
    return term


def _as_fold(name: Identifier, reduction: Expr) -> Fold:
    _, _, (operator, start, summands) = call(reduction)  # type: ignore[misc]  # it is a reduction
    match call(summands):
        case "generate", _, [Lambda(index, body)]:
            return Fold(name, operator, start, index, body)
        case _:
            raise NotPointwise("expected a reduction of elements", reduction)


def _reduced(fold: Fold) -> Expr:
    """The reduction that a fold describes."""
    known = instance("reduce", (fold.size, fold.name.type), fold.name.origin)
    return apply(known, fold.operator, fold.start, generated(fold.index, fold.body))


def written(found: System) -> Expr:
    """The matrix of the elements, each reduction computed once."""
    result = found.element
    for fold in reversed(found.folds):
        if fold.name.name in result.free:
            result = Apply(Lambda(fold.name, result, result.origin), _reduced(fold), result.origin)
    return simplify(generated(found.row, generated(found.column, result)))


@computed(
    "factors of sums",
    "e → generate(fun(i => generate(fun(j => f(c·Σ x)))), where e[i][j] = f(Σ c·x)",
    (
        "fun((a: 3.4.f32, b: 5.4.f32) => a |> map(fun(r => r |> reduce(+, 1) |> fun(s => b |> map(fun(c =>"
        " zip(r)(c) |> map(fun((x, y) => x * (s * s + 1) * y)) |> reduce(+, 0)))))))",
    ),
    "A factor that all terms of a sum have stands before the sum.",
    exact=False,
)
def FACTORS(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    try:
        found = system(term)
    except NotPointwise as refused:
        return refused.reason
    folds: list[Fold] = []
    before: dict[Expr, Expr] = {}
    for fold in found.folds:
        fold = replace(fold, body=put(fold.body, before), start=put(fold.start, before))
        parts, fixed = _before_sum(fold)
        if _operation(fold.operator) == "add" and _is_zero(fold.start) and fixed and _is_float(fold.name):
            inner = Identifier(f"{fold.name.name}_", fold.name.type)
            type_ = as_data(fold.name.type)
            before[fold.name] = _product([(inner, False), *fixed], type_)
            fold = replace(fold, name=inner, body=_product(parts, type_))
        folds.append(fold)
    if not before:
        return "no sum has a factor that all of its terms have"
    return written(replace(found, folds=tuple(folds), element=put(found.element, before)))


def _before_sum(fold: Fold) -> tuple[list[tuple[Expr, bool]], list[tuple[Expr, bool]]]:
    """The factors of a sum's terms that differ, and those that all terms have, also inside of a rounding."""
    differ: list[tuple[Expr, bool]] = []
    fixed: list[tuple[Expr, bool]] = []
    for factor, inverse in factors(fold.body):
        if fold.index.name not in factor.free:
            fixed.append((factor, inverse))
            continue
        parts = list(factors(unrounded(factor), inverse))
        same = [part for part in parts if fold.index.name not in part[0].free]
        if unrounded(factor) is factor or not same:
            differ.append((factor, inverse))
            continue
        rest = [(part, other != inverse) for part, other in parts if (part, other) not in same]
        differ.append((_rounded_like(factor, _product(rest, as_data(factor.type))), inverse))
        fixed += same
    return differ, fixed


def _is_zero(term: Expr) -> bool:
    return isinstance(term, Literal) and term.value == 0


# --- one pass over blocks ---------------------------------------------------------------------------------


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


@dataclass
class _Pass:
    """The fold over blocks of `size` elements that computes all reductions of a system.

    reference: the reduction that sums use, if there is one
    """

    found: System
    size: Nat
    reference: Fold | None
    sums: list[Sum]
    taken: set[str]

    def fresh(self, name: str, type_: Data) -> Identifier:
        found = fresh_name(name, self.taken)
        self.taken.add(found)
        return Identifier(found, type_)

    # --- arrays over the index, in blocks

    def opened(self, bodies: Iterable[Expr], index: Identifier) -> dict[Expr, Expr | None]:
        """For each part of the bodies that selects by the index: the array over it.

        None for an array of the row: which block of it is meant says the number of the block.
        """
        found: dict[Expr, Expr | None] = {}

        def go(part: Expr) -> None:
            if index.name not in part.free:
                return
            if selects(part, index.name):
                xs = call(part)[2][1]  # type: ignore[index]  # it selects
                found.setdefault(part, None if self.found.row.name in xs.free else self._over(xs))
                return
            if (name := call(part)) is not None and name[0] == "indexToInt" and name[2] == [index]:
                found.setdefault(part, generated(index, part))
                return
            if part == index:
                raise NotPointwise("the number of an element is used in another way than as a number", part)
            map_children(part, lambda child: (go(child), child)[1])

        for body in bodies:
            go(body)
        return found

    def _over(self, xs: Expr) -> Expr:
        """An array over the index; one that depends on the column, with that inside."""
        column = self.found.column
        return transposed(over(column, xs)) if column is not None and column.name in xs.free else xs

    def within(self, part: Expr, block: Expr | None, number: Expr, index: Identifier) -> Expr:
        """What stands for a part that selects by the index: the element of a block."""
        _, _, given = call(part)  # type: ignore[misc]  # it selects
        if block is None:
            return at(index, at(number, _split(given[1], self.size)))
        element, column = at(index, block), self.found.column
        if column is not None and column.name in given[-1].free:
            return at(column, element)
        return element


def _rolled(found: System, size: Nat) -> Expr:
    """let state = (fold over blocks) in (the matrix of elements, by the members of the state)"""
    if not found.folds or any(fold.size != found.folds[0].size for fold in found.folds):
        raise NotPointwise("expected reductions of equally many elements", found.element)
    length = found.folds[0].size
    if length is None or length.exact_quotient(size) is None:
        raise NotPointwise(f"blocks of {size} do not divide {length} elements", found.element)
    index = Identifier("l", Index(length))
    folds = [replace(f, index=index, body=substitute(f.body, {f.index.name: index})) for f in found.folds]
    references = [fold for fold in folds if _operation(fold.operator) == "max"]
    if len(references) > 1:
        raise NotPointwise("there is more than one maximum", found.element)
    reference = references[0] if references else None
    sums = [_as_sum(found, fold, reference) for fold in folds if fold is not reference]
    if not sums:
        raise NotPointwise("there are no sums", found.element)
    taken = names(written(found)) | {f.name.name for f in folds} | {"l", found.row.name, found.column.name}
    return _emitted(_Pass(found, size, reference, sums, taken), index)


def _as_sum(found: System, fold: Fold, reference: Fold | None) -> Sum:
    if _operation(fold.operator) != "add" or not _is_zero(fold.start) or not _is_float(fold.name):
        raise NotPointwise("expected a maximum and sums of floats", fold.body)
    others = {other.name.name for other in found.folds if other is not reference} - (
        {reference.name.name} if reference else set()
    )
    if not fold.body.free.isdisjoint(others):
        raise NotPointwise("a sum uses a reduction that is not a maximum: see `factors of sums`", fold.body)
    parts = list(factors(fold.body))
    values = [part for part in parts if found.column.name in part[0].free]
    weights = [part for part in parts if part not in values]
    type_ = as_data(fold.name.type)
    value = _product(values, type_) if values else None
    if value is not None and found.row.name in value.free:
        raise NotPointwise("a term of a sum is not a function of the row times one of the column", fold.body)
    made = Sum(fold, _product(weights, type_), value)
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


def _emitted(p: _Pass, index: Identifier) -> Expr:
    row, column = p.found.row, p.found.column
    bodies = [s.weight for s in p.sums] + [s.value for s in p.sums if s.value is not None]
    if p.reference is not None:
        bodies.append(p.reference.body)
    arrays = p.opened(bodies, index)
    blocks = [_split(xs, p.size) for xs in dict.fromkeys(xs for xs in arrays.values() if xs is not None)]
    if None in arrays.values() or not blocks:
        count = (index.type.size if isinstance(index.type, Index) else p.size).exact_quotient(p.size)
        number = Identifier("number", Index(count))  # type: ignore[arg-type]  # the blocks divide the elements
        blocks.append(generated(number, number))
    block = p.fresh("block", tuple_type([array_type(xs).element for xs in blocks]))
    inner = p.fresh("l", Index(p.size))
    parts = members(block, len(blocks))
    of_array = dict(zip(dict.fromkeys(xs for xs in arrays.values() if xs is not None), parts, strict=False))
    within = {
        part: p.within(part, None if xs is None else of_array[xs], parts[-1], inner) for part, xs in arrays.items()
    }
    lets: list[tuple[Identifier, Expr]] = []

    def named(name: str, value: Expr) -> Identifier:
        lets.append((p.fresh(name, as_data(value.type)), value))
        return lets[-1][0]

    def rows(element: Expr) -> Expr:
        return generated(row, element)

    # products inside of what is reduced are matrices of their own
    products: dict[Expr, Expr] = {}
    for body in bodies:
        for part in subterms(body):
            if is_reduction(part) and not any(alpha_equal(part, known) for known in products):
                if not {row.name, index.name} <= part.free or column.name in part.free:
                    raise NotPointwise("expected products of rows", part)
                product = named("product", rows(generated(inner, put(part, within))))
                products[part] = at(inner, at(row, product))

    def here(body: Expr) -> Expr:
        return put(_replaced(body, products), within)

    # the state: the reference and the sums, by rows
    types = [_of_rows(p, p.reference.name)] if p.reference else []
    types += [_of_rows(p, s.fold.name, of_matrix=s.value is not None) for s in p.sums]
    state = p.fresh("state", tuple_type(types))
    old = members(state, len(types))
    new: list[Expr] = []
    reference: dict[Expr, Expr] = {}
    scales: dict[tuple[str, Expr], Expr] = {}
    if p.reference is not None:
        most = apply(
            instance("reduce", (p.size, p.reference.name.type), None),
            p.reference.operator, p.reference.start, generated(inner, here(p.reference.body)),
        )  # fmt: skip
        top = named("top", rows(_of("max", at(row, old[0]), most)))
        reference = {p.reference.name: at(row, top)}
        new.append(top)
    weights: list[tuple[Expr, Identifier]] = []

    def weighted(weight: Expr) -> Expr:
        """The element of a matrix of weights, rounded ones by a matrix of the narrower type."""
        if is_view(unconverted(weight)):
            return weight
        if (exact := unrounded(weight)) is not weight:
            (_, wide, [narrow]) = call(weight)  # type: ignore[misc]  # a conversion
            return apply(wide, weighted(apply(call(narrow)[1], weighted(exact))))  # type: ignore[index]
        known = next((name for other, name in weights if alpha_equal(other, weight)), None)
        if known is None:
            known = named("weights", rows(generated(inner, weight)))
            weights.append((weight, known))
        return at(inner, at(row, known))

    for s, before in zip(p.sums, old[len(new) :], strict=True):
        kept = at(row, before)
        terms = weighted(put(here(s.weight), reference))
        if s.value is not None:
            kept, terms = at(column, kept), _of("mul", terms, here(s.value))
        if s.slope is not None and p.reference is not None:
            key = s.exponential, s.slope
            if key not in scales:
                change = _of("sub", at(row, new[0]), at(row, old[0]))
                repair = named("repair", rows(_of(s.exponential, _times(s.slope, change))))
                scales[key] = at(row, repair)
            kept = _of("mul", kept, scales[key])
        total = apply(
            instance("reduce", (p.size, s.fold.name.type), None),
            s.fold.operator, s.fold.start, generated(inner, terms),
        )  # fmt: skip
        sum_ = _of("add", kept, total)
        new.append(rows(sum_ if s.value is None else generated(column, sum_)))
    step: Expr = _tuple(new)
    for name, value in reversed(lets):
        step = Apply(Lambda(name, step), value)
    start = [rows(_lowest(p.reference.start))] if p.reference else []
    start += [
        rows(s.fold.start if s.value is None else generated(column, s.fold.start)) for s in p.sums
    ]
    xs = blocks[-1]
    for ys in reversed(blocks[:-1]):
        xs = zipped(ys, xs)
    known_xs = array_type(xs)
    fold = apply(
        instance("reduceSeq", (Space.LOCAL, known_xs.size, known_xs.element, state.type), None),
        Lambda(state, Lambda(block, step)), _tuple(start), xs,
    )  # fmt: skip
    total_ = p.fresh("sums", as_data(state.type))
    folds = ([p.reference] if p.reference else []) + [s.fold for s in p.sums]
    values: dict[Expr, Expr] = {}
    for f, member, s in zip(folds, members(total_, len(types)), [None] * (len(folds) - len(p.sums)) + p.sums, strict=True):
        element = at(row, member)
        values[f.name] = at(column, element) if s is not None and s.value is not None else element
    result = generated(row, generated(column, put(p.found.element, values)))
    return simplify(Apply(Lambda(total_, result), fold))


def _replaced(term: Expr, values: Mapping[Expr, Expr]) -> Expr:
    for part, by in values.items():
        if is_reduction(term) and alpha_equal(term, part):
            return by
    return map_children(term, lambda child: _replaced(child, values))


def unconverted(term: Expr) -> Expr:
    """A number without the conversion to a wider type."""
    match call(term):
        case "cast", _, [inner] if isinstance(inner.type, Scalar) and isinstance(term.type, Scalar):
            return inner if inner.type.bytes < term.type.bytes else term
        case _:
            return term


def _lowest(start: Expr) -> Expr:
    found = call(start)
    negated = found is not None and found[0] == "neg" and found[2][0] == Literal(float("inf"), start.type)
    if negated or (isinstance(start, Literal) and start.value == float("-inf")):
        return Literal(LOWEST[str(start.type)], start.type)
    return start


def _of_rows(p: _Pass, name: Identifier, of_matrix: bool = False) -> Data:
    rows, columns = p.found.row.type, p.found.column.type
    element = as_data(name.type)
    if of_matrix and isinstance(columns, Index):
        element = Array(columns.size, element)
    return Array(rows.size, element) if isinstance(rows, Index) else element


def _tuple(parts: Sequence[Expr]) -> Expr:
    *front, result = parts
    for part in reversed(front):
        result = pair(part, result)
    return result


def _split(xs: Expr, size: Nat) -> Expr:
    known = array_type(xs)
    return apply(instance("split", (size, known.size.exact_quotient(size), known.element), xs.origin), xs)


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
        "fun((a: 3.6.f32, w: 6.5.f32) => a |> map(fun(r => r |> map(fun(x => x * x)) |> reduce(+, 0)"
        " |> fun(s => transpose(w) |> map(fun(c => (zip(r)(c) |> map(fun((x, y) => x * y))"
        " |> reduce(+, 0)) * rsqrt(s + 1)))))))",
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
