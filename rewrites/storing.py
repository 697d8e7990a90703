"""Rules that give values names and memory."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.algorithmic import separated
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import instance, mapped
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    alpha_equal,
    application,
    apply,
    call,
    children,
    closed_parts,
    distinct_binders,
    fresh_name,
    subterms,
    with_children,
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
    return _let(term.argument, term.function)


def _let(value: Expr, function: Lambda) -> Expr:
    let = instance("let", (value.type, function.body.type), function.origin)
    return apply(let, value, function, origin=function.origin)


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


def is_global(term: Expr) -> bool:
    """Whether a term is a value put into global memory."""
    applied = call(term)
    stored = applied is not None and applied[0] == "toMem" and len(applied[2]) == 1
    return stored and applied is not None and Space.GLOBAL in applied[1].arguments


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
    part, value = found
    names = {x.name for x in subterms(term) if isinstance(x, Identifier)} | {
        x.parameter.name for x in subterms(term) if isinstance(x, Lambda)
    }
    name = Identifier(fresh_name("stored", names), part.type, part.origin)
    return _let(value, Lambda(name, _replaced(term, part, name), term.origin))


@computed(
    "toMem(Global), of each",
    "xs |> map(x => e(h(x) |> toMem(Global), x)) →"
    " zip(xs |> map(h) |> toMem(Global))(xs) |> map((y, x) => e(y, x))",
    (
        "fun((xss: 3.4.i32, ys: 3.i32) => zip(xss)(ys) |> map(fun((xs, y) => xs |> map(fun(x => x + y))"
        " |> toMem(Global) |> reduce(+, y))))",
    ),
    "What is stored for each element of an array is an array that is stored.",
    head=("map", 2),
)
def EACH_STORED(term: Expr) -> Expr | str:  # noqa: N802
    match call(term):
        case "map", head, [Lambda(x) as function, xs]:
            pass
        case _:
            return "expected a map of a function"
    stored = (part for part in closed_parts(function.body) if is_global(part) and x.name in part.free)
    part = next(stored, None)
    if part is None:
        return "nothing is stored for each element"
    _, to_memory, (value,) = application(part)
    each = mapped(Lambda(x, value, value.origin), xs)
    to_global = instance("toMem", (*to_memory.arguments[:-1], each.type), part.origin)
    return simplify(separated(head, function, xs, part, apply(to_global, each, origin=part.origin)))


# a function around a term, and what it is applied to where that has a name by it
Around = tuple[Lambda, Expr | None]


def _stored(term: Expr, around: tuple[Around, ...]) -> Iterator[tuple[Expr, Expr]]:
    """What is stored in global memory, the innermost first, and what it is with the lets that it uses."""
    for child, given in _scopes(term):
        inner = around if given is None else (*around, given)
        yield from _stored(child, inner)
    if is_global(term) and (value := _closed(term, around)) is not None:
        yield term, value


def _scopes(term: Expr) -> Iterator[tuple[Expr, Around | None]]:
    """The parts of a term, and the function that a part is the body of."""
    applied = call(term)
    if applied is not None and applied[0] == "let" and len(applied[2]) == 2:
        value, function = applied[2]
        named = value
    elif isinstance(term, Apply) and isinstance(term.function, Lambda):
        function, named = term.function, term.argument
    else:
        for child in children(term):
            yield child, (term, None) if isinstance(term, Lambda) else None
        return
    yield named, None
    if isinstance(function, Lambda):
        yield function.body, (function, named)
    else:
        yield function, None


def _closed(stored: Expr, around: tuple[Around, ...]) -> Expr | None:
    """With the lets inside of which it stands, as far as it uses them; None if it uses what a loop binds."""
    _, head, (value,) = application(stored)
    for function, named in reversed(around):
        if function.parameter.name not in value.free:
            continue
        if named is None:
            return None
        value = _let(named, Lambda(function.parameter, value, function.origin))
    return apply(head, value, origin=stored.origin)


def _replaced(term: Expr, part: Expr, name: Identifier) -> Expr:
    """Equal values are stored once, whatever the names of what they bind."""
    if term is part or (is_global(term) and alpha_equal(term, part)):
        return name
    return with_children(term, tuple(_replaced(child, part, name) for child in children(term)))
