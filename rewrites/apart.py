"""Numbers of rows and of columns apart: the float of their difference is the difference of their floats.

    f32(j - i) → f32(j) - f32(i)      for whole numbers that floats hold

Each of the two is then converted once for its column, or its row, and moves on its own (see `summands`).
"""

from __future__ import annotations

from dataclasses import dataclass

from rewrites.elements import NotPointwise, at, fresh, names
from rewrites.folds import is_float, operation
from rewrites.rule import computed
from rewrites.scopes import Scope, Scoped
from rewrites.typed import array_type
from rise.expr import Expr, Lambda, Literal, apply, call
from rise.types import I32, Index, Scalar

EXACT = 2**24  # whole numbers up to it are floats of 32 bits
NONE = "no float of a difference of a row's number and a column's"


def between(term: Expr) -> tuple[int, int] | None:
    """The least and the greatest whole number that a term of indices may be; None where floats do not hold
    it, or a part of it, exactly, or nothing is known."""
    match term, call(term):
        case Literal(int() as value), _ if term.type == I32:
            found = value, value
        case _, ("indexToInt", _, [index]) if isinstance(index.type, Index):
            size = index.type.size.value
            if size is None:
                return None
            found = 0, max(size - 1, 0)
        case _, (("add" | "sub" | "mul") as name, _, [left, right]) if term.type == I32:
            a, b = between(left), between(right)
            if a is None or b is None:
                return None
            by = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[name]
            ends = [by(x, y) for x in a for y in b]
            found = min(ends), max(ends)
        case _, ("neg", _, [inner]) if (a := between(inner)) is not None:
            found = -a[1], -a[0]
        case _:
            return None
    return found if found[0] >= -EXACT and found[1] <= EXACT else None


@dataclass
class _Apart(Scoped):
    """Converts the operands of a difference, or a sum, of numbers."""

    changed: bool = False

    def here(self, term: Expr, scope: Scope) -> Expr | None:
        match call(term):
            case "cast", convert, [inner] if is_float(term) and _is_wide(term) and inner.type == I32:
                pass
            case _:
                return None
        match call(inner):
            case ("add" | "sub") as name, _, [a, b] if scope.column is not None:
                column = scope.column[0].name
                values = [self.value(part, scope) for part in (inner, a, b)]
                exact = all(value is not None and between(value) is not None for value in values)
                of_column = [value is not None and column in value.free for value in values[1:]]
                if exact and of_column[0] is not of_column[1]:
                    self.changed = True
                    return operation(name, apply(convert, a), apply(convert, b))
        return None


def _is_wide(term: Expr) -> bool:
    return isinstance(term.type, Scalar) and term.type.bytes >= I32.bytes


@computed(
    "numbers apart",
    "f32(j - i) → f32(j) - f32(i), for the numbers i of a row and j of a column",
    (
        "fun((a: 3.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) => x * y + 0.3 * f32(i - j))))))",
        "fun((a: 3.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) => x * y - f32(2 * j + (i + 7)))))))",
    ),
    "Whole numbers that floats hold are converted before they are added: once for a row, and for a column.",
    head=("map", 2),
)
def NUMBERS_APART(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "map", head, [Lambda(x, body), xs]:
            pass
        case _:
            return "expected a map over rows"
    taken = names(term)
    row = fresh("row", Index(array_type(xs).size), taken)
    apart = _Apart(term, taken)
    try:
        made = apart.go(body, Scope({x.name: at(row, xs)}, row))
    except NotPointwise as refused:
        return refused.reason
    return apply(head, Lambda(x, made), xs, origin=term.origin) if apart.changed else NONE
