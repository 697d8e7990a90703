"""Rules about maps and reductions: splitting, fusing, blocking, interchanging."""

from __future__ import annotations

from collections.abc import Callable

from rewrites import conditions
from rewrites.conditions import MORE_THAN_PAIRS, reshaping
from rewrites.match import project
from rewrites.rule import Computed, computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type, instance, mapped
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Primitive,
    apply,
    call,
    children,
    closed_parts,
    fresh_name,
    subterms,
    with_children,
)
from rise.normal import simplify
from rise.types import Pair

changes = conditions.changes

SPLIT_JOIN = rule(
    "splitJoin",
    "xs |> map(f)",
    "xs |> split(n) |> map(fun(b => b |> map(f))) |> join",
    meaning="A map in blocks of n.",
)
MAP_FUSION = rule(
    "mapFusion",
    "xs |> map(f) |> map(g)",
    "xs |> map(fun(x => g(f(x))))",
    meaning="Two maps as one.",
)
MAP_VIEW_FUSION = rule(
    "mapViewFusion",
    "xs |> map(f) |> map(g)",
    "xs |> map(fun(x => g(f(x))))",
    meaning="Two maps as one, where one of them only changes the form of elements.",
    conditions=(reshaping("f", "g"),),
)
MAP_IDENTITY = rule(
    "mapIdentity", "xs |> map(fun(x => x))", "xs", meaning="Mapping the identity changes nothing."
)
MAP_NOTHING = rule(
    "mapNothing",
    "xs",
    "xs |> map(fun(x => x))",
    meaning="An array is a map of the identity: a copy.",
)
GENERATE_AS_MAP = rule(
    "generateAsMap",
    "generate(f)",
    "generate(fun(i => i)) |> map(f)",
    meaning="A generated array is a map over the indices.",
)
REDUCE_MAP = rule(
    "reduceMap",
    "xs |> map(f) |> reduce(op, z)",
    "xs |> reduceSeq(Local)(fun(acc, x => op(acc, f(x))), z)",
    meaning="A reduction of a map is a fold that maps on the way.",
)
MAP_CONSTANT = rule(
    "mapConstant",
    "xs |> map(fun(x => z))",
    "generate(fun(i => z))",
    meaning="A map that ignores its elements is a constant array.",
)
BLOCK_REDUCE = rule(
    "blockReduce",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> reduceSeq(Local)(fun(acc, b => op(acc, b |> reduce(op, z))), z)",
    meaning="A reduction in blocks of n, since op is associative with neutral element z.",
    exact=False,
)
REDUCE_FROM = rule(
    "reduceFrom",
    "c + (xs |> reduceSeq(Local)(fun(acc, y => acc + g(y)), 0))",
    "xs |> reduceSeq(Local)(fun(acc, y => acc + g(y)), c)",
    meaning="A term that is added to a sum becomes its initial value.",
    exact=False,
)
REDUCE_SEQ_MAP = rule(
    "reduceSeqMap",
    "xs |> map(f) |> reduceSeq(Local)(fun(acc, y => g(acc, y)), z)",
    "xs |> reduceSeq(Local)(fun(acc, x => g(acc, f(x))), z)",
    meaning="A map before a fold is done in the fold's step.",
)
LIFT_REDUCE = rule(
    "liftReduce",
    "xs |> map(fun(x => h(x) |> reduceSeq(Local)(fun(acc, y => g(x, acc, y)), z(x))))",
    "xs |> map(h) |> transpose |> reduceSeq(Local)("
    "fun(acc, ys => zip(xs)(zip(acc)(ys)) |> map(fun((x, (a, y)) => g(x, a, y)))), xs |> map(z))",
    meaning="A map of reductions is a reduction of maps (interchange), for any functions.",
)
GENERATE_MAP = rule(
    "generate >> *f",
    "generate(fun(i => h(i))) |> map(f)",
    "generate(fun(i => f(h(i))))",
    meaning="A map of a generated array.",
)
FLATTEN = rule(
    "flatten",
    "xs |> map(fun(x => h(x) |> map(fun(y => f(x, y))))) |> join",
    "xs |> map(fun(x => h(x) |> map(fun(y => (x, y))))) |> join |> map(fun((x, y) => f(x, y)))",
    meaning="Two nested maps as one map over pairs.",
    conditions=(MORE_THAN_PAIRS,),
)
FLATTEN_PART = rule(
    "flatten, of a part",
    "xs |> map(fun(x => h(x) |> map(fun(y => f(snd(x), y))))) |> join",
    "xs |> map(fun(x => h(x) |> map(fun(y => (snd(x), y))))) |> join |> map(fun((x, y) => f(x, y)))",
    meaning="The same where only a part of the outer element is used.",
    conditions=(MORE_THAN_PAIRS,),
)
FLATTEN_INNER = rule(
    "flatten, inner only",
    "xs |> map(fun(x => h(x) |> map(f))) |> join",
    "xs |> map(h) |> join |> map(f)",
    meaning="The same where the outer element is not used.",
    conditions=(changes("f", "nothing is mapped"), MORE_THAN_PAIRS),
)


def separate(wanted: Callable[[Expr], bool], name: str, instances: tuple[str, ...]) -> Computed:
    """xs |> map(x => g(h(x), x)) → zip(xs |> map(h))(xs) |> map((p, x) => g(p, x)).

    h(x) is the outermost part of the function's body that is `wanted`; it must not be the whole body.
    """

    @computed(
        name,
        "xs |> map(x => g(h(x), x)) → zip(xs |> map(h))(xs) |> map((p, x) => g(p, x))",
        instances,
        "A part of a map's body becomes a map of its own.",
        head=("map", 2),
    )
    def rewrite(term: Expr) -> Expr | str:
        applied = call(term)
        if applied is None or applied[0] != "map" or len(applied[2]) != 2:
            return "expected a map"
        _, head, (function, xs) = applied
        if not isinstance(function, Lambda):
            return "expected a map of a function"
        part = next(filter(wanted, closed_parts(function.body)), None)
        if part is None or part is function.body:
            return "nothing to separate"
        return simplify(separated(head, function, xs, part))

    return rewrite


def separated(head: Primitive, function: Lambda, xs: Expr, part: Expr, given: Expr | None = None) -> Expr:
    """The part of a map's body as a map of its own, and the body of both (see `separate`).

    given: the array of what the part gives for each element, if it is not computed by such a map
    """
    size = array_type(xs).size
    x = function.parameter
    parts = given or mapped(Lambda(x, part, part.origin), xs)
    pair = Pair(part.type, x.type)  # type: ignore[arg-type]
    # the part may stand under binders, none of which may hide the new name
    taken = function.body.free | {f.parameter.name for f in subterms(function) if isinstance(f, Lambda)}
    p = Identifier(fresh_name("p", taken), pair, part.origin)
    first, second = project("fst", p), project("snd", p)
    body = apply(Lambda(x, swapped(function.body, part, first), part.origin), second)
    zipped = apply(instance("zip", (size, part.type, x.type), head.origin), parts, xs)
    return mapped(Lambda(p, body, function.origin), zipped)


def swapped(term: Expr, old: Expr, new: Expr) -> Expr:
    return new if term is old else with_children(term, tuple(swapped(c, old, new) for c in children(term)))


def is_reduction(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] == "reduce" and len(applied[2]) == 3


def is_map_of_reductions(term: Expr) -> bool:
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return False
    function = applied[2][0]
    return isinstance(function, Lambda) and is_reduction(function.body)


SEPARATE_REDUCTION = separate(
    is_reduction,
    "separateReduction",
    (
        "fun((xss: 3.4.i32) => xss |> map(fun(xs => 2 * (xs |> reduce(+, 0)) + 1)))",
        "fun((xss: 3.4.i32, ys: 3.i32) => zip(xss)(ys) |> map(fun((xs, y) => (xs |> reduce(+, 0)) - y)))",
    ),
)
SEPARATE_PRODUCT = separate(
    is_map_of_reductions,
    "separateProduct",
    (
        "fun((a: 3.2.4.i32) => a |> map(fun(xss => xss |> map(fun(xs => xs |> reduce(+, 0)))"
        " |> map(fun(s => s * 2)))))",
    ),
)
