"""Reductions of the rows of a matrix in the kernel that computes it, beside the matrix.

    (D, Σ of the rows of E)  →  D, and the sums of w columns of E at a time; then their sum for each row

where an element of E is a function of the same products as D's, so that a tile's epilogue has both. The sums
of w columns go inward, through all that arranges tiles, to the fragments (`reduceRows`). In the place of a
sum may be any reduction, or a maximum and sums of exponentials that use it, as in a log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rewrites.algorithmic import is_reduction
from rewrites.build import build
from rewrites.elements import (
    NotPointwise,
    at,
    fresh,
    generated,
    holds_arrays,
    names,
    number,
    over,
    pair,
    put,
    transposed,
    zipped,
)
from rewrites.extrema import Extremum, with_indices_apart
from rewrites.folds import Fold, of_rows, operation, system, with_folds, written
from rewrites.longer import over_rows, selected_from_longer
from rewrites.match import project
from rewrites.rounding import missing
from rewrites.row_folds import RowFolds, row_reductions
from rewrites.rule import computed
from rewrites.typed import array_type, instance
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Literal,
    alpha_equal,
    application,
    apply,
    call,
    substitute,
    subterms,
)
from rise.nat import Nat, constant
from rise.normal import simplify
from rise.types import I32, Array, Index, Pair, Type, as_data

# of a row in parts of w elements, each of which f makes something of
BY_PARTS = "rows |> map(r => r |> split($w) |> map(f))"


# --- programs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """A number for each row of a matrix, or for each column, beside another matrix of its shape, or alone.

    stored:  an element of the matrix beside it, by `row` and the index of `folds`, if there is one
    row:     the index of the row; of the column where the matrix is `turned`
    folds:   the reductions of a row; its elements are functions of a product
    element: the number, a function of the reductions
    others:  other reductions that it is a function of, as that of one more product
    in_arrays: whether the numbers of a row, which are pairs, are in two arrays
    """

    stored: Expr | None
    row: Identifier
    folds: RowFolds | Extremum
    element: Expr
    others: tuple[Fold, ...] = ()
    in_arrays: bool = False
    turned: bool = False

    @classmethod
    def of(cls, term: Expr) -> Beside:
        """Raises NotPointwise for other programs."""
        alone = not isinstance(term.type, Pair) or is_unzip(term) or _are_numbers(term.type)
        reduced, in_arrays = _in_one_array(term if alone else project("snd", term))
        if not isinstance(reduced.type, Array) or holds_arrays(reduced.type.element):
            raise NotPointwise("expected numbers for each row", reduced)
        found = of_rows(with_indices_apart(reduced))
        own = tuple(fold for fold in found.folds if _products(fold.body))
        others = tuple(fold for fold in found.folds if fold not in own)
        for some, rest in ((own, others), (others, own)):
            results = {fold.name.name for fold in rest}
            if any(not fold.body.free.isdisjoint(results) for fold in some):
                raise NotPointwise("one reduction uses the result of another", reduced)
        if not own:
            raise NotPointwise("what is reduced is not computed from a product", reduced)
        folds = row_reductions(replace(found, folds=own))
        _check(folds, found.row, term)
        made = cls(None, found.row, folds, found.element, others, in_arrays)
        if alone:
            return made
        row, column, element = _elements(project("fst", term))
        for turned in (False, True):
            places = (folds.index, found.row) if turned else (found.row, folds.index)
            if (row.type, column.type) == (places[0].type, places[1].type):
                stored = substitute(element, {row.name: places[0], column.name: places[1]})
                if any(alpha_equal(a, b) for a in _products(stored) for b in _products(folds.body)):
                    return replace(made, stored=stored, turned=turned)
        raise NotPointwise("the two results are not computed from one product", term)

    @property
    def length(self) -> int:
        """How many elements a row has."""
        return (self.folds.size.value if self.folds.size is not None else None) or 0

    @property
    def is_stored(self) -> bool:
        """Whether what is stored is what is reduced."""
        return self.stored is not None and alpha_equal(self.stored, self.folds.body)

    def longer(self, more: Nat | None) -> Expr:
        """The matrix of what is reduced, paired with what is stored beside it where that is something else.

        more: elements in a row behind its end, which are neutral
        """
        index, size = self.folds.index, self.length
        starts = (fold.start for fold in self.folds.folds)
        taken = names(self.folds.body, self.row, *starts, *([self.stored] if self.stored else []))
        column = fresh("j", Index(constant(size) if more is None else size + more), taken)

        def at_column(element: Expr) -> Expr:
            if more is None:
                return substitute(element, {index.name: column})
            return selected_from_longer(put(element, {number(index): number(column)}), index, column, more)

        element = at_column(self.folds.body)
        if more is not None:
            inside = operation("lt", number(column), Literal(size, I32))
            element = apply(instance("select", (element.type,), None), inside, element, self.folds.neutral)
        if self.stored is not None and not self.is_stored:
            element = pair(at_column(self.stored), element)
        outer, inner = (column, self.row) if self.turned else (self.row, column)
        return simplify(generated(outer, generated(inner, element)))


def _are_numbers(type_: Type) -> bool:
    """Whether two arrays have a number each, for as many rows."""
    match type_:
        case Pair(Array(m, first), Array(n, second)):
            return m == n and not holds_arrays(first) and not holds_arrays(second)
        case _:
            return False


def _in_one_array(term: Expr) -> tuple[Expr, bool]:
    """The pairs of numbers of rows, and whether they are in two arrays."""
    if is_unzip(term):
        return application(term)[2][0], True
    if _are_numbers(term.type):
        return zipped(project("fst", term), project("snd", term)), True
    return term, False


def is_unzip(term: Expr) -> bool:
    """Whether a term is two arrays of an array of pairs."""
    applied = call(term)
    return applied is not None and applied[0] == "unzip"


def _check(folds: RowFolds | Extremum, row: Identifier, term: Expr) -> None:
    """Raises NotPointwise for reductions that a product's kernel does not compute."""
    if folds.size is None or folds.size.value is None:
        raise NotPointwise("the length of a row is not known", folds.body)
    products = _products(folds.body)
    if not products:
        raise NotPointwise("what is reduced is not computed from a product", folds.body)
    if any(row.name not in product.free for product in products):
        raise NotPointwise("a sum in what is reduced is the same for all rows", folds.body)
    if any(not (fold.operator.free | fold.start.free) <= term.free for fold in folds.folds):
        raise NotPointwise("the operator depends on the row", folds.body)


def _products(term: Expr) -> list[Expr]:
    return [part for part in subterms(term) if is_reduction(part)]


def _elements(term: Expr) -> tuple[Identifier, Identifier, Expr]:
    """An element of a matrix by its indices. Raises NotPointwise."""
    match call(written(system(term))):
        case "generate", _, [Lambda(row, body)]:
            match call(body):
                case "generate", _, [Lambda(column, element)]:
                    return row, column, element
    raise NotPointwise("expected a matrix of elements", term)


def beside(term: Expr) -> Beside | None:
    """Such a program; None for others."""
    try:
        return Beside.of(term)
    except NotPointwise:
        return None


@computed(
    "reductions of rows by parts",
    "(D, E |> map(reduce(op, z)) |> map(h)) → zip2D(D, E) |> map(split(w) >> map(p => (fst p, reduce(op, z)"
    "(snd p)))) |> … |> toMem(Global) |> ((D, S) => (D, S |> map(reduce(op, z)) |> map(h)))",
    (
        "fun((a: 3.2.f32, b: 5.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))))) |> fun(p => (p |> map(map(fun(x => x * 2))), p |> map(fun(r => r"
        " |> map(fun(x => x * x)) |> reduce(+, 0))))))",
        "fun((a: 5.2.f32, b: 4.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))))) |> fun(p => (p, transpose(p) |> map(fun(r => r |> reduce(+, 0))))))",
        "fun((a: 3.2.f32, b: 4.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))) |> reduce(max, -1000.0) |> fun(s => s * 2))))",
        "fun((a: 3.2.f32, b: 5.2.f32, v: 3.f32) => zip(a)(v) |> map(fun((r, x) => b |> map(fun(c => zip(r)(c)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0))) |> fun(p => p |> reduce(max, -1000.0) |> fun(m =>"
        " (p |> map(fun(x => exp2(x - m))) |> reduce(+, 0)) - m + x + (r |> reduce(+, 0)))))))",
        "fun((a: 3.2.f32, b: 4.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))))) |> fun(p => (p |> map(map(fun(x => x + 1))), p |> map(fun(r =>"
        " (r |> map(fun(x => x * x)) |> reduce(+, 0)) - (r |> reduce(+, 0)))))))",
    ),
    "Rows are reduced in parts of w columns, beside the matrix, then these parts; in multiples of n columns."
    " So are a maximum and sums that use it, and the index of an extremum.",
    exact=False,
    sizes={"w": 2, "n": 4},
)
def ROWS_BY_PARTS(term: Expr, w: Nat, n: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    found = Beside.of(term)
    more = missing(constant(found.length), n.value or 1)
    whole = found.longer(more)
    rows = transposed(whole) if found.turned else whole
    row = array_type(Identifier("row", array_type(rows).element))
    count = row.size.exact_quotient(w)
    if count is None:
        return f"{w} does not divide {row.size}"
    part = fresh("p", Array(w, row.element), names(rows))
    alone = [fold.name for fold in found.folds.folds] == [found.element] and count == constant(1)
    if found.stored is None:
        parts = build(BY_PARTS, {"w": w}, rows=rows, f=Lambda(part, found.folds.of_part(part)))
        return build("s |> join", s=parts) if alone else _finished(found, parts, w, lambda stored: stored)
    kept, reduced = (
        (part, part)
        if found.is_stored
        else (build(f"p |> map(x => {side}(x))", p=part) for side in ("fst", "snd"))
    )
    both = Lambda(part, pair(kept, found.folds.of_part(reduced)))
    turn = " |> transpose" if found.turned else ""
    in_two = f"map(r => r |> unzip) |> unzip |> mapFst(rows => rows |> map(r => r |> join |> take($n)){turn})"
    parts = build(f"{BY_PARTS} |> {in_two}", {"w": w, "n": found.length}, rows=rows, f=both)
    if alone:
        return build("s |> mapSnd(rows => rows |> join)", s=parts)
    return _finished(found, parts, w, lambda stored: project("snd", stored))


def _finished(found: Beside, parts: Expr, width: Nat, reduced: Callable[[Expr], Expr]) -> Expr:
    """The numbers of rows, from those of their parts, in global memory, and from other numbers there."""
    taken = names(parts, found.element)
    stored = fresh("stored", as_data(parts.type), taken)
    element, others = found.element, []
    for fold in (fold for fold in found.others if fold.name.name in found.element.free):
        value = with_folds(fold.name, found.others)
        numbers = over_rows(found.row, value, [value])
        others.append((fresh("others", as_data(numbers.type), taken), numbers))
        element = substitute(element, {fold.name.name: at(found.row, others[-1][0])})
    of_row = found.folds.of_row(at(found.row, reduced(stored)), element, width)
    several = len(found.folds.folds) > 1
    numbers = over_rows(found.row, of_row, [of_row]) if several else over(found.row, of_row)
    numbers = build("xs |> unzip", xs=numbers) if found.in_arrays else numbers
    result = numbers if found.stored is None else pair(project("fst", stored), numbers)
    for name, value in [*reversed(others), (stored, parts)]:
        result = build("let y = x |> toMem(Global) in f(y)", x=value, f=Lambda(name, result))
    return result
