"""Reductions of the rows of a matrix in the kernel that computes it, beside the matrix.

    (D, Σ of the rows of E)  →  D, and the sums of w columns of E at a time; then the sum of these for each row

where an element of E is a function of the same products as D's, so that a tile's epilogue has both. The sums
of w columns go inward, through all that arranges tiles, to the fragments (`reduceRows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
from rewrites.epilogue import fragment_type
from rewrites.folds import Fold, of_rows, operation, system, written
from rewrites.longer import selected_from_longer
from rewrites.match import project
from rewrites.rounding import missing
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
    application,
    apply,
    call,
    distinct_binders,
    substitute,
    subterms,
)
from rise.nat import Nat, constant
from rise.normal import is_view, simplify
from rise.types import I32, Array, Data, Index, Pair, Scalar, Type, as_data

# of a row in parts of w elements, pairs of what is stored and what is reduced: both
BOTH = "rows |> map(r => r |> split($w) |> map(p => (p |> map(x => fst(x)), p |> map(x => snd(x)) |> reduce(op, z))))"
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
        if not _products(fold.body):
            raise NotPointwise("what is reduced is not computed from a product", reduced)
        if not (fold.operator.free | fold.start.free) <= term.free:
            raise NotPointwise("the operator depends on the row", fold.operator)
        if not paired:
            return cls(None, found.row, fold, found.element)
        row, column, element = _elements(project("fst", term))
        for turned in (False, True):
            places = (fold.index, found.row) if turned else (found.row, fold.index)
            if (row.type, column.type) == (places[0].type, places[1].type):
                stored = substitute(element, {row.name: places[0], column.name: places[1]})
                if any(alpha_equal(a, b) for a in _products(stored) for b in _products(fold.body)):
                    return cls(stored, found.row, fold, found.element, turned)
        raise NotPointwise("the two results are not computed from one product", term)

    def longer(self, more: int) -> Expr:
        """The matrix of what is reduced, paired with what is stored beside it; so many elements more in a row.

        What is reduced there is neutral.
        """
        index, size = self.fold.index, self.fold.size
        if size is None or size.value is None:
            raise NotPointwise("the length of a row is not known", self.fold.body)
        taken = names(self.fold.body, self.fold.start, self.row, *([self.stored] if self.stored else []))
        column = fresh("j", Index(size + more), taken)

        def at_column(element: Expr) -> Expr:
            if not more:
                return substitute(element, {index.name: column})
            return selected_from_longer(put(element, {number(index): number(column)}), index, column, more)

        element = at_column(self.fold.body)
        if more:
            inside = operation("lt", number(column), Literal(size.value, I32))
            element = apply(instance("select", (element.type,), None), inside, element, self.fold.start)
        if self.stored is not None:
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
    "(D, E |> map(reduce(op, z)) |> map(h)) → zip2D(D, E) |> map(split(w) >> map(p => (fst p, reduce(op, z)(snd p))))"
    " |> … |> toMem(Global) |> ((D, S) => (D, S |> map(reduce(op, z)) |> map(h))), with n columns, or a multiple",
    (
        "fun((a: 3.2.f32, b: 5.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))))) |> fun(p => (p |> map(map(fun(x => x * 2))), p |> map(fun(r => r"
        " |> map(fun(x => x * x)) |> reduce(+, 0))))))",
        "fun((a: 5.2.f32, b: 4.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))))) |> fun(p => (p, transpose(p) |> map(fun(r => r |> reduce(+, 0))))))",
        "fun((a: 3.2.f32, b: 4.2.f32) => a |> map(fun(r => b |> map(fun(c => zip(r)(c) |> map(fun((x, y) =>"
        " x * y)) |> reduce(+, 0))) |> reduce(max, -1000.0) |> fun(s => s * 2))))",
    ),
    "Rows are reduced in parts of w columns, beside the matrix, and these parts by another kernel.",
    exact=False,
    sizes={"w": 2, "n": 4},
)
def ROWS_BY_PARTS(term: Expr, w: Nat, n: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    try:
        found = Beside.of(term)
        more = missing(found.fold.size, n.value or 1)
        whole = found.longer(more)
    except NotPointwise as refused:
        return refused.reason
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
    parts = build(
        f"{BOTH} |> map(r => r |> unzip) |> unzip |> mapFst(rows => rows |> map(r => r |> join |> take($n)){turn})",
        {"w": w, "n": fold.size}, **given,
    )  # fmt: skip
    if alone:
        return build("s |> mapSnd(rows => rows |> join)", s=parts)
    return _finished(found, parts, lambda stored: project("snd", stored))


def _finished(found: Beside, parts: Expr, reduced: Callable[[Expr], Expr]) -> Expr:
    """The numbers of rows, from those of their parts, in global memory."""
    stored = fresh("stored", as_data(parts.type), names(parts, found.element))
    of_row = build("xs |> reduce(op, z)", xs=at(found.row, reduced(stored)), op=found.fold.operator, z=found.fold.start)
    numbers = over(found.row, substitute(found.element, {found.fold.name.name: of_row}))
    result = numbers if found.stored is None else pair(project("fst", stored), numbers)
    return build("let y = x |> toMem(Global) in f(y)", x=parts, f=Lambda(stored, result))


# --- inward -------------------------------------------------------------------------------------------------


@dataclass
class _Inward:
    """Moves a function of the parts of rows to the tiles that the rows consist of.

    width:   of a part
    element: the type of its result
    tile:    the matrix of the results of a tile whose rows are one part each
    depths:  by the variables of the maps around a place: under how many dimensions of what a variable stands
             for the rows are; None where it is not what the rows consist of
    """

    width: Nat
    element: Data
    tile: Callable[[Expr], Expr | None]
    depths: dict[str, int | None] = field(default_factory=dict)

    def at(self, depth: int, term: Expr) -> Expr:
        """A term in which each part of the rows, which are under so many dimensions, is one element."""
        if depth == 1 and (tile := self.tile(term)) is not None:
            return tile
        match term, call(term):
            case Identifier(name), _ if name in self.depths:
                self.depths[name] = depth
                return Identifier(name, self.type(depth, term.type), term.origin)
            case Apply(Lambda(x, body), value), _:
                return Apply(Lambda(x, self.at(depth, body)), value)
            case _, ("let", head, [value, Lambda(x, body)]):
                body = self.at(depth, body)
                return apply(_retyped(head, as_data(body.type)), value, Lambda(x, body))
            case _, ("join", _, [xs]):
                return build("xs |> join", xs=self.at(depth + 1, xs))
            case _, ("transpose", _, [xs]) if depth == 1 and (inner := call(xs)) and inner[0] == "transpose":
                return self.at(depth, inner[2][0])
            case _, ("transpose", _, [xs]) if depth >= 2:
                return build("xs |> transpose", xs=self.at(depth, xs))
            case _, ("split", head, [xs]) if depth >= 2:
                xs = self.at(depth - 1, xs)
                return apply(_retyped(head, array_type(xs).element), xs)
            case _, (("take" | "reorder"), head, [xs]) if depth >= 1:
                xs = self.at(depth, xs)
                return apply(_retyped(head, array_type(xs).element), xs)
            case _, ("pingPong", head, [x]):
                x = self.at(depth, x)
                return apply(_retyped(head, as_data(x.type)), x)
            case _, (name, head, [Lambda(x, body), xs]) if depth >= 1:
                if name == "map" or head.declaration.group == "levels":
                    return self.mapped(depth, head, x, body, xs)
        raise NotPointwise("rows are not in tiles of as many columns as a part has", term)

    def mapped(self, depth: int, head: Primitive, x: Identifier, body: Expr, xs: Expr) -> Expr:
        self.depths[x.name] = None
        body = self.at(depth - 1, body)
        inside = self.depths.pop(x.name)
        if inside is not None:
            xs = self.at(inside + 1, xs)
            x = Identifier(x.name, array_type(xs).element, x.origin)
        return apply(_retyped(head, as_data(x.type), as_data(body.type)), Lambda(x, body), xs)

    def type(self, depth: int, type_: Type) -> Data:
        if not isinstance(type_, Array):
            raise NotPointwise("expected rows", Identifier("rows", as_data(type_)))
        if depth:
            return Array(type_.size, self.type(depth - 1, type_.element))
        count = type_.size.exact_quotient(self.width)
        if count is None:
            raise NotPointwise("parts do not divide a row", Identifier("row", type_))
        return Array(count, self.element)


def _retyped(head: Primitive, *types: Data) -> Primitive:
    """A primitive whose last arguments are these types."""
    return replace(head, arguments=(*head.arguments[: -len(types)], *types))


def _fragment(term: Expr) -> Expr | None:
    """The fragment whose matrix a term is, however that is stored and cut on the way."""
    match call(term):
        case "asMatrix", _, [fragment]:
            return fragment
        case ("toMem" | "bulkStore" | "split" | "join" | "transpose"), _, [inner]:
            return _fragment(inner)
        case "map", _, [Lambda(_, body), inner] if is_view(body):
            return _fragment(inner)
        case _:
            return None


def _reduced(operator: Expr, start: Expr, width: Nat) -> Callable[[Expr], Expr | None]:
    """The reductions of the rows of a fragment's matrix, as a matrix of one column."""

    def column(term: Expr) -> Expr | None:
        fragment = _fragment(term)
        if fragment is None or fragment_type(fragment).columns != width:
            return None
        return build("f |> reduceRows(op, z) |> toMem(Local) |> asColumn", f=fragment, op=operator, z=start)

    return column


def _beside(operator: Expr, start: Expr, width: Nat) -> Callable[[Expr], Expr | None]:
    """The same of the second members of pairs, beside the first ones."""
    column = _reduced(operator, start, width)

    def both(term: Expr) -> Expr | None:
        match call(term):
            case "split", head, [zipped] if head.arguments[0] == width:
                match call(zipped):
                    case "zip", _, [stored, reduced] if (numbers := column(reduced)) is not None:
                        return build(
                            "zip(xs |> split($w))(ys |> join) |> split(1)", {"w": width}, xs=stored, ys=numbers
                        )
        return None

    return both


@computed(
    "reductions of rows, inward",
    "e |> map(split(w) >> map(reduce(op, z))) → e, whose tiles f |> asMatrix are f |> reduceRows(op, z)"
    " |> asColumn; and zip2D(a, f |> asMatrix) both, where what is stored is beside what is reduced",
    (
        "fun((a: 32.16.f32) => a |> split(16) |> map(fun(r => r |> map(split(8)) |> transpose"
        " |> map(fun(t => t |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f) |> toMem(Local)"
        " |> asMatrix)) |> transpose |> map(join))) |> join"
        " |> map(fun(r => r |> split(8) |> map(fun(p => p |> reduce(+, 0))))))",
        "fun((a: 16.8.f32) => a |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f) |> toMem(Local)"
        " |> fun(f => zip(f |> asMatrix |> join)(f |> asMatrix |> join) |> split(8)) |> map(fun(r =>"
        " r |> split(8) |> map(fun(p => (p |> map(fun(x => fst(x))), p |> map(fun(x => snd(x)))"
        " |> reduce(max, -1000.0)))))))",
    ),
    "What reduces parts of rows reduces the rows of the fragments that compute them.",
    exact=False,
)
def REDUCTIONS_INWARD(term: Expr) -> Expr | str:  # noqa: N802
    found = _parts_of(term)
    if found is None:
        return "expected the reductions of parts of rows"
    rows, width, result, reduction, make = found
    _, _, (operator, start, _) = application(reduction)
    try:
        return _Inward(width, as_data(result.type), make(operator, start, width)).at(1, distinct_binders(rows))
    except NotPointwise as refused:
        return refused.reason


def reduces_parts(term: Expr) -> bool:
    """Whether a term is a matrix of the reductions of parts of rows."""
    return _parts_of(term) is not None


Make = Callable[[Expr, Expr, Nat], Callable[[Expr], Expr | None]]


def _parts_of(term: Expr) -> tuple[Expr, Nat, Expr, Expr, Make] | None:
    """The matrix, the width of a part, what is made of a part, the reduction in that, and how tiles do it."""
    match call(term):
        case "map", _, [Lambda(row, body), rows]:
            pass
        case _:
            return None
    match call(body):
        case "map", _, [Lambda(_, result), cut] if (split := call(cut)) is not None:
            pass
        case _:
            return None
    width = split[1].arguments[0]
    if split[0] != "split" or split[2] != [row] or not isinstance(width, Nat):
        return None
    match call(result):
        case "pair", _, [_, reduction]:
            make: Make = _beside
        case _:
            reduction, make = result, _reduced
    is_reduced = (found := call(reduction)) is not None and found[0] == "reduce"
    return (rows, width, result, reduction, make) if is_reduced else None
