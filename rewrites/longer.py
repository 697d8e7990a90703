"""Matrices whose rows and sums are made longer, up to whole fragments, by zeros behind arrays in memory.

Of an element of the matrix, the arrays are known that it selects from (`rewrites/folds.py`): zeros behind
these add nothing to a sum of products, and columns behind the last one are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewrites.algorithmic import is_reduction
from rewrites.build import build
from rewrites.elements import (
    NotPointwise,
    all_zipped,
    at,
    fresh,
    generated,
    leaves,
    mapped,
    members,
    names,
    number,
    put,
    selects,
    transposed,
)
from rewrites.folds import System, columns_in, factors, is_zero, of_rows, operator_name, unconverted, written
from rewrites.rounding import missing
from rewrites.rule import computed
from rewrites.typed import array_type, zero_of
from rise.expr import Expr, Identifier, Lambda, application, call, map_children, subterms
from rise.nat import Nat
from rise.normal import simplify
from rise.types import Array, Data, Index, Pair


def _padded(xs: Expr, more: Nat) -> Expr:
    """xs |> padCst(0, more)(0)"""
    zero = zero_of(array_type(xs).element, xs)
    if isinstance(zero, str):
        raise NotPointwise(zero, xs)
    return build("xs |> padCst(0, $p)(z)", {"p": more}, xs=xs, z=zero)


def _each_padded(rows: Expr, more: Nat) -> Expr:
    row = fresh("r", array_type(rows).element, names(rows))
    return mapped(Lambda(row, _padded(row, more)), rows)


def _longer(xs: Expr, more: Nat) -> Expr:
    """An array with zeros behind it: the rows of a matrix are made longer where it is in memory."""
    match call(xs):
        case "idx", _, [index, rows]:
            return at(index, _each_padded(rows, more))
        case "transpose", _, [rows]:
            return transposed(_each_padded(rows, more))
        case _:
            return _padded(xs, more)


def selected_from_longer(term: Expr, old: Identifier, new: Identifier, more: Nat) -> Expr:
    """A term in which a longer index selects from longer arrays."""
    values = {
        part: at(new, _longer(application(part)[2][1], more))
        for part in subterms(term)
        if selects(part, old.name)
    }
    found = put(term, values)
    if old.name in found.free:
        raise NotPointwise(f"`{old.name}` does more than select an element", term)
    return found


def _index(old: Identifier, more: Nat, taken: set[str]) -> Identifier:
    if not isinstance(old.type, Index):
        raise NotPointwise("expected an index", old)
    return fresh(old.name, Index(old.type.size + more), taken)


# --- sums -------------------------------------------------------------------------------------------------


def _sums(term: Expr, whole: int, taken: set[str]) -> Expr:
    """A term whose sums of products are longer."""
    inner = map_children(term, lambda child: _sums(child, whole, taken))
    if not is_reduction(inner):
        return inner
    _, _, (operator, start, summands) = application(inner)
    match call(summands):
        case "generate", _, [Lambda(index, body)] if isinstance(index.type, Index):
            more = missing(index.type.size, whole)
        case _:
            return inner
    if more is None or operator_name(operator) != "add" or not is_zero(start) or not _of_zeros(body, index):
        return inner
    new = _index(index, more, taken)
    longer = Lambda(new, selected_from_longer(body, index, new, more))
    return build("generate(f) |> reduce(op, z)", op=operator, z=start, f=longer)


def _of_zeros(body: Expr, index: Identifier) -> bool:
    """Whether a product is 0 where the elements are that it selects by an index: all its factors are such."""
    parts = [unconverted(part) for part, inverse in factors(body) if not inverse]
    return len(parts) == len(list(factors(body))) and all(leaves(part, [index]) == [part] for part in parts)


# --- rows -------------------------------------------------------------------------------------------------


def by_rows(found: System) -> Expr:
    """The matrix as a map over the rows that its elements are computed from, and their numbers."""
    match call(written(found)):
        case "generate", _, [Lambda(row, body)]:
            pass
        case _:
            raise NotPointwise("expected a matrix", found.element)
    # those of the first sums stand first
    return over_rows(row, body, [*(fold.body for fold in found.folds), found.element])


def over_rows(row: Identifier, body: Expr, terms: Sequence[Expr]) -> Expr:
    """A map over the rows that a term is computed from, and their numbers, in the order of such terms."""
    parts = [part for term in terms for part in subterms(term)]
    rows = list(dict.fromkeys(application(part)[2][1] for part in parts if selects(part, row.name)))
    selected = [at(row, xs) for xs in rows]
    if number(row) in parts:
        rows, selected = [*rows, generated(row, number(row))], [*selected, number(row)]
    if not rows:
        raise NotPointwise("no array has an element for each row", body)
    together = all_zipped(rows)
    x = fresh("x", array_type(together).element, names(body))
    inner = put(body, dict(zip(selected, members(x, len(rows)), strict=True)))
    if row.name in inner.free:
        raise NotPointwise(f"`{row.name}` does more than select rows", body)
    return simplify(mapped(Lambda(x, inner), together))


@computed(
    "whole fragments",
    "e → rows |> map(row => e' of the row), where e' has as many columns, and sums of products as many terms,"
    " as are multiples of n and k: zeros are behind the arrays that they select from |> map(take(columns))",
    (
        "fun((a: 3.5.f32, b: 4.5.f32, c: 4.7.f32) => a |> map(fun(r => b |> map(fun(s => zip(r)(s)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0))) |> fun(p => transpose(c) |> map(fun(s => zip(p)(s)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0)))))))",
        "fun((a: 3.16.f32, b: 4.16.f32, c: 4.5.f32, d: 3.5.f32) => zip(a)(zip(d)(generate(fun(i =>"
        " indexToInt(i))))) |> map(fun((r, (s, i)) => zip(b)(generate(fun(j => indexToInt(j))))"
        " |> map(fun((t, j) => select(j <= i, zip(r)(t) |> map(fun((x, y) => x * y)) |> reduce(+, 0), 0)))"
        " |> fun(p => zip(s)(transpose(c)) |> map(fun((z, s) => zip(p)(s) |> map(fun((x, y) => x * y))"
        " |> reduce(+, 0) |> fun(y => y + z)))))))",
        "fun((a: 3.5.f32, b: 5.5.f32) => a |> map(fun(r => (r |> reduce(max, -1000.0), transpose(b)"
        " |> map(fun(c => zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0)))))))",
    ),
    "Rows and sums of products that fragments divide, by zeros behind the matrices in memory.",
    sizes={"n": 8, "k": 16},
)
def WHOLE_FRAGMENTS(term: Expr, n: Nat, k: Nat) -> Expr | str:  # noqa: N802  # rules are constants
    return _whole(of_rows(term), n.value or 1, k.value or 1)


def _whole(found: System, n: int, k: int) -> Expr | str:
    column, taken = found.column, names(written(found))
    folds = tuple(replace(fold, body=_sums(fold.body, k, taken)) for fold in found.folds)
    columns = column.type.size if column is not None and isinstance(column.type, Index) else None
    more = missing(columns, n)
    if folds == found.folds and more is None:
        return "fragments divide its rows and sums"
    found = replace(found, folds=folds)
    if column is None or columns is None or more is None:
        return by_rows(found)
    made = by_rows(_wider(found, column, _index(column, more, taken), more))
    row = fresh("row", array_type(made).element, taken)
    return mapped(Lambda(row, _taken(row, columns)), made)


def _wider(found: System, column: Identifier, new: Identifier, more: Nat) -> System:
    """The system with more columns, which are computed from zeros."""

    def longer(term: Expr) -> Expr:
        return selected_from_longer(term, column, new, more)

    folds = tuple(replace(fold, body=longer(fold.body)) for fold in found.folds)
    return System(found.row, new, folds, longer(found.element), _longer_rows(found.type, more))


def _longer_rows(type_: Data, more: Nat) -> Data:
    match type_:
        case Pair(first, second):
            return Pair(_longer_rows(first, more), _longer_rows(second, more))
        case Array(size, element):
            return Array(size + more, element)
        case _:
            return type_


def _taken(row: Expr, columns: Nat) -> Expr:
    """A row whose arrays have so many columns; written so that it can be written through."""
    if not isinstance(row.type, Pair):
        return build("row |> take($n)", {"n": columns}, row=row)
    for name, type_ in (("mapFst", row.type.first), ("mapSnd", row.type.second)):
        if columns_in(type_):
            x = fresh("x", type_, names(row))
            row = build(f"row |> {name}(f)", row=row, f=Lambda(x, _taken(x, columns)))
    return row
