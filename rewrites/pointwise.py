"""Matrices that are computed point by point, as one map over matrices, rows and columns beside each other.

Programs say the same in many ways: maps and zips in any nesting, names, indices, transpositions. The function
that gives an element says it in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import reduce

from rewrites.algorithmic import is_reduction
from rewrites.elements import (
    Elements,
    NotPointwise,
    at,
    divided,
    fresh,
    joined,
    leaves,
    mapped,
    matrix,
    members,
    names,
    over,
    put,
    tuple_type,
    zipped,
)
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
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
from rise.nat import Nat
from rise.normal import is_view, simplify
from rise.types import Array, Index, Pair, Scalar, as_data, shape


@dataclass(frozen=True)
class Pointwise:
    """A matrix whose element at (row, column) is `element`, a function of the leaves.

    leaves: matrices, rows and columns by the terms that are their elements
    """

    row: Identifier
    column: Identifier
    element: Expr
    leaves: Mapping[Expr, Expr]

    def depends(self, leaf: Expr) -> tuple[bool, bool]:
        """Whether a leaf depends on the row, and whether on the column."""
        return self.row.name in leaf.free, self.column.name in leaf.free


def sizes_of(term: Expr) -> tuple[Nat, Nat] | None:
    """Rows and columns of a matrix whose elements are no arrays."""
    sizes, element = shape(term.type)
    match sizes:
        case [rows, columns] if not _has_arrays(element):
            return rows, columns
        case _:
            return None


def _has_arrays(type_: object) -> bool:
    match type_:
        case Array():
            return True
        case Pair(first, second):
            return _has_arrays(first) or _has_arrays(second)
        case _:
            return False


# --- products ---------------------------------------------------------------------------------------------


def product(row: Identifier, column: Identifier, sum_: Expr) -> Expr:
    """All sums `reduce(op, z)(generate(l => f(a[i][l], b[j][l])))` as a map of maps of reductions."""
    _, head, (operator, start, summands) = application(sum_)
    _, _, (function,) = application(summands)
    index, body = function.parameter, function.body  # type: ignore[union-attr]
    if _depends(operator, row, column) or _depends(start, row, column):
        raise NotPointwise("what is added is not a function of one row and one column", sum_)
    first, second = _of_one_side(row, column, index, body) or _operands(row, column, body)
    rows, columns = _operand(row, index, first), _operand(column, index, second)
    r, c = (Identifier(fresh_name(n, names(rows, columns, body)), array_type(x).element)
            for n, x in (("row", rows), ("col", columns)))  # fmt: skip
    p = Identifier("p", Pair(as_data(first.type), as_data(second.type)))
    x, y = members(p, 2)
    each = Lambda(p, _in_order(put(body, {first: x, second: y}), x, y))
    if _depends(each, row, column, index):
        raise NotPointwise("what is added is not a function of a row and a column", sum_)
    sums = apply(head, operator, start, mapped(each, zipped(r, c)))
    return mapped(Lambda(r, mapped(Lambda(c, sums), columns)), rows)


def _of_one_side(row: Identifier, column: Identifier, index: Identifier, body: Expr) -> list[Expr] | None:
    """The elements of a row and a column, where a body depends on one of each and on nothing else."""
    sides: list[list[Expr]] = [[], []]
    for leaf in leaves(body, (row, column, index)):
        used = (row.name in leaf.free, column.name in leaf.free)
        if sum(used) != 1:
            return None
        sides[used.index(True)].append(leaf)
    return [first for (first,) in sides] if [len(side) for side in sides] == [1, 1] else None


def _operands(row: Identifier, column: Identifier, body: Expr) -> list[Expr]:
    """The largest terms of a row, and of a column; before these are converted to a wider type."""
    sides: list[dict[Expr, None]] = [{}, {}]

    def go(part: Expr) -> None:
        used = (row.name in part.free, column.name in part.free)
        if sum(used) == 1 and isinstance(part.type, Scalar) and part.free <= body.free:
            sides[used.index(True)].setdefault(_narrow(part))
        elif any(used):
            for child in children(part):
                go(child)

    go(body)
    if [len(side) for side in sides] != [1, 1]:
        raise NotPointwise("what is added is not a function of one row and one column", body)
    first, second = (next(iter(side)) for side in sides)
    if any(map(is_reduction, (*subterms(first), *subterms(second)))):
        raise NotPointwise("an operand is computed with other sums", body)
    return [first, second]


def _narrow(term: Expr) -> Expr:
    """A number before it is converted to a type that has all numbers of its own."""
    match call(term):
        case "cast", _, [inner] if isinstance(inner.type, Scalar) and isinstance(term.type, Scalar):
            wider = inner.type.bytes < term.type.bytes or inner.type.name == "tf32"
            return _narrow(inner) if wider and inner.free == term.free else term
        case _:
            return term


def _operand(row: Identifier, index: Identifier, element: Expr) -> Expr:
    """The matrix of the elements of rows: a map over what they are computed from."""
    found = leaves(element, (row, index))
    if found == [element]:
        return matrix(row, index, element)
    return in_form(Pointwise(row, index, element, {leaf: _leaf(row, index, leaf) for leaf in found}))


def _depends(term: Expr, *indices: Identifier) -> bool:
    return not term.free.isdisjoint({index.name for index in indices})


def _in_order(body: Expr, x: Expr, y: Expr) -> Expr:
    """A product with the factor of the row first: multiplication commutes."""
    match call(body):
        case "mul", head, [left, right] if _has(left, y) and _has(right, x) and not _has(left, x):
            if not _has(right, y):
                return apply(head, right, left, origin=body.origin)
    return body


def _has(term: Expr, part: Expr) -> bool:
    return any(found == part for found in subterms(term))


# --- the form ---------------------------------------------------------------------------------------------


def pointwise(term: Expr, apart: bool = False) -> Pointwise:
    """An element of a matrix, and what it is a function of. Raises NotPointwise.

    apart: reductions of rows are leaves by themselves, not what is computed of them for a row
    """
    found = sizes_of(term)
    if found is None:
        raise NotPointwise("expected a matrix of numbers", term)
    elements = Elements(names(term))
    row, column = elements.index("i", found[0]), elements.index("j", found[1])
    result = elements.value(at(column, at(row, term)))
    products: dict[Identifier, Expr] = {}
    of_rows: dict[str, Expr] = {}
    for value, name in list(elements.values.items()):
        if is_reduction(value):
            if not (value.free - {row.name, column.name}) <= term.free:
                raise NotPointwise("a sum of what is computed with other sums", value)
            if row.name in value.free and column.name not in value.free:
                of_rows[name.name] = value
            else:
                products[name] = product(row, column, value)
            del elements.values[value]
    element = elements.closed(result)
    # a number for each row is computed once, in an array of these
    others = {column.name, *(name.name for name in products)}
    of_row = _reductions(element, of_rows) if apart else _numbers_of_rows(element, of_rows.keys(), others)
    numbers: dict[Expr, Expr] = {}
    selected: dict[Expr, Expr] = {}
    for part in dict.fromkeys(of_row):
        made = over(row, substitute(part, of_rows))
        selected[part] = at(row, elements.fresh("numbers", as_data(made.type)))
        numbers[selected[part]] = made
    element = put(element, selected)  # of parts inside of each other, the largest
    known: dict[Expr, Expr] = {name: made for name, made in products.items() if name.name in element.free}
    known |= {leaf: _leaf(row, column, leaf) for leaf in leaves(element, (row, column))}
    known |= numbers
    if not known:
        raise NotPointwise("its elements depend on no others", term)
    return Pointwise(row, column, element, known)


def _leaf(row: Identifier, column: Identifier, leaf: Expr) -> Expr:
    """The array that a leaf is an element of."""
    match row.name in leaf.free, column.name in leaf.free:
        case True, True:
            return matrix(row, column, leaf)
        case True, False:
            return over(row, leaf)
        case _:
            return over(column, leaf)


def _numbers_of_rows(term: Expr, reduced: Set[str], others: Set[str]) -> Iterator[Expr]:
    """The largest numbers that use reductions of rows, and nothing that depends on the column."""
    if term.free.isdisjoint(reduced) or isinstance(term, Lambda):
        return
    if isinstance(term.type, Scalar) and term.free.isdisjoint(others):
        yield term
        return
    for child in children(term):
        yield from _numbers_of_rows(child, reduced, others)


def _reductions(term: Expr, reduced: Mapping[str, Expr]) -> Iterator[Expr]:
    """The names of reductions of rows in a term."""
    return (part for part in subterms(term) if isinstance(part, Identifier) and part.name in reduced)


def in_form(p: Pointwise) -> Expr:
    """Matrices and columns beside each other; their rows, and rows, beside each other; a function of all."""
    both = [leaf for leaf in p.leaves if p.depends(leaf) != (True, False) and not _only(p, leaf, column=True)]
    columns = [leaf for leaf in p.leaves if p.depends(leaf) == (True, False)]
    rows = [leaf for leaf in p.leaves if _only(p, leaf, column=True)]
    outer = [p.leaves[leaf] for leaf in (*both, *columns)]
    if not outer or not (both or rows):
        raise NotPointwise("its elements differ in one dimension only", p.element)
    taken = names(p.element, *p.leaves.values())
    x = Identifier(fresh_name("x", taken), tuple_type([array_type(xs).element for xs in outer]))
    of_outer = members(x, len(outer))
    inner = [*of_outer[: len(both)], *(p.leaves[leaf] for leaf in rows)]
    y = Identifier(fresh_name("y", taken | {x.name}), tuple_type([array_type(xs).element for xs in inner]))
    values = dict(zip((*both, *rows), members(y, len(inner)), strict=True))
    values |= dict(zip(columns, of_outer[len(both) :], strict=True))
    each = Lambda(y, put(p.element, values))
    return simplify(mapped_over(Lambda(x, mapped_over(each, inner)), outer))


def _only(p: Pointwise, leaf: Expr, column: bool) -> bool:
    return p.depends(leaf) == (not column, column)


def mapped_over(function: Lambda, arrays: list[Expr]) -> Expr:
    """A map over arrays beside each other; the array itself where nothing is done with one."""
    if len(arrays) == 1 and isinstance(function.body, Identifier) and function.body == function.parameter:
        return arrays[0]
    return mapped(function, reduce(lambda ys, xs: zipped(xs, ys), reversed(arrays)))


@computed(
    "pointwise",
    "e → zip(a)(zip(b)(u)) |> map(x => zip(a_x)(zip(b_x)(v)) |> map(g)),"
    " where e[i][j] = g(a[i][j], b[i][j], u[i], v[j])",
    (
        "fun((a: 3.4.i32, b: 3.4.i32, u: 3.i32, v: 4.i32) => zip(a)(zip(b)(u)) |> map(fun((r, (s, x)) =>"
        " zip(zip(s)(v))(r) |> map(fun(((y, z), w) => x * w - y * z)))))",
        "fun((a: 3.4.i32, b: 4.3.i32) => generate(fun(i => generate(fun(j =>"
        " idx(j)(idx(i)(a)) * 2 - idx(i)(idx(j)(b)) + indexToInt(i))))))",
        "fun((a: 3.5.i32, b: 5.4.i32, v: 4.i32) => a |> map(fun(r => zip(transpose(b))(v) |> map("
        "fun((c, x) => zip(r)(c) |> map(fun((p, q) => p * q)) |> reduce(+, 0) |> fun(s => s * s + x))))))",
        "fun((a: 3.5.i32, b: 5.4.i32, v: 5.i32) => a |> map(fun(r => transpose(b) |> map(fun(c =>"
        " zip(zip(r)(v))(c) |> map(fun(((p, x), q) => (p - x) * q)) |> reduce(+, 0)))))"
        " |> map(map(fun(x => 2 * x))))",
        "fun((a: 3.5.i32, b: 5.6.i32) => a |> map(fun(r => transpose(b) |> map(fun(c =>"
        " zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> map(take(4)) |> transpose"
        " |> map(map(fun(x => 2 * x))))",
        "fun((a: 3.5.f16, b: 4.5.f16) => generate(fun(i => generate(fun(j => 1 + (generate(fun(l =>"
        " f32(select(indexToInt(i) < indexToInt(l))(a |> idx(i) |> idx(l))(0)) * f32(b |> idx(j) |> idx(l))))"
        " |> reduce(+, 0)))))))",
        "fun((a: 3.5.i32, b: 5.4.i32) => a |> map(fun(r => (r |> map(fun(x => x * x)) |> reduce(+, 0))"
        " |> fun(s => transpose(b) |> map(fun(c => (zip(r)(c) |> map(fun((p, q) => p * q)) |> reduce(+, 0))"
        " - s))))))",
        "fun((a: 3.5.i32, b: 5.4.i32) => a |> map(fun(r => transpose(b) |> map(fun(c =>"
        " zip(r)(c) |> map(fun((p, q) => p * q)) |> reduce(+, 0))))) |> fun(m => transpose(m)"
        " |> map(map(fun(x => (x, 2 * x))))))",
        "fun((a: 3.5.i32, b: 3.4.i32) => zip(a)(b) |> map(fun((r, s) => (r |> reduce(+, 0)) |> fun(t =>"
        " s |> map(fun(y => (y - t) * ((r |> reduce(max, -9)) - t * t)))))))",
    ),
    "A matrix by what an element of it is a function of.",
)
def POINTWISE(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    made = in_form(pointwise(term))
    return "it has this form" if alpha_equal(made, term) else made


@computed(
    "pointwise, reductions apart",
    "e → zip(a)(A |> map(reduce(op, z))) |> map(x => a_x |> map(g)),"
    " where e[i][j] = g(a[i][j], A[i] |> reduce(op, z))",
    (
        "fun((a: 3.5.i32, b: 3.4.i32) => zip(a)(b) |> map(fun((r, s) => s |> map(fun(y =>"
        " y * ((r |> map(fun(x => x * x)) |> reduce(+, 0)) + 1) - (r |> reduce(max, -9)))))))",
        "fun((a: 3.5.i32, b: 3.4.i32) => zip(a)(b) |> map(fun((r, s) => (r |> reduce(+, 0)) |> fun(t =>"
        " s |> map(fun(y => y * t - t * t))))))",
        "fun((a: 3.5.i32, b: 3.4.i32) => zip(a)(b) |> map(fun((r, s) => (r |> reduce(+, 0)) |> fun(t =>"
        " s |> map(fun(y => (y - t) * ((r |> reduce(max, -9)) - t * t)))))))",
    ),
    "The same with every reduction of rows a column by itself.",
)
def REDUCTIONS_APART(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    made = in_form(pointwise(term, apart=True))
    return "it has this form" if alpha_equal(made, term) else made


@computed(
    "pointwise, of each matrix",
    "e → zip(a)(b) |> map(x => f(a_x, b_x)), where e[k] = f(a[k], b[k]) has the form of `pointwise`;"
    " for several k, of joined arrays",
    (
        "fun((a: 2.3.4.i32, b: 2.3.4.i32, u: 3.i32) => a |> map(map(map(fun(x => x + 1)))) |> fun(c =>"
        " zip(c)(b) |> map(fun((p, q) => zip(p)(zip(q)(u)) |> map(fun((r, (s, y)) => zip(r)(s)"
        " |> map(fun((v, w) => v * w - y))))))))",
        "fun(a: 2.3.5.i32 => a |> map(fun(m => m |> map(fun(r => m |> map(fun(s => zip(r)(s)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))) |> map(map(map(fun(x => 2 * x)))))",
        "fun((a: 2.3.5.i32, b: 2.5.6.i32) => zip(a)(b) |> map(fun((m, n) => m |> map(fun(r => transpose(n)"
        " |> map(fun(c => zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))) |> map(take(4)))))",
        "fun((a: 2.3.4.5.i32, b: 2.3.5.6.i32) => zip(a)(b |> map(map(transpose))) |> map(fun((p, q) =>"
        " zip(p)(q) |> map(fun((m, n) => m |> map(fun(r => n |> map(fun(s => zip(r)(s)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))))))",
        "fun((a: 2.3.4.5.i32, b: 2.6.5.i32) => zip(a)(b) |> map(fun((p, n) => p |> map(fun(m => m"
        " |> map(fun(r => n |> map(fun(s => zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))))))",
        "fun((a: 2.4.3.5.i32, u: 3.i32) => a |> map(fun(p => zip(transpose(p))(u) |> map(fun((m, y) =>"
        " m |> map(map(fun(x => x - y))))))))",
        "fun(a: 2.3.2.4.5.i32 => a |> map(map(map(map(map(fun(x => x + 1)))))))",
        "fun((a: 2.15.i32, b: 2.3.4.5.i32) => zip(a)(b) |> map(fun((p, q) => p |> split(5) |> map(fun(r =>"
        " q |> idx(natAsIndex(3)(1)) |> map(fun(s => zip(r)(s) |> map(fun((x, y) => x * y))"
        " |> reduce(+, 0))))))))",
        "fun((a: 4.3.5.i32, b: 2.4.5.i32, js: 4.Idx[2]) => zip(a)(js) |> map(fun((p, j) => p |> map(fun(r =>"
        " b |> idx(j) |> map(fun(s => zip(r)(s) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))))",
    ),
    "An array of matrices, or of arrays of these, by what an element of each matrix is a function of.",
)
def POINTWISE_EACH(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    sizes, element = shape(term.type)
    batch = sizes[:-2]
    if not batch or _has_arrays(element):
        return "expected an array of matrices of numbers"
    taken = names(term)
    indices = [fresh("k", Index(size), taken) for size in batch]
    body = in_form(pointwise(reduce(lambda xs, index: at(index, xs), indices, term)))
    known = {index.name for index in indices}
    body = _of_elements(body, known)
    parts = _largest(dict.fromkeys(_selections(body, known, body.free)))
    if not parts:
        return "its matrices are all the same"
    arrays = [_of_all(indices, part) for part in parts]
    x = Identifier(fresh_name("x", names(body)), tuple_type([array_type(xs).element for xs in arrays]))
    body = put(body, dict(zip(parts, members(x, len(parts)), strict=True)))
    if _depends(body, *indices):
        return "a matrix depends on its number"
    of_all = mapped_over(Lambda(x, body), arrays)
    made = simplify(reduce(lambda xs, size: divided(size, xs), reversed(batch[1:]), of_all))
    return "it has this form" if alpha_equal(made, term) else made


def _of_elements(term: Expr, indices: Set[str]) -> Expr:
    """idx(k)(xs |> map(f)) is f(idx(k)(xs))"""
    match call(term):
        case "idx", _, [Identifier(name) as index, xs] if name in indices:
            xs = _of_elements(xs, indices)
            match call(xs):
                case "map", _, [Lambda(x, body), ys]:
                    return _of_elements(substitute(body, {x.name: at(index, ys)}), indices)
                case _:
                    return at(index, xs)
        case _:
            return map_children(term, lambda child: _of_elements(child, indices))


def _selections(term: Expr, indices: Set[str], free: Set[str]) -> Iterator[Expr]:
    """The largest parts that an array of the batch has as elements; rows, elements and members of these.

    So are elements of any array at an index that an array of the batch has.
    """
    match call(term):
        case "idx", _, [index, xs] if term.free <= free and _is_selected(index, xs, indices):
            yield term
            return
    whole = _whole(term)
    if whole is not None and term.free <= free and list(_selections(whole, indices, free)) == [whole]:
        yield term
        return
    for child in children(term):
        yield from _selections(child, indices, free)


def _is_selected(index: Expr, xs: Expr, indices: Set[str]) -> bool:
    """Whether the number of a matrix says which element of an array it is, or an array of the batch does."""
    if isinstance(index, Identifier):
        return index.name in indices
    return not index.free.isdisjoint(indices) and xs.free.isdisjoint(indices) and is_view(index)


def _whole(term: Expr) -> Expr | None:
    """What a term has the rows of, is an element of, or a member."""
    match call(term):
        case (("split" | "fst" | "snd"), _, [xs]) | ("idx", _, [_, xs]):
            return xs
        case _:
            return None


def _largest(parts: Mapping[Expr, None]) -> list[Expr]:
    """The parts, but in place of rows, elements and members of a part, that part."""
    return list(dict.fromkeys(_outermost(part, parts) for part in parts))


def _outermost(part: Expr, parts: Mapping[Expr, None]) -> Expr:
    found, whole = part, _whole(part)
    while whole is not None:
        found = whole if whole in parts else found
        whole = _whole(whole)
    return found


def _of_all(indices: list[Identifier], part: Expr) -> Expr:
    """A part for all indices, in one array."""
    nested = reduce(lambda xs, index: over(index, xs), reversed(indices), part)
    return reduce(lambda xs, _: joined(xs), indices[1:], nested)


RESULTS = rule(
    "results beside each other",
    "e",
    "zip(fst(e))(snd(e)) |> map(fun((xs, ys) => zip(xs)(ys))) |> map(fun(r => r |> unzip)) |> unzip",
    meaning="Two matrices of one shape are a matrix of pairs, stored as two arrays.",
)
