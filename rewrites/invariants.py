"""What the function of a loop computes alike for every element, before the loop."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from rewrites.lets import Around, let_of, parts_within, with_lets
from rewrites.rule import computed
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Primitive,
    alpha_equal,
    call,
    children,
    distinct_binders,
    fresh_name,
    subterms,
    with_children,
)
from rise.nat import Nat
from rise.types import is_data

# the heads that apply a function many times, and those of them that take its results one after the other
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
    "What a loop's function computes without the element is computed once, before the loop.",
)
def INVARIANT_FIRST(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    """Of several such values, the one that takes most steps, with the lets that it uses."""
    applied = call(term)
    if applied is None or applied[0] not in LOOPS - {"iterate"} or not is_data(term.type):
        return "expected a loop"
    if not isinstance(applied[2][0], Lambda):
        return "expected a loop with a function that is written out"
    term = distinct_binders(term)
    _, _, (function, *_) = call(term) or applied
    found = max(_invariant(function, ()), key=lambda each: steps(each[1]), default=None)
    if found is None:
        return "the function folds nothing that is the same for all elements"
    part, value = found
    taken = term.free | {each.parameter.name for each in subterms(term) if isinstance(each, Lambda)}
    y = Identifier(fresh_name("invariant", taken), part.type, part.origin)
    return let_of(value, Lambda(y, _replaced(term, part, y), term.origin))


def _replaced(term: Expr, part: Expr, name: Identifier) -> Expr:
    """With the name for every part that is the same: all binders of the term are distinct."""
    if term is part or alpha_equal(term, part):
        return name
    return with_children(term, tuple(_replaced(child, part, name) for child in children(term)))


def steps(term: Expr) -> float:
    """How many steps one thread takes for the folds in a term; infinitely many where a size is open."""
    applied = call(term)
    if applied is None or applied[0] not in LOOPS:
        return sum(map(steps, children(term)))
    name, head, operands = applied
    sizes = [each.value or inf for each in head.arguments if isinstance(each, Nat)]
    times = max(sizes, default=1)
    within = steps(operands[0]) + (name in FOLDS)
    return (times * within if within else 0) + sum(map(steps, operands[1:]))


def _invariant(term: Expr, around: tuple[Around, ...]) -> Iterator[tuple[Expr, Expr]]:
    """What folds compute without the variables of loops, the outermost first; and that with its lets."""
    if _is_folded(term) and (value := with_lets(term, around)) is not None:
        yield term, value
        return
    for child, inner in parts_within(term, around):
        yield from _invariant(child, inner)


def _is_folded(part: Expr) -> bool:
    """Whether a part is data that folds compute, of which nothing says yet how they run."""
    primitives = [each for each in subterms(part) if isinstance(each, Primitive)]
    if not is_data(part.type) or any(each.declaration.group in LOW_LEVEL for each in primitives):
        return False
    return any(each.name in FOLDS for each in primitives)
