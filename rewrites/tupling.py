"""Tupling: two folds over arrays of one length are one fold of pairs (the banana-split law).

Products that share an operand then load it once: both sums grow in one loop over the tiles of three matrices.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.match import project
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type, instance
from rise.errors import RiseError
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Primitive,
    alpha_equal,
    apply,
    call,
    children,
    fresh_name,
    subterms,
    with_children,
)
from rise.normal import simplify
from rise.types import Pair, as_data

FOLD = "reduceSeq"
HAS_FOLD = "_has_fold"  # what a term remembers it by


def folds_of(term: Expr, bound: frozenset[str] = frozenset()) -> Iterator[Expr]:
    """The folds in a term that use no variable bound inside of it, from left to right."""
    if not _has_fold(term):
        return
    if is_fold(term) and term.free.isdisjoint(bound):
        yield term
        return
    inner = bound | {term.parameter.name} if isinstance(term, Lambda) else bound
    for child in children(term):
        yield from folds_of(child, inner)


def _has_fold(term: Expr) -> bool:
    """Whether a fold is in a term, which remembers it: most parts have none, and are asked at every step."""
    known: bool | None = term.__dict__.get(HAS_FOLD)
    if known is None:
        known = term.__dict__[HAS_FOLD] = is_fold(term) or any(map(_has_fold, children(term)))
    return known


def is_fold(term: Expr) -> bool:
    return isinstance(term, Apply) and term.head == (FOLD, 3)


def _zipped(fold: Expr) -> tuple[Expr, ...]:
    """The arrays whose pairs a fold is over; of other folds, the one array."""
    xs = _fold(fold)[1][2]
    applied = call(xs)
    return tuple(applied[2]) if applied is not None and applied[0] == "zip" else (xs,)


def shared(one: Expr, other: Expr) -> bool:
    """Whether two folds read an array at the same place, and have as many steps.

    Both are over pairs with the same first or second component, or one is over the first component alone.
    """
    if _size(one) != _size(other):
        return False
    return any(alpha_equal(a, b) for a, b in zip(_zipped(one), _zipped(other), strict=False))


def _size(fold: Expr) -> object:
    return array_type(_fold(fold)[1][2]).size


@computed(
    "tupling",
    "e(xs |> reduceSeq(f, y), zs |> reduceSeq(g, w)) →"
    " zip(xs)(zs) |> reduceSeq(acc => (x, z) => (f(fst(acc), x), g(snd(acc), z)), (y, w))"
    " |> (p => e(fst(p), snd(p)))",
    (
        "fun((xs: 5.i32, ys: 5.i32, zs: 5.i32) =>"
        " (zip(xs)(ys) |> reduceSeq(Local)(fun(a, p => a + fst(p) * snd(p)), 0))"
        " * (zip(xs)(zs) |> reduceSeq(Local)(fun(a, p => a + fst(p) * snd(p)), 1)))",
        "fun((xs: 5.i32, ys: 5.i32, zs: 3.i32) => zs |> map(fun(c =>"
        " (zip(xs)(ys) |> reduceSeq(Local)(fun(a, p => a - fst(p) * snd(p)), c))"
        " + (zip(ys)(ys) |> reduceSeq(Local)(fun(a, p => max(a)(fst(p) - snd(p))), c * 2)))))",
        "fun((xs: 5.i32, ys: 5.i32) => (xs |> reduceSeq(Local)(fun(a, x => a + x * x), 0))"
        " * (zip(xs)(ys) |> reduceSeq(Local)(fun(a, p => a - fst(p) * snd(p)), 1)))",
    ),
    "Two folds over one array, or over pairs that share a component, are one, whose accumulator is a pair.",
)
def TUPLING(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    applied = call(term)
    if applied is not None and applied[1].declaration.group == "levels":
        return "a level executes what is inside of it"
    found = list(folds_of(term))
    pair = next(
        ((a, b) for n, a in enumerate(found) for b in found[n + 1 :] if a != b and shared(a, b)), None
    )
    if pair is None:
        return "there are no two folds that share a component"
    both = _tupled(*pair)
    names = {part.name for part in subterms(term) if isinstance(part, Identifier)}
    sums = Identifier(fresh_name("sums", names), as_data(both.type), term.origin)
    body = _replaced(_replaced(term, pair[0], project("fst", sums)), pair[1], project("snd", sums))
    return Apply(Lambda(sums, body, term.origin), both, term.origin)


def _fold(term: Expr) -> tuple[Primitive, list[Expr]]:
    """The head of a fold, and its step, its initial value and its array."""
    applied = call(term)
    if applied is None:
        raise RiseError("R0699", "internal: expected a fold", term.origin)
    return applied[1], applied[2]


def _tupled(one: Expr, other: Expr) -> Expr:
    """One fold of pairs over the zipped arrays of two."""
    first, second = _fold(one), _fold(other)
    (space, size, *types), (f, y, xs), (g, w, zs) = first[0].arguments, first[1], second[1]
    elements, sums = (Pair(a, b) for a, b in zip(types, second[0].arguments[2:], strict=True))  # type: ignore[arg-type]
    taken = f.free | g.free
    acc = Identifier(fresh_name("acc", taken), sums, one.origin)
    x = Identifier(fresh_name("x", taken | {acc.name}), elements, one.origin)
    members = (
        apply(f, project("fst", acc), project("fst", x)),
        apply(g, project("snd", acc), project("snd", x)),
    )
    step = Lambda(acc, Lambda(x, _pair(*members)))
    zipped = apply(instance("zip", (size, elements.first, elements.second), one.origin), xs, zs)
    fold = instance(FOLD, (space, size, elements, sums), one.origin)
    return simplify(apply(fold, step, _pair(y, w), zipped, origin=one.origin))


def _pair(first: Expr, second: Expr) -> Expr:
    types = (as_data(first.type), as_data(second.type))
    return apply(instance("pair", types, first.origin), first, second)


def _replaced(term: Expr, part: Expr, by: Expr) -> Expr:
    return by if term == part else with_children(term, tuple(_replaced(c, part, by) for c in children(term)))


SHARE_FIRST = rule(
    "zip of zips, first shared",
    "zip(zip(xs)(ys))(zip(xs)(zs))",
    "zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => ((x, y), (x, z))))",
    meaning="An array that stands in both is read once.",
)
SHARE_SECOND = rule(
    "zip of zips, second shared",
    "zip(zip(xs)(ys))(zip(zs)(ys))",
    "zip(zip(xs)(zs))(ys) |> map(fun(((x, z), y) => ((x, y), (z, y))))",
    meaning="The same for the other components.",
)
SHARE_WITH_FIRST = rule(
    "zip of zip, with its first",
    "zip(zip(xs)(ys))(xs)",
    "zip(xs)(ys) |> map(fun((x, y) => ((x, y), x)))",
    meaning="An array beside pairs with its elements is read once.",
)
SHARE_FIRST_WITH = rule(
    "zip with zip, of its first",
    "zip(xs)(zip(xs)(ys))",
    "zip(xs)(ys) |> map(fun((x, y) => (x, (x, y))))",
    meaning="The same for pairs in the second component.",
)
