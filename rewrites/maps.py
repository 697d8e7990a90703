"""Rules that take maps apart, and the functions in them: fission, sharing, β and η."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from rewrites.lets import named_value
from rewrites.match import replace_term
from rewrites.rule import Computed, computed
from rewrites.rule import library_rule as rule
from rewrites.typed import instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    alpha_equal,
    apply,
    call,
    closed_parts,
    fresh_name,
    size,
    substitute,
)
from rise.normal import in_place, is_view, occurrences, simplify
from rise.types import Array, Function, is_data

COMPOSED = "xs |> map(x => x |> f |> … |> g)"
TWO_STEPS = "fun(xs: 5.i32 => xs |> map(fun(x => neg(abs(x)))))"
THREE_STEPS = (
    "fun((xss: 3.4.i32, ys: 4.i32) => xss |> map(fun(xs => zip(xs)(ys) |> map(fun((x, y) => x * y))"
    " |> reduce(+, 0))))"
)
WITH_ELEMENT = "fun(xs: 3.2.f32 => xs |> map(fun(r => r |> map(fun(x => 2 * x)) |> transpose |> join)))"


# --- fission --------------------------------------------------------------------------------------------


def _steps(function: Lambda) -> list[Expr]:
    """g1, …, gn where the body is x |> g1 |> … |> gn; the first step may also use x otherwise."""
    steps: list[Expr] = []
    body, name = function.body, function.parameter.name
    while (
        isinstance(body, Apply)
        and name not in body.function.free
        and is_data(body.argument.type)
        and name in body.argument.free
    ):
        steps.insert(0, body.function)
        body = body.argument
    if not isinstance(body, Identifier):
        steps.insert(0, Lambda(function.parameter, body, body.origin))
    return steps


def _fission(
    name: str, equation: str, cut: Callable[[list[Expr]], list[list[Expr]]], meaning: str
) -> Computed:
    """A map whose steps are cut into groups, each a map of its own."""

    @computed(name, equation, (TWO_STEPS, THREE_STEPS), meaning, head=("map", 2))
    def rewrite(term: Expr) -> Expr | str:
        applied = call(term)
        if applied is None or applied[0] != "map" or len(applied[2]) != 2:
            return "expected a map"
        function, xs = applied[2]
        if not isinstance(function, Lambda):
            return "expected a map of a function"
        steps = _steps(function)
        if len(steps) < 2:
            return "the function is one step"
        return reduce(lambda array, group: _mapped(group, array, function.parameter.name), cut(steps), xs)

    return rewrite


def _mapped(steps: list[Expr], xs: Expr, name: str) -> Expr:
    """xs |> map(x => x |> g1 |> … |> gn)"""
    if not isinstance(xs.type, Array):
        raise TypeError(str(xs.type))
    free = frozenset().union(*(step.free for step in steps))
    x = Identifier(fresh_name(name, free), xs.type.element, xs.origin)
    argument: Expr = x
    body = reduce(_applied, steps, argument)
    types = (xs.type.size, x.type, body.type)
    return apply(instance("map", types, xs.origin), Lambda(x, body, xs.origin), xs)


def _applied(argument: Expr, function: Expr) -> Expr:
    """A step's function is put in place: only steps written by `_steps` are lambdas, and their x is used."""
    if isinstance(function, Lambda):
        return substitute(function.body, {function.parameter.name: argument})
    return Apply(function, argument, function.origin)


MAP_LAST_FISSION = _fission(
    "mapLastFission",
    f"{COMPOSED} → xs |> map(x => x |> f |> …) |> map(g)",
    lambda steps: [steps[:-1], steps[-1:]],
    "The last step of a map's function is a map of its own.",
)
MAP_FIRST_FISSION = _fission(
    "mapFirstFission",
    f"{COMPOSED} → xs |> map(f) |> map(x => x |> … |> g)",
    lambda steps: [steps[:1], steps[1:]],
    "The first step of a map's function is a map of its own.",
)
MAP_FULL_FISSION = _fission(
    "mapFullFission",
    f"{COMPOSED} → xs |> map(f) |> … |> map(g)",
    lambda steps: [[step] for step in steps],
    "Every step of a map's function is a map of its own.",
)

# --- sharing --------------------------------------------------------------------------------------------

LET_INLINE = rule(
    "let, inlined",
    "let y = x in f(y)",
    "f(x)",
    meaning="A name is replaced by its value, which is computed where it is used.",
)


@computed(
    "let, computed at each use",
    "let y = x in e → e[x/y]",
    (
        "fun((xs: 5.i32, b: 5.i32) => xs |> map(fun(x => x + 1))"
        " |> fun(ys => (ys |> map(neg), zip(ys)(b) |> map(fun((y, z) => y * z)))))",
        "fun(xs: 4.i32 => let ys = generate(fun(i => indexToInt(i)))"
        " in zip(xs)(ys) |> map(fun((x, y) => x + y)))",
    ),
    "A value is computed wherever its name is used, as often as that is.",
)
def LET_REPEATED(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    named = named_value(term)
    if named is None:
        return "expected a value with a name"
    value, function = named
    count, _ = occurrences(function.body, function.parameter.name)
    return simplify(in_place(function, value, count))


LET_MAP = rule(
    "let >> *g", "(let y = x in f(y)) |> map(g)", "let y = x in f(y) |> map(g)", meaning="Names outermost."
)

LET_SPLIT = rule(
    "let >> S, outward",
    "let y = x in f(y) |> split(n)",
    "(let y = x in f(y)) |> split(n)",
    meaning="A split of what is computed with a named value is a split of the result.",
)
LET_OF_SPLIT = rule(
    "S >> let",
    "let y = x |> split(n) in f(y)",
    "let y = x in f(y |> split(n))",
    meaning="An array that is split has a name before it is.",
)
LET_IN_LET = rule(
    "let, in the value of the next",
    "let x = a in let y = f(x) in g(y)",
    "let y = (let x = a in f(x)) in g(y)",
    meaning="A name that only the next named value uses is a part of that value.",
)

MAP_LET = rule(
    "*(let), as a map before",
    "xs |> map(fun(x => let y = f(x) in g(y)))",
    "xs |> map(f) |> map(g)",
    meaning="A named value in a map's function is computed by a map before it.",
)


def share(wanted: Callable[[Expr], bool], name: str, instances: tuple[str, ...], meaning: str) -> Computed:
    """f(x) → let y = x in f(y), for the largest `wanted` part x that occurs more than once.

    Parts that use variables bound inside the term cannot be named outside of it.
    """

    @computed(name, "f(x) → let y = x in f(y), x occurring more than once", instances, meaning)
    def rewrite(term: Expr) -> Expr | str:
        if not is_data(term.type):
            return "expected data"
        parts = (part for part in closed_parts(term) if is_data(part.type) and wanted(part))
        found = sorted(parts, key=size, reverse=True)
        repeated = next(
            (p for i, p in enumerate(found) if any(alpha_equal(p, q) for q in found[i + 1 :])), None
        )
        if repeated is None:
            return "nothing is computed more than once"
        y = Identifier(fresh_name("shared", term.free), repeated.type, term.origin)
        function = Lambda(y, replace_term(term, repeated, y), term.origin)
        let = instance("let", (repeated.type, term.type), term.origin)
        return apply(let, repeated, function, origin=term.origin)

    return rewrite


def computes(term: Expr) -> bool:
    """Whether a value needs work: it is neither a name nor a number, and more than a view."""
    return not isinstance(term, Identifier | Literal) and not is_view(term)


SHARE_REPEATED = share(
    computes,
    "subexpressionElimination",
    (
        "fun((x: i32, y: i32) => (x * y + 1) * (x * y + 1))",
        "fun((xs: 4.f32, c: f32) => xs |> map(fun(x => x * (c + 2) - (c + 2))))",
        "fun(xs: 4.i32 => zip(xs |> map(fun(x => x + 1)))(xs |> map(fun(y => y + 1))))",
    ),
    "What is computed more than once gets a name.",
)

# --- functions ------------------------------------------------------------------------------------------


@computed(
    "betaReduction",
    "(x => e)(a) → e with a for x",
    (
        "fun((xs: 4.i32, c: i32) => (fun(y: i32 => xs |> map(fun(x => x * y))))(c * c + 1))",
        "fun(x: f32 => (fun(y: f32 => y * y))(x + 1))",
    ),
    "A function applied: its argument is computed wherever it is used.",
)
def BETA(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return substitute(term.function.body, {term.function.parameter.name: term.argument})
    return "expected a function that is applied"


@computed(
    "etaReduction",
    "(x => f(x)) → f",
    (
        "fun(xs: 4.i32 => xs |> map(fun(x => neg(x))))",
        "fun(xs: 2.3.f32 => xs |> map(fun(r => r |> split(3))))",
    ),
    "A function that only applies another is the other one.",
)
def ETA(term: Expr) -> Expr | str:  # noqa: N802
    match term:
        case Lambda(x, Apply(function, Identifier(name))) if name == x.name and name not in function.free:
            return function
        case _:
            return "expected a function that only applies another"


@computed(
    "etaAbstraction",
    "f → (x => f(x))",
    ("fun(xs: 4.i32 => xs |> map(neg))", "fun(xs: 4.i32 => xs |> reduce(+, 0))"),
    "A function is one that applies it.",
)
def ETA_ABSTRACTION(term: Expr) -> Expr | str:  # noqa: N802
    if not isinstance(term.type, Function) or isinstance(term, Lambda):
        return "expected a function that is not written out"
    x = Identifier(fresh_name("x", term.free), term.type.parameter, term.origin)
    return Lambda(x, Apply(term, x, term.origin), term.origin)
