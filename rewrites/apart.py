"""Numbers of rows and of columns apart, in floats of their differences and in comparisons.

    f32(j - i) → f32(j) - f32(i)      i - j < w → i - w < j      for whole numbers that floats hold

What is computed of the number of a row alone, or of a column, is computed once for it, and moves on its own
(see `summands`).
"""

from __future__ import annotations

from dataclasses import dataclass

from rewrites.folds import is_float, operation
from rewrites.rule import computed
from rewrites.scopes import Scope, Scoped, over_rows
from rise.expr import Expr, Literal, apply, call
from rise.types import I32, Index, Scalar

EXACT = 2**24  # whole numbers up to it are floats of 32 bits
NONE = "no difference of a row's number and a column's is compared with a number of rows, or becomes a float"


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


@dataclass(frozen=True)
class _Parts:
    """x + y or x - y, of which one is computed from the number of a column; column_first: x is"""

    name: str
    x: Expr
    y: Expr
    column_first: bool

    def isolated(self, z: Expr, on_left: bool) -> tuple[Expr, Expr]:
        """The sides of `x ± y < z`, or of `z < x ± y`, with the column's number alone on one of them."""
        column, row = (self.x, self.y) if self.column_first else (self.y, self.x)
        if self.name == "sub" and not self.column_first:
            return self._sides(operation("sub", row, z), column, on_left)
        return self._sides(column, operation("sub" if self.name == "add" else "add", z, row), on_left)

    def _sides(self, left: Expr, right: Expr, on_left: bool) -> tuple[Expr, Expr]:
        return (left, right) if on_left else (right, left)


class _Apart(Scoped):
    """Converts the operands of a difference, or a sum, of numbers."""

    def here(self, term: Expr, scope: Scope) -> Expr | None:
        made = None
        match call(term):
            case "cast", convert, [inner] if is_float(term) and _is_wide(term):
                if (parts := self.parts(inner, scope)) is not None:
                    made = operation(parts.name, *(apply(convert, part) for part in (parts.x, parts.y)))
            case (("lt" | "le" | "gt" | "ge"), compare, [left, right]):
                for sum_, other, on_left in ((left, right, True), (right, left, False)):
                    parts = self.parts(sum_, scope)
                    if made is None and parts is not None and self.of_column(other, scope) is False:
                        made = apply(compare, *parts.isolated(other, on_left))
        self.changed |= made is not None
        return made

    def parts(self, term: Expr, scope: Scope) -> _Parts | None:
        """The operands of a sum or a difference of a row's and a column's number."""
        match call(term):
            case ("add" | "sub") as name, _, [x, y] if self.of_column(term, scope) is not None:
                first, second = (self.of_column(part, scope) for part in (x, y))
                return None if first is second else _Parts(name, x, y, bool(first))
            case _:
                return None

    def of_column(self, term: Expr, scope: Scope) -> bool | None:
        """Whether a whole number is computed from that of a column; None where floats may not hold it."""
        value = self.value(term, scope) if term.type == I32 else None
        if value is None or between(value) is None or scope.column is None:
            return None
        return scope.column[0].name in value.free


def _is_wide(term: Expr) -> bool:
    return isinstance(term.type, Scalar) and term.type.bytes >= I32.bytes


@computed(
    "numbers apart",
    "f32(j - i) → f32(j) - f32(i), and i - j < w → i - w < j, for the numbers i of a row and j of a column",
    (
        "fun((a: 3.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) => x * y + 0.3 * f32(i - j))))))",
        "fun((a: 3.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) => x * y - f32(2 * j + (i + 7)))))))",
        "fun((a: 3.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) =>"
        " select(i - j < 2 && 1 <= j + i, x, y))))))",
    ),
    "Whole numbers that floats hold are converted before they are added: once for a row, and for a column.",
    head=("map", 2),
)
def NUMBERS_APART(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    return over_rows(term, _Apart, NONE)
