"""A value that is the same for every element of a loop, computed before the loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from rewrites.lets import Around, let_before, parts_within, with_lets
from rewrites.rule import computed
from rise.expr import (
    Expr,
    Lambda,
    Primitive,
    alpha_equal,
    application,
    call,
    children,
    distinct_binders,
    subterms,
)
from rise.nat import Nat
from rise.types import is_data

# primitives that apply a function many times; those that combine elements one after the other
LOOPS = frozenset({"map", "generate", "reduce", "scan", "iterate"})
FOLDS = frozenset({"reduce", "scan", "iterate"})
LOW_LEVEL = frozenset({"levels", "memory", "tensor"})


@computed(
    "let, before a loop",
    "xs |> map(x => e(h, x)) → let y = h in xs |> map(x => e(y, x)), h a reduction or scan without x",
    (
        "fun((xs: 4.i32, ys: 3.i32) => xs |> map(fun(x => x * (ys |> reduce(+, 0)))))",
        "fun((xs: 4.i32, ys: 3.i32) => xs |> map(fun(x => zip(ys |> scan(+, 0))(ys) |> map(fun((a, y) =>"
        " a * x + y)) |> reduce(max, ys |> reduce(max, 0)))))",
        "fun(ys: 3.i32 => generate(fun((i: Idx[4]) => let s = ys |> map(fun(y => y + 1)) in"
        " let t = s |> scan(+, 0) in t |> map(fun(y => select(y < indexToInt(i), 1, 0))) |> reduce(+, 0))))",
    ),
    "A value that a loop's function computes without the element is computed once, before the loop.",
)
def INVARIANT_FIRST(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    """It moves the value that takes the most steps, with the lets that the value uses.

    A part of that value that stands elsewhere, too, moves first, so that it is computed once for both.
    """
    applied = call(term)
    if applied is None or applied[0] not in LOOPS - {"iterate"} or not is_data(term.type):
        return "expected a loop"
    function = applied[2][0]
    if not isinstance(function, Lambda):
        return "expected a loop with a function that is written out"
    if next(_invariant(function, ()), None) is None:
        return "the function folds nothing that is the same for all elements"
    term = distinct_binders(term)
    _, _, (function, *_) = application(term)
    every = list(_invariant(function, ()))
    longest = max(every, key=_steps_of_value)
    others = [other for other, _ in _invariant(function, (), apart_from=longest[0])]
    shared = [each for each in every if _is_within(each[0], longest[0]) and _is_one_of(each[0], others)]
    return let_before(term, *max(shared, key=_steps_of_value, default=longest), "invariant")


def steps(term: Expr) -> float:
    """How many steps the folds in a term take on one thread; infinitely many if a size is not known."""
    applied = call(term)
    if applied is None or applied[0] not in LOOPS:
        return sum(map(steps, children(term)))
    name, head, operands = applied
    sizes = [each.value or inf for each in head.arguments if isinstance(each, Nat)]
    times = max(sizes, default=1)
    within = steps(operands[0]) + (name in FOLDS)
    return (times * within if within else 0) + sum(map(steps, operands[1:]))


def _steps_of_value(found: tuple[Expr, Expr]) -> float:
    return steps(found[1])


def _invariant(
    term: Expr, around: tuple[Around, ...], apart_from: Expr | None = None
) -> Iterator[tuple[Expr, Expr]]:
    """Each part with folds that uses no variable of a loop, and it with the lets it uses; outer ones first.

    apart_from: a part that is left out, with all that is in it
    """
    if apart_from is not None and alpha_equal(term, apart_from):
        return
    if _is_folded(term) and (value := with_lets(term, around)) is not None:
        yield term, value
    for child, inner in parts_within(term, around):
        yield from _invariant(child, inner, apart_from)


def _is_within(part: Expr, whole: Expr) -> bool:
    return part != whole and any(part == inner for inner in subterms(whole))


def _is_one_of(part: Expr, others: Iterable[Expr]) -> bool:
    return any(alpha_equal(part, other) for other in others)


def _is_folded(part: Expr) -> bool:
    """Whether a part is data, contains a fold, and contains no low-level primitive."""
    primitives = [each for each in subterms(part) if isinstance(each, Primitive)]
    if not is_data(part.type) or any(each.declaration.group in LOW_LEVEL for each in primitives):
        return False
    return any(each.name in FOLDS for each in primitives)
