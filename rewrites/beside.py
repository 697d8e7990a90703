"""Reductions of the rows of a matrix in the kernel that computes it, beside the matrix.

    (D, Σ of the rows of E)  →  D, and the sums of w columns of E at a time; then their sum for each row

where an element of E is a function of the same products as D's, so that a tile's epilogue has both. The sums
of w columns go inward, through all that arranges tiles, to the fragments (`reduceRows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewrites.algorithmic import is_reduction
from rewrites.build import build
from rewrites.elements import (
    NotPointwise,
    at,
    fresh,
    generated,
    names,
    number,
    over,
    pair,
    put,
    transposed,
)
from rewrites.folds import Fold, of_rows, operation, system, written
from rewrites.longer import selected_from_longer
from rewrites.match import project
from rewrites.rounding import missing
from rewrites.rule import computed
from rewrites.typed import array_type, instance
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Literal,
    alpha_equal,
    apply,
    call,
    substitute,
    subterms,
)
from rise.nat import Nat, constant
from rise.normal import simplify
from rise.types import I32, Array, Index, Pair, Scalar, as_data

# of a row in parts of w elements: what is stored and what is reduced, of pairs of these; of the same; one
BOTH = (
    "rows |> map(r => r |> split($w) |> map(p =>"
    " (p |> map(x => fst(x)), p |> map(x => snd(x)) |> reduce(op, z))))"
)
SAME = "rows |> map(r => r |> split($w) |> map(p => (p, p |> reduce(op, z))))"
ONLY = "rows |> map(r => r |> split($w) |> map(p => p |> reduce(op, z)))"


# --- programs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """A number for each row of a matrix, or for each column, beside another matrix of its shape, or alone.

    stored:  an element of the matrix beside it, by `row` and the index of `fold`, if there is one
    row:     the index of the row; of the column where the matrix is `turned`
    fold:    the reduction of a row; its terms are functions of a product
    element: the number, a function of the reduction
    """

    stored: Expr | None
    row: Identifier
    fold: Fold
    element: Expr
    turned: bool = False

    @classmethod
    def of(cls, term: Expr) -> Beside:
        """Raises NotPointwise for other programs."""
        paired = isinstance(term.type, Pair)
        reduced = project("snd", term) if paired else term
        if not isinstance(reduced.type, Array) or not isinstance(reduced.type.element, Scalar):
            raise NotPointwise("expected a number for each row", reduced)
        found = of_rows(reduced)
        if len(found.folds) != 1 or found.row.name not in found.folds[0].body.free:
            raise NotPointwise("expected one reduction of each row", reduced)
        (fold,) = found.folds
        if fold.size is None or fold.size.value is None:
            raise NotPointwise("the length of a row is not known", fold.body)
        products = _products(fold.body)
        if not products:
            raise NotPointwise("what is reduced is not computed from a product", reduced)
        if any(found.row.name not in product.free for product in products):
            raise NotPointwise("a sum in what is reduced is the same for all rows", reduced)
        if not (fold.operator.free | fold.start.free) <= term.free:
            raise NotPointwise("the operator depends on the row", fold.operator)
        if not paired:
            return cls(None, found.row, fold, found.element)
        row, column, element = _elements(project("fst", term))
        for turned in (False, True):
            places = (fold.index, found.row) if turned else (found.row, fold.index)
            if (row.type, column.type) == (places[0].type, places[1].type):
                stored = substitute(element, {row.name: places[0], column.name: places[1]})
                if any(alpha_equal(a, b) for a in _products(stored) for b in products):
                    return cls(stored, found.row, fold, found.element, turned)
        raise NotPointwise("the two results are not computed from one product", term)

    @property
    def length(self) -> int:
        """How many elements a row has."""
        return self.fold.size.value or 0 if self.fold.size is not None else 0

    @property
    def is_stored(self) -> bool:
        """Whether what is stored is what is reduced."""
        return self.stored is not None and alpha_equal(self.stored, self.fold.body)

    def longer(self, more: Nat | None) -> Expr:
        """The matrix of what is reduced, paired with what is stored beside it where that is something else.

        more: elements in a row behind its end, which are neutral
        """
        index, size = self.fold.index, self.length
        taken = names(self.fold.body, self.fold.start, self.row, *([self.stored] if self.stored else []))
        column = fresh("j", Index(constant(size) if more is None else size + more), taken)

        def at_column(element: Expr) -> Expr:
            if more is None:
                return substitute(element, {index.name: column})
            return selected_from_longer(put(element, {number(index): number(column)}), index, column, more)

        element = at_column(self.fold.body)
        if more is not None:
            inside = operation("lt", number(column), Literal(size, I32))
            element = apply(instance("select", (element.type,), None), inside, element, self.fold.start)
        if self.stored is not None and not self.is_stored:
            element = pair(at_column(self.stored), element)
        outer, inner = (column, self.row) if self.turned else (self.row, column)
        return simplify(generated(outer, generated(inner, element)))


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
    ),
    "Rows are reduced in parts of w columns, beside the matrix, then these parts; in multiples of n columns.",
    exact=False,
    sizes={"w": 2, "n": 4},
)
def ROWS_BY_PARTS(term: Expr, w: Nat, n: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    found = Beside.of(term)
    more = missing(found.fold.size, n.value or 1)
    whole = found.longer(more)
    fold = found.fold
    rows = transposed(whole) if found.turned else whole
    columns = array_type(Identifier("row", array_type(rows).element)).size
    count = columns.exact_quotient(w)
    if count is None:
        return f"{w} does not divide {columns}"
    given = {"rows": rows, "op": fold.operator, "z": fold.start}
    alone = found.element == fold.name and count == constant(1)
    if found.stored is None:
        parts = build(ONLY, {"w": w}, **given)
        return build("s |> join", s=parts) if alone else _finished(found, parts, lambda stored: stored)
    turn = " |> transpose" if found.turned else ""
    in_two = f"map(r => r |> unzip) |> unzip |> mapFst(rows => rows |> map(r => r |> join |> take($n)){turn})"
    text = f"{SAME if found.is_stored else BOTH} |> {in_two}"
    parts = build(text, {"w": w, "n": fold.size}, **given)
    if alone:
        return build("s |> mapSnd(rows => rows |> join)", s=parts)
    return _finished(found, parts, lambda stored: project("snd", stored))


def _finished(found: Beside, parts: Expr, reduced: Callable[[Expr], Expr]) -> Expr:
    """The numbers of rows, from those of their parts, in global memory."""
    stored = fresh("stored", as_data(parts.type), names(parts, found.element))
    of_row = build(
        "xs |> reduce(op, z)", xs=at(found.row, reduced(stored)), op=found.fold.operator, z=found.fold.start
    )
    numbers = over(found.row, substitute(found.element, {found.fold.name.name: of_row}))
    result = numbers if found.stored is None else pair(project("fst", stored), numbers)
    return build("let y = x |> toMem(Global) in f(y)", x=parts, f=Lambda(stored, result))
