"""The maximum of a monotone function's results is its result for the maximum.

    max f(x) = f(max x)        for a composition f of monotone functions, over one element at least

The maximum then depends on the elements alone, and f is computed once: for scores that `tanh` bounds, once
for each row. The equation holds under three conditions:

* What f adds is finite, as the sum of opposite infinities is NaN.
* There is at least one element. The maximum of none is -∞, and f(-∞) may be another number.
* f maps NaN to NaN. `max` and `min` ignore NaN, so they are no parts of f.

If all elements are NaN, the two sides are -∞ and f(-∞). What else is computed from these elements is NaN.
"""

from __future__ import annotations

from rewrites.algorithmic import is_reduction
from rewrites.elements import generated, names, put
from rewrites.folds import is_float, is_lowest, is_positive, operator_name
from rewrites.rule import computed
from rewrites.summands import is_finite
from rewrites.typed import instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    apply,
    call,
    fresh_name,
    map_children,
    substitute,
    subterms,
)
from rise.nat import at_least
from rise.normal import simplify
from rise.types import Function, Index

NONE = "no function that does not decrease is applied to the elements"
NOT_NAMED = "no maximum of a row of the matrix is taken"
# what grows with its operand, wherever it is a number
GROWING = ("exp", "exp2", "tanh")


def _sign(name: str, operands: list[Expr], number: int) -> int:
    """1 where an operation does not decrease in its operand of that number, -1 where it does not increase.

    0 where neither is known. The other operand is the same for all elements.
    """
    inner, others = operands[number], operands[:number] + operands[number + 1 :]
    match name, others:
        case _, [] if name in GROWING:
            return 1
        case "cast", [] if is_float(inner):
            return 1
        case "neg", []:
            return -1
        case "reciprocal", [] if is_positive(inner):
            return -1
        case (("add" | "sub"), [other]) if is_finite(other):
            return -1 if name == "sub" and number else 1
        case "mul", [factor]:
            return _of_factor(factor)
        case "div", [divisor] if not number:
            return _of_factor(divisor)
        case "div", [dividend] if is_positive(inner):
            return -_of_factor(dividend)
        case _:
            return 0


def _of_factor(factor: Expr) -> int:
    """The sign of a factor that is finite and not 0; 0 where it is not known."""
    match factor:
        case Literal(int() | float() as value):
            return 0 if abs(value) == float("inf") else (value > 0) - (value < 0)
        case _:
            return int(is_positive(factor))


def argument(body: Expr, index: str) -> Expr:
    """The smallest part of which the element is a monotone function, and outside of which no index is used.

    If there is no smaller one, it is the whole element.
    """
    found, sign, part = body, 1, body
    while (applied := call(part)) is not None and is_float(part):
        name, _, operands = applied
        moving = [number for number, operand in enumerate(operands) if index in operand.free]
        if len(moving) != 1:
            break
        sign *= _sign(name, operands, moving[0])
        part = operands[moving[0]]
        if not sign or not is_float(part):
            break
        if sign > 0:
            found = part
    return found


@computed(
    "maximum of a monotone function",
    "generate(i => f(x)) |> reduce(max, -∞) → f(generate(i => x) |> reduce(max, -∞)), where f does not"
    " decrease, of one element at least",
    (
        "fun((xs: 5.f32) => generate(fun(i => tanh((xs |> idx(i)) * 0.5) + 1.0)) |> reduce(max, -infinity))",
        "fun((xs: 4.f32, s: f32) => generate(fun(i => -(2.0 / (1.0 + exp2((xs |> idx(i)) * exp2(s))))))"
        " |> reduce(max, -infinity))",
        "fun((xs: 3.f16, ys: 3.f32, s: f32) => generate(fun(i => tanh(min(f32(xs |> idx(i)), s)) - 3.0))"
        " |> reduce(max, -infinity))",
        "fun((xs: 3.f32, ys: 3.f32) => generate(fun(i => ((xs |> idx(i)) * (ys |> idx(i))) * -2.0 / -0.5))"
        " |> reduce(max, -infinity))",
    ),
    "A function that does not decrease is computed of the maximum, not of the elements before it.",
    exact=False,
    head=("reduce", 3),
)
def MAXIMUM_OF_MONOTONE(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match call(term):
        case "reduce", _, [operator, start, xs] if operator_name(operator) == "max" and is_lowest(start):
            pass
        case _:
            return "expected `reduce(max, -infinity)`"
    match call(xs):
        case "generate", _, [Lambda(index, body)] if isinstance(index.type, Index):
            pass
        case _:
            return "expected the elements by their index: `generate(i => f(x))`"
    if not at_least(index.type.size, 1):
        return "there may be no elements, and -∞ is then the maximum"
    part = argument(body, index.name)
    if part is body:
        return NONE
    return put(body, {part: _maximum(operator, start, index, part)})


def _maximum(operator: Expr, start: Expr, index: Identifier, element: Expr) -> Expr:
    """generate(i => element) |> reduce(max, -∞)"""
    if element.type != start.type:
        operator, start = instance("max", (element.type,), None), Literal(float("-inf"), element.type)
    size = index.type.size if isinstance(index.type, Index) else None
    return apply(instance("reduce", (size, element.type), None), operator, start, generated(index, element))


@computed(
    "named elements in a maximum",
    "let ys = generate(i => generate(j => e)) in g(generate(j => ys[i][j]) |> reduce(max, -∞)) →"
    " let ys = generate(i => generate(j => e)) in g(generate(j => e) |> reduce(max, -∞))",
    (
        "fun((xs: 3.4.f32, s: f32) => generate(fun(i => generate(fun(j => exp(xs |> idx(i) |> idx(j)) * s))))"
        " |> fun(ys => generate(fun(i => (generate(fun(j => ys |> idx(i) |> idx(j)))"
        " |> reduce(max, -infinity)) + (ys |> idx(i) |> reduce(+, 0))))))",
    ),
    "A maximum of elements that have a name, by what they are; it need not wait until they are computed.",
)
def NAMED_IN_MAXIMUM(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    match term:
        case Apply(Lambda(ys, body), value):
            pass
        case _:
            return "expected a name: `let ys = …`"
    match call(value):
        case "generate", _, [Lambda(i, rows)] if (row := call(rows)) is not None and row[0] == "generate":
            pass
        case _:
            return "expected a matrix by its elements: `generate(i => generate(j => e))`"
    match row[2]:
        case [Lambda(j, element)] if not any(map(is_reduction, subterms(element))):
            pass
        case _:
            return "the elements would be reduced twice"
    f = Identifier(fresh_name("f", names(term)), Function(i.type, Function(j.type, element.type)))
    made = _inlined(body, ys, f)
    if made is body:
        return NOT_NAMED
    whole = Apply(Lambda(ys, made, term.function.origin), value, term.origin)
    return simplify(substitute(whole, {f.name: Lambda(i, Lambda(j, element))}))


def _inlined(term: Expr, ys: Identifier, f: Identifier) -> Expr:
    """A term in which maxima of rows of ys are those of f(i)(j)."""
    match term, call(term):
        case Lambda(x, _), _ if x.name == ys.name:
            return term
        case _, ("reduce", head, [operator, start, xs]) if operator_name(operator) == "max":
            match call(xs):
                case "generate", _, [Lambda(k, view)] if (row := _row_of(view, ys, k)) is not None:
                    here = generated(k, Apply(Apply(f, row), k))
                    return apply(head, operator, start, here, origin=term.origin)
    return map_children(term, lambda child: _inlined(child, ys, f))


def _row_of(view: Expr, ys: Identifier, column: Identifier) -> Expr | None:
    """i of ys[i][j], for the column j."""
    match call(view):
        case "idx", _, [index, row] if index == column:
            match call(row):
                case "idx", _, [found, array] if array == ys:
                    return found
    return None
