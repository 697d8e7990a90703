"""Rules about nests of loops: views that go into folds, folds and maps past each other, values stored.

With `liftReduce` and the interchange of maps, these are what a reordering of a nest is made of.
"""

from __future__ import annotations

from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Primitive,
    apply,
    call,
    children,
    fresh_name,
    substitute,
    subterms,
    with_children,
)
from rise.nat import constant
from rise.normal import is_view, simplify
from rise.primitives.declare import primitive
from rise.types import Argument, Array, FragmentKind, Space, is_data

# --- views into folds -------------------------------------------------------------------------------------


def inverse(view: Expr) -> Expr | None:
    """The view that undoes a view of one array; None where there is none, or none is known."""
    match view:
        case Primitive(declaration, given):
            return _inverse_primitive(declaration.name, given, view)
        case Lambda(x, body):
            return _inverse_steps(x, body, view)
        case Apply(Primitive(declaration, (count, before, after)), function) if declaration.name == "map":
            undone = inverse(function)
            if not isinstance(undone, Lambda):
                return None
            head = Primitive(declaration, (count, after, before), view.origin)
            return Apply(head, undone, view.origin)
        case _:
            return None


def _inverse_primitive(name: str, given: tuple[Argument, ...], view: Expr) -> Expr | None:
    """Of views of arrays, vectors and fragments; sizes in the order of the schemes."""
    match name, given:
        case "transpose", (rows, columns, element):
            return Primitive(primitive("transpose"), (columns, rows, element), view.origin)
        case "split", (size, count, element):
            return Primitive(primitive("join"), (count, size, element), view.origin)
        case "join", (count, size, element):
            return Primitive(primitive("split"), (size, count, element), view.origin)
        case "asVector" | "asVectorAligned", (width, count, element):
            return Primitive(primitive("asScalar"), (width, count, element), view.origin)
        case "asScalar", (width, count, element):
            return Primitive(primitive("asVector"), (width, count, element), view.origin)
        case "asMatrix", _:
            return Primitive(primitive("asFragment"), (*given, FragmentKind.ACCUMULATOR), view.origin)
        case "asColumn", (rows, depth, element):
            loaded = (rows, constant(1), depth, element, FragmentKind.COLUMN)
            return Primitive(primitive("asFragment"), loaded, view.origin)
        case _:
            return None


def _inverse_steps(x: Identifier, body: Expr, view: Expr) -> Expr | None:
    """x |> v |> w undone: y |> w⁻¹ |> v⁻¹."""
    if not is_data(body.type):
        return None
    y = Identifier(x.name, body.type, x.origin)
    undone: Expr = y
    while isinstance(body, Apply):
        step = inverse(body.function)
        if step is None:
            return None
        undone, body = Apply(step, undone, view.origin), body.argument
    return Lambda(y, undone, view.origin) if body == x else None


@computed(
    "view into reduceSeq",
    "xs |> reduceSeq(Local)(f, z) |> v"
    " → xs |> reduceSeq(Local)(acc => x => f(acc |> v⁻¹, x) |> v, z |> v), v with an inverse",
    (
        "fun((xs: 3.2.5.i32, z: 2.5.i32) => xs |> reduceSeq(Local)(fun(acc, x =>"
        " zip(acc)(x) |> map(fun((r, s) => zip(r)(s) |> map(fun((a, b) => a - b))))), z) |> transpose)",
        "fun((xs: 3.2.2.i32, z: 2.2.i32) => xs |> reduceSeq(Local)(fun(acc, x =>"
        " zip(acc)(x) |> map(fun((r, s) => zip(r)(s) |> map(fun((a, b) => a - b))))), z) |> transpose)",
        "fun((xs: 3.6.i32, z: 6.i32) => xs |> reduceSeq(Local)(fun(acc, x =>"
        " zip(acc)(x) |> map(fun((a, b) => 2 * a + b))), z) |> split(3))",
        "fun((xs: 3.4.6.i32, z: 4.6.i32) => xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(x) |>"
        " map(fun((r, s) => zip(r)(s) |> map(fun((a, b) => a - b))))), z)"
        " |> map(fun(r => r |> asVector(2))))",
    ),
    "A fold keeps its accumulator in the form in which its result is wanted.",
)
def VIEW_INTO_FOLD(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    fold = call(term.argument) if isinstance(term, Apply) and is_data(term.type) else None
    if fold is None or fold[0] not in ("reduceSeq", "reduceSeqUnroll") or len(fold[2]) != 3:
        return "expected a view of a fold"
    view = term.function  # type: ignore[union-attr]
    undo = inverse(view) if is_view(view) else None
    if undo is None:
        return "expected a view that can be undone"
    _, head, (step, initial, xs) = fold
    if not (isinstance(step, Lambda) and isinstance(step.body, Lambda)):
        return "expected a step of two parameters"
    space, size, element, _ = head.arguments
    name = fresh_name(step.parameter.name, step.free | view.free | {step.body.parameter.name})
    acc = Identifier(name, term.type, step.parameter.origin)
    before = Lambda(step.parameter, step.body.body, step.origin)
    body = Apply(view, Apply(before, Apply(undo, acc, term.origin), term.origin), term.origin)
    new_step = Lambda(acc, Lambda(step.body.parameter, body, step.origin), step.origin)
    new_head = instance(head.declaration, (space, size, element, term.type), head.origin)
    start = Apply(view, initial, term.origin)
    return simplify(apply(new_head, new_step, start, xs, origin=term.origin))


# --- views out of folds -----------------------------------------------------------------------------------

FORMS = frozenset({"asMatrix", "asColumn", "join", "split", "transpose"})


def is_form(view: Expr) -> bool:
    """One of the views that arrange tiles, or a map of one: v = p or v = map(v)."""
    match view:
        case Primitive(declaration):
            return declaration.name in FORMS
        case Apply(Primitive(declaration), Lambda(x, Apply(inner, argument))) if declaration.name == "map":
            return argument == x and is_form(inner)
        case _:
            return False


@computed(
    "view out of reduceSeq",
    "xs |> reduceSeq(Local)(acc => x => f(acc, x) |> v, z)"
    " → xs |> reduceSeq(Local)(acc => x => f(acc |> v, x), z |> v⁻¹) |> v,"
    " v of join, split, transpose, asMatrix, asColumn, or a map of such a v",
    (
        "fun((xs: 3.2.5.i32, z: 2.5.i32) => xs |> reduceSeq(Local)(fun(acc, x =>"
        " zip(acc)(x) |> map(fun((r, s) => zip(r)(s) |> map(fun((a, b) => a - b)))) |> join"
        " |> split(5)), z))",
        "fun((xs: 3.2.2.i32, z: 2.2.i32) => xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(x) |>"
        " map(fun((r, s) => zip(r)(s) |> map(fun((a, b) => a - 2 * b)))) |> transpose), z))",
        "fun((xs: 3.2.2.4.i32, z: 2.4.2.i32) => xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(x) |>"
        " map(fun((r, s) => zip(r |> transpose)(s) |> map(fun((q, t) => zip(q)(t) |>"
        " map(fun((a, b) => a - b))))))"
        " |> map(fun(r => r |> transpose))), z))",
        "fun((xs: 3.2.3.2.2.i32, z: 2.3.4.i32) => xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(x) |>"
        " map(fun((r, s) => zip(r)(s) |> map(fun((q, t) => zip(q |> split(2))(t) |> map(fun((u, w) =>"
        " zip(u)(w) |> map(fun((a, b) => a * 3 - b))))))))"
        " |> map(fun(r => r |> map(fun(q => q |> join))))), z))",
        "fun((xs: 3.16.8.f32, z: 16.8.f32) => xs |> reduceSeq(Local)(fun(acc, x =>"
        " (acc |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => zipFragment(f)(x |> asFragment))"
        " |> mapFragment(fun((a, b) => a - b)) |> asMatrix)), z))",
        "fun((xs: 3.16.8.f32, z: 16.1.f32) => xs |> reduceSeq(Local)(fun(acc, x =>"
        " zipFragment(acc |> asFragment)(x |> asFragment |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f)"
        " |> reduceRows(+, 0)) |> mapFragment(fun((a, b) => a - b)) |> asColumn), z))",
    ),
    "A fold keeps its accumulator in the form in which its step computes it.",
    head=("reduceSeq", 3),
)
def VIEW_OUT_OF_FOLD(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    fold = call(term)
    if fold is None or fold[0] != "reduceSeq" or len(fold[2]) != 3:
        return "expected a fold"
    _, head, (step, initial, xs) = fold
    space, size, element, _ = head.arguments
    match step:
        case Lambda(acc, Lambda(x, Apply(view, inner) as end)) if space is Space.LOCAL and is_form(view):
            undo, origin = inverse(view), end.origin
        case _:
            return "the step does not end with a view"
    if undo is None or not is_data(inner.type):
        return "expected a view that can be undone"
    viewed = Identifier(acc.name, inner.type, acc.origin)
    before = substitute(Lambda(x, inner, step.origin), {acc.name: Apply(view, viewed, origin)})
    new_step = Lambda(viewed, before, step.origin)
    new_head = instance(head.declaration, (space, size, element, inner.type), head.origin)
    start = Apply(undo, initial, origin)
    return simplify(Apply(view, apply(new_head, new_step, start, xs, origin=term.origin), origin))


# --- folds and maps past each other -----------------------------------------------------------------------

FOLD_OF_MAP = (
    rule(
        "reduceSeq of map",
        "xs |> reduceSeq(Local)(fun(acc, x => acc |> map(fun(a => f(x, a)))), z)",
        "z |> map(fun(s => xs |> reduceSeq(Local)(fun(a, x => f(x, a)), s)))",
        meaning="A fold whose step is a map is a map of folds; the opposite of liftReduce.",
    ),
    rule(
        "reduceSeq of map, of zipped",
        "xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(h(x)) |> map(fun((a, y) => f(x, a, y)))), z)",
        "zip(z)(xs |> map(h) |> transpose) |> map(fun((s, ys) =>"
        " zip(xs)(ys) |> reduceSeq(Local)(fun(a, (x, y) => f(x, a, y)), s)))",
        meaning="The same, with an element beside each accumulator.",
    ),
    rule(
        "reduceSeq of map, beside others",
        "xs |> reduceSeq(Local)(fun(acc, x =>"
        " zip(ws)(zip(acc)(h(x))) |> map(fun((w, (a, y)) => f(w, x, a, y)))), z)",
        "zip(ws)(zip(z)(xs |> map(h) |> transpose)) |> map(fun((w, (s, ys)) =>"
        " zip(xs)(ys) |> reduceSeq(Local)(fun(a, (x, y) => f(w, x, a, y)), s)))",
        meaning="The same, with what is not folded over as well.",
    ),
    rule(
        "reduceSeq of map, beside others only",
        "xs |> reduceSeq(Local)(fun(acc, x => zip(ws)(acc) |> map(fun((w, a) => f(w, x, a)))), z)",
        "zip(ws)(z) |> map(fun((w, s) => xs |> reduceSeq(Local)(fun(a, x => f(w, x, a)), s)))",
        meaning="A fold whose accumulator is an array is a fold for each of its elements.",
    ),
)

# operators of which the order of operands does not matter
FOLD_OF_FOLD = tuple(
    rule(
        f"reduceSeq of reduceSeq, interchanged, {name}",
        "xs |> reduceSeq(Local)(fun(acc, x => h(x) |> reduceSeq(Local)("
        f"fun(a, y => {step.format('a', 'g(x, y)')}), acc)), z)",
        "xs |> map(h) |> transpose |> reduceSeq(Local)(fun(acc, ys => zip(xs)(ys) |> reduceSeq(Local)("
        f"fun(a, (x, y) => {step.format('a', 'g(x, y)')}), acc)), z)",
        exact=False,
        meaning="Two folds with one operator, in either order.",
    )
    for name, step in (("sums", "{} + {}"), ("maxima", "max({})({})"), ("minima", "min({})({})"))
)

# --- reductions of one element ----------------------------------------------------------------------------


@computed(
    "*reduce, of one element",
    "xs |> map(x => h(x) |> reduce(op, z)) → xs |> map(h) |> join, h(x) of one element",
    (
        "fun(xs: 5.1.i32 => xs |> map(fun(x => x |> reduce(+, 0))))",
        "fun(xs: 3.4.1.f32 => xs |> map(fun(x => x |> join |> split(4) |> map(fun(r => r |> reduce(+, 0)))"
        " |> reduce(+, 0))))",
    ),
    "A reduction of one element is that element; the results stay arrays of one.",
    exact=False,
)
def REDUCE_ONE(term: Expr) -> Expr | str:  # noqa: N802
    applied = call(term)
    if applied is None or applied[0] != "map" or len(applied[2]) != 2:
        return "expected a map"
    _, head, (function, xs) = applied
    inner = call(function.body) if isinstance(function, Lambda) else None
    if inner is None or inner[0] != "reduce" or len(inner[2]) != 3 or not isinstance(function, Lambda):
        return "expected a map of reductions"
    ys = inner[2][2]
    if function.parameter.name in (inner[2][0].free | inner[2][1].free):
        return "the reduction depends on the element"
    if not (isinstance(ys.type, Array) and ys.type.size == constant(1)):
        return f"the reduction is of `{ys.type}`, not of one element"
    count, element, result = head.arguments
    rows = Primitive(head.declaration, (count, element, ys.type), head.origin)
    mapped = apply(rows, Lambda(function.parameter, ys, function.origin), xs, origin=term.origin)
    join = Primitive(primitive("join"), (count, constant(1), result), term.origin)
    return simplify(apply(join, mapped, origin=term.origin))


# --- values that are stored -------------------------------------------------------------------------------


STORING = frozenset({"toMem", "copyThreads", "copyAsync", "bulkCopy", "bulkCopyRoleSplit"})


def is_stored(term: Expr) -> bool:
    """Whether a term is a value put into memory."""
    applied = call(term)
    return applied is not None and applied[0] in STORING and is_data(term.type)


@computed(
    "toMem, hoisted",
    "f(x |> toMem(a)) → let y = x |> toMem(a) in f(y), nothing in x bound in f",
    (
        "fun((a: 2.3.i32, b: 3.4.i32) => a |> map(fun(r => transpose(b) |> mapSeq(fun(c => c))"
        " |> toMem(Global) |> map(fun(c => zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))",
        "fun((xs: 5.f32, x: f32) => xs |> map(fun(y => y + (x * x |> toMem(Local)))))",
    ),
    "What is stored inside of a loop, and does not depend on it, is stored once before.",
)
def HOIST_STORED(term: Expr) -> Expr | str:  # noqa: N802
    if not is_data(term.type):
        return "expected data"
    part = None if is_stored(term) else _find_stored(term, frozenset())
    if part is None:
        return "nothing is stored that could be stored before"
    name = Identifier(fresh_name("stored", _names(term)), part.type, part.origin)
    function = Lambda(name, _with_name(term, part, name), term.origin)
    let = instance("let", (part.type, term.type), term.origin)
    return apply(let, part, function, origin=term.origin)


def _names(term: Expr) -> set[str]:
    """Every name of a term, bound or free."""
    return {part.name for part in subterms(term) if isinstance(part, Identifier)} | {
        part.parameter.name for part in subterms(term) if isinstance(part, Lambda)
    }


def _find_stored(term: Expr, bound: frozenset[str]) -> Expr | None:
    """The outermost stored value under a function that uses no variable bound on the way to it."""
    if bound and is_stored(term) and term.free.isdisjoint(bound):
        return term
    below = bound | {term.parameter.name} if isinstance(term, Lambda) else bound
    found = (_find_stored(child, below) for child in children(term))
    return next((part for part in found if part is not None), None)


def _with_name(term: Expr, part: Expr, name: Identifier) -> Expr:
    """The name for the part itself, and for whatever is equal to it where its variables mean the same."""
    if term == part:
        return name
    if isinstance(term, Lambda) and term.parameter.name in part.free:
        return term
    return with_children(term, tuple(_with_name(child, part, name) for child in children(term)))
