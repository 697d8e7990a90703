"""Rules about values chosen and listed: `select`, `generate`, `idx`, `makeArray`."""

from __future__ import annotations

from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rewrites.typed import instance
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    apply,
    call,
    fresh_name,
)
from rise.nat import Nat, constant
from rise.normal import simplify
from rise.primitives.declare import primitive
from rise.types import Array, Data, is_data

# --- select -------------------------------------------------------------------------------------------

SELECT_SAME = rule(
    "select(same)", "select(c)(x)(x)", "x", meaning="A selection between two equal terms is that term."
)
SELECT_TRUE = rule(
    "select(true)", "select(true)(x)(y)", "x", meaning="A selection whose condition holds is the first term."
)
SELECT_FALSE = rule(
    "select(false)",
    "select(false)(x)(y)",
    "y",
    meaning="A selection whose condition fails is the second term.",
)
SELECT_MAP = rule(
    "select of *f",
    "select(c)(xs |> map(f))(ys |> map(f))",
    "select(c)(xs)(ys) |> map(f)",
    meaning="A selection between two maps of one function is a map of the selected array.",
)
SELECT_TAKE = rule(
    "select >> take",
    "select(c)(xs)(ys) |> take(n)",
    "select(c)(xs |> take(n))(ys |> take(n))",
    meaning="The beginning of a selected array is selected between beginnings.",
)
SELECT_DROP = rule(
    "select >> drop",
    "select(c)(xs)(ys) |> drop(n)",
    "select(c)(xs |> drop(n))(ys |> drop(n))",
    meaning="The rest of a selected array is selected between rests.",
)
SELECT_SPLIT = rule(
    "select >> S",
    "select(c)(xs)(ys) |> split(n)",
    "select(c)(xs |> split(n))(ys |> split(n))",
    meaning="The parts of a selected array are selected between the parts of both.",
)
SELECT_PAIR = rule(
    "select of pairs",
    "select(c)((x, y))((u, v))",
    "(select(c)(x)(u), select(c)(y)(v))",
    meaning="A selection between pairs selects each member.",
)
SELECT_ZIP = rule(
    "select of zips",
    "select(c)(zip(xs)(ys))(zip(us)(vs))",
    "zip(select(c)(xs)(us))(select(c)(ys)(vs))",
    meaning="A selection between zips selects each component.",
)
MAP_OUTSIDE_GENERATE_SELECT = rule(
    "mapOutsideGenerateSelect",
    "generate(fun(i => select(c(i))(xs |> map(f))(xs |> map(g))))",
    "xs |> map(fun(x => generate(fun(i => select(c(i))(f(x))(g(x)))))) |> transpose",
    meaning="A choice between maps of one array is one map that makes all choices.",
)

# --- generate and idx ---------------------------------------------------------------------------------

IDX_MAP = rule("*f >> idx", "idx(i)(xs |> map(f))", "f(idx(i)(xs))", meaning="Only one element is needed.")
IDX_GENERATE = rule(
    "generate >> idx",
    "idx(i)(generate(f))",
    "f(i)",
    meaning="An element of a generated array is the function at its index.",
)
IDX_ZIP = rule(
    "zip >> idx",
    "idx(i)(zip(xs)(ys))",
    "(idx(i)(xs), idx(i)(ys))",
    meaning="An element of a zip is the pair of the elements.",
)
IDX_TRANSPOSE = rule(
    "T >> idx",
    "idx(i)(xs |> transpose)",
    "xs |> map(fun(r => idx(i)(r)))",
    meaning="A row of a transposed matrix is a column of the matrix.",
)
IDX_GATHER = rule(
    "gather >> idx",
    "idx(i)(xs |> gather(is))",
    "idx(idx(i)(is))(xs)",
    meaning="An element that was gathered is the one at its index.",
)
IDX_SELECT = rule(
    "select >> idx",
    "idx(i)(select(c)(xs)(ys))",
    "select(c)(idx(i)(xs))(idx(i)(ys))",
    meaning="An element of a selected array is selected between the elements.",
)
GENERATE_IDX = rule(
    "generate(idx)",
    "generate(fun(i => idx(i)(xs)))",
    "xs",
    meaning="An array generated from all elements of another one is that array.",
)
ARRAY_AS_GENERATE = rule(
    "generate(idx), introduced", "xs", "generate(fun(i => idx(i)(xs)))", meaning="An array by its indices."
)
GENERATE_TRANSPOSE = rule(
    "**generate >> T",
    "generate(fun(i => generate(fun(j => h(i, j))))) |> transpose",
    "generate(fun(j => generate(fun(i => h(i, j)))))",
    meaning="Generating a matrix transposed exchanges the indices.",
)
GENERATE_ZIP = rule(
    "zip of generate",
    "zip(generate(f))(generate(g))",
    "generate(fun(i => (f(i), g(i))))",
    meaning="A zip of generated arrays generates the pairs.",
)
GENERATE_REDUCE = rule(
    "generate >> reduceSeq",
    "generate(h) |> reduceSeq(Local)(fun(acc, y => g(acc, y)), z)",
    "generate(fun(i => i)) |> reduceSeq(Local)(fun(acc, i => g(acc, h(i))), z)",
    meaning="A fold over indices.",
)

# --- listed values ------------------------------------------------------------------------------------


def _values(term: Expr) -> list[Expr] | None:
    """The values of `makeArray(n)(x1, …, xn)`."""
    applied = call(term)
    if applied is None or applied[0] != "makeArray" or len(applied[2]) != applied[1].declaration.given[0]:
        return None
    return applied[2]


def _listed(values: list[Expr], term: Expr) -> Expr:
    member = primitive("makeArray").member(len(values))
    return apply(instance(member, (values[0].type,), term.origin), *values, origin=term.origin)


def _map(function: Lambda, xs: Expr, size: Nat) -> Expr:
    types = (size, function.parameter.type, function.body.type)
    return apply(instance("map", types, xs.origin), function, xs, origin=xs.origin)


@computed(
    "idxReduction",
    "idx(i)(makeArray(n)(x1, …, xn)) → xi, i a number",
    ("fun((x: i32, y: i32) => idx(1)(makeArray(3)(x, y, x + y)))", "fun(x: f32 => idx(0)(makeArray(1)(x)))"),
    "An element of listed values.",
)
def IDX_REDUCTION(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    applied = call(term)
    if applied is None or applied[0] != "idx" or len(applied[2]) != 2:
        return "expected `idx`"
    index, array = applied[2]
    values = _values(array)
    if values is None or not isinstance(index, Literal):
        return "expected a number as the index of listed values"
    return values[int(index.value)]


def _same_map(parts: list[Expr]) -> tuple[list[Lambda], Expr, Nat] | str:
    """The functions of maps of one array."""
    functions: list[Lambda] = []
    arrays: list[Expr] = []
    for part in parts:
        applied = call(part)
        if applied is None or applied[0] != "map" or len(applied[2]) != 2:
            return "a value is not a map"
        function, xs = applied[2]
        if not isinstance(function, Lambda):
            return "expected a map of a function"
        functions.append(function)
        arrays.append(xs)
    if not all(alpha_equal(arrays[0], xs) for xs in arrays) or not isinstance(arrays[0].type, Array):
        return "the maps are of different arrays"
    return functions, arrays[0], arrays[0].type.size


@computed(
    "mapOutsideMakeArray",
    "makeArray(n)(xs |> map(f1), …, xs |> map(fn))"
    " → xs |> map(x => makeArray(n)(f1(x), …, fn(x))) |> transpose",
    (
        "fun(xs: 5.i32 => makeArray(3)(xs |> map(fun(x => x + 1)), xs |> map(fun(x => x * x)),"
        " xs |> map(fun(y => 2 - y))))",
        "fun((xs: 2.3.f32, c: f32) => makeArray(2)(xs |> map(fun(r => r |> map(fun(x => x * c)))),"
        " xs |> map(fun(r => r))))",
    ),
    "Listed maps of one array are one map, which lists.",
)
def MAP_OUTSIDE_MAKE_ARRAY(term: Expr) -> Expr | str:  # noqa: N802
    values = _values(term)
    if values is None:
        return "expected listed values"
    maps = _same_map(values)
    if isinstance(maps, str):
        return maps
    functions, xs, size = maps
    name = fresh_name(functions[0].parameter.name, frozenset().union(*(f.free for f in functions)))
    x = Identifier(name, functions[0].parameter.type, term.origin)
    body = _listed([Apply(f, x, f.origin) for f in functions], term)
    mapped = _map(Lambda(x, body, term.origin), xs, size)
    swapped = (size, constant(len(values)), functions[0].body.type)
    return simplify(apply(instance("transpose", swapped, term.origin), mapped))


def _same_function(parts: list[Expr]) -> tuple[Expr, list[Expr]] | str:
    """f and the arguments, where the parts are f(x1), …, f(xn) with one f."""
    applications = [part for part in parts if isinstance(part, Apply)]
    if len(applications) != len(parts) or not is_data(applications[0].argument.type):
        return "a value is not an application"
    function = applications[0].function
    if not all(alpha_equal(function, a.function) for a in applications):
        return "the functions differ"
    return function, [a.argument for a in applications]


@computed(
    "fOutsideMakeArray",
    "makeArray(n)(f(x1), …, f(xn)) → makeArray(n)(x1, …, xn) |> map(f)",
    (
        "fun((x: i32, y: i32) => makeArray(3)(neg(x), neg(y), neg(x + y)))",
        "fun((xs: 2.f32, ys: 2.f32) => makeArray(2)(xs |> reduce(+, 0), ys |> reduce(+, 0)))",
    ),
    "What is done to each of the listed values is a map.",
)
def F_OUTSIDE_MAKE_ARRAY(term: Expr) -> Expr | str:  # noqa: N802
    values = _values(term)
    if values is None:
        return "expected listed values"
    parts = _same_function(values)
    if isinstance(parts, str):
        return parts
    function, operands = parts
    x = Identifier(fresh_name("x", function.free), operands[0].type, term.origin)
    mapped = Lambda(x, Apply(function, x, term.origin), term.origin)
    return _map(mapped, _listed(operands, term), constant(len(values)))


@computed(
    "fOutsideSelect",
    "select(c)(f(x))(f(y)) → f(select(c)(x)(y))",
    (
        "fun((c: bool, x: i32, y: i32) => select(c)(neg(x))(neg(y)))",
        "fun((c: bool, xs: 3.f32, ys: 3.f32, z: f32) => select(c)(xs |> reduce(+, z))(ys |> reduce(+, z)))",
    ),
    "What is done to both is done to the one that is chosen.",
)
def F_OUTSIDE_SELECT(term: Expr) -> Expr | str:  # noqa: N802
    applied = call(term)
    if applied is None or applied[0] != "select" or len(applied[2]) != 3:
        return "expected `select`"
    _, head, (condition, *branches) = applied
    parts = _same_function(branches)
    if isinstance(parts, str):
        return parts
    function, operands = parts
    type_: Data = operands[0].type  # type: ignore[assignment]  # checked to be data
    chosen = apply(Primitive(head.declaration, (type_,), term.origin), condition, *operands)
    return Apply(function, chosen, term.origin)
