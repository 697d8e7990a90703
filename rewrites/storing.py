"""Rules that give values names and memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from rewrites.algorithmic import separated, swapped
from rewrites.elements import members, names
from rewrites.lets import Around, let_before, let_of, parts_within, with_lets
from rewrites.rule import Computed, computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type, instance, mapped
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    application,
    apply,
    call,
    children,
    closed_parts,
    distinct_binders,
    fresh_name,
    substitute,
)
from rise.normal import simplify
from rise.types import Space, is_data

NAMED = rule("let, introduced", "x", "let y = x in y", meaning="A value is given a name.")
MAP_FIRST_NAMED = rule(
    "mapFst, by members",
    "p |> mapFst(f)",
    "let q = p in (f(fst(q)), snd(q))",
    meaning="The pair gets a name.",
)
MAP_SECOND_NAMED = rule(
    "mapSnd, by members",
    "p |> mapSnd(f)",
    "let q = p in (fst(q), f(snd(q)))",
    meaning="The pair gets a name.",
)
PAIR_OF_MEMBERS = rule("pair of fst and snd", "p", "(fst(p), snd(p))", meaning="A pair by its members.")
IDX_LET = rule(
    "let >> idx",
    "idx(i)(let y = x in f(y))",
    "let y = x in idx(i)(f(y))",
    meaning="Only one element of the body of a `let` is needed.",
)


@computed(
    "appliedAsLet",
    "(x => e)(a) → let x = a in e",
    (
        "fun((xs: 4.i32, c: i32) => (fun(y: i32 => xs |> map(fun(x => x * y))))(c * c + 1))",
        "fun(x: f32 => (fun(y: f32 => y * y))(x + 1))",
    ),
    "A function applied to data: its argument gets a name.",
)
def APPLIED_AS_LET(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    if not (isinstance(term, Apply) and isinstance(term.function, Lambda)):
        return "expected a function that is applied"
    if not is_data(term.argument.type) or not is_data(term.type):
        return "a let names data, in data"
    return let_of(term.argument, term.function)


STORED_TOGETHER = rule(
    "toMem(Global), together",
    "let x = d |> toMem(Global) in let y = f(x) |> toMem(Global) in e(x, y)",
    "let p = (d, f(d)) |> toMem(Global) in e(fst(p), snd(p))",
    meaning="What is computed from a value and the value are a pair, which one kernel may store.",
)

STORED_BEFORE_MAP = rule(
    "toMem(Global) before *f",
    "xs |> map(fun(x => let y = f(x) |> toMem(Global) in g(x, y)))",
    "let ys = xs |> map(f) |> toMem(Global) in zip(xs)(ys) |> map(fun((x, y) => g(x, y)))",
    meaning="What is stored for each element is stored for all before any of them is used.",
)

# --- what a kernel gives to later ones --------------------------------------------------------------------


def is_stored_in(space: Space, term: Expr) -> bool:
    """Whether a term is a value put into a memory."""
    applied = call(term)
    stored = applied is not None and applied[0] == "toMem" and len(applied[2]) == 1
    return stored and applied is not None and space in applied[1].arguments


def is_global(term: Expr) -> bool:
    return is_stored_in(Space.GLOBAL, term)


@computed(
    "toMem(Global), first",
    "f(x |> toMem(Global)) → let y = x |> toMem(Global) in f(y), nothing in x bound in f but by lets",
    (
        "fun(xs: 5.i32 => xs |> map(fun(x => x + 1)) |> toMem(Global) |> slide(2)(1)"
        " |> map(fun(w => w |> reduce(+, 0))))",
        "fun(xs: 5.i32 => let total = xs |> reduce(+, 0) in let ys = xs |> map(fun(x => x - total))"
        " |> toMem(Global) in zip(ys)(ys |> scan(+, 0)) |> map(fun((x, y) => x * y * total)))",
        "fun((xs: 5.i32, ys: 3.i32) => xs |> map(fun(x => x + (ys |> scan(+, 0) |> toMem(Global)"
        " |> reduce(max, 0)))))",
    ),
    "What a kernel stores for those after it, before everything that uses it; with the lets that it uses.",
)
def GLOBAL_FIRST(term: Expr) -> Expr | str:  # noqa: N802
    if not is_data(term.type):
        return "expected data"
    applied = call(term)
    first = applied[2][0] if applied is not None and applied[0] == "let" else None
    if first is not None and is_global(first) and next(_stored(first, ()))[0] is first:
        return "what is stored in global memory is first already"
    term = distinct_binders(term)
    found = next(_stored(term, ()), None)
    if found is None:
        return "nothing is stored in global memory that could be stored before"
    return let_before(term, *found, "stored")


def _each_stored(space: Space, *instances: str) -> Computed:
    """What a map's function stores in a memory, and computes of its element."""

    @computed(
        f"toMem({space}), of each",
        f"xs |> map(x => e(h(x) |> toMem({space}), x)) →"
        f" zip(xs |> map(h) |> toMem({space}))(xs) |> map((y, x) => e(y, x))",
        instances,
        "What is stored for each element of an array is an array that is stored.",
        head=("map", 2),
    )
    def rewrite(term: Expr) -> Expr | str:
        match call(term):
            case "map", head, [Lambda(x) as function, xs]:
                pass
            case _:
                return "expected a map of a function"
        stored = (p for p in closed_parts(function.body) if is_stored_in(space, p) and x.name in p.free)
        part = next(stored, None)
        if part is None:
            return "nothing is stored for each element"
        _, to_memory, (value,) = application(part)
        each = mapped(Lambda(x, value, value.origin), xs)
        store = instance("toMem", (*to_memory.arguments[:-1], each.type), part.origin)
        return simplify(separated(head, function, xs, part, apply(store, each, origin=part.origin)))

    return rewrite


EACH_STORED = _each_stored(
    Space.GLOBAL,
    "fun((xss: 3.4.i32, ys: 3.i32) => zip(xss)(ys) |> map(fun((xs, y) => xs |> map(fun(x => x + y))"
    " |> toMem(Global) |> reduce(+, y))))",
)
EACH_IN_SHARED = _each_stored(
    Space.SHARED,
    "fun((xss: 3.4.i32, ys: 3.i32) => zip(xss)(ys) |> map(fun((xs, y) => (xs |> map(fun(x => x * y))"
    " |> toMem(Shared) |> reduce(+, 0)) - y)))",
)
EACH_IN_LOCAL = _each_stored(
    Space.LOCAL,
    "fun((xss: 3.4.i32, ys: 3.4.i32) => zip(xss)(ys) |> map(fun((xs, r) => r |> map(fun(y =>"
    " zip(xs |> map(fun(x => x - 1)) |> toMem(Local))(xs) |> map(fun((a, b) => a * b + y)))))))",
)


# --- what is loaded before the steps of a fold ------------------------------------------------------------


@computed(
    "toMem(Local), before steps",
    "xs |> reduceSeq(Local)(acc => x => e(acc, h(x) |> toMem(Local), …, x), z) → xs"
    " |> map(x => (h(x) |> toMem(Local), …, x)) |> reduceSeq(Local)(acc => (y, …, x) => e(acc, y, …, x), z)",
    (
        "fun((xs: 3.i32, z: 4.i32) => xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(generate(fun(i => x * 2))"
        " |> toMem(Local)) |> map(fun((a, b) => a * (x + 1 |> toMem(Local)) - b))), z))",
        "fun((xs: 3.i32, z: 4.i32) => xs |> reduceSeq(Local)(fun(acc, x => acc |> map(fun(a =>"
        " (a * x |> toMem(Local)) - (x + 1 |> toMem(Local))))), z))",
        "fun((xs: 3.4.i32, z: 4.i32) => xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(x |> toMem(Local))"
        " |> map(fun((a, b) => a * b - (acc |> toMem(Local) |> reduce(+, 0))))), z) |> map(fun(a => a + 1)))",
    ),
    "What a step stores, and computes of its element alone, is stored before the step.",
    head=("reduceSeq", 3),
)
def STORED_BEFORE_STEPS(term: Expr) -> Expr | str:  # noqa: N802
    """The step keeps the element itself only if it uses it in another way."""
    match call(term):
        case "reduceSeq", head, [Lambda(acc, Lambda(x, body)), initial, xs] if (
            head.arguments[0] is Space.LOCAL and acc.name != x.name
        ):
            pass
        case _:
            return "expected a fold"
    parts = list(_loads(body, x.name, frozenset({acc.name})))
    if not parts:
        return "a step stores nothing that it computes of the element alone"
    taken = names(body)
    for index, part in enumerate(parts):
        taken.add(hole := f"hole {index}")
        body = swapped(body, part, Identifier(hole, part.type))
    used: list[Expr] = [*parts, x] if x.name in body.free else parts
    loads = mapped(Lambda(x, reduce(_paired, reversed(used))), xs)
    y = Identifier(fresh_name(x.name, taken), array_type(loads).element, x.origin)
    values = {f"hole {index}": value for index, value in enumerate(members(y, len(used))[: len(parts)])}
    values[x.name] = members(y, len(used))[-1]
    step = Lambda(acc, Lambda(y, substitute(body, values), term.origin), term.origin)
    space, size, _, result = head.arguments
    fold = instance(head.declaration, (space, size, y.type, result), head.origin)
    return simplify(apply(fold, step, initial, loads, origin=term.origin))


def _loads(term: Expr, x: str, bound: frozenset[str]) -> Iterator[Expr]:
    """The outermost parts stored in registers that use x, and nothing bound: arguments before functions."""
    if is_stored_in(Space.LOCAL, term) and x in term.free and term.free.isdisjoint(bound):
        yield term
        return
    below = bound | {term.parameter.name} if isinstance(term, Lambda) else bound
    if x not in below:
        for child in reversed(children(term)):
            yield from _loads(child, x, below)


def _paired(rest: Expr, first: Expr) -> Expr:
    """(first, rest)"""
    return apply(instance("pair", (first.type, rest.type), first.origin), first, rest)


def _stored(term: Expr, around: tuple[Around, ...]) -> Iterator[tuple[Expr, Expr]]:
    """What is stored in global memory, the innermost first, and what it is with the lets that it uses."""
    for child, inner in parts_within(term, around):
        yield from _stored(child, inner)
    if is_global(term):
        _, head, (stored,) = application(term)
        if (value := with_lets(stored, around)) is not None:
            yield term, apply(head, value, origin=term.origin)
