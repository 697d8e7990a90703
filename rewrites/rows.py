"""Rows of a tile on fragments: maxima and sums of rows, what is done with them, and products of all that.

    reduce of each row   →  reduceRows, a column in the registers of the threads that hold the rows
    map over the rows    →  mapFragment, with columns repeated
    product of matrices  →  a fold of tensorMatMulAdd; a first operand that is on fragments stays there

A fold whose state are matrices and numbers by rows keeps them in registers from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rewrites.build import build
from rewrites.elements import (
    NotPointwise,
    fresh,
    generated,
    leaves,
    mapped,
    matrix,
    members,
    names,
    over,
    put,
    replaced,
    selects,
    tupled,
    zipped,
)
from rewrites.epilogue import as_matrix, fragment_type, loaded, map_fragment, stored, zip_fragments
from rewrites.folds import Fold, System, factors, is_zero, of_rows, operator_name, unconverted, written
from rewrites.rule import computed
from rewrites.tupling import is_fold
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
    children,
    distinct_binders,
    fresh_name,
    substitute,
)
from rise.instructions import Family, family
from rise.nat import Nat, constant, divides
from rise.normal import is_view, occurrences, simplify
from rise.types import Array, Data, Fragment, FragmentKind, Index, Pair, Scalar, Space, as_data

# the first operands of a product: of an accumulator, and of a matrix in memory
OPERANDS = "(asOperands(xs) : $c.Fragment[$m, $k, $n, $t, AMatrix])"
TILES = "xs |> map(x => x |> split($k)) |> transpose"


def _stored(term: Expr) -> Expr:
    return stored(term, Space.LOCAL)


def _copied(fragment: Expr) -> Expr:
    x = Identifier("x", fragment_type(fragment).element)
    return map_fragment(Lambda(x, x), fragment)


@dataclass
class Rows:
    """The translation of a tile of so many rows.

    depth: of the products' operands
    known: the arrays that are on fragments, by name
    taken: names that are in use
    """

    rows: Nat
    depth: Nat
    taken: set[str]
    known: dict[str, Expr] = field(default_factory=dict)

    def fresh(self, name: str, type_: Data) -> Identifier:
        return fresh(name, type_, self.taken)

    # --- types

    def type(self, type_: Data) -> Data:
        """Columns and accumulators in the place of numbers and rows of numbers by rows."""
        match type_:
            case Pair(first, second):
                return Pair(self.type(first), self.type(second))
            case Array(_, Array(columns, Scalar() as element)):
                return Fragment(self.rows, columns, self.depth, element, FragmentKind.ACCUMULATOR)
            case Array(_, Scalar() as element):
                return Fragment(self.rows, constant(1), self.depth, element, FragmentKind.COLUMN)
            case _:
                raise NotPointwise(f"`{type_}` is not a matrix or a column", Identifier("state", type_))

    def size(self, columns: Nat) -> dict[str, object]:
        return {"m": self.rows, "n": columns, "k": self.depth}

    # --- folds and names

    def whole(self, term: Expr) -> Expr:
        """let s = fold in e: the fold's state on fragments, and e, a matrix, of these."""
        match term:
            case Apply(Lambda(state, body), fold) if is_fold(fold):
                pass
            case _:
                raise NotPointwise("expected what is done with the result of a fold", term)
        made = self.fold(fold)
        result = self.fresh("sums", as_data(made.type))
        return Apply(Lambda(result, self.result(self.opened(state, result, body))), made)

    def result(self, term: Expr) -> Expr:
        """Rows of a matrix, a column, or several arrays of these, taken from fragments."""
        found = of_rows(term)
        if isinstance(found.type, Pair):
            return zipped(*(self.result(written(found.member(name))) for name in ("fst", "snd")))
        if found.column is None:
            return build("x |> asColumn |> join", x=self.value(term))
        fragment = self.matrix(term)
        return as_matrix(fragment if _is_stored(fragment) else _stored(fragment))

    def fold(self, fold: Expr) -> Expr:
        name, head, (step, start, xs) = application(fold)
        match step:
            case Lambda(state, Lambda(block, body)):
                pass
            case _:
                raise NotPointwise("expected a function of a state and an element", step)
        new = self.fresh("state", self.type(as_data(state.type)))
        starts = self.tuple(start)
        guard, body = guarded(state, body)
        body = self.lets(new, self.opened(state, new, body))
        if guard is not None:
            body = apply(instance("select", (new.type,), None), guard, body, new)
        known = array_type(xs)
        made = instance(name, (Space.LOCAL, known.size, known.element, new.type), fold.origin)
        return apply(made, Lambda(new, Lambda(block, body)), starts, xs)

    def opened(self, state: Identifier, new: Identifier, body: Expr) -> Expr:
        """The body, in which names that are on fragments stand for the members of a state."""
        types = _members_of(as_data(state.type))
        parts = [self.fresh("part", type_) for type_ in types]
        self.known |= {
            part.name: member for part, member in zip(parts, members(new, len(parts)), strict=True)
        }
        return simplify(substitute(body, {state.name: tupled(parts)}))

    def lets(self, state: Identifier, body: Expr) -> Expr:
        """The new state, with what is named before it."""
        match body:
            case Apply(Lambda(x, inner), value):
                made = self.value(value)
                name = self.fresh(x.name, as_data(made.type))
                self.known[x.name] = name
                rest = self.lets(state, inner)
                if state.name in made.free and occurrences(rest, name.name) == (1, False):
                    # it would be put in place, where a part of the state may have been replaced already
                    return apply(instance("let", (made.type, rest.type), None), made, Lambda(name, rest))
                return Apply(Lambda(name, rest), made)
            case _:
                return self.tuple(body)

    def tuple(self, term: Expr) -> Expr:
        """A state, which is stored where the fold keeps it."""
        match call(term):
            case "pair", _, [first, second]:
                return tupled([self.tuple(first), self.tuple(second)])
            case _:
                return self.value(term, stored=False)

    def value(self, term: Expr, stored: bool = True) -> Expr:
        """A matrix or a column as a fragment, in registers of its own if `stored`."""
        is_matrix = isinstance(array_type(term).element, Array)
        made = self.matrix(term) if is_matrix else self.column(term)
        if isinstance(term, Identifier) and not stored:
            return _copied(made)  # a state is not a view of what it was made of
        return _stored(made) if stored and not _is_stored(made) else made

    def reductions(self, rows: Expr, of_row: Lambda) -> Expr:
        """What a function makes of each of the rows, as a matrix of one column."""
        match of_row.body:
            case Apply(Lambda(number, rest), value):
                made = self.value(mapped(Lambda(of_row.parameter, value), rows))
                column = self.fresh(number.name, as_data(made.type))
                numbers = self.fresh("xs", Array(array_type(rows).size, as_data(number.type)))
                self.known[numbers.name] = column
                both = zipped(rows, numbers)
                x = self.fresh("x", array_type(both).element)
                values = dict(zip((of_row.parameter.name, number.name), members(x, 2), strict=True))
                return _let(column, made, self.reductions(both, Lambda(x, substitute(rest, values))))
            case _:
                return build("xs |> split(1)", xs=self.result(mapped(of_row, rows)))

    # --- matrices

    def matrix(self, term: Expr) -> Expr:
        if isinstance(term, Identifier) and term.name in self.known:
            return self.known[term.name]
        found = of_rows(term)
        if found.column is None:
            raise NotPointwise("expected a matrix", term)
        match call(found.element):
            case "select", _, [condition, first, second] if not _depends(condition, found):
                whole = (written(replace(found, element=part)) for part in (first, second))
                parts = [self.value(part, stored=False) for part in whole]
                return apply(instance("select", (parts[0].type,), None), condition, *parts)
        products = {fold.name: fold for fold in found.folds if found.column.name in fold.body.free}
        kept, last = _accumulated(found.element, products)
        if last is not None and (kept is None or not _uses(kept, products)):
            start = self.constant(0.0, found, last) if kept is None else self.pointwise(found, kept, products)
            return self.product(found, products[last], start)
        return self.pointwise(found, found.element, products)

    def constant(self, value: float, found: System, name: Identifier) -> Expr:
        return build(
            "generateFragment(x) : Fragment[$m, $n, $k, $t, Accum]",
            {**self.size(_columns(found)), "t": name.type}, x=Literal(value, name.type),
        )  # fmt: skip

    def pointwise(self, found: System, element: Expr, products: dict[Identifier, Fold]) -> Expr:
        """mapFragment over everything that an element is a function of."""
        columns = _columns(found)
        values: dict[Expr, Expr] = {}
        for part in _of_row(found, element, products):
            values[part] = self.repeated(_stored(self.of_column(replace(found, element=part))), columns)
        element_ = put(element, {part: Literal(0.0, part.type) for part in values})
        for fold in found.folds:
            if fold.name.name in element_.free:
                if fold.name in products:
                    values[fold.name] = self.product(found, fold, self.constant(0.0, found, fold.name))
                else:
                    values[fold.name] = self.repeated(_stored(self.reduced(found.row, fold)), columns)
        indices = [found.row] if found.column is None else [found.row, found.column]
        for leaf in leaves(element_, indices):
            values[leaf] = self.leaf(found, leaf, columns)
        return self.over(element, values, found)

    def leaf(self, found: System, leaf: Expr, columns: Nat | None) -> Expr:
        """The fragment whose elements a leaf selects: one that is known, or one that is loaded."""
        match call(leaf):
            case "idx", _, [_, Identifier(name)] if name in self.known and selects(leaf, found.row.name):
                column = self.known[name]
                return column if columns is None else self.repeated(column, columns)
            case "idx", _, [_, inner] if found.column is not None and selects(leaf, found.column.name):
                match call(inner):
                    case "idx", _, [_, Identifier(name)] if name in self.known:
                        if selects(inner, found.row.name):
                            return self.known[name]
                        raise NotPointwise("a fragment is used at another place than the result's", leaf)
        if not leaf.free.isdisjoint(self.known):
            raise NotPointwise("a fragment is used at another place than the result's", leaf)
        element = as_data(leaf.type)
        if columns is not None and found.column is not None:
            like = Fragment(self.rows, columns, self.depth, element, FragmentKind.ACCUMULATOR)
            if is_view(leaf):
                return loaded(matrix(found.row, found.column, leaf), like)
            return loaded(generated(found.row, generated(found.column, leaf)), like)
        like = Fragment(self.rows, constant(1), self.depth, element, FragmentKind.COLUMN)
        if is_view(leaf):
            return loaded(build("xs |> split(1)", xs=over(found.row, leaf)), like)
        one = Identifier(fresh_name("one", names(leaf)), Index(constant(1)))
        return loaded(generated(found.row, generated(one, leaf)), like)

    def repeated(self, column: Expr, columns: Nat) -> Expr:
        type_ = fragment_type(column).element
        return build(
            "repeatColumn(x) : Fragment[$m, $n, $k, $t, Accum]", {**self.size(columns), "t": type_}, x=column
        )

    def over(self, element: Expr, values: dict[Expr, Expr], found: System) -> Expr:
        if not values:
            columns = constant(1) if found.column is None else _columns(found)
            kind = "Column" if found.column is None else "Accum"
            return build(
                f"generateFragment(x) : Fragment[$m, $n, $k, $t, {kind}]",
                {**self.size(columns), "t": element.type}, x=element,
            )  # fmt: skip
        *front, together = values.values()
        for fragment in reversed(front):
            together = zip_fragments(fragment, together)
        x = Identifier(fresh_name("x", names(element)), fragment_type(together).element)
        body = put(element, dict(zip(values, members(x, len(values)), strict=True)))
        return map_fragment(Lambda(x, body), together)

    # --- columns

    def column(self, term: Expr) -> Expr:
        if isinstance(term, Identifier) and term.name in self.known:
            return self.known[term.name]
        return self.of_column(of_rows(term))

    def of_column(self, found: System) -> Expr:
        """A column of elements that are functions of the row."""
        found = replace(found, column=None)
        values: dict[Expr, Expr] = {}
        for fold in found.folds:
            if fold.name.name in found.element.free:
                values[fold.name] = _stored(self.reduced(found.row, fold))
        if list(values) == [found.element]:
            return values[found.element]
        for leaf in leaves(found.element, [found.row]):
            values[leaf] = self.leaf(found, leaf, None)
        return self.over(found.element, values, found)

    def reduced(self, row: Identifier, fold: Fold) -> Expr:
        """The reductions of all rows, as a column."""
        elements = matrix(row, fold.index, fold.body)
        fragment = self.value(elements)
        return build("reduceRows(op, z)(xs)", op=fold.operator, z=fold.start, xs=fragment)

    # --- products

    def product(self, found: System, fold: Fold, start: Expr) -> Expr:
        """A fold over tiles of the operands' common dimension."""
        row, column = found.row, found.column
        if operator_name(fold.operator) != "add" or not is_zero(fold.start):
            raise NotPointwise("expected a sum from 0 on", fold.body)
        if fold.size is None or not divides(self.depth, fold.size):
            raise NotPointwise(f"{self.depth} does not divide the {fold.size} terms of a product", fold.body)
        parts = [unconverted(part) for part, inverse in factors(fold.body) if not inverse]
        if column is None or len(parts) != 2 or len(list(factors(fold.body))) != 2:
            raise NotPointwise("expected a product of two matrices", fold.body)
        first, second = sorted(parts, key=lambda part: column.name in part.free)
        if row.name in second.free or column.name in first.free or row.name not in first.free:
            raise NotPointwise("expected a product of rows and columns", fold.body)
        right = matrix(fold.index, column, second)
        sizes = {**self.size(_columns(found)), "t": second.type}
        of_warps = family((self.rows.value or 0, _columns(found).value or 0, self.depth.value or 0))
        load = "" if of_warps is Family.WGMMA else " |> toMem(Local)"
        b = f"asFragment(b){load}"
        match call(first):
            case "idx", _, [_, inner] if (known := self._first_operand(inner, row)) is not None:
                if fragment_type(known).element != second.type:
                    wide, narrow = fragment_type(known).element, second.type
                    raise NotPointwise(
                        f"a factor is `{wide}`, and the other `{narrow}`: round it there", fold.body
                    )
                count = array_type(right).size.exact_quotient(self.depth)
                return build(
                    f"zip({OPERANDS} |> toMem(Local))(ys |> split($k)) |> reduceSeqUnroll(Local)("
                    f"(sum, (a, b)) => tensorMatMulAdd(a, {b}, sum), z)",
                    {**sizes, "c": count}, xs=_copied(known), ys=right, z=start,
                )  # fmt: skip
        left = matrix(row, fold.index, first)
        return build(
            f"zip({TILES})(ys |> split($k)) |> reduceSeqUnroll(Local)((sum, (a, b)) =>"
            f" tensorMatMulAdd(asFragment(a){load}, {b}, sum), z)",
            sizes, xs=left, ys=right, z=start,
        )  # fmt: skip

    def _first_operand(self, inner: Expr, row: Identifier) -> Expr | None:
        match call(inner):
            case "idx", _, [_, Identifier(name)] if name in self.known and selects(inner, row.name):
                return self.known[name]
            case _:
                return None


def _depends(condition: Expr, found: System) -> bool:
    """Whether a condition is not the same for all elements of a matrix."""
    inside = {fold.name.name for fold in found.folds} | {found.row.name}
    return not condition.free.isdisjoint(inside | ({found.column.name} if found.column else set()))


def _columns(found: System) -> Nat:
    if found.column is None or not isinstance(found.column.type, Index):
        raise NotPointwise("expected a matrix", found.element)
    return found.column.type.size


def _of_row(found: System, element: Expr, products: dict[Identifier, Fold]) -> Iterator[Expr]:
    """The largest parts of an element that are computed without its column: once for each row is enough."""
    columns = {x.name for x in products} | ({found.column.name} if found.column is not None else set())
    if element.free.isdisjoint(columns) and not is_view(element) and isinstance(element.type, Scalar):
        yield element
        return
    for child in children(element):
        yield from _of_row(found, child, products)


def _accumulated(element: Expr, products: dict[Identifier, Fold]) -> tuple[Expr | None, Identifier | None]:
    """(x, p) of x + p, and (None, p) of p, for a product p."""
    if isinstance(element, Identifier) and element in products:
        return None, element
    match call(element):
        case "add", _, [kept, Identifier() as name] if name in products:
            return kept, name
        case "add", _, [Identifier() as name, kept] if name in products:
            return kept, name
        case _:
            return element, None


def _uses(term: Expr, products: dict[Identifier, Fold]) -> bool:
    return not term.free.isdisjoint({name.name for name in products})


def _is_stored(term: Expr) -> bool:
    found = call(term)
    return isinstance(term, Identifier) or (
        found is not None and found[0] in ("toMem", "reduceSeqUnroll", "fst", "snd")
    )


def _members_of(type_: Data) -> list[Data]:
    found: list[Data] = []
    while isinstance(type_, Pair):
        found.append(type_.first)
        type_ = type_.second
    return [*found, type_]


# --- rows of one fragment ---------------------------------------------------------------------------------


def reduces(term: Expr, row: Expr) -> bool:
    """Whether a term is a tuple of reductions of a row, or of functions of its elements."""
    match term, call(term):
        case Apply(Lambda(_, body), value), _:
            return reduces(value, row) and reduces(body, row)
        case _, ("pair", _, [first, second]):
            return reduces(first, row) and reduces(second, row)
        case _, ("reduce", _, [_, _, xs]):
            return _are_elements(xs, row)
        case _:
            return isinstance(term, Identifier) and term != row


def _are_elements(xs: Expr, row: Expr) -> bool:
    """Whether an array is a row, a function of its elements, or of these and their indices."""
    if alpha_equal(xs, row):
        return True
    match call(xs):
        case "map", _, [_, elements]:
            return _are_elements(elements, row)
        case "zip", _, [indices, elements]:
            return indices.free.isdisjoint(row.free) and alpha_equal(elements, row)
        case _:
            return False


def reduced_on_fragments(fragment: Expr, row: Expr, reduction: Expr) -> Expr:
    """Of a fragment, what a term makes of each of its rows, as a matrix of one column.

    row: what stands for a row in the term, of which `reduces` holds
    """
    type_ = fragment_type(fragment)
    taken = names(fragment, row, reduction)
    tile = fresh("xs", Array(type_.rows, Array(type_.columns, type_.element)), taken)
    known = fragment if isinstance(fragment, Identifier) else fresh("tile", type_, taken)
    of_row = fresh("row", array_type(tile).element, taken)
    translation = Rows(type_.rows, type_.other, taken, {tile.name: known})
    made = translation.reductions(tile, Lambda(of_row, replaced(distinct_binders(reduction), row, of_row)))
    if isinstance(fragment, Identifier):
        return made
    return _let(known, fragment if _is_stored(fragment) else _stored(fragment), made)


def _let(name: Identifier, value: Expr, body: Expr) -> Expr:
    return apply(instance("let", (name.type, body.type), None), value, Lambda(name, body))


@computed(
    "rows on fragments",
    "blocks |> reduceSeq(f, z) |> e → blocks |> reduceSeq(f', z') |> e' |> asMatrix,"
    " where f', z' and e' are f, z and e on fragments, a column for a number by rows",
    (
        "fun((a: 16.16.f16, b: 48.16.f16, v: 48.8.f16) => zip(b |> split(16))(v |> split(16))"
        " |> reduceSeq(Local)(fun((s, (k, w)) => generate(fun(i => generate(fun(l => generate(fun(j =>"
        " f32(a |> idx(i) |> idx(j)) * f32(k |> idx(l) |> idx(j)))) |> reduce(+, 0)))))"
        " |> fun((p: 16.16.f32) => p |> map(map(fun(x => f16(x)))) |> fun((r: 16.16.f16) =>"
        " (generate(fun(i => (fst(s) |> idx(i)) + (p |> idx(i) |> reduce(+, 0)))),"
        " generate(fun(i => generate(fun(j => (snd(s) |> idx(i) |> idx(j)) * 2 + (generate(fun(l =>"
        " f32(r |> idx(i) |> idx(l)) * f32(w |> idx(l) |> idx(j)))) |> reduce(+, 0)))))))))),"
        " (generate(fun(i => 0.0)), generate(fun(i => generate(fun(j => 0.0))))))"
        " |> fun(s => generate(fun(i => generate(fun(j =>"
        " (snd(s) |> idx(i) |> idx(j)) - (fst(s) |> idx(i))))))))",
        "fun((a: 16.16.f32, b: 16.8.f16) => zip(a |> transpose |> split(16))(b |> split(16))"
        " |> reduceSeq(Local)(fun((s, (x, y)) => (generate(fun(i =>"
        " (fst(s) |> idx(i)) + (generate(fun(l => x |> idx(l) |> idx(i))) |> reduce(+, 0)))),"
        " generate(fun(i => generate(fun(j => (snd(s) |> idx(i) |> idx(j)) + 1.0)))))),"
        " (generate(fun(i => 0.0)), generate(fun(i => generate(fun(j => 0.0))))))"
        " |> fun((s: (16.f32, 16.8.f32)) => generate(fun(i =>"
        " (generate(fun(j => snd(s) |> idx(i) |> idx(j))), (fst(s) |> idx(i)) * 2)))))",
    ),
    "A fold over rows of a tile keeps its state in registers, and computes with fragments.",
    exact=False,
    sizes={"k": 16},
)
def ROWS_ON_FRAGMENTS(term: Expr, k: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    rows = array_type(term).size if isinstance(term.type, Array) else constant(0)
    return Rows(rows, k, names(term)).whole(term)


def guarded(state: Identifier, body: Expr) -> tuple[Expr | None, Expr]:
    """(c, x) of `select(c, x, state)` where c does not depend on the state; (None, x) of other terms x."""
    match call(body):
        case "select", _, [guard, new, old] if old == state and state.name not in guard.free:
            return guard, new
        case _:
            return None, body


def _renamed(bound: Identifier, body: Expr, taken: set[str]) -> tuple[Identifier, Expr]:
    """A variable, and what it is bound in, by a name that no other term has."""
    new = replace(fresh(bound.name, as_data(bound.type), taken), origin=bound.origin)
    return new, substitute(body, {bound.name: new})


def _computed(xs: Expr) -> Iterator[Expr]:
    """The parts that have to be computed of what an array is a view of."""
    match call(xs):
        case _ if is_view(xs):
            return
        case "generate", _, _:
            return  # an element is computed where it is used
        case "map", _, [function, inner] if is_view(function):
            yield from _computed(inner)
        case _, head, operands if head.declaration.view:
            for operand in operands:
                yield from _computed(operand)
        case _:
            yield xs


@computed(
    "fold of maps",
    "xs |> map(x => ys |> reduceSeq(f(x), z(x)) |> g(x)) →"
    " ys |> reduceSeq((acc, y) => zip(acc)(xs) |> map((a, x) => f(x)(a, y)), xs |> map(z))"
    " |> zip(xs) |> map(g)",
    (
        "fun((xs: 3.i32, ys: 4.i32) => xs |> map(fun(x => ys |> reduceSeq(Local)(fun((a, y) => a * x + y), x)"
        " |> fun(s => s * s + x))))",
    ),
    "A map of folds over one array is a fold of maps, and what is done with each result a map.",
)
def FOLD_OF_MAPS(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "map", _, [Lambda(x, Apply(Lambda(result, body), fold)), xs] if is_fold(fold):
            pass
        case _:
            return "expected a map over what is done with a fold"
    name, head, (step, start, ys) = application(fold)
    if x.name in ys.free:
        return "the folds are not over the same array"
    match step:
        case Lambda(acc, Lambda(y, inner)):
            pass
        case _:
            return "expected a function of a state and an element"
    taken = names(term)
    # the innermost first: it may hide the others
    y, inner = _renamed(y, inner, taken)
    acc, inner = _renamed(acc, inner, taken)
    result, body = _renamed(result, body, taken)
    guard, inner = guarded(acc, inner)
    if guard is not None and x.name in guard.free:
        return "whether a step changes its state depends on the element of the map"
    known = array_type(xs)
    for part in _computed(xs):
        kept = Identifier(fresh_name("kept", names(term)), as_data(part.type))
        inside = FOLD_OF_MAPS.rewrite(put(term, {part: kept}))
        return inside if isinstance(inside, str) else Apply(Lambda(kept, inside), part)
    states = Identifier(fresh_name("states", names(term)), Array(known.size, as_data(acc.type)))
    of_each = build(
        "zip(acc)(xs) |> map((a, x) => f(a, x))", acc=states, xs=xs, f=Lambda(acc, Lambda(x, inner))
    )
    if guard is not None:
        of_each = apply(instance("select", (states.type,), None), guard, of_each, states)
    first = Identifier("w", Index(known.size))
    starts = (
        build("xs |> map(z)", xs=xs, z=Lambda(x, start)) if x.name in start.free else generated(first, start)
    )
    primitive = instance(name, (Space.LOCAL, *head.arguments[1:3], states.type), term.origin)
    whole = apply(primitive, Lambda(states, Lambda(y, of_each)), starts, ys, origin=term.origin)
    if x.name in body.free:
        done = build(
            "zip(s)(xs) |> map((a, x) => g(a, x))", s=whole, xs=xs, g=Lambda(result, Lambda(x, body))
        )
    else:
        done = build("s |> map(g)", s=whole, g=Lambda(result, body))
    return done
